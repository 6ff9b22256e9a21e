// Tensor maps (CUtensorMap): 128 bytes that describe a tensor in global memory to the tensor memory accelerator.
//
// The layout is NVIDIA's and not documented. The fields that tensormap.replace edits were read off what ptxas 13.0 makes
// of each of them for sm_90a, and lie where the hardware has them, so that maps that kernels edit or build work:
//   word 0-1    global address
//   word 2      4-6 rank - 1; 7-10 element type; 11-12 interleave; 13-14 swizzle; 15 fill; 16 rounds to TF32
//   word 3-6    strides of dimensions 1 to 4 in units of 16 bytes, low words; their bits 32-35 in word 7, 4 bits each
//   word 8-12   size - 1 of dimensions 0 to 4
//   word 13     element stride - 1 of dimensions 0 to 4, 3 bits each; 24-31 box size - 1 of dimension 0
//   word 14     box sizes - 1 of dimensions 1 to 4, 8 bits each
// Nothing replaces the L2 promotion; it is kept in bits 17-18 of word 2, a choice of this project.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sim/base/result.h"

namespace heddle::isa {

inline constexpr uint32_t kTensorMapBytes = 128;
inline constexpr uint32_t kMaxTensorDimensions = 5;

// Numbers of PTX's tensormap.replace .elemtype.
enum class TensorElement : uint8_t {
  kU8,
  kU16,
  kU32,
  kS32,
  kU64,
  kS64,
  kF16,
  kF32,
  kF32Ftz,
  kF64,
  kBF16,
  kTF32,
  kTF32Ftz,
};
uint32_t BytesOf(TensorElement element);
std::string_view Name(TensorElement element);  // "u8", "bf16", ...

enum class TensorInterleave : uint8_t { kNone, k16B, k32B };
enum class TensorSwizzle : uint8_t { kNone, k32B, k64B, k128B };
enum class TensorFill : uint8_t { kZero, kNan };
enum class TensorPromotion : uint8_t { kNone, k64B, k128B, k256B };

// The arguments of cuTensorMapEncodeTiled. Dimension 0 is the innermost; its elements are contiguous.
struct TensorMap {
  TensorElement element = TensorElement::kF16;
  uint8_t rank = 1;
  TensorInterleave interleave = TensorInterleave::kNone;
  TensorSwizzle swizzle = TensorSwizzle::kNone;
  TensorFill fill = TensorFill::kZero;
  TensorPromotion promotion = TensorPromotion::kNone;
  uint64_t address = 0;
  std::array<uint64_t, kMaxTensorDimensions> size{1, 1, 1, 1, 1};  // elements
  std::array<uint64_t, kMaxTensorDimensions> stride_bytes{};       // [0] is not used
  std::array<uint32_t, kMaxTensorDimensions> box{1, 1, 1, 1, 1};   // elements
  std::array<uint32_t, kMaxTensorDimensions> element_stride{1, 1, 1, 1,
                                                            1};  // [0] has no effect without interleave

  // Of one row of the box, and of the whole box in shared memory.
  uint32_t RowBytes() const { return box[0] * BytesOf(element); }
  // Elements of dimension d >= 1 that a box brings.
  uint32_t BoxCount(uint32_t d) const { return (box[d] + element_stride[d] - 1) / element_stride[d]; }
  bool operator==(const TensorMap&) const = default;
};

using TensorMapBytes = std::array<std::byte, kTensorMapBytes>;

TensorMapBytes Encode(const TensorMap& map);
// Any bytes give a map whose arrays are in range; whether it makes sense says CheckTensorMap.
TensorMap DecodeTensorMap(std::span<const std::byte, kTensorMapBytes> bytes);

// What cuTensorMapEncodeTiled would refuse, and what is not supported; the text says which. Empty: fine.
std::string CheckTensorMap(const TensorMap& map);

}  // namespace heddle::isa
