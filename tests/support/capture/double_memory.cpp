// Memory of libcuda's stand-in: allocations, copies and fills, tensor maps.
#include <sys/mman.h>

#include <cstring>
#include <utility>

#include "tests/support/capture/double_cuda.h"

namespace heddle::capture::testing {
namespace {

uint32_t MapMemory(uint64_t* address, size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *address = memory == MAP_FAILED ? 0 : reinterpret_cast<uint64_t>(memory);
  const std::lock_guard guard(S().lock);
  S().allocations[*address] = bytes;
  return *address == 0 ? 2 : 0;
}

void Move(const Api& api, Handle stream, uint8_t kind, uint64_t to, const void* from, size_t bytes) {
  Transfer(api, stream, kCopyNode, kind, bytes,
           [=] { std::memmove(reinterpret_cast<void*>(to), from, bytes); });
}

Copy3D Widened(const Copy2D& copy) {
  const auto side = [](const CopySide2D& s) {
    return CopySide3D{s.x_bytes, s.y, 0, 0, s.type, s.host, s.device, s.array, nullptr, s.pitch, 0};
  };
  return {side(copy.source), side(copy.destination), copy.width_bytes, copy.height, 1};
}

void MoveRows(const Api& api, Handle stream, const Copy3D& copy) {
  const bool from_host = copy.source.type == kHostMemory;
  Transfer(api, stream, kCopyNode, from_host ? 1 : 8, copy.width_bytes * copy.height * copy.depth,
           [copy] { RunCopy(copy); });
}

void Set(const Api& api, Handle stream, const FillNodeParams& fill) {
  Transfer(api, stream, kFillNode, 0, fill.element_bytes * fill.width * fill.height,
           [fill] { RunFill(fill); });
}

}  // namespace

void RunCopy(const Copy3D& copy) {
  const auto at = [](const CopySide3D& side, size_t layer, size_t row) {
    return (side.type == kHostMemory ? side.host : side.device) + side.x_bytes +
           side.pitch * (side.y + row + side.height * (side.z + layer));
  };
  for (size_t layer = 0; layer < copy.depth; ++layer)
    for (size_t row = 0; row < copy.height; ++row)
      std::memmove(reinterpret_cast<void*>(at(copy.destination, layer, row)),
                   reinterpret_cast<const void*>(at(copy.source, layer, row)), copy.width_bytes);
}

void RunFill(const FillNodeParams& fill) {
  for (size_t row = 0; row < fill.height; ++row)
    for (size_t i = 0; i < fill.width; ++i)
      std::memcpy(reinterpret_cast<void*>(fill.destination + row * fill.pitch + i * fill.element_bytes),
                  &fill.value, fill.element_bytes);
}

}  // namespace heddle::capture::testing

using namespace heddle::capture::testing;

extern "C" {

uint32_t cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  AllocParams params{address, bytes};
  API(cuMemAlloc_v2, params);
  return MapMemory(address, bytes);
}
uint32_t cuMemAllocAsync(uint64_t* address, size_t bytes, Handle) {
  AllocParams params{address, bytes};
  API(cuMemAllocAsync, params);
  return MapMemory(address, bytes);
}
uint32_t cuMemAllocFromPoolAsync(uint64_t* address, size_t bytes, Handle pool, Handle stream) {
  PoolAllocParams params{address, bytes, pool, stream};
  API(cuMemAllocFromPoolAsync, params);
  return MapMemory(address, bytes);
}
uint32_t cuMemFreeAsync(uint64_t address, Handle) {
  FreeParams params{address};
  API(cuMemFreeAsync, params);
  return 0;
}
uint32_t cuMemGetAddressRange_v2(uint64_t* base, size_t* bytes, uint64_t address) {
  ForbidInCallbacks("cuMemGetAddressRange");
  const std::lock_guard guard(S().lock);
  auto after = S().allocations.upper_bound(address);
  if (after == S().allocations.begin()) return 1;
  --after;
  if (address - after->first >= after->second) return 1;
  *base = after->first;
  *bytes = after->second;
  return 0;
}
uint32_t cuMemFree_v2(uint64_t address) {
  FreeParams params{address};
  API(cuMemFree_v2, params);
  return 0;
}
uint32_t cuMemcpyHtoD_v2(uint64_t destination, const void* source, size_t bytes) {
  CopyParams params{destination, reinterpret_cast<uint64_t>(source), bytes, nullptr};
  API(cuMemcpyHtoD_v2, params);
  Move(api, nullptr, 1, destination, source, bytes);
  return 0;
}
uint32_t cuMemcpyHtoDAsync_v2(uint64_t destination, const void* source, size_t bytes, Handle stream) {
  CopyParams params{destination, reinterpret_cast<uint64_t>(source), bytes, stream};
  API(cuMemcpyHtoDAsync_v2, params);
  Move(api, stream, 1, destination, source, bytes);
  return 0;
}
uint32_t cuMemcpyDtoH_v2(void* destination, uint64_t source, size_t bytes) {
  CopyParams params{reinterpret_cast<uint64_t>(destination), source, bytes, nullptr};
  API(cuMemcpyDtoH_v2, params);
  ForbidInCallbacks("cuMemcpyDtoH");
  {
    const std::lock_guard guard(S().lock);
    if (!S().capturing.empty()) return 900;  // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
  }
  std::memcpy(destination, reinterpret_cast<const void*>(source), bytes);
  return 0;
}
uint32_t cuMemcpyDtoD_v2(uint64_t destination, uint64_t source, size_t bytes) {
  CopyParams params{destination, source, bytes, nullptr};
  API(cuMemcpyDtoD_v2, params);
  Move(api, nullptr, 8, destination, reinterpret_cast<const void*>(source), bytes);
  return 0;
}
uint32_t cuMemcpyDtoDAsync_v2(uint64_t destination, uint64_t source, size_t bytes, Handle stream) {
  CopyParams params{destination, source, bytes, stream};
  API(cuMemcpyDtoDAsync_v2, params);
  Move(api, stream, 8, destination, reinterpret_cast<const void*>(source), bytes);
  return 0;
}
uint32_t cuMemcpy2DAsync_v2(const Copy2D* copy, Handle stream) {
  Copy2DParams params{copy, stream};
  API(cuMemcpy2DAsync_v2, params);
  MoveRows(api, stream, Widened(*copy));
  return 0;
}
uint32_t cuMemcpy3D_v2(const Copy3D* copy) {
  Copy3DParams params{copy, nullptr};
  API(cuMemcpy3D_v2, params);
  MoveRows(api, nullptr, *copy);
  return 0;
}
uint32_t cuMemcpyPeerAsync(uint64_t destination, Handle to, uint64_t source, Handle from, size_t bytes,
                           Handle stream) {
  PeerCopyParams params{destination, to, source, from, bytes, stream};
  API(cuMemcpyPeerAsync, params);
  Move(api, stream, 10, destination, reinterpret_cast<const void*>(source), bytes);
  return 0;
}
uint32_t cuMemsetD32_v2(uint64_t destination, uint32_t value, size_t count) {
  FillParams params{destination, value, count, nullptr};
  API(cuMemsetD32_v2, params);
  Set(api, nullptr, {destination, 0, value, 4, count, 1});
  return 0;
}
uint32_t cuMemsetD32Async(uint64_t destination, uint32_t value, size_t count, Handle stream) {
  FillParams params{destination, value, count, stream};
  API(cuMemsetD32Async, params);
  Set(api, stream, {destination, 0, value, 4, count, 1});
  return 0;
}
uint32_t cuMemsetD2D32Async(uint64_t destination, size_t pitch, uint32_t value, size_t width, size_t height,
                            Handle stream) {
  Fill2DParams params{destination, pitch, value, width, height, stream};
  API(cuMemsetD2D32Async, params);
  Set(api, stream, {destination, pitch, value, 4, width, height});
  return 0;
}
uint32_t cuTensorMapReplaceAddress(void* map, uint64_t address) {
  ReplaceAddressParams params{map, address};
  API(cuTensorMapReplaceAddress, params);
  std::memcpy(map, &address, sizeof address);
  return 0;
}
uint32_t cuTensorMapEncodeIm2col(void* map, uint32_t type, uint32_t rank, uint64_t address,
                                 const uint64_t* size, const uint64_t* stride, const int32_t* lower,
                                 const int32_t* upper, uint32_t channels, uint32_t pixels,
                                 const uint32_t* element_stride, uint32_t interleave, uint32_t swizzle,
                                 uint32_t promotion, uint32_t fill) {
  Im2colMapParams params{map,      type,   rank,           address,    size,    stride,    lower, upper,
                         channels, pixels, element_stride, interleave, swizzle, promotion, fill};
  API(cuTensorMapEncodeIm2col, params);
  std::memset(map, 1, kTensorMapBytes);
  return 0;
}
uint32_t cuTensorMapEncodeTiled(void* map, uint32_t type, uint32_t rank, uint64_t address,
                                const uint64_t* size, const uint64_t* stride, const uint32_t* box,
                                const uint32_t* element_stride, uint32_t interleave, uint32_t swizzle,
                                uint32_t promotion, uint32_t fill) {
  TensorMapParams params{map, type,           rank,       address, size,      stride,
                         box, element_stride, interleave, swizzle, promotion, fill};
  API(cuTensorMapEncodeTiled, params);
  std::memset(map, 0, kTensorMapBytes);  // any bytes that tell maps apart
  std::memcpy(map, &address, sizeof address);
  std::memcpy(static_cast<char*>(map) + 8, size, rank * sizeof *size);
  return 0;
}
}
