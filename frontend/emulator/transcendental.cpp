// MUFU: the functions that hardware approximates. Here they are evaluated in double precision and rounded once, so the
// last bits differ from hardware's, whose tables are not published.
#include <numbers>

#include "frontend/emulator/float_format.h"

namespace heddle::emulator {
namespace {

using isa::Mod;

enum class Function : uint32_t { kRcp, kRsq, kSqrt, kLg2, kEx2, kSin, kCos, kTanh };

double Evaluate(Function function, double x) {
  switch (function) {
    case Function::kRcp:
      return 1.0 / x;
    case Function::kRsq:
      return 1.0 / std::sqrt(x);
    case Function::kSqrt:
      return std::sqrt(x);
    case Function::kLg2:
      return std::log2(x);
    case Function::kEx2:
      return std::exp2(x);
    // The argument is in turns: ptxas multiplies by 1 / 2 pi first.
    case Function::kSin:
      return std::isinf(x) ? std::nan("") : std::sin(2 * std::numbers::pi * (x - std::nearbyint(x)));
    case Function::kCos:
      return std::isinf(x) ? std::nan("") : std::cos(2 * std::numbers::pi * (x - std::nearbyint(x)));
    default:
      return std::tanh(x);
  }
}

// Denormal operands and results are zeros for all functions but TANH: ptxas scales around them.
void RunMufu(Context& c, const Lowered& l) {
  const uint32_t* a = c.Source(l, 0).lane;
  const auto function = static_cast<Function>(l.flags);
  const bool flushes = function != Function::kTanh;
  Row result;
  ForLanes(c.lanes, [&](uint32_t i) {
    const uint32_t x = (a[i] & l.keep[0]) ^ l.flip[0];
    const float value = AsFloat(flushes ? FlushDenormal(x) : x);
    const uint32_t bits = CanonicalNan(AsBits(static_cast<float>(Evaluate(function, value))));
    result.lane[i] = flushes ? FlushDenormal(bits) : bits;
  });
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) { return result.lane[i]; });
}

// .F16: on the chosen half, the result in the low half.
void RunMufuHalf(Context& c, const Lowered& l) {
  const uint32_t* a = c.Source(l, 0).lane;
  const auto function = static_cast<Function>(l.flags);
  const auto shift = static_cast<uint32_t>(l.imm);
  Row result;
  ForLanes(c.lanes, [&](uint32_t i) {
    const uint32_t bits = (a[i] >> shift & l.keep[0]) ^ l.flip[0];
    const double value = Evaluate(function, HalfToFloat(static_cast<uint16_t>(bits)));
    result.lane[i] = NarrowToHalf(AsFloat(FloatRoundedToOdd(value)), Rounding::kNearest);
  });
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) { return result.lane[i]; });
}

// The high word of the function of a double of which only the high word is given.
template <bool kSquareRoot>
void RunMufu64High(Context& c, const Lowered& l) {
  const uint32_t* a = c.Source(l, 0).lane;
  Row result;
  ForLanes(c.lanes, [&](uint32_t i) {
    const double x = AsDouble(Pair(0, (a[i] & l.keep[0]) ^ l.flip[0]));
    result.lane[i] = High(AsBits(kSquareRoot ? 1.0 / std::sqrt(x) : 1.0 / x));
  });
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) { return result.lane[i]; });
}

}  // namespace

// MUFU.function{.F16} R, a
void LowerMufu(Lowering& w) {
  const bool half = w.Take(Mod::kF16);
  const bool reciprocal_high = w.Take(Mod::kRCP64H);
  const bool root_high = w.Take(Mod::kRSQ64H);
  w.Destination(0);
  if (reciprocal_high || root_high) {
    w.FloatSource(0);
    w.out.run = reciprocal_high ? &RunMufu64High<false> : &RunMufu64High<true>;
    return;
  }
  const int function =
      w.TakeOneOf({Mod::kRCP, Mod::kRSQ, Mod::kSQRT, Mod::kLG2, Mod::kEX2, Mod::kSIN, Mod::kCOS, Mod::kTANH});
  if (function < 0) return w.Fail("an unknown function");
  w.out.flags = static_cast<uint32_t>(function);
  if (!half) {
    w.FloatSource(0);
    w.out.run = &RunMufu;
    return;
  }
  w.out.imm = w.HalfSource(0).low_from_high ? 16 : 0;
  w.out.keep[0] &= 0xffff;
  w.out.flip[0] &= 0xffff;
  w.out.run = &RunMufuHalf;
}

}  // namespace heddle::emulator
