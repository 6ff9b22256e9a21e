#include "tests/property/opcode_suite/reference.h"

#include <algorithm>
#include <cmath>

namespace suite {

uint32_t RoundTo(__float128 value, __float128 residual, const NarrowFormat& format, int mode) {
  if (value != value) return 0x7fff;
  // A __float128 keeps its sign in its last bit.
  const bool negative = (std::bit_cast<unsigned __int128>(value) >> 127) != 0;
  const uint32_t sign = negative ? 0x8000u : 0u;
  __float128 magnitude = negative ? -value : value;
  const __float128 beyond = negative ? -residual : residual;
  if (magnitude - magnitude != 0) return sign | format.infinity;
  if (magnitude == 0) return sign;

  int exponent = 0;
  __float128 scaled = magnitude;
  while (scaled >= 2) {
    scaled /= 2;
    ++exponent;
  }
  while (scaled < 1 && exponent > format.least_exponent) {
    scaled *= 2;
    --exponent;
  }
  // `scaled` in units of the last place.
  for (int i = 1; i < format.precision; ++i) scaled *= 2;
  auto units = static_cast<uint32_t>(scaled);
  const __float128 rest = scaled - units;
  bool up = false;
  if (mode == FE_TONEAREST) {
    const __float128 half = 0.5;
    up = rest > half || (rest == half && (beyond > 0 || (beyond == 0 && (units & 1) != 0)));
  } else if (mode != FE_TOWARDZERO && rest != 0) {
    up = (mode == FE_UPWARD) != negative;
  }
  units += up ? 1 : 0;
  const uint32_t hidden = 1u << (format.precision - 1);
  uint32_t bits = units;
  if (units >= hidden)
    bits = (static_cast<uint32_t>(exponent + static_cast<int>(format.bias)) << (format.precision - 1)) +
           (units - hidden);
  if (bits >= format.infinity) {
    const bool to_infinity =
        mode == FE_TONEAREST || (mode != FE_TOWARDZERO && (mode == FE_UPWARD) != negative);
    bits = to_infinity ? format.infinity : format.infinity - 1;
  }
  return sign | bits;
}

namespace {

struct ByteFormat {
  int mantissa_bits;
  int bias;
  uint32_t largest;  // finite code
};
constexpr ByteFormat kE4m3{3, 7, 0x7e}, kE5m2{2, 15, 0x7b};

double ValueOf(const ByteFormat& format, uint32_t code) {
  const int exponent = static_cast<int>(code >> format.mantissa_bits);
  const int mantissa = static_cast<int>(code & ((1u << format.mantissa_bits) - 1));
  const int hidden = exponent == 0 ? 0 : 1 << format.mantissa_bits;
  return std::ldexp(hidden + mantissa, (exponent == 0 ? 1 : exponent) - format.bias - format.mantissa_bits);
}

uint32_t Nearest(const ByteFormat& format, float x) {
  if (std::isnan(x)) return 0x7f;
  const double magnitude = std::min(std::abs(static_cast<double>(x)), ValueOf(format, format.largest));
  uint32_t best = 0;
  for (uint32_t code = 1; code <= format.largest; ++code) {
    const double distance = std::abs(ValueOf(format, code) - magnitude);
    const double least = std::abs(ValueOf(format, best) - magnitude);
    if (distance < least || (distance == least && code % 2 == 0)) best = code;
  }
  return best | (std::signbit(x) ? 0x80 : 0);
}

uint32_t HalfOf(const ByteFormat& format, uint32_t byte) {
  const uint32_t sign = (byte & 0x80) << 8, code = byte & 0x7f;
  if (code > format.largest)
    return format.mantissa_bits == 2 && code == 0x7c ? sign | 0x7c00 : 0x7fff;  // NaN
  const double value = ValueOf(format, code);
  if (value == 0) return sign;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // [0.5, 1)
  if (exponent + 14 <= 0)
    return sign | static_cast<uint32_t>(std::ldexp(value, 24));  // below 2^-14: subnormal
  return sign | static_cast<uint32_t>(exponent + 14) << 10 |
         static_cast<uint32_t>(std::ldexp(fraction * 2 - 1, 10));
}

}  // namespace

uint32_t NearestE4m3(float x) { return Nearest(kE4m3, x); }
uint32_t NearestE5m2(float x) { return Nearest(kE5m2, x); }
uint32_t HalfOfE4m3(uint32_t byte) { return HalfOf(kE4m3, byte & 0xff); }
uint32_t HalfOfE5m2(uint32_t byte) { return HalfOf(kE5m2, byte & 0xff); }

}  // namespace suite
