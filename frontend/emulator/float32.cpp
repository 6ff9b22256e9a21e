// Single precision: add, multiply, fused multiply-add, minima, selections.
#include "frontend/emulator/float_format.h"

namespace heddle::emulator {
namespace {

using isa::Mod;

inline uint32_t Bit(uint32_t mask, uint32_t i) { return mask >> i & 1; }

// A source after its modifiers: |x| and -x are operations on the sign bit.
struct Input {
  Input(const Context& c, const Lowered& l, size_t slot)
      : lane(c.Source(l, slot).lane), keep(l.keep[slot]), flip(l.flip[slot]) {}
  uint32_t operator[](uint32_t i) const { return (lane[i] & keep) ^ flip; }
  const uint32_t* lane;
  uint32_t keep;
  uint32_t flip;
};

enum class Operation { kAdd, kMultiply, kFused };

template <Operation kOperation>
inline float Compute(float a, float b, float c) {
  if constexpr (kOperation == Operation::kAdd) return a + b;
  if constexpr (kOperation == Operation::kMultiply) return a * b;
  return std::fma(a, b, c);
}

// The rule that decides nearly all cases: round to nearest, no saturation.
template <Operation kOperation, bool kFlushes>
void RunNearest(Context& c, const Lowered& l) {
  const Input a(c, l, 0), b(c, l, 1), d(c, l, 2);
  MapLanes(c.Destination(l), c.lanes, [=](uint32_t i) {
    uint32_t x = a[i], y = b[i], z = d[i];
    if constexpr (kFlushes) {
      x = FlushDenormal(x);
      y = FlushDenormal(y);
      z = FlushDenormal(z);
    }
    const float result = Compute<kOperation>(AsFloat(x), AsFloat(y), AsFloat(z));
    const uint32_t bits = result != result ? kFloatNan : AsBits(result);
    return kFlushes ? FlushDenormal(bits) : bits;
  });
}

// imm of the general form: rounding in bits 0..7, saturation in bit 8, scale + 8 in bits 16..23 (0: none).
constexpr uint64_t kSaturates = 1u << 8;
constexpr uint32_t kScaleShift = 16;

// Not inlined: see ScopedRounding.
template <Operation kOperation>
[[gnu::noinline]] void ComputeRow(const Row& a, const Row& b, const Row& c, Row& result) {
  for (uint32_t i = 0; i < kWarpLanes; ++i)
    result.lane[i] = AsBits(Compute<kOperation>(AsFloat(a.lane[i]), AsFloat(b.lane[i]), AsFloat(c.lane[i])));
}

template <Operation kOperation, bool kFlushes>
void RunGeneral(Context& c, const Lowered& l) {
  const Input a(c, l, 0), b(c, l, 1), d(c, l, 2);
  Row x, y, z, result;
  for (uint32_t i = 0; i < kWarpLanes; ++i) {
    x.lane[i] = kFlushes ? FlushDenormal(a[i]) : a[i];
    y.lane[i] = kFlushes ? FlushDenormal(b[i]) : b[i];
    z.lane[i] = kFlushes ? FlushDenormal(d[i]) : d[i];
  }
  const auto scale_code = static_cast<int>(l.imm >> kScaleShift & 0xff);
  if (scale_code != 0) {
    for (uint32_t i = 0; i < kWarpLanes; ++i)
      result.lane[i] = AsBits(static_cast<float>(
          std::ldexp(static_cast<double>(AsFloat(x.lane[i])) * AsFloat(y.lane[i]), scale_code - 8)));
  } else {
    const ScopedRounding rounding(static_cast<Rounding>(l.imm & 0xff));
    ComputeRow<kOperation>(x, y, z, result);
  }
  for (uint32_t& bits : result.lane) {
    bits = CanonicalNan(bits);
    if (kFlushes) bits = FlushDenormal(bits);
    if ((l.imm & kSaturates) != 0) bits = Saturate(bits);
  }
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) { return result.lane[i]; });
}

template <Operation kOperation>
void LowerArithmetic(Lowering& w) {
  const bool flushes = w.Take(Mod::kFTZ);
  const Rounding rounding = TakeRounding(w);
  const bool saturates = w.Take(Mod::kSAT);
  int scale = 0;
  if constexpr (kOperation == Operation::kMultiply) {
    constexpr int kScales[] = {-1, -2, -3, 1, 2, 3};
    const int chosen = w.TakeOneOf({Mod::kD2, Mod::kD4, Mod::kD8, Mod::kM2, Mod::kM4, Mod::kM8});
    if (chosen >= 0) scale = kScales[chosen];
  }
  w.Destination(0);
  w.FloatSource(0);
  w.FloatSource(1);
  if constexpr (kOperation == Operation::kFused) w.FloatSource(2);
  if (rounding == Rounding::kNearest && !saturates && scale == 0) {
    w.out.run = flushes ? &RunNearest<kOperation, true> : &RunNearest<kOperation, false>;
    return;
  }
  if (scale != 0 && rounding != Rounding::kNearest) return w.Fail("a scaled product with directed rounding");
  w.out.imm = static_cast<uint64_t>(rounding) | (saturates ? kSaturates : 0) |
              (scale == 0 ? 0 : static_cast<uint64_t>(scale + 8) << kScaleShift);
  w.out.run = flushes ? &RunGeneral<kOperation, true> : &RunGeneral<kOperation, false>;
}

// flags of minima.
enum : uint32_t { kFlushInputs = 1, kPropagatesNan = 2, kXorSign = 4 };

// Less in the order in which -0 is below +0; neither is NaN.
inline bool TotalLess(uint32_t a, uint32_t b) {
  return AsFloat(a) < AsFloat(b) || (AsFloat(a) == AsFloat(b) && Signed(a) < Signed(b));
}

// Predicate 0 true: the minimum. One NaN loses against a number, unless .NAN.
void RunFmnmx(Context& c, const Lowered& l) {
  const Input a(c, l, 0), b(c, l, 1);
  const uint32_t minimum = c.SourcePredicate(l, 0);
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) {
    uint32_t x = a[i], y = b[i];
    if ((l.flags & kFlushInputs) != 0) {
      x = FlushDenormal(x);
      y = FlushDenormal(y);
    }
    const bool x_nan = IsNan(x), y_nan = IsNan(y);
    if ((x_nan && y_nan) || ((x_nan || y_nan) && (l.flags & kPropagatesNan) != 0)) return kFloatNan;
    const uint32_t sign = (x ^ y) & kFloatSign;
    if ((l.flags & kXorSign) != 0) {
      x &= ~kFloatSign;
      y &= ~kFloatSign;
    }
    const bool takes_x = y_nan || (!x_nan && TotalLess(x, y) == (Bit(minimum, i) != 0));
    const uint32_t result = takes_x ? x : y;
    return (l.flags & kXorSign) != 0 ? result | sign : result;
  });
}

template <bool kFlushes>
void RunFsel(Context& c, const Lowered& l) {
  const Input a(c, l, 0), b(c, l, 1);
  const uint32_t first = c.SourcePredicate(l, 0);
  MapLanes(c.Destination(l), c.lanes, [=](uint32_t i) {
    const uint32_t bits = Bit(first, i) != 0 ? a[i] : b[i];
    return kFlushes ? FlushDenormal(bits) : bits;
  });
}

// True where a / b needs the slow path of the division: a guess at a condition that NVIDIA does not publish. The fast
// path (reciprocal, quotient, remainder) is exact when neither operand, quotient nor remainder is near the ends of the
// exponent range. A zero numerator is slow as well: the fast path loses the sign of a zero quotient.
bool DivisionIsSlow(uint32_t a, uint32_t b) {
  const int exponent_a = static_cast<int>(a >> 23 & 0xff);
  const int exponent_b = static_cast<int>(b >> 23 & 0xff);
  if (exponent_a == 255 || exponent_b == 255 || exponent_b == 0) return true;
  if (exponent_b >= 253) return true;  // the reciprocal is denormal
  const int quotient = exponent_a - exponent_b;
  return exponent_a <= 24 || quotient >= 126 || quotient <= -124;
}

void RunFchk(Context& c, const Lowered& l) {
  const Input a(c, l, 0), b(c, l, 1);
  c.WritePredicate(l, 0, MaskOf([&](uint32_t i) { return DivisionIsSlow(a[i], b[i]); }));
}

}  // namespace

void LowerFadd(Lowering& w) { LowerArithmetic<Operation::kAdd>(w); }
void LowerFmul(Lowering& w) { LowerArithmetic<Operation::kMultiply>(w); }
void LowerFfma(Lowering& w) { LowerArithmetic<Operation::kFused>(w); }

// FMNMX R, a, b, P
void LowerFmnmx(Lowering& w) {
  w.out.flags = (w.Take(Mod::kFTZ) ? kFlushInputs : 0u) | (w.Take(Mod::kNAN) ? kPropagatesNan : 0u) |
                (w.Take(Mod::kXORSIGN) ? kXorSign : 0u);
  w.Destination(0);
  w.FloatSource(0);
  w.FloatSource(1);
  // min.xorsign.abs is printed with |a|: the sign of the result is of a and b as they stand in the registers.
  if ((w.out.flags & kXorSign) != 0) w.out.keep[0] = w.out.keep[1] = ~0u;
  w.SourcePredicate(0);
  w.out.run = &RunFmnmx;
}

void LowerFsel(Lowering& w) {
  const bool flushes = w.Take(Mod::kFTZ);
  w.Destination(0);
  w.FloatSource(0);
  w.FloatSource(1);
  w.SourcePredicate(0);
  w.out.run = flushes ? &RunFsel<true> : &RunFsel<false>;
}

// FCHK{.DIVIDE} P, a, b
void LowerFchk(Lowering& w) {
  w.DestinationPredicate(0);
  w.FloatSource(0);
  w.FloatSource(1);
  w.out.run = &RunFchk;
}

}  // namespace heddle::emulator
