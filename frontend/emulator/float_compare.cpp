// Floating-point comparisons into predicates and registers, single and double precision.
#include "frontend/emulator/compare.h"
#include "frontend/emulator/float_format.h"

namespace heddle::emulator {
namespace {

using isa::Mod;

// flags: relation in bits 0..3, join in 8..15, and
enum : uint32_t { kFlushes = 1u << 16, kFloatResult = 1u << 17 };
constexpr uint32_t kJoinShift = 8;

inline Join JoinOf(const Lowered& l) { return static_cast<Join>(l.flags >> kJoinShift & 0xff); }

uint32_t CompareFloats(const Context& c, const Lowered& l) {
  const uint32_t* a = c.Source(l, 0).lane;
  const uint32_t* b = c.Source(l, 1).lane;
  const uint32_t keep_a = l.keep[0], keep_b = l.keep[1], flip_a = l.flip[0], flip_b = l.flip[1];
  const bool flushes = (l.flags & kFlushes) != 0;
  const auto compare = [&](auto holds) {
    return MaskOf([&](uint32_t i) {
      uint32_t x = (a[i] & keep_a) ^ flip_a;
      uint32_t y = (b[i] & keep_b) ^ flip_b;
      if (flushes) {
        x = FlushDenormal(x);
        y = FlushDenormal(y);
      }
      return holds(AsFloat(x), AsFloat(y));
    });
  };
  // The unordered forms are complements of ordered ones.
  const Relation relation = l.flags & 0xf;
  const bool complement = (relation & kUnordered) != 0;
  switch (complement ? relation ^ 0xf : relation) {
    case kLess:
      return compare([](float x, float y) { return x < y; }) ^ (complement ? kAllLanes : 0);
    case kEqual:
      return compare([](float x, float y) { return x == y; }) ^ (complement ? kAllLanes : 0);
    case kLess | kEqual:
      return compare([](float x, float y) { return x <= y; }) ^ (complement ? kAllLanes : 0);
    case kGreater:
      return compare([](float x, float y) { return x > y; }) ^ (complement ? kAllLanes : 0);
    case kGreater | kEqual:
      return compare([](float x, float y) { return x >= y; }) ^ (complement ? kAllLanes : 0);
    case kLess | kGreater:
      return compare([](float x, float y) { return x < y || x > y; }) ^ (complement ? kAllLanes : 0);
    default:
      return compare([](float x, float y) { return x == x && y == y; }) ^ (complement ? kAllLanes : 0);
  }
}

void RunFsetp(Context& c, const Lowered& l) { WriteComparison(c, l, JoinOf(l), CompareFloats(c, l)); }

void RunFset(Context& c, const Lowered& l) {
  const uint32_t result = Apply(JoinOf(l), CompareFloats(c, l), c.SourcePredicate(l, 0));
  const uint32_t yes = (l.flags & kFloatResult) != 0 ? 0x3f800000u : kAllLanes;
  MapLanes(c.Destination(l), c.lanes, [=](uint32_t i) { return (result >> i & 1) != 0 ? yes : 0; });
}

inline double DoubleAt(const Context& c, const Lowered& l, size_t slot, uint32_t i) {
  const uint32_t high = (c.Source(l, slot, 1).lane[i] & l.keep[slot]) ^ l.flip[slot];
  return AsDouble(Pair(c.Source(l, slot, 0).lane[i], high));
}

void RunDsetp(Context& c, const Lowered& l) {
  const Relation relation = l.flags & 0xf;
  WriteComparison(c, l, JoinOf(l), MaskOf([&](uint32_t i) {
                    return (RelationOf(DoubleAt(c, l, 0, i), DoubleAt(c, l, 1, i)) & relation) != 0;
                  }));
}

// DSETP.MIN and .MAX: the first predicate chooses operand a as the result of fmin or fmax, the second says that both
// are NaN. What ptxas makes of fmin() shows these meanings.
template <bool kMinimum>
void RunDsetpChoice(Context& c, const Lowered& l) {
  uint32_t takes_a = 0;
  uint32_t both_nan = 0;
  for (uint32_t i = 0; i < kWarpLanes; ++i) {
    const double a = DoubleAt(c, l, 0, i);
    const double b = DoubleAt(c, l, 1, i);
    const bool a_nan = std::isnan(a), b_nan = std::isnan(b);
    const bool less = a < b || (a == b && std::signbit(a) && !std::signbit(b));
    const bool greater = a > b || (a == b && !std::signbit(a) && std::signbit(b));
    const bool a_wins = !a_nan && (b_nan || (kMinimum ? less : greater));
    takes_a |= (a_wins ? 1u : 0u) << i;
    both_nan |= (a_nan && b_nan ? 1u : 0u) << i;
  }
  const uint32_t other = c.SourcePredicate(l, 0);
  c.WritePredicate(l, 0, Apply(JoinOf(l), takes_a, other));
  c.WritePredicate(l, 1, Apply(JoinOf(l), both_nan, other));
}

}  // namespace

// FSETP.cmp{.FTZ}.join P, P, a, b, P
void LowerFsetp(Lowering& w) {
  w.out.flags = (w.Take(Mod::kFTZ) ? kFlushes : 0u) | TakeComparison(w, true);
  w.out.flags |= static_cast<uint32_t>(TakeJoin(w)) << kJoinShift;
  w.DestinationPredicate(0);
  w.DestinationPredicate(1);
  w.FloatSource(0);
  w.FloatSource(1);
  w.SourcePredicate(0);
  w.out.run = &RunFsetp;
}

// FSET{.BF}.cmp{.FTZ}.join R, a, b, P
void LowerFset(Lowering& w) {
  w.out.flags = (w.Take(Mod::kFTZ) ? kFlushes : 0u) | (w.Take(Mod::kBF) ? kFloatResult : 0u);
  w.out.flags |= TakeComparison(w, true);
  w.out.flags |= static_cast<uint32_t>(TakeJoin(w)) << kJoinShift;
  w.Destination(0);
  w.FloatSource(0);
  w.FloatSource(1);
  w.SourcePredicate(0);
  w.out.run = &RunFset;
}

void LowerDsetp(Lowering& w) {
  const int choice = w.TakeOneOf({Mod::kMIN, Mod::kMAX});
  if (choice < 0) w.out.flags = TakeComparison(w, true);
  w.out.flags |= static_cast<uint32_t>(TakeJoin(w)) << kJoinShift;
  w.DestinationPredicate(0);
  w.DestinationPredicate(1);
  w.DoubleSource(0);
  w.DoubleSource(1);
  w.SourcePredicate(0);
  w.out.run = choice < 0 ? &RunDsetp : choice == 0 ? &RunDsetpChoice<true> : &RunDsetpChoice<false>;
}

}  // namespace heddle::emulator
