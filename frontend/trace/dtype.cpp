#include "frontend/trace/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace heddle::trace {
namespace {

struct Info {
  std::string_view name;
  uint32_t size_bytes;
  bool is_float;
  bool is_signed;
  int exponent_bits;  // of floats
  int mantissa_bits;
};

constexpr std::array<Info, kDTypeCount> kInfo{{
    {"unspecified", 0, false, false, 0, 0},
    {"f64", 8, true, true, 11, 52},
    {"f32", 4, true, true, 8, 23},
    {"tf32", 4, true, true, 8, 10},
    {"f16", 2, true, true, 5, 10},
    {"bf16", 2, true, true, 8, 7},
    {"e4m3", 1, true, true, 4, 3},
    {"e5m2", 1, true, true, 5, 2},
    {"i8", 1, false, true, 0, 0},
    {"i16", 2, false, true, 0, 0},
    {"i32", 4, false, true, 0, 0},
    {"i64", 8, false, true, 0, 0},
    {"u8", 1, false, false, 0, 0},
    {"u16", 2, false, false, 0, 0},
    {"u32", 4, false, false, 0, 0},
    {"u64", 8, false, false, 0, 0},
    {"boolean", 1, false, false, 0, 0},
}};

constexpr const Info& InfoOf(DType type) { return kInfo[static_cast<size_t>(type)]; }

// 2^exponent, of a normal number.
double PowerOfTwo(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

// e4m3's top exponent holds ordinary numbers but for the NaN 0x7f.
constexpr bool IsFiniteOnly(DType type) { return type == DType::kE4m3; }

// Rounds to a binary float of at most 10 mantissa bits. Megabytes of input pass through here: the type is a constant.
template <DType type>
uint64_t EncodeSmall(double value) {
  constexpr int e = InfoOf(type).exponent_bits, m = InfoOf(type).mantissa_bits;
  constexpr bool finite_only = IsFiniteOnly(type);
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (e + m) : 0;
  const uint64_t top_exponent = (uint64_t{1} << e) - 1;
  const uint64_t infinity = top_exponent << m;
  if (std::isnan(value)) return finite_only ? infinity | 7 : infinity | uint64_t{1} << (m - 1);
  const uint64_t largest = finite_only ? (infinity | 6) : infinity - 1;
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return sign | (finite_only ? largest : infinity);
  if (magnitude == 0) return sign;
  const int bias = (1 << (e - 1)) - 1;
  // Normal: round the double's own mantissa; a carry moves into the exponent.
  if (magnitude >= PowerOfTwo(1 - bias)) {
    const auto bits = std::bit_cast<uint64_t>(magnitude);
    const int drop = 52 - m;
    const uint64_t rounded = (bits + (uint64_t{1} << (drop - 1)) - 1 + ((bits >> drop) & 1)) >> drop;
    const uint64_t encoded = rounded - (static_cast<uint64_t>(1023 - bias) << m);
    return sign | (encoded > largest ? (finite_only ? largest : infinity) : encoded);
  }
  // Subnormal: a multiple of the smallest step; nearbyint rounds ties to even.
  return sign | static_cast<uint64_t>(std::nearbyint(magnitude * PowerOfTwo(bias - 1 + m)));
}

// The loop has no branch, so that the compiler makes vectors of it. False: a value is not among the normal ones.
template <DType type, typename Bits>
bool EncodeNormals(std::span<const double> values, Bits* out) {
  constexpr int e = InfoOf(type).exponent_bits, m = InfoOf(type).mantissa_bits;
  constexpr int bias = (1 << (e - 1)) - 1, drop = 52 - m;
  constexpr uint64_t infinity = ((uint64_t{1} << e) - 1) << m;
  constexpr uint64_t largest = IsFiniteOnly(type) ? (infinity | 6) : infinity - 1;
  constexpr uint64_t first = uint64_t{1} << m;  // the smallest normal
  constexpr uint64_t kSign = uint64_t{1} << 63;
  uint64_t outside = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto bits = std::bit_cast<uint64_t>(values[i]);
    const uint64_t magnitude = bits & ~kSign;
    const uint64_t rounded =
        (magnitude + (uint64_t{1} << (drop - 1)) - 1 + ((magnitude >> drop) & 1)) >> drop;
    // Below `first` or above `largest`: the sign of a difference. What is rounded up to `first` is sorted out too.
    const uint64_t encoded = rounded - (static_cast<uint64_t>(1023 - bias) << m);
    outside |= (magnitude >> drop) - (static_cast<uint64_t>(1023 - bias) << m) - first;
    outside |= largest - encoded;
    out[i] = static_cast<Bits>(encoded | bits >> 63 << (e + m));
  }
  return (outside & kSign) == 0;
}

double DecodeSmall(uint64_t bits, int e, int m, bool finite_only) {
  const uint64_t mantissa = bits & ((uint64_t{1} << m) - 1);
  const auto exponent = static_cast<int>((bits >> m) & ((uint64_t{1} << e) - 1));
  const double sign = (bits >> (e + m)) & 1 ? -1.0 : 1.0;
  const int bias = (1 << (e - 1)) - 1;
  const int top = (1 << e) - 1;
  if (exponent == top) {
    if (finite_only ? mantissa == 7 : mantissa != 0) return std::numeric_limits<double>::quiet_NaN();
    if (!finite_only) return sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<double>(mantissa), 1 - bias - m);
  return sign * std::ldexp(static_cast<double>(mantissa + (uint64_t{1} << m)), exponent - bias - m);
}

uint64_t EncodeInteger(DType type, double value) {
  if (std::isnan(value)) return 0;
  if (type == DType::kBoolean) return value != 0;
  const uint32_t bits = SizeOf(type) * 8;
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const double rounded = std::nearbyint(value);
  if (IsSigned(type)) {
    const double limit = std::ldexp(1.0, static_cast<int>(bits) - 1);
    if (rounded >= limit) return mask >> 1;
    if (rounded < -limit) return (mask >> 1) + 1;
    return static_cast<uint64_t>(static_cast<int64_t>(rounded)) & mask;
  }
  if (rounded <= 0) return 0;
  if (rounded >= std::ldexp(1.0, static_cast<int>(bits))) return mask;
  return static_cast<uint64_t>(rounded);
}

// Floats of one type as integers in the order of their values; both zeros are 0.
int64_t Ordinal(DType type, uint64_t bits) {
  const uint32_t width = SizeOf(type) * 8;
  const uint64_t sign = uint64_t{1} << (width - 1);
  const auto magnitude = static_cast<int64_t>(bits & (sign - 1));
  return bits & sign ? -magnitude : magnitude;
}

}  // namespace

uint32_t SizeOf(DType type) { return InfoOf(type).size_bytes; }
bool IsFloat(DType type) { return InfoOf(type).is_float; }
bool IsSigned(DType type) { return InfoOf(type).is_signed; }
std::string_view Name(DType type) { return InfoOf(type).name; }

std::optional<DType> DTypeFromName(std::string_view name) {
  for (size_t i = 1; i < kInfo.size(); ++i)
    if (kInfo[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

double LowestOf(DType type) {
  if (IsFloat(type)) return -HighestOf(type);
  if (!IsSigned(type)) return 0;
  return -std::ldexp(1.0, static_cast<int>(SizeOf(type)) * 8 - 1);
}

double HighestOf(DType type) {
  switch (type) {
    case DType::kF64:
      return std::numeric_limits<double>::max();
    case DType::kF32:
      return std::numeric_limits<float>::max();
    case DType::kTf32:
      return Decode(type, 0x7f7fe000);
    case DType::kF16:
      return 65504;
    case DType::kBf16:
      return Decode(type, 0x7f7f);
    case DType::kE4m3:
      return 448;
    case DType::kE5m2:
      return 57344;
    case DType::kBoolean:
      return 1;
    case DType::kI64:
      return 9223372036854774784.0;  // 2^63 - 2^10
    case DType::kU64:
      return 18446744073709549568.0;  // 2^64 - 2^11
    default:
      break;
  }
  const int bits = static_cast<int>(SizeOf(type)) * 8 - (IsSigned(type) ? 1 : 0);
  return std::ldexp(1.0, bits) - 1;
}

uint64_t Encode(DType type, double value) {
  switch (type) {
    case DType::kUnspecified:
      return 0;
    case DType::kF64:
      return std::bit_cast<uint64_t>(value);
    case DType::kF32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case DType::kTf32:
      return EncodeSmall<DType::kTf32>(value) << 13;
    case DType::kF16:
      return EncodeSmall<DType::kF16>(value);
    case DType::kBf16:
      return EncodeSmall<DType::kBf16>(value);
    case DType::kE4m3:
      return EncodeSmall<DType::kE4m3>(value);
    case DType::kE5m2:
      return EncodeSmall<DType::kE5m2>(value);
    default:
      return EncodeInteger(type, value);
  }
}

void EncodeAll(DType type, std::span<const double> values, std::byte* out) {
  constexpr size_t kBlock = 64;
  const size_t size = SizeOf(type);
  for (size_t done = 0; done < values.size(); done += kBlock) {
    const auto block = values.subspan(done, std::min(kBlock, values.size() - done));
    std::byte* const to = out + done * size;
    uint16_t halves[kBlock];
    uint8_t bytes[kBlock];
    if (type == DType::kBf16 && EncodeNormals<DType::kBf16>(block, halves)) {
      std::memcpy(to, halves, 2 * block.size());
    } else if (type == DType::kF16 && EncodeNormals<DType::kF16>(block, halves)) {
      std::memcpy(to, halves, 2 * block.size());
    } else if (type == DType::kE4m3 && EncodeNormals<DType::kE4m3>(block, bytes)) {
      std::memcpy(to, bytes, block.size());
    } else {
      for (size_t i = 0; i < block.size(); ++i) {
        const uint64_t bits = Encode(type, block[i]);
        std::memcpy(to + i * size, &bits, size);
      }
    }
  }
}

double Decode(DType type, uint64_t bits) {
  switch (type) {
    case DType::kUnspecified:
      return 0;
    case DType::kF64:
      return std::bit_cast<double>(bits);
    case DType::kF32:
    case DType::kTf32:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    case DType::kBf16:
      return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
    case DType::kI8:
      return static_cast<int8_t>(bits);
    case DType::kI16:
      return static_cast<int16_t>(bits);
    case DType::kI32:
      return static_cast<int32_t>(bits);
    case DType::kI64:
      return static_cast<double>(static_cast<int64_t>(bits));
    default:
      break;
  }
  const Info& info = InfoOf(type);
  if (info.is_float) return DecodeSmall(bits, info.exponent_bits, info.mantissa_bits, IsFiniteOnly(type));
  return static_cast<double>(bits);
}

double Load(DType type, std::span<const std::byte> bytes, uint64_t index) {
  const uint32_t size = SizeOf(type);
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + index * size, size);
  return Decode(type, bits);
}

void Store(DType type, double value, std::span<std::byte> bytes, uint64_t index) {
  const uint32_t size = SizeOf(type);
  const uint64_t bits = Encode(type, value);
  std::memcpy(bytes.data() + index * size, &bits, size);
}

uint64_t StepsBetween(DType type, uint64_t a, uint64_t b) {
  if (a == b) return 0;
  if (!IsFloat(type)) {
    const double difference = Decode(type, a) - Decode(type, b);
    return static_cast<uint64_t>(std::fabs(difference));
  }
  if (std::isnan(Decode(type, a)) || std::isnan(Decode(type, b)))
    return std::isnan(Decode(type, a)) && std::isnan(Decode(type, b)) ? 0
                                                                      : std::numeric_limits<uint64_t>::max();
  const uint32_t unused = type == DType::kTf32 ? 13 : 0;
  const int64_t x = Ordinal(type, a);
  const int64_t y = Ordinal(type, b);
  return (x > y ? static_cast<uint64_t>(x) - static_cast<uint64_t>(y)
                : static_cast<uint64_t>(y) - static_cast<uint64_t>(x)) >>
         unused;
}

}  // namespace heddle::trace
