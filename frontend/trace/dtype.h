// The element types of buffers, and their values as doubles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace heddle::trace {

// The numbers are stored in traces and equal those of launch.proto.
enum class DType : uint8_t {
  kUnspecified = 0,
  kF64 = 1,
  kF32 = 2,
  kTf32 = 3,  // stored as f32 with 10 bits of mantissa
  kF16 = 4,
  kBf16 = 5,
  kE4m3 = 6,  // OCP FP8: no infinity, 448 is the largest
  kE5m2 = 7,
  kI8 = 8,
  kI16 = 9,
  kI32 = 10,
  kI64 = 11,
  kU8 = 12,
  kU16 = 13,
  kU32 = 14,
  kU64 = 15,
  kBoolean = 16,  // one byte, 0 or 1
};
inline constexpr int kDTypeCount = 17;

uint32_t SizeOf(DType type);  // bytes; 0 for kUnspecified
bool IsFloat(DType type);
bool IsSigned(DType type);
std::string_view Name(DType type);  // "bf16"
std::optional<DType> DTypeFromName(std::string_view name);

// The lowest and the highest value. Of integers wider than 53 bits the nearest doubles inside the range.
double LowestOf(DType type);
double HighestOf(DType type);

// The bits of the nearest value of the type, ties to even. Beyond the range: floats become infinity where the
// type has one, e4m3 and integers saturate; NaN becomes the canonical NaN, of an integer 0.
uint64_t Encode(DType type, double value);
// Encode() of many values, one after the other in `out`; the same bits, faster.
void EncodeAll(DType type, std::span<const double> values, std::byte* out);
double Decode(DType type, uint64_t bits);
inline double Round(DType type, double value) { return Decode(type, Encode(type, value)); }

// Little-endian elements; `bytes` must hold element `index`.
double Load(DType type, std::span<const std::byte> bytes, uint64_t index);
void Store(DType type, double value, std::span<std::byte> bytes, uint64_t index);

// How many representable values lie between two encodings of one type (0: equal; -0 and +0 count as equal).
// NaN on one side only gives the largest number.
uint64_t StepsBetween(DType type, uint64_t a, uint64_t b);

}  // namespace heddle::trace
