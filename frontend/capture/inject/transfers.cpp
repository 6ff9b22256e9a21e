// Copies and fills: what moved, or the node of a graph that will move it.
#include "frontend/capture/inject/capture.h"
#include "frontend/capture/inject/settings.h"
#include "frontend/capture/inject/sink.h"

namespace heddle::capture {
namespace {

using namespace abi;

// Where one side of a copy lies. An array has no address.
struct Side {
  enum Kind : uint8_t { kDevice, kHost, kArray };
  Kind kind = kDevice;
  uint64_t address = 0;
  size_t pitch = 0;        // bytes from row to row
  size_t layer_bytes = 0;  // from layer to layer
};

struct Copy {
  Side destination;
  Side source;
  size_t width = 0;  // bytes of a row
  size_t rows = 1;
  size_t layers = 1;
  Handle stream = nullptr;
  bool synchronous = false;
  uint64_t node = 0;
};

// A call in a stream that is being captured made a node of a graph: nothing was moved.
uint64_t NodeOfCall() { return ThisThread().created_node; }

uint64_t Address(const Side& side, Side::Kind kind) { return side.kind == kind ? side.address : 0; }

// Rows that touch are one row, layers that touch are rows.
void Flatten(Copy* copy) {
  if (copy->layers > 1 && copy->rows == 1) {
    copy->rows = copy->layers;
    copy->layers = 1;
    copy->destination.pitch = copy->destination.layer_bytes;
    copy->source.pitch = copy->source.layer_bytes;
  }
  if (copy->rows <= 1 || copy->destination.pitch != copy->width || copy->source.pitch != copy->width) return;
  copy->width *= copy->rows;
  copy->rows = 1;
  if (copy->layers > 1) Flatten(copy);
}

// What goes to the device is the host's memory: reading it calls nothing. A node's is read when its graph runs, which nobody sees.
bool KeepsData(const Copy& copy) {
  if (copy.node != 0 || copy.source.kind != Side::kHost || copy.destination.kind != Side::kDevice ||
      copy.source.address == 0)
    return false;
  if (TheSettings().snapshot == Snapshot::kAll) return true;
  size_t bytes = 0;
  return TheSettings().snapshot == Snapshot::kIndex &&
         !__builtin_mul_overflow(copy.rows * copy.layers, copy.width, &bytes) && bytes <= kIndexBytes;
}

void WritePlace(const Copy& copy, const CallbackData& data, Encoder* out) {
  out->Varint(4, reinterpret_cast<uint64_t>(copy.stream));
  out->Varint(5, data.context_uid);
  out->Varint(6, data.correlation_id);
  out->Varint(8, copy.node);
  out->Varint(15, copy.synchronous);
}

// One row, in pieces that fit a record.
void WriteData(const Copy& copy, uint64_t destination, uint64_t source, const CallbackData& data) {
  constexpr size_t kPiece = kMaxRecordBytes / 2;
  for (size_t done = 0; done < copy.width; done += kPiece) {
    const size_t piece = copy.width - done < kPiece ? copy.width - done : kPiece;
    if (Record record(kCopyRecord, piece + 128); record) {
      record->Varint(1, destination + done);
      record->Varint(3, piece);
      WritePlace(copy, data, record.operator->());
      record->Bytes(7, reinterpret_cast<const void*>(source + done), piece);
    }
  }
}

void WriteCopy(const CallbackData& data, Copy copy) {
  Flatten(&copy);
  if (copy.width == 0 || copy.rows == 0 || copy.layers == 0) return;
  if (KeepsData(copy)) {
    for (size_t layer = 0; layer < copy.layers; ++layer)
      for (size_t row = 0; row < copy.rows; ++row)
        WriteData(
            copy,
            copy.destination.address + layer * copy.destination.layer_bytes + row * copy.destination.pitch,
            copy.source.address + layer * copy.source.layer_bytes + row * copy.source.pitch, data);
    return;
  }
  if (Record record(kCopyRecord, 256); record) {
    record->Varint(1, Address(copy.destination, Side::kDevice));
    record->Varint(2, Address(copy.source, Side::kDevice));
    record->Varint(3, copy.width);
    WritePlace(copy, data, record.operator->());
    if (copy.rows > 1) {
      record->Varint(9, copy.rows);
      record->Varint(10, copy.destination.pitch);
      record->Varint(11, copy.source.pitch);
    }
    if (copy.layers > 1) {
      record->Varint(12, copy.layers);
      record->Varint(13, copy.destination.layer_bytes);
      record->Varint(14, copy.source.layer_bytes);
    }
  }
}

void OnCopy(const CallbackData& data, Side::Kind destination, Side::Kind source, bool has_stream) {
  const auto& p = *static_cast<const CopyParams*>(data.parameters);
  Copy copy;
  copy.destination = {destination, p.destination};
  copy.source = {source, p.source};
  copy.width = p.bytes;
  copy.stream = has_stream ? p.stream : nullptr;
  copy.synchronous = !has_stream;
  copy.node = NodeOfCall();
  WriteCopy(data, copy);
}

// Devices share one address space.
void OnPeerCopy(const CallbackData& data, bool has_stream) {
  const auto& p = *static_cast<const PeerCopyParams*>(data.parameters);
  Copy copy;
  copy.destination.address = p.destination;
  copy.source.address = p.source;
  copy.width = p.bytes;
  copy.stream = has_stream ? p.stream : nullptr;
  copy.synchronous = !has_stream;
  copy.node = NodeOfCall();
  WriteCopy(data, copy);
}

Side SideOf(uint32_t type, uint64_t host, uint64_t device, size_t x, size_t y, size_t z, size_t pitch,
            size_t height) {
  Side side;
  side.kind = type == kHostMemory ? Side::kHost : type == kArrayMemory ? Side::kArray : Side::kDevice;
  side.pitch = pitch;
  side.layer_bytes = pitch * height;
  const uint64_t base = side.kind == Side::kHost ? host : device;
  side.address = side.kind == Side::kArray ? 0 : base + z * side.layer_bytes + y * pitch + x;
  return side;
}

Copy CopyOf(const Copy2D& p) {
  const auto side = [](const CopySide2D& s) {
    return SideOf(s.type, s.host, s.device, s.x_bytes, s.y, 0, s.pitch, 0);
  };
  Copy copy;
  copy.destination = side(p.destination);
  copy.source = side(p.source);
  copy.width = p.width_bytes;
  copy.rows = p.height;
  return copy;
}

Copy CopyOf(const Copy3D& p) {
  const auto side = [](const CopySide3D& s) {
    return SideOf(s.type, s.host, s.device, s.x_bytes, s.y, s.z, s.pitch, s.height);
  };
  Copy copy;
  copy.destination = side(p.destination);
  copy.source = side(p.source);
  copy.width = p.width_bytes;
  copy.rows = p.height;
  copy.layers = p.depth;
  return copy;
}

// Copy2DParams, Copy3DParams.
template <typename Params>
void OnCopyOfRows(const CallbackData& data, bool has_stream) {
  const auto& p = *static_cast<const Params*>(data.parameters);
  if (p.copy == nullptr) return;
  Copy copy = CopyOf(*p.copy);
  copy.stream = has_stream ? p.stream : nullptr;
  copy.synchronous = !has_stream;
  copy.node = NodeOfCall();
  WriteCopy(data, copy);
}

struct Fill {
  uint64_t address = 0;
  uint32_t value = 0;
  uint32_t element_bytes = 0;
  size_t count = 0;
  size_t rows = 1;
  size_t pitch = 0;
  Handle stream = nullptr;
  bool synchronous = false;
  uint64_t node = 0;
};

void WriteFill(const CallbackData& data, const Fill& fill) {
  const uint32_t mask = fill.element_bytes == 4 ? 0xffffffff : (1u << 8 * fill.element_bytes) - 1;
  if (Record record(kFillRecord, 192); record) {
    record->Varint(1, fill.address);
    record->Varint(2, fill.value & mask);
    record->Varint(3, fill.element_bytes);
    record->Varint(4, fill.count);
    record->Varint(5, reinterpret_cast<uint64_t>(fill.stream));
    record->Varint(6, data.context_uid);
    record->Varint(7, data.correlation_id);
    record->Varint(8, fill.node);
    if (fill.rows != 1) {
      record->Varint(9, fill.rows);
      record->Varint(10, fill.pitch);
    }
    record->Varint(11, fill.synchronous);
  }
}

void OnFill(const CallbackData& data, uint32_t element_bytes, bool has_stream) {
  const auto& p = *static_cast<const FillParams*>(data.parameters);
  WriteFill(data, {p.destination, p.value, element_bytes, p.count, 1, 0, has_stream ? p.stream : nullptr,
                   !has_stream, NodeOfCall()});
}

void OnFillOfRows(const CallbackData& data, uint32_t element_bytes, bool has_stream) {
  const auto& p = *static_cast<const Fill2DParams*>(data.parameters);
  WriteFill(data, {p.destination, p.value, element_bytes, p.width, p.height, p.pitch,
                   has_stream ? p.stream : nullptr, !has_stream, NodeOfCall()});
}

bool OnCopyOfRange(uint32_t call, const CallbackData& data) {
  switch (call) {
    case k_cuMemcpyHtoD_v2:
    case k_cuMemcpyHtoD_v2_ptds:
      OnCopy(data, Side::kDevice, Side::kHost, false);
      return true;
    case k_cuMemcpyHtoDAsync_v2:
    case k_cuMemcpyHtoDAsync_v2_ptsz:
      OnCopy(data, Side::kDevice, Side::kHost, true);
      return true;
    case k_cuMemcpyDtoH_v2:
    case k_cuMemcpyDtoH_v2_ptds:
      OnCopy(data, Side::kHost, Side::kDevice, false);
      return true;
    case k_cuMemcpyDtoHAsync_v2:
    case k_cuMemcpyDtoHAsync_v2_ptsz:
      OnCopy(data, Side::kHost, Side::kDevice, true);
      return true;
    case k_cuMemcpyDtoD_v2:
    case k_cuMemcpyDtoD_v2_ptds:
    case k_cuMemcpy:  // either side may be the host's: which one is seen by the allocations
    case k_cuMemcpy_ptds:
      OnCopy(data, Side::kDevice, Side::kDevice, false);
      return true;
    case k_cuMemcpyDtoDAsync_v2:
    case k_cuMemcpyDtoDAsync_v2_ptsz:
    case k_cuMemcpyAsync:
    case k_cuMemcpyAsync_ptsz:
      OnCopy(data, Side::kDevice, Side::kDevice, true);
      return true;
    case k_cuMemcpyPeer:
    case k_cuMemcpyPeer_ptds:
      OnPeerCopy(data, false);
      return true;
    case k_cuMemcpyPeerAsync:
    case k_cuMemcpyPeerAsync_ptsz:
      OnPeerCopy(data, true);
      return true;
    default:
      return false;
  }
}

bool OnCopyOfRows(uint32_t call, const CallbackData& data) {
  switch (call) {
    case k_cuMemcpy2D_v2:
    case k_cuMemcpy2D_v2_ptds:
    case k_cuMemcpy2DUnaligned_v2:
    case k_cuMemcpy2DUnaligned_v2_ptds:
      OnCopyOfRows<Copy2DParams>(data, false);
      return true;
    case k_cuMemcpy2DAsync_v2:
    case k_cuMemcpy2DAsync_v2_ptsz:
      OnCopyOfRows<Copy2DParams>(data, true);
      return true;
    case k_cuMemcpy3D_v2:
    case k_cuMemcpy3D_v2_ptds:
    case k_cuMemcpy3DPeer:
    case k_cuMemcpy3DPeer_ptds:
      OnCopyOfRows<Copy3DParams>(data, false);
      return true;
    case k_cuMemcpy3DAsync_v2:
    case k_cuMemcpy3DAsync_v2_ptsz:
    case k_cuMemcpy3DPeerAsync:
    case k_cuMemcpy3DPeerAsync_ptsz:
      OnCopyOfRows<Copy3DParams>(data, true);
      return true;
    default:
      return false;
  }
}

bool OnFillCall(uint32_t call, const CallbackData& data) {
  switch (call) {
#define HEDDLE_FILL(bits)                \
  case k_cuMemsetD##bits##_v2:           \
  case k_cuMemsetD##bits##_v2_ptds:      \
    OnFill(data, bits / 8, false);       \
    return true;                         \
  case k_cuMemsetD##bits##Async:         \
  case k_cuMemsetD##bits##Async_ptsz:    \
    OnFill(data, bits / 8, true);        \
    return true;                         \
  case k_cuMemsetD2D##bits##_v2:         \
  case k_cuMemsetD2D##bits##_v2_ptds:    \
    OnFillOfRows(data, bits / 8, false); \
    return true;                         \
  case k_cuMemsetD2D##bits##Async:       \
  case k_cuMemsetD2D##bits##Async_ptsz:  \
    OnFillOfRows(data, bits / 8, true);  \
    return true;
    HEDDLE_FILL(8)
    HEDDLE_FILL(16)
    HEDDLE_FILL(32)
#undef HEDDLE_FILL
    default:
      return false;
  }
}

bool OnTransferNode(uint32_t call, const CallbackData& data) {
  Handle node = nullptr;
  const void* transfer = nullptr;
  switch (call) {
    case k_cuGraphAddMemcpyNode:
    case k_cuGraphAddMemsetNode: {
      const auto& p = *static_cast<const GraphAddTransferParams*>(data.parameters);
      node = p.node == nullptr ? nullptr : *p.node;
      transfer = p.transfer;
      break;
    }
    case k_cuGraphMemcpyNodeSetParams:
    case k_cuGraphMemsetNodeSetParams: {
      const auto& p = *static_cast<const GraphSetTransferParams*>(data.parameters);
      node = p.node;
      transfer = p.transfer;
      break;
    }
    case k_cuGraphExecMemcpyNodeSetParams:
    case k_cuGraphExecMemsetNodeSetParams: {
      const auto& p = *static_cast<const GraphExecSetTransferParams*>(data.parameters);
      node = p.node;
      transfer = p.transfer;
      break;
    }
    default:
      return false;
  }
  if (node == nullptr || transfer == nullptr) return true;
  if (call == k_cuGraphAddMemcpyNode || call == k_cuGraphMemcpyNodeSetParams ||
      call == k_cuGraphExecMemcpyNodeSetParams)
    WriteCopyNode(*static_cast<const Copy3D*>(transfer), node, data);
  else
    WriteFillNode(*static_cast<const FillNodeParams*>(transfer), node, data);
  return true;
}

}  // namespace

void WriteCopyNode(const Copy3D& params, Handle node, const CallbackData& data) {
  Copy copy = CopyOf(params);
  copy.node = reinterpret_cast<uint64_t>(node);
  WriteCopy(data, copy);
}

void WriteFillNode(const FillNodeParams& p, Handle node, const CallbackData& data) {
  if (p.element_bytes != 1 && p.element_bytes != 2 && p.element_bytes != 4) return;
  WriteFill(data, {p.destination, p.value, p.element_bytes, p.width, p.height, p.pitch, nullptr, false,
                   reinterpret_cast<uint64_t>(node)});
}

bool OnTransferCall(uint32_t call, const CallbackData& data) {
  return OnCopyOfRange(call, data) || OnFillCall(call, data) || OnCopyOfRows(call, data) ||
         OnTransferNode(call, data);
}

}  // namespace heddle::capture
