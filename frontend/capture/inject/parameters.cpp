#include "frontend/capture/inject/parameters.h"

#include <cstring>

#include "frontend/capture/inject/abi.h"

namespace heddle::capture {
namespace {

constexpr size_t kMostExtraWords = 16;  // pairs of a key and a value

// The caller's own buffer of parameters; null where `extra` has none.
const uint8_t* ExtraBuffer(void** extra, size_t* size) {
  const uint8_t* buffer = nullptr;
  *size = 0;
  if (extra == nullptr) return nullptr;
  for (size_t i = 0; i < kMostExtraWords; i += 2) {
    const auto key = reinterpret_cast<uintptr_t>(extra[i]);
    if (key == abi::kExtraEnd) break;
    if (key == abi::kExtraBufferPointer) buffer = static_cast<const uint8_t*>(extra[i + 1]);
    if (key == abi::kExtraBufferSize && extra[i + 1] != nullptr)
      *size = *static_cast<const size_t*>(extra[i + 1]);
  }
  return buffer;
}

}  // namespace

Missing GatherParameters(void** kernel_params, void** extra, const FunctionInfo& function, uint8_t* out,
                         size_t* bytes) {
  *bytes = 0;
  size_t extra_size = 0;
  const uint8_t* buffer = ExtraBuffer(extra, &extra_size);
  if (kernel_params == nullptr && buffer != nullptr) {
    if (extra_size > kMaxParameterBytes) return kNoPointer;
    // The caller may round the size up, or leave out the padding at the end.
    const size_t size = function.has_layout ? function.layout.bytes : extra_size;
    std::memcpy(out, buffer, size < extra_size ? size : extra_size);
    if (size > extra_size) std::memset(out + extra_size, 0, size - extra_size);
    *bytes = size;
    return kNothingMissing;
  }
  if (!function.has_layout) return kNoLayout;
  if (function.layout.count == 0) return kNothingMissing;
  if (kernel_params == nullptr) return kNoPointer;
  std::memset(out, 0, function.layout.bytes);
  for (uint32_t i = 0; i < function.layout.count; ++i) {
    const ParameterSlot slot = function.layout.slots[i];
    if (slot.size == 0) continue;
    if (kernel_params[i] == nullptr) return kNoPointer;
    std::memcpy(out + slot.offset, kernel_params[i], slot.size);
  }
  *bytes = function.layout.bytes;
  return kNothingMissing;
}

}  // namespace heddle::capture
