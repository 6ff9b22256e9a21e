#include "sim/isa/tensor_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace heddle::isa {
namespace {

struct Field {
  uint32_t word, shift, bits;
};
constexpr Field kRank{2, 4, 3}, kElement{2, 7, 4}, kInterleave{2, 11, 2}, kSwizzle{2, 13, 2}, kFill{2, 15, 1},
    kTf32{2, 16, 1}, kPromotion{2, 17, 2};
constexpr uint32_t kFirstStride = 3, kStrideHigh = 7, kFirstSize = 8, kElementStride = 13, kFirstBox = 14;
constexpr uint64_t kStrideUnit = 16;

using Words = std::array<uint32_t, kTensorMapBytes / 4>;

void Put(Words& words, Field f, uint64_t value) {
  const uint32_t mask = ((uint32_t{1} << f.bits) - 1) << f.shift;
  words[f.word] = (words[f.word] & ~mask) | (static_cast<uint32_t>(value << f.shift) & mask);
}
uint32_t Get(const Words& words, Field f) { return words[f.word] >> f.shift & ((uint32_t{1} << f.bits) - 1); }

constexpr Field BoxField(uint32_t d) {
  return d == 0 ? Field{kElementStride, 24, 8} : Field{kFirstBox, 8 * (d - 1), 8};
}

}  // namespace

uint32_t BytesOf(TensorElement element) {
  switch (element) {
    case TensorElement::kU8:
      return 1;
    case TensorElement::kU16:
    case TensorElement::kF16:
    case TensorElement::kBF16:
      return 2;
    case TensorElement::kU64:
    case TensorElement::kS64:
    case TensorElement::kF64:
      return 8;
    default:
      return 4;
  }
}

std::string_view Name(TensorElement element) {
  constexpr std::array<std::string_view, 13> kNames = {
      "u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32_ftz", "f64", "bf16", "tf32", "tf32_ftz"};
  const auto i = static_cast<size_t>(element);
  return i < kNames.size() ? kNames[i] : "unknown";
}

TensorMapBytes Encode(const TensorMap& map) {
  Words words{};
  words[0] = static_cast<uint32_t>(map.address);
  words[1] = static_cast<uint32_t>(map.address >> 32);
  const bool tf32 = map.element == TensorElement::kTF32 || map.element == TensorElement::kTF32Ftz;
  const TensorElement stored = map.element == TensorElement::kTF32      ? TensorElement::kF32
                               : map.element == TensorElement::kTF32Ftz ? TensorElement::kF32Ftz
                                                                        : map.element;
  Put(words, kRank, map.rank - 1u);
  Put(words, kElement, static_cast<uint64_t>(stored));
  Put(words, kInterleave, static_cast<uint64_t>(map.interleave));
  Put(words, kSwizzle, static_cast<uint64_t>(map.swizzle));
  Put(words, kFill, static_cast<uint64_t>(map.fill));
  Put(words, kTf32, tf32 ? 1 : 0);
  Put(words, kPromotion, static_cast<uint64_t>(map.promotion));
  for (uint32_t d = 0; d < kMaxTensorDimensions; ++d) {
    words[kFirstSize + d] = static_cast<uint32_t>(map.size[d] - 1);
    Put(words, {kElementStride, 3 * d, 3}, map.element_stride[d] - 1u);
    Put(words, BoxField(d), map.box[d] - 1u);
    if (d == 0) continue;
    const uint64_t units = map.stride_bytes[d] / kStrideUnit;
    words[kFirstStride + d - 1] = static_cast<uint32_t>(units);
    Put(words, {kStrideHigh, 4 * (d - 1), 4}, units >> 32);
  }
  TensorMapBytes bytes;
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

TensorMap DecodeTensorMap(std::span<const std::byte, kTensorMapBytes> bytes) {
  Words words;
  std::memcpy(words.data(), bytes.data(), bytes.size());
  TensorMap map;
  map.address = words[0] | uint64_t{words[1]} << 32;
  map.rank = static_cast<uint8_t>(Get(words, kRank) + 1);
  map.element = static_cast<TensorElement>(Get(words, kElement));
  if (Get(words, kTf32) != 0)
    map.element = map.element == TensorElement::kF32Ftz ? TensorElement::kTF32Ftz : TensorElement::kTF32;
  map.interleave = static_cast<TensorInterleave>(Get(words, kInterleave));
  map.swizzle = static_cast<TensorSwizzle>(Get(words, kSwizzle));
  map.fill = static_cast<TensorFill>(Get(words, kFill));
  map.promotion = static_cast<TensorPromotion>(Get(words, kPromotion));
  for (uint32_t d = 0; d < kMaxTensorDimensions; ++d) {
    map.size[d] = uint64_t{words[kFirstSize + d]} + 1;
    map.element_stride[d] = Get(words, {kElementStride, 3 * d, 3}) + 1;
    map.box[d] = Get(words, BoxField(d)) + 1;
    if (d == 0) continue;
    const uint64_t high = Get(words, {kStrideHigh, 4 * (d - 1), 4});
    map.stride_bytes[d] = (words[kFirstStride + d - 1] | high << 32) * kStrideUnit;
  }
  return map;
}

std::string CheckTensorMap(const TensorMap& map) {
  if (map.rank < 1 || map.rank > kMaxTensorDimensions) return fmt::format("rank {}", map.rank);
  if (map.element > TensorElement::kTF32Ftz)
    return fmt::format("element type {}", static_cast<int>(map.element));
  if (map.interleave != TensorInterleave::kNone)
    return "interleaved layouts are not supported: no kernel known to us uses one; a map without interleave "
           "can "
           "describe the same tensor with one more dimension";
  if (map.address % 16 != 0) return fmt::format("address 0x{:x} is no multiple of 16", map.address);
  constexpr std::array<uint32_t, 4> kSpan = {256 * 8, 32, 64, 128};
  const uint32_t row = map.RowBytes();
  if (row % 16 != 0) return fmt::format("rows of the box have {} bytes, no multiple of 16", row);
  if (row > kSpan[static_cast<size_t>(map.swizzle)])
    return fmt::format("rows of the box have {} bytes, more than the swizzle's span of {}", row,
                       kSpan[static_cast<size_t>(map.swizzle)]);
  for (uint32_t d = 0; d < map.rank; ++d) {
    if (map.size[d] < 1 || map.size[d] > uint64_t{1} << 32)
      return fmt::format("size {} of dimension {}", map.size[d], d);
    if (map.box[d] < 1 || map.box[d] > 256) return fmt::format("box size {} of dimension {}", map.box[d], d);
    if (map.element_stride[d] < 1 || map.element_stride[d] > 8)
      return fmt::format("element stride {} of dimension {}", map.element_stride[d], d);
    if (d > 0 && (map.stride_bytes[d] % 16 != 0 || map.stride_bytes[d] >= uint64_t{1} << 40))
      return fmt::format("stride {} of dimension {}: no multiple of 16 below 2^40", map.stride_bytes[d], d);
  }
  return {};
}

}  // namespace heddle::isa
