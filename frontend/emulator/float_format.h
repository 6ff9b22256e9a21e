// Rounding, flushing and canonical NaNs of the floating-point units.
#pragma once

#include <cfenv>
#include <cmath>
#include <cstdint>

#include "frontend/emulator/half.h"
#include "frontend/emulator/lowering.h"

namespace heddle::emulator {

inline constexpr uint32_t kFloatSign = 0x80000000u;
inline constexpr uint32_t kFloatInfinity = 0x7f800000u;
inline constexpr uint32_t kFloatNan = 0x7fffffffu;
inline constexpr uint16_t kHalfNan = 0x7fff;

enum class Rounding : uint8_t { kNearest, kDown, kUp, kZero };

// RM, RP, RZ, or nearest when none of them (or RN) is there.
Rounding TakeRounding(Lowering& w);

// Sets the rounding mode of the host while it lives. Arithmetic that depends on it must stand in a function that the
// compiler cannot move across the calls: read from and write to memory that escapes.
class ScopedRounding {
 public:
  explicit ScopedRounding(Rounding mode);
  ~ScopedRounding() { std::fesetround(FE_TONEAREST); }
  ScopedRounding(const ScopedRounding&) = delete;
  ScopedRounding& operator=(const ScopedRounding&) = delete;
};

inline bool IsNan(uint32_t bits) { return (bits & ~kFloatSign) > kFloatInfinity; }

// Denormals become zeros of their sign.
inline uint32_t FlushDenormal(uint32_t bits) {
  return (bits & kFloatInfinity) == 0 ? bits & kFloatSign : bits;
}

inline uint32_t CanonicalNan(uint32_t bits) { return IsNan(bits) ? kFloatNan : bits; }

// To [0, 1]; NaN becomes +0.
inline uint32_t Saturate(uint32_t bits) {
  const float value = AsFloat(bits);
  return value > 0.0f ? (value < 1.0f ? bits : 0x3f800000u) : 0u;
}

// A float that keeps enough of `value` for one more rounding to a narrower format: the last bit of an inexact one is odd.
inline uint32_t FloatRoundedToOdd(double value) {
  const float nearest = static_cast<float>(value);
  const uint32_t bits = AsBits(nearest);
  if (!std::isfinite(value)) return bits;
  if (std::isinf(nearest)) return bits - 1;  // the largest finite number, which is odd
  const double error = value - static_cast<double>(nearest);
  if (error == 0 || (bits & 1) != 0) return bits;
  if (nearest == 0) return bits | 1;
  return (error < 0) == std::signbit(nearest) ? bits + 1 : bits - 1;
}

// a * b + c of narrow floats, as a float that is rounded to odd. The product of two formats with up to 12
// significant bits is exact in double.
inline uint32_t NarrowFma(float a, float b, float c) {
  const double product = static_cast<double>(a) * b;
  const double addend = c;
  double sum = product + addend;
  if (std::isfinite(sum)) {
    const double back = sum - product;
    const double error = (product - (sum - back)) + (addend - back);
    const uint64_t bits = AsBits(sum);
    if (error != 0 && (bits & 1) == 0) sum = AsDouble((error < 0) == std::signbit(sum) ? bits + 1 : bits - 1);
  }
  return FloatRoundedToOdd(sum);
}

// One correct rounding of an exact (or rounded to odd) float; NaN becomes the canonical one.
uint16_t NarrowToHalf(float value, Rounding rounding);
uint16_t NarrowToBFloat(float value, Rounding rounding);
uint8_t NarrowToE4M3(float value);  // saturating to finite
uint8_t NarrowToE5M2(float value);  // saturating to finite

}  // namespace heddle::emulator
