#include "frontend/emulator/float_format.h"

#include <algorithm>
#include <array>

namespace heddle::emulator {
namespace {

// A format below float: significand bits with the hidden one, least exponent of a normal number.
struct Format {
  int precision;
  int least_exponent;
  uint32_t exponent_bias;
  uint32_t largest;   // magnitude bits of the largest finite number
  uint32_t infinity;  // magnitude bits of infinity or, where there is none, of NaN
};

constexpr Format kHalf{11, -14, 15, 0x7bff, 0x7c00};
constexpr Format kBFloat{8, -126, 127, 0x7f7f, 0x7f80};
constexpr Format kE4M3{4, -6, 7, 0x7e, 0x7f};
constexpr Format kE5M2{3, -14, 15, 0x7b, 0x7c};

// Magnitude bits of |value| (finite, or infinite) rounded to the format.
uint32_t RoundMagnitude(float value, const Format& format, Rounding rounding) {
  const bool negative = std::signbit(value);
  const double magnitude = std::fabs(static_cast<double>(value));
  const bool to_infinity = rounding == Rounding::kNearest || (rounding == Rounding::kUp && !negative) ||
                           (rounding == Rounding::kDown && negative);
  if (std::isinf(magnitude)) return format.infinity;
  if (magnitude == 0) return 0;
  const int exponent = std::max(std::ilogb(magnitude), format.least_exponent);
  const int unit = exponent - (format.precision - 1);  // weight of the last bit
  const double scaled = std::ldexp(magnitude, -unit);
  const double floor = std::floor(scaled);
  const double rest = scaled - floor;
  double rounded = floor;
  if (rounding == Rounding::kNearest) {
    const bool odd = std::fmod(floor, 2.0) != 0;
    if (rest > 0.5 || (rest == 0.5 && odd)) rounded += 1;
  } else if (rest != 0 && to_infinity) {
    rounded += 1;
  }
  // A significand of `precision` bits in units of 2^unit; carries propagate into the exponent by themselves.
  const auto significand = static_cast<uint32_t>(rounded);
  const uint32_t hidden = 1u << (format.precision - 1);
  const uint32_t bits = significand < hidden ? significand
                                             : ((static_cast<uint32_t>(exponent) + format.exponent_bias)
                                                << (format.precision - 1)) +
                                                   (significand - hidden);
  if (bits > format.largest) return to_infinity ? format.infinity : format.largest;
  return bits;
}

uint8_t NarrowSaturating(float value, const Format& format) {
  if (std::isnan(value)) return 0x7f;
  const uint32_t bits = std::min(RoundMagnitude(value, format, Rounding::kNearest), format.largest);
  return static_cast<uint8_t>(bits | (std::signbit(value) ? 0x80u : 0u));
}

uint16_t Narrow16(float value, const Format& format, Rounding rounding) {
  if (std::isnan(value)) return kHalfNan;
  return static_cast<uint16_t>(RoundMagnitude(value, format, rounding) |
                               (std::signbit(value) ? 0x8000u : 0u));
}

}  // namespace

Rounding TakeRounding(Lowering& w) {
  const int mode = w.TakeOneOf({isa::Mod::kRN, isa::Mod::kRM, isa::Mod::kRP, isa::Mod::kRZ});
  return static_cast<Rounding>(std::max(mode, 0));
}

ScopedRounding::ScopedRounding(Rounding mode) {
  constexpr std::array<int, 4> kModes{FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
  std::fesetround(kModes[static_cast<size_t>(mode)]);
}

uint16_t NarrowToHalf(float value, Rounding rounding) { return Narrow16(value, kHalf, rounding); }
uint16_t NarrowToBFloat(float value, Rounding rounding) { return Narrow16(value, kBFloat, rounding); }
uint8_t NarrowToE4M3(float value) { return NarrowSaturating(value, kE4M3); }
uint8_t NarrowToE5M2(float value) { return NarrowSaturating(value, kE5M2); }

}  // namespace heddle::emulator
