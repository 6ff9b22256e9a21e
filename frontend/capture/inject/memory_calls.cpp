// Allocations and tensor maps; stream and event calls.
#include <cstring>

#include "frontend/capture/inject/capture.h"
#include "frontend/capture/inject/sink.h"
#include "frontend/capture/inject/snapshot.h"

namespace heddle::capture {
namespace {

using namespace abi;

void WriteAllocation(bool release, uint64_t address, uint64_t bytes, Handle pool = nullptr) {
  if (!release) NoteAllocation(address);
  if (Record record(kAllocationRecord, 64); record) {
    record->Varint(1, release);
    record->Varint(2, address);
    record->Varint(3, bytes);
    record->Varint(4, reinterpret_cast<uint64_t>(pool));
  }
}

// What all forms have; `p` is TensorMapParams, Im2colMapParams or WideMapParams.
template <typename Params>
void WriteMapFields(const Params& p, Encoder* out) {
  out->Bytes(1, p.map, kTensorMapBytes);
  out->Varint(2, p.type);
  out->Varint(3, p.address);
  out->Packed(4, p.size, p.rank);
  if (p.rank > 1 && p.stride_bytes != nullptr) out->Packed(5, p.stride_bytes, p.rank - 1);
  out->Packed(7, p.element_stride, p.rank);
  out->Varint(8, p.interleave);
  out->Varint(9, p.swizzle);
  out->Varint(10, p.promotion);
  out->Varint(11, p.fill);
}

template <typename Params>
bool IsMap(const Params& p) {
  return p.map != nullptr && p.rank >= 1 && p.rank <= 5;
}

void WriteTensorMap(const TensorMapParams& p) {
  if (!IsMap(p)) return;
  if (Record record(kTensorMapRecord, 512); record) {
    WriteMapFields(p, record.operator->());
    record->Packed(6, p.box, p.rank);
  }
}

void WriteCorners(const int32_t* lower, const int32_t* upper, size_t count, Encoder* out) {
  const auto zigzag = [](int32_t value) {
    return static_cast<uint32_t>(value) << 1 ^ static_cast<uint32_t>(value >> 31);
  };
  uint32_t values[2][3] = {};
  for (size_t i = 0; i < count && i < 3; ++i) {
    values[0][i] = lower == nullptr ? 0 : zigzag(lower[i]);
    values[1][i] = upper == nullptr ? 0 : zigzag(upper[i]);
  }
  out->Packed(14, values[0], count < 3 ? count : 3);
  out->Packed(15, values[1], count < 3 ? count : 3);
}

// The forms of convolutions, which have pixels in the place of a box.
template <typename Params>
void WriteMapOfPixels(const Params& p, uint32_t form, const int32_t* lower, const int32_t* upper,
                      size_t corners, Encoder* out) {
  WriteMapFields(p, out);
  out->Varint(13, form);
  WriteCorners(lower, upper, corners, out);
  out->Varint(16, p.channels_per_pixel);
  out->Varint(17, p.pixels_per_column);
}

void WriteTensorMap(const Im2colMapParams& p) {
  if (!IsMap(p)) return;
  if (Record record(kTensorMapRecord, 512); record)
    WriteMapOfPixels(p, 1, p.lower_corner, p.upper_corner, p.rank > 2 ? p.rank - 2 : 0, record.operator->());
}

void WriteTensorMap(const WideMapParams& p) {
  if (!IsMap(p)) return;
  if (Record record(kTensorMapRecord, 512); record) {
    WriteMapOfPixels(p, 2, &p.lower_corner, &p.upper_corner, 1, record.operator->());
    record->Varint(18, p.mode);
  }
}

void WriteReplacedMap(const ReplaceAddressParams& p) {
  if (p.map == nullptr) return;
  if (Record record(kTensorMapRecord, 512); record) {
    record->Bytes(1, p.map, kTensorMapBytes);
    record->Varint(3, p.address);
    record->Bytes(12, ThisThread().replaced_map, kTensorMapBytes);
  }
}

bool OnAllocationCall(uint32_t call, const CallbackData& data) {
  switch (call) {
    case k_cuMemAlloc_v2:
    case k_cuMemAllocManaged:
    case k_cuMemAllocAsync:
    case k_cuMemAllocAsync_ptsz: {
      const auto& p = *static_cast<const AllocParams*>(data.parameters);
      if (p.address != nullptr) WriteAllocation(false, *p.address, p.bytes);
      return true;
    }
    case k_cuMemAllocFromPoolAsync:
    case k_cuMemAllocFromPoolAsync_ptsz: {
      const auto& p = *static_cast<const PoolAllocParams*>(data.parameters);
      if (p.address != nullptr) WriteAllocation(false, *p.address, p.bytes, p.pool);
      return true;
    }
    case k_cuMemAllocPitch_v2: {
      const auto& p = *static_cast<const AllocPitchParams*>(data.parameters);
      if (p.address != nullptr && p.pitch != nullptr) WriteAllocation(false, *p.address, *p.pitch * p.height);
      return true;
    }
    case k_cuMemMap:
    case k_cuMemUnmap: {
      const auto& p = *static_cast<const MapParams*>(data.parameters);
      WriteAllocation(call == k_cuMemUnmap, p.address, p.bytes);
      return true;
    }
    case k_cuMemFree_v2:
    case k_cuMemFreeAsync:
    case k_cuMemFreeAsync_ptsz:
      WriteAllocation(true, static_cast<const FreeParams*>(data.parameters)->address, 0);
      return true;
    default:
      return false;
  }
}

}  // namespace

bool OnMemoryCall(uint32_t call, const CallbackData& data) {
  switch (call) {
    case k_cuTensorMapEncodeTiled:
      WriteTensorMap(*static_cast<const TensorMapParams*>(data.parameters));
      return true;
    case k_cuTensorMapEncodeIm2col:
      WriteTensorMap(*static_cast<const Im2colMapParams*>(data.parameters));
      return true;
    case k_cuTensorMapEncodeIm2colWide:
      WriteTensorMap(*static_cast<const WideMapParams*>(data.parameters));
      return true;
    case k_cuTensorMapReplaceAddress:
      WriteReplacedMap(*static_cast<const ReplaceAddressParams*>(data.parameters));
      return true;
    default:
      return OnAllocationCall(call, data);
  }
}

void OnEnter(uint32_t call, const CallbackData& data) {
  if (call != k_cuTensorMapReplaceAddress || data.parameters == nullptr) return;
  const auto& p = *static_cast<const ReplaceAddressParams*>(data.parameters);
  if (p.map != nullptr) std::memcpy(ThisThread().replaced_map, p.map, kTensorMapBytes);
}

bool OnStreamCall(uint32_t call, const CallbackData& data) {
  uint64_t stream = 0, event = 0;
  uint32_t operation = 0;
  switch (call) {
    case k_cuEventRecord:
    case k_cuEventRecord_ptsz:
    case k_cuEventRecordWithFlags:
    case k_cuEventRecordWithFlags_ptsz: {
      const auto& p = *static_cast<const EventRecordParams*>(data.parameters);
      stream = reinterpret_cast<uint64_t>(p.stream);
      event = reinterpret_cast<uint64_t>(p.event);
      break;
    }
    case k_cuStreamWaitEvent:
    case k_cuStreamWaitEvent_ptsz: {
      const auto& p = *static_cast<const StreamWaitParams*>(data.parameters);
      operation = 1;
      stream = reinterpret_cast<uint64_t>(p.stream);
      event = reinterpret_cast<uint64_t>(p.event);
      break;
    }
    case k_cuStreamSynchronize:
    case k_cuStreamSynchronize_ptsz:
      operation = 3;
      stream = *static_cast<const uint64_t*>(data.parameters);
      break;
    case k_cuEventSynchronize:
      operation = 4;
      event = *static_cast<const uint64_t*>(data.parameters);
      break;
    case k_cuCtxSynchronize:
      operation = 5;
      break;
    default:
      return false;
  }
  if (Record record(kStreamEventRecord, 64); record) {
    record->Varint(1, operation);
    record->Varint(2, stream);
    record->Varint(3, event);
    record->Varint(4, data.context_uid);
  }
  return true;
}

}  // namespace heddle::capture
