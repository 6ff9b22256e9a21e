// Allocations, copies, fills and tensor maps; stream and event calls.
#include "frontend/capture/inject/capture.h"
#include "frontend/capture/inject/settings.h"
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

// A call in a stream that is being captured made a node of a graph: nothing was moved.
bool IsOfGraph() { return ThisThread().created_node != 0; }

enum class Side : uint8_t { kDevice, kHost };

void WriteCopy(const CallbackData& data, const CopyParams& p, Side destination, Side source,
               bool has_stream) {
  if (IsOfGraph()) return;
  // What goes to the device is the host's memory: reading it calls nothing.
  const bool keep = source == Side::kHost && destination == Side::kDevice && p.source != 0 &&
                    TheSettings().snapshot != Snapshot::kNone &&
                    (TheSettings().snapshot == Snapshot::kAll || p.bytes <= kIndexBytes);
  constexpr size_t kPiece = kMaxRecordBytes / 2;
  size_t done = 0;
  do {
    const size_t piece = keep && p.bytes - done > kPiece ? kPiece : p.bytes - done;
    if (Record record(kCopyRecord, (keep ? piece : 0) + 128); record) {
      record->Varint(1, destination == Side::kDevice ? p.destination + done : 0);
      record->Varint(2, source == Side::kDevice ? p.source : 0);
      record->Varint(3, piece);
      record->Varint(4, has_stream ? reinterpret_cast<uint64_t>(p.stream) : 0);
      record->Varint(5, data.context_uid);
      record->Varint(6, data.correlation_id);
      if (keep) record->Bytes(7, reinterpret_cast<const void*>(p.source + done), piece);
    }
    done += piece;
  } while (done < p.bytes);
}

void WriteCopy(const CallbackData& data, Side destination, Side source, bool has_stream) {
  WriteCopy(data, *static_cast<const CopyParams*>(data.parameters), destination, source, has_stream);
}

// Devices share one address space.
void WritePeerCopy(const CallbackData& data, bool has_stream) {
  const auto& p = *static_cast<const PeerCopyParams*>(data.parameters);
  WriteCopy(data, {p.destination, p.source, p.bytes, has_stream ? p.stream : nullptr}, Side::kDevice,
            Side::kDevice, has_stream);
}

void WriteFill(const CallbackData& data, uint32_t element_bytes, bool has_stream) {
  if (IsOfGraph()) return;
  const auto& p = *static_cast<const FillParams*>(data.parameters);
  const uint32_t mask = element_bytes == 4 ? 0xffffffff : (1u << 8 * element_bytes) - 1;
  if (Record record(kFillRecord, 128); record) {
    record->Varint(1, p.destination);
    record->Varint(2, p.value & mask);
    record->Varint(3, element_bytes);
    record->Varint(4, p.count);
    record->Varint(5, has_stream ? reinterpret_cast<uint64_t>(p.stream) : 0);
    record->Varint(6, data.context_uid);
    record->Varint(7, data.correlation_id);
  }
}

void WriteTensorMap(const TensorMapParams& p) {
  if (p.map == nullptr || p.rank < 1 || p.rank > 5) return;
  if (Record record(kTensorMapRecord, 512); record) {
    record->Bytes(1, p.map, kTensorMapBytes);
    record->Varint(2, p.type);
    record->Varint(3, p.address);
    record->Packed(4, p.size, p.rank);
    if (p.rank > 1 && p.stride_bytes != nullptr) record->Packed(5, p.stride_bytes, p.rank - 1);
    record->Packed(6, p.box, p.rank);
    record->Packed(7, p.element_stride, p.rank);
    record->Varint(8, p.interleave);
    record->Varint(9, p.swizzle);
    record->Varint(10, p.promotion);
    record->Varint(11, p.fill);
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

bool OnFillCall(uint32_t call, const CallbackData& data) {
  switch (call) {
    case k_cuMemsetD8_v2:
    case k_cuMemsetD8_v2_ptds:
      WriteFill(data, 1, false);
      return true;
    case k_cuMemsetD16_v2:
    case k_cuMemsetD16_v2_ptds:
      WriteFill(data, 2, false);
      return true;
    case k_cuMemsetD32_v2:
    case k_cuMemsetD32_v2_ptds:
      WriteFill(data, 4, false);
      return true;
    case k_cuMemsetD8Async:
    case k_cuMemsetD8Async_ptsz:
      WriteFill(data, 1, true);
      return true;
    case k_cuMemsetD16Async:
    case k_cuMemsetD16Async_ptsz:
      WriteFill(data, 2, true);
      return true;
    case k_cuMemsetD32Async:
    case k_cuMemsetD32Async_ptsz:
      WriteFill(data, 4, true);
      return true;
    default:
      return false;
  }
}

}  // namespace

bool OnMemoryCall(uint32_t call, const CallbackData& data) {
  switch (call) {
    case k_cuMemcpyHtoD_v2:
    case k_cuMemcpyHtoD_v2_ptds:
      WriteCopy(data, Side::kDevice, Side::kHost, false);
      return true;
    case k_cuMemcpyHtoDAsync_v2:
    case k_cuMemcpyHtoDAsync_v2_ptsz:
      WriteCopy(data, Side::kDevice, Side::kHost, true);
      return true;
    case k_cuMemcpyDtoH_v2:
    case k_cuMemcpyDtoH_v2_ptds:
      WriteCopy(data, Side::kHost, Side::kDevice, false);
      return true;
    case k_cuMemcpyDtoHAsync_v2:
    case k_cuMemcpyDtoHAsync_v2_ptsz:
      WriteCopy(data, Side::kHost, Side::kDevice, true);
      return true;
    case k_cuMemcpyDtoD_v2:
    case k_cuMemcpyDtoD_v2_ptds:
    case k_cuMemcpy:  // either side may be the host's: which one is seen by the allocations
    case k_cuMemcpy_ptds:
      WriteCopy(data, Side::kDevice, Side::kDevice, false);
      return true;
    case k_cuMemcpyDtoDAsync_v2:
    case k_cuMemcpyDtoDAsync_v2_ptsz:
    case k_cuMemcpyAsync:
    case k_cuMemcpyAsync_ptsz:
      WriteCopy(data, Side::kDevice, Side::kDevice, true);
      return true;
    case k_cuMemcpyPeer:
    case k_cuMemcpyPeer_ptds:
      WritePeerCopy(data, false);
      return true;
    case k_cuMemcpyPeerAsync:
    case k_cuMemcpyPeerAsync_ptsz:
      WritePeerCopy(data, true);
      return true;
    case k_cuTensorMapEncodeTiled:
      WriteTensorMap(*static_cast<const TensorMapParams*>(data.parameters));
      return true;
    default:
      return OnAllocationCall(call, data) || OnFillCall(call, data);
  }
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
