// Conversions between integers and floats, and rounding to integral values.
#include <algorithm>
#include <array>
#include <limits>

#include "frontend/emulator/float_format.h"

namespace heddle::emulator {
namespace {

using isa::Mod;

enum class Type : uint32_t { kS8, kU8, kS16, kU16, kS32, kU32, kS64, kU64, kF16, kBF16, kF32, kF64 };

constexpr uint32_t BitsOf(Type type) {
  constexpr std::array<uint32_t, 12> kBits{8, 8, 16, 16, 32, 32, 64, 64, 16, 16, 32, 64};
  return kBits[static_cast<size_t>(type)];
}
constexpr bool IsInteger(Type type) { return type < Type::kF16; }
constexpr bool IsSigned(Type type) { return IsInteger(type) && static_cast<uint32_t>(type) % 2 == 0; }
constexpr bool IsWide(Type type) { return BitsOf(type) == 64; }

std::optional<Type> TypeOf(Mod mod) {
  constexpr std::array<Mod, 12> kMods{Mod::kS8,  Mod::kU8,  Mod::kS16, Mod::kU16,  Mod::kS32, Mod::kU32,
                                      Mod::kS64, Mod::kU64, Mod::kF16, Mod::kBF16, Mod::kF32, Mod::kF64};
  for (size_t i = 0; i < kMods.size(); ++i)
    if (kMods[i] == mod) return static_cast<Type>(i);
  return std::nullopt;
}

// The types among the modifiers in the order of the text, all taken.
std::vector<Type> TakeTypes(Lowering& w) {
  std::vector<Type> types;
  for (uint32_t i = 0; i < w.instruction.modifier_count; ++i) {
    const Mod mod = w.instruction.modifiers[i];
    const std::optional<Type> type = TypeOf(mod);
    if (!type) continue;
    w.Take(mod);
    types.push_back(*type);
  }
  return types;
}

// imm of conversions.
struct Conversion {
  Type to = Type::kS32;
  Type from = Type::kF32;
  Rounding rounding = Rounding::kNearest;
  bool flushes = false;
  bool nan_is_zero = false;
  uint32_t shift = 0;  // of a source that is a part of a register

  uint64_t Pack() const {
    return uint64_t{static_cast<uint32_t>(to)} | uint64_t{static_cast<uint32_t>(from)} << 8 |
           uint64_t{static_cast<uint32_t>(rounding)} << 16 | uint64_t{flushes} << 24 |
           uint64_t{nan_is_zero} << 25 | uint64_t{shift} << 32;
  }
  static Conversion Unpack(uint64_t imm) {
    return {static_cast<Type>(imm & 0xff),
            static_cast<Type>(imm >> 8 & 0xff),
            static_cast<Rounding>(imm >> 16 & 0xff),
            (imm >> 24 & 1) != 0,
            (imm >> 25 & 1) != 0,
            static_cast<uint32_t>(imm >> 32)};
  }
};

// The floating-point source of lane i, exactly.
double FloatSourceAt(const Context& c, const Lowered& l, const Conversion& conversion, uint32_t i) {
  if (conversion.from == Type::kF64)
    return AsDouble(Pair(c.Source(l, 0).lane[i], (c.Source(l, 0, 1).lane[i] & l.keep[0]) ^ l.flip[0]));
  uint32_t bits = (c.Source(l, 0).lane[i] & l.keep[0]) ^ l.flip[0];
  if (conversion.from == Type::kF32) return AsFloat(conversion.flushes ? FlushDenormal(bits) : bits);
  bits = bits >> conversion.shift & 0xffff;
  return conversion.from == Type::kF16 ? HalfToFloat(static_cast<uint16_t>(bits))
                                       : BFloatToFloat(static_cast<uint16_t>(bits));
}

double RoundToIntegral(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::kDown:
      return std::floor(value);
    case Rounding::kUp:
      return std::ceil(value);
    case Rounding::kZero:
      return std::trunc(value);
    default:
      return std::nearbyint(value);
  }
}

// Saturates; NaN becomes 0 or the lone top bit.
uint64_t ToInteger(double value, Type type, bool nan_is_zero) {
  const uint32_t bits = BitsOf(type);
  if (std::isnan(value)) return nan_is_zero ? 0 : uint64_t{1} << (bits - 1);
  const double limit = std::ldexp(1.0, static_cast<int>(IsSigned(type) ? bits - 1 : bits));
  if (IsSigned(type)) {
    const int64_t most = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
    if (value >= limit) return static_cast<uint64_t>(most);
    if (value < -limit) return static_cast<uint64_t>(-most - 1);
    return static_cast<uint64_t>(static_cast<int64_t>(value));
  }
  if (value >= limit) return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  return value <= 0 ? 0 : static_cast<uint64_t>(value);
}

void Store(const Context& c, const Lowered& l, bool wide, const std::array<uint64_t, kWarpLanes>& values) {
  if (wide) {
    MapLanes64(c.Destination(l, 0, 0), c.Destination(l, 0, 1), c.lanes,
               [&](uint32_t i) { return values[i]; });
  } else {
    MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) { return Low(values[i]); });
  }
}

void RunF2i(Context& c, const Lowered& l) {
  const Conversion conversion = Conversion::Unpack(l.imm);
  std::array<uint64_t, kWarpLanes> values;
  for (uint32_t i = 0; i < kWarpLanes; ++i)
    values[i] = ToInteger(RoundToIntegral(FloatSourceAt(c, l, conversion, i), conversion.rounding),
                          conversion.to, conversion.nan_is_zero);
  Store(c, l, IsWide(conversion.to), values);
}

// Rounds an integer to `precision` significant bits; the result fits the double's significand.
double RoundInteger(uint64_t magnitude, bool negative, uint32_t precision, Rounding rounding) {
  const auto length = static_cast<uint32_t>(std::bit_width(magnitude));
  double value;
  if (length <= precision) {
    value = static_cast<double>(magnitude);
  } else {
    const uint32_t dropped = length - precision;
    uint64_t kept = magnitude >> dropped;
    const uint64_t rest = magnitude & ((uint64_t{1} << dropped) - 1);
    const uint64_t half = uint64_t{1} << (dropped - 1);
    const bool up = rounding == Rounding::kNearest ? rest > half || (rest == half && (kept & 1) != 0)
                    : rounding == Rounding::kZero  ? false
                                                   : rest != 0 && (rounding == Rounding::kUp) != negative;
    kept += up ? 1 : 0;
    value = std::ldexp(static_cast<double>(kept), static_cast<int>(dropped));
  }
  return negative ? -value : value;
}

uint64_t FromInteger(uint64_t magnitude, bool negative, const Conversion& conversion) {
  switch (conversion.to) {
    case Type::kF64:
      return AsBits(RoundInteger(magnitude, negative, 53, conversion.rounding));
    case Type::kF32:
      return AsBits(static_cast<float>(RoundInteger(magnitude, negative, 24, conversion.rounding)));
    default: {
      // Rounded to odd first where it does not fit, so that the second rounding is the only one that counts.
      double value = RoundInteger(magnitude, false, 53, Rounding::kZero);
      if (static_cast<uint64_t>(value) != magnitude) value = std::nextafter(value, HUGE_VAL);
      const float odd = AsFloat(FloatRoundedToOdd(negative ? -value : value));
      return conversion.to == Type::kF16 ? NarrowToHalf(odd, conversion.rounding)
                                         : NarrowToBFloat(odd, conversion.rounding);
    }
  }
}

void RunI2f(Context& c, const Lowered& l) {
  const Conversion conversion = Conversion::Unpack(l.imm);
  const uint32_t bits = BitsOf(conversion.from);
  std::array<uint64_t, kWarpLanes> values;
  for (uint32_t i = 0; i < kWarpLanes; ++i) {
    uint64_t value = c.Source(l, 0).lane[i];
    if (bits == 64) value = Pair(Low(value), c.Source(l, 0, 1).lane[i]);
    value >>= conversion.shift;
    bool negative = false;
    if (bits < 64) {
      value &= (uint64_t{1} << bits) - 1;
      negative = IsSigned(conversion.from) && (value >> (bits - 1) & 1) != 0;
      if (negative) value = (uint64_t{1} << bits) - value;
    } else if (IsSigned(conversion.from) && static_cast<int64_t>(value) < 0) {
      negative = true;
      value = 0 - value;
    }
    values[i] = FromInteger(value, negative, conversion);
  }
  Store(c, l, IsWide(conversion.to), values);
}

// 32-bit integers to float, to nearest: what converts most.
template <bool kIsSigned>
void RunI2fNearest(Context& c, const Lowered& l) {
  const uint32_t* a = c.Source(l, 0).lane;
  MapLanes(c.Destination(l), c.lanes, [=](uint32_t i) {
    if constexpr (kIsSigned) return AsBits(static_cast<float>(Signed(a[i])));
    return AsBits(static_cast<float>(static_cast<double>(a[i])));
  });
}

// Not inlined: see ScopedRounding.
[[gnu::noinline]] void DoublesToFloats(const std::array<double, kWarpLanes>& from, Row& to) {
  for (uint32_t i = 0; i < kWarpLanes; ++i) to.lane[i] = AsBits(static_cast<float>(from[i]));
}

void RunF2f(Context& c, const Lowered& l) {
  const Conversion conversion = Conversion::Unpack(l.imm);
  std::array<double, kWarpLanes> from;
  for (uint32_t i = 0; i < kWarpLanes; ++i) from[i] = FloatSourceAt(c, l, conversion, i);
  if (conversion.to == Type::kF64) {
    MapLanes64(c.Destination(l, 0, 0), c.Destination(l, 0, 1), c.lanes,
               [&](uint32_t i) { return AsBits(from[i]); });
    return;
  }
  Row result;
  if (conversion.to == Type::kF32) {
    const ScopedRounding rounding(conversion.rounding);
    DoublesToFloats(from, result);
  } else {
    for (uint32_t i = 0; i < kWarpLanes; ++i) {
      const float odd = AsFloat(FloatRoundedToOdd(from[i]));
      result.lane[i] = conversion.to == Type::kF16 ? NarrowToHalf(odd, conversion.rounding)
                                                   : NarrowToBFloat(odd, conversion.rounding);
    }
  }
  if (conversion.to == Type::kF32)
    for (uint32_t& bits : result.lane) bits = CanonicalNan(conversion.flushes ? FlushDenormal(bits) : bits);
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) { return result.lane[i]; });
}

// FRND: an integral value of the same format.
void RunFrnd(Context& c, const Lowered& l) {
  const Conversion conversion = Conversion::Unpack(l.imm);
  std::array<uint64_t, kWarpLanes> values;
  for (uint32_t i = 0; i < kWarpLanes; ++i) {
    const double value = RoundToIntegral(FloatSourceAt(c, l, conversion, i), conversion.rounding);
    if (conversion.to == Type::kF64) {
      values[i] = AsBits(value);
    } else if (conversion.to == Type::kF32) {
      values[i] = CanonicalNan(AsBits(static_cast<float>(value)));
    } else {
      const auto narrow = static_cast<float>(value);
      values[i] = conversion.to == Type::kF16 ? FloatToHalf(narrow) : FloatToBFloat(narrow);
    }
  }
  Store(c, l, IsWide(conversion.to), values);
}

// FLOOR, CEIL and TRUNC of conversions to integers.
Rounding TakeIntegralRounding(Lowering& w) {
  const int mode = w.TakeOneOf({Mod::kROUND, Mod::kFLOOR, Mod::kCEIL, Mod::kTRUNC});
  return static_cast<Rounding>(std::max(mode, 0));
}

// The source of a conversion: sets source 0 and the part of the register.
void ConversionSource(Lowering& w, Conversion& conversion) {
  if (conversion.from == Type::kF64) return w.DoubleSource(0);
  if (conversion.from == Type::kF16 || conversion.from == Type::kBF16) {
    conversion.shift = w.HalfSource(0).low_from_high ? 16 : 0;
    return;
  }
  if (conversion.from == Type::kF32) return w.FloatSource(0);
  const isa::Operand* operand = w.Peek();
  if (operand != nullptr && operand->kind == isa::OperandKind::kRegister && operand->Has(isa::kByteSelect)) {
    if (operand->scale > 3) return w.Fail("an unknown byte");
    w.out.source[0].row = w.layout.ReadRow(w.Next().reg);
    conversion.shift = operand->scale * 8u;
    return;
  }
  if (operand != nullptr && operand->kind == isa::OperandKind::kRegister &&
      (operand->Has(isa::kSelectsHigh) || operand->Has(isa::kSelectsLow))) {
    conversion.shift = operand->Has(isa::kSelectsHigh) ? 16 : 0;
    w.out.source[0].row = w.layout.ReadRow(w.Next().reg);
    return;
  }
  w.Source(0, IsWide(conversion.from) ? 2 : 1);
}

}  // namespace

// F2I{.FTZ}{.type}{.source type}{.rounding}{.NTZ} R, a
void LowerF2i(Lowering& w) {
  Conversion conversion;
  for (const Type type : TakeTypes(w)) (IsInteger(type) ? conversion.to : conversion.from) = type;
  conversion.rounding = TakeIntegralRounding(w);
  conversion.flushes = w.Take(Mod::kFTZ);
  conversion.nan_is_zero = w.Take(Mod::kNTZ);
  w.Destination(0);
  ConversionSource(w, conversion);
  w.out.imm = conversion.Pack();
  w.out.run = &RunF2i;
}

// I2F{.type}{.source type}{.rounding} R, a and I2FP
void LowerI2f(Lowering& w) {
  Conversion conversion{.to = Type::kF32, .from = Type::kS32};
  for (const Type type : TakeTypes(w)) (IsInteger(type) ? conversion.from : conversion.to) = type;
  conversion.rounding = TakeRounding(w);
  w.Destination(0);
  ConversionSource(w, conversion);
  w.out.imm = conversion.Pack();
  const bool nearest = conversion.rounding == Rounding::kNearest && conversion.to == Type::kF32;
  w.out.run = nearest && conversion.from == Type::kS32   ? &RunI2fNearest<true>
              : nearest && conversion.from == Type::kU32 ? &RunI2fNearest<false>
                                                         : &RunI2f;
}

// F2F{.FTZ}.type.source type{.rounding} R, a
void LowerF2f(Lowering& w) {
  const std::vector<Type> types = TakeTypes(w);
  if (types.size() != 2 || IsInteger(types[0]) || IsInteger(types[1])) return w.Fail("two types expected");
  Conversion conversion{.to = types[0], .from = types[1]};
  conversion.rounding = TakeRounding(w);
  conversion.flushes = w.Take(Mod::kFTZ);
  w.Destination(0);
  ConversionSource(w, conversion);
  w.out.imm = conversion.Pack();
  w.out.run = &RunF2f;
}

// FRND{.FTZ}{.type}{.rounding} R, a
void LowerFrnd(Lowering& w) {
  const std::vector<Type> types = TakeTypes(w);
  const Type type = types.empty() ? Type::kF32 : types[0];
  if (types.size() > 1 || IsInteger(type)) return w.Fail("one floating-point type expected");
  Conversion conversion{.to = type, .from = type};
  conversion.rounding = TakeIntegralRounding(w);
  conversion.flushes = w.Take(Mod::kFTZ);
  w.Destination(0);
  ConversionSource(w, conversion);
  w.out.imm = conversion.Pack();
  w.out.run = &RunFrnd;
}

}  // namespace heddle::emulator
