#include "tests/property/opcode_suite/inputs.h"

#include <array>
#include <random>

namespace suite {
namespace {

using Random = std::mt19937_64;

template <size_t N>
uint64_t Pick(Random& random, const std::array<uint64_t, N>& values) {
  return values[random() % N];
}

uint64_t Integer(Random& random) {
  static constexpr std::array<uint64_t, 16> kSpecial{0,
                                                     1,
                                                     2,
                                                     3,
                                                     31,
                                                     32,
                                                     63,
                                                     0xffff,
                                                     0x7fffffff,
                                                     0x80000000,
                                                     0xffffffff,
                                                     0x100000000,
                                                     0x7fffffffffffffff,
                                                     0x8000000000000000,
                                                     0xffffffffffffffff,
                                                     0xfffffffffffffffe};
  switch (random() % 4) {
    case 0:
      return Pick(random, kSpecial);
    case 1:
      return random() >> random() % 64;  // of every length
    case 2:
      return 0 - (random() >> random() % 64);
    default:
      return random();
  }
}

// A value with sign, a `bits`-bit exponent field near the bias, and random fraction.
uint64_t Moderate(Random& random, uint32_t exponent_bits, uint32_t fraction_bits, uint32_t spread) {
  const uint64_t bias = (uint64_t{1} << (exponent_bits - 1)) - 1;
  const uint64_t exponent = bias + random() % (2 * spread) - spread;
  const uint64_t fraction = random() & ((uint64_t{1} << fraction_bits) - 1);
  const uint64_t short_fraction =
      random() % 2 != 0 ? fraction : fraction >> fraction_bits / 2 << fraction_bits / 2;
  return (random() & 1) << (exponent_bits + fraction_bits) | exponent << fraction_bits | short_fraction;
}

uint64_t Float(Random& random, uint32_t spread) {
  static constexpr std::array<uint64_t, 20> kSpecial{
      0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x00800000, 0x7f7fffff,
      0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f812345, 0x3f800000,
      0xbf800000, 0x3f000000, 0x4b000000, 0x4f000000, 0xcf000000, 0x5f000000};
  switch (random() % 4) {
    case 0:
      return Pick(random, kSpecial);
    case 1:
      return random() & 0xffffffff;
    default:
      return Moderate(random, 8, 23, spread);
  }
}

uint64_t Double(Random& random, uint32_t spread) {
  static constexpr std::array<uint64_t, 16> kSpecial{0,
                                                     0x8000000000000000,
                                                     1,
                                                     0x000fffffffffffff,
                                                     0x0010000000000000,
                                                     0x7fefffffffffffff,
                                                     0x7ff0000000000000,
                                                     0xfff0000000000000,
                                                     0x7ff8000000000000,
                                                     0xfff8000000001234,
                                                     0x3ff0000000000000,
                                                     0xbff0000000000000,
                                                     0x41e0000000000000,
                                                     0xc1e0000000200000,
                                                     0x43e0000000000000,
                                                     0x3fe0000000000000};
  switch (random() % 4) {
    case 0:
      return Pick(random, kSpecial);
    case 1:
      return random();
    default:
      return Moderate(random, 11, 52, spread);
  }
}

uint64_t HalfPair(Random& random) {
  static constexpr std::array<uint64_t, 16> kSpecial{0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x7bff,
                                                     0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe12, 0x3c00,
                                                     0xbc00, 0x3f80, 0x7f80, 0x0080};
  uint64_t pair = 0;
  for (int half = 0; half < 2; ++half) {
    uint64_t bits = random() & 0xffff;
    if (random() % 4 == 0) bits = Pick(random, kSpecial);
    if (random() % 4 == 0) bits = Moderate(random, 5, 10, 6);
    pair |= bits << 16 * half;
  }
  return pair;
}

// Floats in the low word or doubles in all of it: an input is used as both.
uint64_t Any(Random& random, std::string_view family) {
  if (family == "integer" || family.starts_with("warp")) return Integer(random);
  if (family.starts_with("half")) return HalfPair(random) | HalfPair(random) << 32;
  const uint32_t spread = family == "convert" ? 40 : 30;
  switch (random() % 4) {
    case 0:
      return Double(random, spread);
    case 1:
      return family == "convert" ? Integer(random) : Double(random, spread);
    default:
      return Double(random, spread) >> 32 << 32 | Float(random, spread);
  }
}

}  // namespace

std::vector<Input> MakeInputs(std::string_view family, uint32_t count) {
  Random random(20240611);
  std::vector<Input> inputs(count);
  for (Input& input : inputs) input = {Any(random, family), Any(random, family), Any(random, family)};
  return inputs;
}

}  // namespace suite
