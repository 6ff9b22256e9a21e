// The host's answers for the opcode suite. Nothing here shares code with the emulator: narrow floats are computed in
// 113-bit arithmetic, directed roundings by the host's rounding mode on volatile operands.
#pragma once

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>

#include "tests/property/opcode_suite/common.h"

namespace suite {

// Casts as the case lists need them.
inline uint32_t U(uint64_t x) { return static_cast<uint32_t>(x); }
inline int32_t S(uint64_t x) { return static_cast<int32_t>(static_cast<uint32_t>(x)); }
inline uint32_t Bits(float x) { return std::bit_cast<uint32_t>(x); }
inline uint32_t Fb(float x) { return x != x ? 0x7fffffffu : Bits(x); }
inline uint64_t Db(double x) { return x != x ? 0x7ff8000000000000ull : std::bit_cast<uint64_t>(x); }
inline float HostNan() { return std::bit_cast<float>(0x7fffffffu); }

// Integers.
inline uint64_t HostCarryChain(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  const unsigned __int128 sum =
      (static_cast<unsigned __int128>(uint64_t{c} << 32 | a)) + (uint64_t{d} << 32 | b);
  return static_cast<uint64_t>(sum) ^ static_cast<uint64_t>(sum >> 64) << 7;
}
inline uint64_t HostBorrowChain(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  const uint64_t x = uint64_t{c} << 32 | a, y = uint64_t{d} << 32 | b;
  return (x - y) ^ (x < y ? uint64_t{0xffffffffu} : 0) << 7;
}
inline uint64_t HostAdd128High(uint64_t a, uint64_t b, uint64_t c) { return c + a + (a + b < a ? 1 : 0); }
inline uint64_t HostMadCarry(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return uint64_t{a} * b + (uint64_t{d} << 32 | c);
}
inline int32_t Divisor(int32_t x) { return x == 0 || x == -1 ? 3 : x; }
inline int64_t Divisor64(int64_t x) { return x == 0 || x == -1 ? 5 : x; }
template <typename T>
uint32_t Compare(T x, T y) {
  return (x < y ? 1u : 0u) | (x <= y ? 2u : 0u) | (x == y ? 4u : 0u) | (x > y ? 8u : 0u) |
         (x >= y ? 16u : 0u) | (x != y ? 32u : 0u);
}
inline uint32_t HostLop3(uint32_t table, uint32_t x, uint32_t y, uint32_t z) {
  uint32_t result = 0;
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t index = (x >> i & 1) << 2 | (y >> i & 1) << 1 | (z >> i & 1);
    result |= (table >> index & 1) << i;
  }
  return result;
}
inline uint32_t HostShiftLeft(uint32_t x, uint32_t s) { return s > 31 ? 0 : x << s; }
inline uint32_t HostShiftRight(uint32_t x, uint32_t s) { return s > 31 ? 0 : x >> s; }
inline uint32_t HostShiftRightSigned(uint32_t x, uint32_t s) {
  return static_cast<uint32_t>(static_cast<int32_t>(x) >> std::min(s, 31u));
}
inline uint64_t HostShiftLeft64(uint64_t x, uint32_t s) { return s > 63 ? 0 : x << s; }
inline uint64_t HostShiftRight64(uint64_t x, uint32_t s) { return s > 63 ? 0 : x >> s; }
inline uint64_t HostShiftRightSigned64(uint64_t x, uint32_t s) {
  return static_cast<uint64_t>(static_cast<int64_t>(x) >> std::min(s, 63u));
}
inline uint32_t HostFunnelLeft(uint32_t low, uint32_t high, uint32_t s) {
  return static_cast<uint32_t>((uint64_t{high} << 32 | low) << s >> 32);
}
inline uint32_t HostFunnelRight(uint32_t low, uint32_t high, uint32_t s) {
  return static_cast<uint32_t>((uint64_t{high} << 32 | low) >> s);
}
inline int HostFfs(uint64_t x) { return x == 0 ? 0 : std::countr_zero(x) + 1; }
inline uint32_t HostReverse(uint32_t x) {
  uint32_t result = 0;
  for (uint32_t i = 0; i < 32; ++i) result |= (x >> i & 1) << (31 - i);
  return result;
}
inline uint32_t HostBitFindSigned(uint32_t x) {
  const uint32_t y = x >> 31 != 0 ? ~x : x;
  return y == 0 ? ~0u : 31u - static_cast<uint32_t>(std::countl_zero(y));
}
inline uint32_t HostPermute(uint32_t x, uint32_t y, uint32_t selector) {
  const uint64_t bytes = uint64_t{y} << 32 | x;
  uint32_t result = 0;
  for (uint32_t k = 0; k < 4; ++k) {
    const uint32_t nibble = selector >> 4 * k & 15;
    const auto byte = static_cast<uint32_t>(bytes >> 8 * (nibble & 7) & 0xff);
    result |= ((nibble & 8) != 0 ? (byte >> 7) * 0xffu : byte) << 8 * k;
  }
  return result;
}
inline uint32_t HostB4e(uint32_t x, uint32_t y, uint32_t start) {
  return HostPermute(x, y, start == 0 ? 0x5670u : start == 1 ? 0x6701u : start == 2 ? 0x7012u : 0x0123u);
}
inline uint32_t HostEdgeClampLeft(uint32_t x, uint32_t s) {
  uint32_t result = 0;
  for (uint32_t k = 0; k < 4; ++k) result |= (x >> 8 * std::max(k, s) & 0xff) << 8 * k;
  return result;
}
inline uint32_t HostEdgeClampRight(uint32_t x, uint32_t s) {
  uint32_t result = 0;
  for (uint32_t k = 0; k < 4; ++k) result |= (x >> 8 * std::min(k, s) & 0xff) << 8 * k;
  return result;
}
inline uint32_t HostMask(uint32_t start, uint32_t length) {
  return static_cast<uint32_t>(((uint64_t{1} << length) - 1) << start);
}
inline uint32_t HostExtend(uint32_t x, uint32_t bits, bool is_signed) {
  uint32_t result = 0;
  for (uint32_t i = 0; i < 32; ++i) {
    if (i < bits) result |= x & 1u << i;
    if (i >= bits && is_signed && bits > 0) result |= (x >> (bits - 1) & 1) << i;
  }
  return result;
}
inline uint32_t HostInsert(uint32_t x, uint32_t y, uint32_t start, uint32_t length) {
  const uint32_t mask = HostMask(start, length);
  return (y & ~mask) | (static_cast<uint32_t>(uint64_t{x} << start) & mask);
}
inline int32_t HostSign24(uint32_t x) { return static_cast<int32_t>(x << 8) >> 8; }
inline int32_t HostField(uint32_t x, uint32_t position, uint32_t bits, bool is_signed) {
  return static_cast<int32_t>(HostExtend(x >> position, bits, is_signed));
}
inline uint32_t HostDot4(uint32_t x, uint32_t y, bool x_signed, bool y_signed) {
  int32_t sum = 0;
  for (uint32_t k = 0; k < 4; ++k) sum += HostField(x, 8 * k, 8, x_signed) * HostField(y, 8 * k, 8, y_signed);
  return static_cast<uint32_t>(sum);
}
inline uint32_t HostDot2(uint32_t x, uint32_t y, bool x_signed, bool y_signed) {
  int32_t sum = 0;
  for (uint32_t k = 0; k < 2; ++k)
    sum += HostField(x, 16 * k, 16, x_signed) * HostField(y, 8 * k, 8, y_signed);
  return static_cast<uint32_t>(sum);
}
template <typename F>
uint32_t HostBytes(uint32_t x, uint32_t y, F f) {
  uint32_t result = 0;
  for (uint32_t k = 0; k < 4; ++k)
    result |=
        (static_cast<uint32_t>(f(static_cast<int>(x >> 8 * k & 0xff), static_cast<int>(y >> 8 * k & 0xff))) &
         0xff)
        << 8 * k;
  return result;
}
inline uint32_t HostByteSum(uint32_t x) {
  return (x & 0xff) + (x >> 8 & 0xff) + (x >> 16 & 0xff) + (x >> 24);
}
inline uint32_t HostSaturate8(uint32_t x) {
  return static_cast<uint32_t>(std::clamp(static_cast<int32_t>(x), -128, 127)) & 0xff;
}
inline uint32_t HostSaturateU16(uint32_t x) {
  return static_cast<uint32_t>(std::clamp(static_cast<int32_t>(x), 0, 65535));
}

// Single and double precision.
template <typename T, typename F>
T Rounded(int mode, F f, T x, T y, T z) {
  volatile T vx = x, vy = y, vz = z;
  std::fesetround(mode);
  volatile T result = f(vx, vy, vz);
  std::fesetround(FE_TONEAREST);
  return result;
}
template <typename T>
T FromInt(int mode, int64_t x) {
  volatile int64_t v = x;
  std::fesetround(mode);
  volatile T result = static_cast<T>(v);
  std::fesetround(FE_TONEAREST);
  return result;
}
inline float NarrowDouble(int mode, double x) {
  volatile double v = x;
  std::fesetround(mode);
  volatile float result = static_cast<float>(v);
  std::fesetround(FE_TONEAREST);
  return result;
}
inline float Ftz(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }
inline float HostSat(float x) { return !(x > 0) ? 0.0f : x > 1 ? 1.0f : x; }
template <typename T>
T HostMin(T x, T y) {
  if (x != x) return y;
  if (y != y) return x;
  return x < y || (x == y && std::signbit(x)) ? x : y;
}
template <typename T>
T HostMax(T x, T y) {
  if (x != x) return y;
  if (y != y) return x;
  return x > y || (x == y && !std::signbit(x)) ? x : y;
}
template <typename T>
uint32_t FloatCompare(T x, T y) {
  return Compare(x, y) | (!(x < y) ? 64u : 0u) | (!(x >= y) ? 128u : 0u);
}
inline uint32_t HostUnorderedCompare(float x, float y) {
  const bool nan = x != x || y != y;
  return (nan || x < y ? 1u : 0u) | (nan || x <= y ? 2u : 0u) | (nan || x == y ? 4u : 0u) |
         (nan || x > y ? 8u : 0u) | (nan || x >= y ? 16u : 0u) | (nan || x != y ? 32u : 0u) |
         (nan ? 128u : 64u);
}

// Conversions. `high` is the first value that does not fit.
inline uint32_t ToInt(double value, double low, double high, uint32_t nan) {
  if (value != value) return nan;
  if (value < low) return static_cast<uint32_t>(static_cast<int64_t>(low));
  if (value >= high) return static_cast<uint32_t>(static_cast<int64_t>(high) - 1);
  return static_cast<uint32_t>(static_cast<int64_t>(value));
}
inline uint64_t ToInt64(double value) {
  if (value != value || value < -0x1p63) return uint64_t{1} << 63;
  return value >= 0x1p63 ? ~uint64_t{0} >> 1 : static_cast<uint64_t>(static_cast<int64_t>(value));
}
inline uint64_t ToUint64(double value) {
  if (value != value) return uint64_t{1} << 63;
  return value <= 0 ? 0 : value >= 0x1p64 ? ~uint64_t{0} : static_cast<uint64_t>(value);
}

// Narrow floats.
struct NarrowFormat {
  int precision;
  int least_exponent;
  uint32_t bias;
  uint32_t infinity;
};
inline constexpr NarrowFormat kHalfFormat{11, -14, 15, 0x7c00};
inline constexpr NarrowFormat kBfloatFormat{8, -126, 127, 0x7f80};

// value + residual, where |residual| is below the last bit of value, rounded once.
uint32_t RoundTo(__float128 value, __float128 residual, const NarrowFormat& format, int mode);

inline uint32_t RoundHalf(double value, int mode) { return RoundTo(value, 0, kHalfFormat, mode); }
inline uint32_t RoundBfloat(double value, int mode) { return RoundTo(value, 0, kBfloatFormat, mode); }
inline uint32_t RoundHalfExact(__float128 value, __float128 residual) {
  return RoundTo(value, residual, kHalfFormat, FE_TONEAREST);
}
inline uint32_t RoundBfloatExact(__float128 value, __float128 residual) {
  return RoundTo(value, residual, kBfloatFormat, FE_TONEAREST);
}
inline float HalfValue(uint32_t bits) {
  const uint32_t exponent = bits >> 10 & 31, mantissa = bits & 0x3ff;
  float magnitude;
  if (exponent == 31)
    magnitude = mantissa != 0 ? HostNan() : HUGE_VALF;
  else if (exponent == 0)
    magnitude = std::ldexp(static_cast<float>(mantissa), -24);
  else
    magnitude = std::ldexp(static_cast<float>(mantissa + 1024), static_cast<int>(exponent) - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}
inline float BfloatValue(uint32_t bits) { return std::bit_cast<float>(bits << 16); }

struct Wide {
  __float128 value;
  __float128 residual;
};
inline Wide Sum(__float128 x, __float128 y) {
  const __float128 sum = x + y;
  if (sum - sum != 0) return {sum, 0};
  const __float128 back = sum - x;
  return {sum, (x - (sum - back)) + (y - back)};
}
inline Wide Add(__float128 x, __float128 y, __float128) { return Sum(x, y); }
inline Wide Sub(__float128 x, __float128 y, __float128) { return Sum(x, -y); }
inline Wide Mul(__float128 x, __float128 y, __float128) { return {x * y, 0}; }
inline Wide Fma(__float128 x, __float128 y, __float128 z) { return Sum(x * y, z); }

template <typename Operation, typename Round, typename Value>
uint32_t Halves(uint32_t x, uint32_t y, uint32_t z, Operation operation, Round round, Value value) {
  const auto one = [&](uint32_t shift) {
    const Wide result =
        operation(value(x >> shift & 0xffff), value(y >> shift & 0xffff), value(z >> shift & 0xffff));
    return round(result.value, result.residual);
  };
  return one(0) | one(16) << 16;
}
template <typename F>
uint32_t Pairwise(uint32_t x, uint32_t y, F f) {
  return f(x & 0xffff, y & 0xffff) | f(x >> 16, y >> 16) << 16;
}
inline uint32_t HalfMin(uint32_t x, uint32_t y, bool maximum) {
  const bool x_nan = (x & 0x7fff) > 0x7c00, y_nan = (y & 0x7fff) > 0x7c00;
  if (x_nan && y_nan) return 0x7fff;
  if (x_nan) return y;
  if (y_nan) return x;
  const float fx = HalfValue(x), fy = HalfValue(y);
  if (fx == fy) return (x >> 15 != 0) != maximum ? x : y;
  return (fx < fy) != maximum ? x : y;
}
inline uint32_t Relu(uint32_t word, uint32_t infinity) {
  return Pairwise(word, word, [=](uint32_t x, uint32_t) {
    return (x & 0x7fff) <= infinity && (x & 0x8000) != 0 ? 0u : x;
  });
}
inline uint32_t Sat(uint32_t word, uint32_t infinity, uint32_t one) {
  return Pairwise(word, word, [=](uint32_t x, uint32_t) {
    return (x & 0x7fff) > infinity || (x & 0x8000) != 0 ? 0u : std::min(x, one);
  });
}
inline bool BothOrdered(uint32_t x, uint32_t y) {
  const auto nan = [](uint32_t bits) { return (bits & 0x7fff) > 0x7c00; };
  return !nan(x) && !nan(y) && !nan(x >> 16) && !nan(y >> 16);
}

// Across lanes.
template <typename F>
uint32_t WarpMask(const Input* w, F f) {
  uint32_t mask = 0;
  for (uint32_t i = 0; i < 32; ++i) mask |= (f(w[i]) ? 1u : 0u) << i;
  return mask;
}
template <typename F>
uint32_t WarpFold(const Input* w, F f) {
  uint32_t value = U(w[0].a);
  for (uint32_t i = 1; i < 32; ++i) value = f(value, U(w[i].a));
  return value;
}
inline uint32_t HostDivergentBallot(const Input* w, uint32_t lane) {
  const bool odd = (w[lane].a & 1) != 0;
  const uint32_t mask =
      WarpMask(w, [=](const Input& x) { return ((x.a & 1) != 0) == odd && (x.b & (odd ? 4 : 8)) != 0; });
  return odd ? mask : mask * 3;
}
inline uint32_t HostWarpScan(const Input* w, uint32_t lane) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i <= lane; ++i) sum += U(w[i].a);
  return sum;
}
inline uint32_t HostDivergentLoop(const Input* w, uint32_t lane) {
  const auto one = [](uint32_t x) {
    uint32_t sum = x;
    for (uint32_t i = 0; i < x % 23; ++i) sum = sum * 5 + ((i & 1) != 0 ? Gcd(sum & 255, i) : i);
    return sum;
  };
  return one(U(w[lane].a)) + one(U(w[lane ^ 1].a));
}

// The byte whose value is nearest, ties to even; beyond the largest finite value that one. NaN is 0x7f.
uint32_t NearestE4m3(float x);
uint32_t NearestE5m2(float x);
// Of the low byte: the half of the same value.
uint32_t HalfOfE4m3(uint32_t byte);
uint32_t HalfOfE5m2(uint32_t byte);
inline float NotNegative(float x) { return x < 0 || (x == 0 && std::signbit(x)) ? 0.0f : x; }

}  // namespace suite
