#include "tests/property/opcode_suite/reference.h"

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

}  // namespace suite
