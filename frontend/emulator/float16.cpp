// Packed half precision and bfloat16.
#include "frontend/emulator/compare.h"
#include "frontend/emulator/float_format.h"

namespace heddle::emulator {
namespace {

using isa::Mod;

enum class Operation { kAdd, kMultiply, kFused };

// flags: bits 0..5 select halves (two a source: for the low and the high result), and
enum : uint32_t {
  kFlushes = 1u << 8,
  kSaturates = 1u << 9,
  kRelu = 1u << 10,
  kPropagatesNan = 1u << 11,
  kFloatResult = 1u << 12,
  kJoinsHalves = 1u << 13,  // .H_AND
  kXorSign = 1u << 14,
};
constexpr uint32_t kRelationShift = 16;
constexpr uint32_t kJoinShift = 24;

struct F16 {
  static float Widen(uint32_t bits) { return HalfToFloat(static_cast<uint16_t>(bits)); }
  static uint32_t Narrow(float value) { return FloatToHalf(value); }
  static constexpr uint32_t kOne = 0x3c00;
  static constexpr uint32_t kExponent = 0x7c00;

  // Sums and products of halves fit float so well that rounding twice equals rounding once. A fused multiply-add does
  // not: its sum is rounded to odd first.
  template <Operation kOperation>
  static uint32_t Compute(float a, float b, float c) {
    if constexpr (kOperation == Operation::kAdd) return Narrow(a + b);
    if constexpr (kOperation == Operation::kMultiply) return Narrow(a * b);
    const float product = a * b;
    const float sum = product + c;
    const float back = sum - product;
    const float error = (product - (sum - back)) + (c - back);
    uint32_t bits = AsBits(sum);
    const bool inexact = error != 0 && (bits & kFloatInfinity) != kFloatInfinity;
    if (inexact && (bits & 1) == 0) bits = (error < 0) == std::signbit(sum) ? bits + 1 : bits - 1;
    return Narrow(AsFloat(bits));
  }
};

struct BF16 {
  static float Widen(uint32_t bits) { return BFloatToFloat(static_cast<uint16_t>(bits)); }
  static uint32_t Narrow(float value) { return FloatToBFloat(value); }
  static constexpr uint32_t kOne = 0x3f80;
  static constexpr uint32_t kExponent = 0x7f80;

  template <Operation kOperation>
  static uint32_t Compute(float a, float b, float c) {
    if constexpr (kOperation == Operation::kAdd) return Narrow(AsFloat(NarrowFma(a, 1.0f, b)));
    if constexpr (kOperation == Operation::kMultiply) return Narrow(AsFloat(NarrowFma(a, b, -0.0f)));
    return Narrow(AsFloat(NarrowFma(a, b, c)));
  }
};

// Half `half` (0 low, 1 high) of a source in lane i, as its 16 bits.
struct Input {
  Input(const Context& c, const Lowered& l, size_t slot)
      : lane(c.Source(l, slot).lane), keep(l.keep[slot]), flip(l.flip[slot]) {
    const uint32_t selection = l.flags >> 2 * slot & 3;
    shift[0] = (selection & 1) != 0 ? 16 : 0;
    shift[1] = (selection & 2) != 0 ? 16 : 0;
  }
  uint32_t operator()(uint32_t i, uint32_t half) const {
    return ((lane[i] & keep) ^ flip) >> shift[half] & 0xffff;
  }
  const uint32_t* lane;
  uint32_t keep;
  uint32_t flip;
  uint32_t shift[2];
};

template <typename Format>
inline uint32_t Flush(uint32_t bits) {
  return (bits & Format::kExponent) == 0 ? bits & 0x8000 : bits;
}

template <typename Format>
inline uint32_t Limit(uint32_t bits, uint32_t flags) {
  if ((flags & kFlushes) != 0) bits = Flush<Format>(bits);
  const bool nan = (bits & 0x7fff) > Format::kExponent;
  if ((flags & kSaturates) != 0) {
    if (nan || (bits & 0x8000) != 0) return 0;
    return bits > Format::kOne ? Format::kOne : bits;
  }
  if ((flags & kRelu) != 0 && !nan && (bits & 0x8000) != 0) return 0;
  return bits;
}

template <typename Format, Operation kOperation>
void RunPacked(Context& c, const Lowered& l) {
  const Input a(c, l, 0), b(c, l, 1), d(c, l, 2);
  const bool flushes = (l.flags & kFlushes) != 0;
  const auto widen = [&](uint32_t bits) { return Format::Widen(flushes ? Flush<Format>(bits) : bits); };
  Row result{};
  for (uint32_t half = 0; half < 2; ++half) {
    for (uint32_t i = 0; i < kWarpLanes; ++i) {
      const float z = kOperation == Operation::kFused ? widen(d(i, half)) : 0.0f;
      const uint32_t bits = Format::template Compute<kOperation>(widen(a(i, half)), widen(b(i, half)), z);
      result.lane[i] |= Limit<Format>(bits, l.flags) << 16 * half;
    }
  }
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) { return result.lane[i]; });
}

// HADD2.F32: the sum of the chosen halves as a float.
void RunAddToFloat(Context& c, const Lowered& l) {
  const Input a(c, l, 0), b(c, l, 1);
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) {
    const float sum =
        HalfToFloat(static_cast<uint16_t>(a(i, 0))) + HalfToFloat(static_cast<uint16_t>(b(i, 0)));
    return CanonicalNan(AsBits(sum));
  });
}

// HADD2 a.F32, b: the float is cut to a half (cvt.rz.f16.f32 of sm_75 is this with -0) that both halves take.
void RunAddOfFloat(Context& c, const Lowered& l) {
  const Row& a = c.Source(l, 0);
  const Input b(c, l, 1);
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) {
    const float cut = F16::Widen(NarrowToHalf(AsFloat(a.lane[i]), Rounding::kZero));
    uint32_t sums = 0;
    for (uint32_t half = 0; half < 2; ++half) {
      const uint32_t bits = F16::Compute<Operation::kAdd>(cut, F16::Widen(b(i, half)), 0.0f);
      sums |= bits << 16 * half;
    }
    return sums;
  });
}

void RunConstant(Context& c, const Lowered& l) {
  const uint32_t* source = c.Source(l, 2).lane;
  MapLanes(c.Destination(l), c.lanes, [=](uint32_t i) { return source[i]; });
}

template <typename Format>
uint32_t MinMax(uint32_t x, uint32_t y, bool minimum, uint32_t flags) {
  const bool x_nan = (x & 0x7fff) > Format::kExponent, y_nan = (y & 0x7fff) > Format::kExponent;
  if ((x_nan && y_nan) || ((x_nan || y_nan) && (flags & kPropagatesNan) != 0)) return kHalfNan;
  const uint32_t sign = (x ^ y) & 0x8000;
  if ((flags & kXorSign) != 0) {
    x &= 0x7fff;
    y &= 0x7fff;
  }
  const float fx = Format::Widen(x), fy = Format::Widen(y);
  const bool less = fx < fy || (fx == fy && (x & 0x8000) > (y & 0x8000));
  const uint32_t result = y_nan || (!x_nan && less == minimum) ? x : y;
  return (flags & kXorSign) != 0 ? result | sign : result;
}

template <typename Format>
void RunHmnmx2(Context& c, const Lowered& l) {
  const Input a(c, l, 0), b(c, l, 1);
  const uint32_t minimum = c.SourcePredicate(l, 0);
  Row result{};
  for (uint32_t half = 0; half < 2; ++half)
    for (uint32_t i = 0; i < kWarpLanes; ++i) {
      uint32_t x = a(i, half), y = b(i, half);
      if ((l.flags & kFlushes) != 0) {
        x = Flush<Format>(x);
        y = Flush<Format>(y);
      }
      result.lane[i] |= MinMax<Format>(x, y, (minimum >> i & 1) != 0, l.flags) << 16 * half;
    }
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) { return result.lane[i]; });
}

template <typename Format>
uint32_t CompareHalves(const Context& c, const Lowered& l, uint32_t half) {
  const Input a(c, l, 0), b(c, l, 1);
  const Relation relation = l.flags >> kRelationShift & 0xf;
  const bool flushes = (l.flags & kFlushes) != 0;
  return MaskOf([&](uint32_t i) {
    const uint32_t x = flushes ? Flush<Format>(a(i, half)) : a(i, half);
    const uint32_t y = flushes ? Flush<Format>(b(i, half)) : b(i, half);
    return (RelationOf(Format::Widen(x), Format::Widen(y)) & relation) != 0;
  });
}

inline Join JoinOf(const Lowered& l) { return static_cast<Join>(l.flags >> kJoinShift); }

template <typename Format>
void RunHset2(Context& c, const Lowered& l) {
  const uint32_t other = c.SourcePredicate(l, 0);
  const uint32_t low = Apply(JoinOf(l), CompareHalves<Format>(c, l, 0), other);
  const uint32_t high = Apply(JoinOf(l), CompareHalves<Format>(c, l, 1), other);
  const uint32_t yes = (l.flags & kFloatResult) != 0 ? Format::kOne : 0xffff;
  MapLanes(c.Destination(l), c.lanes, [=](uint32_t i) {
    return ((low >> i & 1) != 0 ? yes : 0) | ((high >> i & 1) != 0 ? yes << 16 : 0);
  });
}

// The two predicates are for the two halves; with .H_AND for both halves, and its complement.
template <typename Format>
void RunHsetp2(Context& c, const Lowered& l) {
  const uint32_t other = c.SourcePredicate(l, 0);
  const uint32_t low = CompareHalves<Format>(c, l, 0);
  const uint32_t high = CompareHalves<Format>(c, l, 1);
  if ((l.flags & kJoinsHalves) != 0) return WriteComparison(c, l, JoinOf(l), low & high);
  c.WritePredicate(l, 0, Apply(JoinOf(l), low, other));
  c.WritePredicate(l, 1, Apply(JoinOf(l), high, other));
}

void HalfSource(Lowering& w, size_t slot) {
  const HalfSelection selection = w.HalfSource(slot);
  w.out.flags |= ((selection.low_from_high ? 1u : 0u) | (selection.high_from_high ? 2u : 0u)) << 2 * slot;
}

bool TakeFormat(Lowering& w) { return w.TakeOneOf({Mod::kBF16_V2, Mod::kBF16}) >= 0; }

template <Operation kOperation>
void Lower(Lowering& w) {
  w.Take(Mod::kMMA);  // the pipe
  const bool bfloat = TakeFormat(w);
  const bool to_float = w.Take(Mod::kF32);
  w.out.flags = (w.Take(Mod::kFTZ) ? kFlushes : 0u) | (w.Take(Mod::kSAT) ? kSaturates : 0u) |
                (w.Take(Mod::kRELU) ? kRelu : 0u);
  w.Destination(0);
  HalfSource(w, 0);
  HalfSource(w, 1);
  if constexpr (kOperation == Operation::kFused) HalfSource(w, 2);
  w.out.run = bfloat ? &RunPacked<BF16, kOperation> : &RunPacked<F16, kOperation>;
  if (!to_float) return;
  if (kOperation != Operation::kAdd || bfloat || (w.out.flags & (kFlushes | kSaturates | kRelu)) != 0)
    return w.Fail("a float result");
  w.out.run = &RunAddToFloat;
}

}  // namespace

void LowerHadd2(Lowering& w) {
  if (!w.instruction.operands[1].Has(isa::kAsF32)) return Lower<Operation::kAdd>(w);
  w.Destination(0);
  w.FloatOfHalvesSource(0);
  HalfSource(w, 1);
  w.out.run = &RunAddOfFloat;
}
void LowerHmul2(Lowering& w) { Lower<Operation::kMultiply>(w); }

void LowerHfma2(Lowering& w) {
  const auto& operands = w.instruction.operands;
  const bool is_constant = w.instruction.operand_count == 4 &&
                           operands[1].kind == isa::OperandKind::kRegister &&
                           operands[1].reg == isa::kZeroRegister && operands[1].Has(isa::kNegate) &&
                           operands[2].reg == isa::kZeroRegister && !operands[2].Has(isa::kNegate) &&
                           operands[3].kind == isa::OperandKind::kImmediate;
  Lower<Operation::kFused>(w);
  // -0 * 0 + constant: how ptxas moves a constant through this pipe.
  if (is_constant && (w.out.flags & (kFlushes | kSaturates | kRelu)) == 0) w.out.run = &RunConstant;
}

// HMNMX2 R, a, b, P
void LowerHmnmx2(Lowering& w) {
  const bool bfloat = TakeFormat(w);
  w.out.flags = (w.Take(Mod::kFTZ) ? kFlushes : 0u) | (w.Take(Mod::kNAN) ? kPropagatesNan : 0u) |
                (w.Take(Mod::kXORSIGN) ? kXorSign : 0u);
  w.Destination(0);
  HalfSource(w, 0);
  HalfSource(w, 1);
  if ((w.out.flags & kXorSign) != 0) w.out.keep[0] = w.out.keep[1] = ~0u;  // as FMNMX
  w.SourcePredicate(0);
  w.out.run = bfloat ? &RunHmnmx2<BF16> : &RunHmnmx2<F16>;
}

void LowerHset2(Lowering& w) {
  const bool bfloat = TakeFormat(w);
  w.out.flags = (w.Take(Mod::kFTZ) ? kFlushes : 0u) | (w.Take(Mod::kBF) ? kFloatResult : 0u);
  w.out.flags |= TakeComparison(w, true) << kRelationShift;
  w.out.flags |= static_cast<uint32_t>(TakeJoin(w)) << kJoinShift;
  w.Destination(0);
  HalfSource(w, 0);
  HalfSource(w, 1);
  w.SourcePredicate(0);
  w.out.run = bfloat ? &RunHset2<BF16> : &RunHset2<F16>;
}

void LowerHsetp2(Lowering& w) {
  const bool bfloat = TakeFormat(w);
  w.out.flags = (w.Take(Mod::kFTZ) ? kFlushes : 0u) | (w.Take(Mod::kH_AND) ? kJoinsHalves : 0u);
  w.out.flags |= TakeComparison(w, true) << kRelationShift;
  w.out.flags |= static_cast<uint32_t>(TakeJoin(w)) << kJoinShift;
  w.DestinationPredicate(0);
  w.DestinationPredicate(1);
  HalfSource(w, 0);
  HalfSource(w, 1);
  w.SourcePredicate(0);
  w.out.run = bfloat ? &RunHsetp2<BF16> : &RunHsetp2<F16>;
}

}  // namespace heddle::emulator
