// Integer arithmetic: adds with carries, multiply-adds, scaled adds, minima, dot products.
#include <algorithm>

#include "frontend/emulator/lowering.h"

namespace heddle::emulator {
namespace {

using isa::Mod;

// An integer source after its modifier: (x ^ flip).
struct Input {
  Input(const Context& c, const Lowered& l, size_t slot, uint32_t word = 0)
      : lane(c.Source(l, slot, word).lane), flip(l.flip[slot]) {}
  uint32_t operator[](uint32_t i) const { return lane[i] ^ flip; }
  const uint32_t* lane;
  uint32_t flip;
};

inline uint32_t Bit(uint32_t mask, uint32_t i) { return mask >> i & 1; }

// Sums: a + b + c + imm, where imm counts the negated operands (-x = ~x + 1).
void RunIadd3(Context& c, const Lowered& l) {
  const Input a(c, l, 0), b(c, l, 1), d(c, l, 2);
  const auto k = static_cast<uint32_t>(l.imm);
  MapLanes(c.Destination(l), c.lanes, [=](uint32_t i) { return a[i] + b[i] + d[i] + k; });
}

// With carry-in predicates 0 and 1 (kCarriesIn) and carry-outs: predicate 0 when the sum needs bit 32 or more, 1 when
// it needs two carries. kThird: the third operand is not RZ.
template <bool kCarriesIn, bool kThird>
void RunIadd3Carry(Context& c, const Lowered& l) {
  const Input a(c, l, 0), b(c, l, 1), d(c, l, 2);
  const auto k = static_cast<uint32_t>(l.imm);
  const uint32_t in0 = kCarriesIn ? c.SourcePredicate(l, 0) : 0;
  const uint32_t in1 = kCarriesIn ? c.SourcePredicate(l, 1) : 0;
  // In 32 bits, with the carries counted beside: twice as many lanes a vector as a 64-bit sum.
  Row partial;
  Row& sum = c.lanes == kAllLanes ? c.Destination(l) : partial;
  Row carries;
  HEDDLE_LANE_LOOP
  for (uint32_t i = 0; i < kWarpLanes; ++i) {
    const uint32_t first = a[i] + b[i];
    uint32_t carry = first < b[i] ? 1u : 0u;
    uint32_t second = first;
    if constexpr (kThird) {
      second = first + d[i];
      carry += second < first ? 1u : 0u;
    }
    const uint32_t third = second + (k + Bit(in0, i) + Bit(in1, i));
    carries.lane[i] = carry + (third < second ? 1u : 0u);
    sum.lane[i] = third;
  }
  if (&sum == &partial) Blend(c.Destination(l), partial, c.lanes);
  c.WritePredicate(l, 0, MaskOf([&](uint32_t i) { return carries.lane[i] >= 1; }));
  if (l.destination_predicate[1] != kDiscardPredicate)
    c.WritePredicate(l, 1, MaskOf([&](uint32_t i) { return carries.lane[i] >= 2; }));
}

void RunIadd64(Context& c, const Lowered& l) {
  const Input a(c, l, 0), ah(c, l, 0, 1), b(c, l, 1), bh(c, l, 1, 1), d(c, l, 2), dh(c, l, 2, 1);
  const uint64_t k = l.imm;
  MapLanes64(c.Destination(l, 0, 0), c.Destination(l, 0, 1), c.lanes,
             [=](uint32_t i) { return Pair(a[i], ah[i]) + Pair(b[i], bh[i]) + Pair(d[i], dh[i]) + k; });
}

void RunIadd2(Context& c, const Lowered& l) {
  const Input a(c, l, 0), b(c, l, 1);
  const auto k = static_cast<uint32_t>(l.imm);
  MapLanes(c.Destination(l), c.lanes, [=](uint32_t i) { return a[i] + b[i] + k; });
}

// a * b + c; the low word is the same for signed and unsigned factors. imm: 1 for a negated c.
void RunImad(Context& c, const Lowered& l) {
  const Input a(c, l, 0), b(c, l, 1), d(c, l, 2);
  const auto k = static_cast<uint32_t>(l.imm);
  MapLanes(c.Destination(l), c.lanes, [=](uint32_t i) { return a[i] * b[i] + d[i] + k; });
}

void RunImadX(Context& c, const Lowered& l) {
  const Input a(c, l, 0), b(c, l, 1), d(c, l, 2);
  const uint32_t carry = c.SourcePredicate(l, 0);
  MapLanes(c.Destination(l), c.lanes, [=](uint32_t i) { return a[i] * b[i] + d[i] + Bit(carry, i); });
}

template <bool kIsSigned>
inline uint64_t Product(uint32_t a, uint32_t b) {
  if constexpr (kIsSigned) return static_cast<uint64_t>(int64_t{Signed(a)} * Signed(b));
  return uint64_t{a} * b;
}

// 64-bit a * b + c without carries.
template <bool kIsSigned>
void RunImadWide(Context& c, const Lowered& l) {
  const Input a(c, l, 0), b(c, l, 1), d(c, l, 2), dh(c, l, 2, 1);
  const uint64_t k = l.imm;
  MapLanes64(c.Destination(l, 0, 0), c.Destination(l, 0, 1), c.lanes,
             [=](uint32_t i) { return Product<kIsSigned>(a[i], b[i]) + Pair(d[i], dh[i]) + k; });
}

// flags of the general form.
enum : uint32_t { kHighOnly = 1, kCarryIn = 2 };

// The carry-out is that of the 64-bit addition.
template <bool kIsSigned>
void RunImadWideCarry(Context& c, const Lowered& l) {
  const Input a(c, l, 0), b(c, l, 1), d(c, l, 2), dh(c, l, 2, 1);
  const uint32_t carry = (l.flags & kCarryIn) != 0 ? c.SourcePredicate(l, 0) : 0;
  uint64_t sum[kWarpLanes];
  uint32_t carry_out = 0;
  for (uint32_t i = 0; i < kWarpLanes; ++i) {
    const uint64_t product = Product<kIsSigned>(a[i], b[i]);
    const uint64_t addend = Pair(d[i], dh[i]);
    const uint64_t partial = product + addend;
    const uint64_t more = l.imm + Bit(carry, i);
    sum[i] = partial + more;
    carry_out |= static_cast<uint32_t>((partial < product || sum[i] < more) ? 1u : 0u) << i;
  }
  if ((l.flags & kHighOnly) != 0) {
    MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) { return High(sum[i]); });
  } else {
    MapLanes64(c.Destination(l, 0, 0), c.Destination(l, 0, 1), c.lanes, [&](uint32_t i) { return sum[i]; });
  }
  c.WritePredicate(l, 0, carry_out);
}

// (a << s) + b, s in imm bits 0..31, the 1 of a negated b in bit 32.
void RunLea(Context& c, const Lowered& l) {
  const Input a(c, l, 0), b(c, l, 1);
  const uint32_t shift = Low(l.imm);
  const uint32_t k = High(l.imm);
  MapLanes(c.Destination(l), c.lanes, [=](uint32_t i) { return (a[i] << shift) + b[i] + k; });
}

// flags of LEA.
enum : uint32_t { kLeaHigh = 1, kLeaSignExtends = 2, kLeaCarryIn = 4 };

// .HI: the high word of (c:a) << s, with c the sign of a for .SX32. A negated `a` is ~x + 1 of the shifted word, so that
// a zero gives a carry; with a carry-in it is ~x.
void RunLeaGeneral(Context& c, const Lowered& l) {
  const Row& a = c.Source(l, 0);
  const Row& high = c.Source(l, 2);
  const Input b(c, l, 1);
  const uint32_t shift = Low(l.imm);
  const uint32_t k = High(l.imm);
  const uint32_t flip = l.flip[0];
  const uint32_t carry = (l.flags & kLeaCarryIn) != 0 ? c.SourcePredicate(l, 0) : 0;
  const bool sign_extends = (l.flags & kLeaSignExtends) != 0;
  const bool takes_high = (l.flags & kLeaHigh) != 0;
  Row partial;
  Row& sum = c.lanes == kAllLanes ? c.Destination(l) : partial;
  Row carries;
  HEDDLE_LANE_LOOP
  for (uint32_t i = 0; i < kWarpLanes; ++i) {
    const uint32_t above = sign_extends ? static_cast<uint32_t>(Signed(a.lane[i]) >> 31) : high.lane[i];
    // In two steps: a shift by 32 is not defined.
    const uint32_t shifted_high = above << shift | a.lane[i] >> 1 >> (31 - shift);
    const uint32_t value = (takes_high ? shifted_high : a.lane[i] << shift) ^ flip;
    const uint32_t first = value + b[i];
    const uint32_t second = first + (k + Bit(carry, i));
    carries.lane[i] = (first < value ? 1u : 0u) + (second < first ? 1u : 0u);
    sum.lane[i] = second;
  }
  if (&sum == &partial) Blend(c.Destination(l), partial, c.lanes);
  if (l.destination_predicate[0] != kDiscardPredicate)
    c.WritePredicate(l, 0, MaskOf([&](uint32_t i) { return carries.lane[i] != 0; }));
}

void RunIabs(Context& c, const Lowered& l) {
  const Input a(c, l, 0);
  const auto k = static_cast<uint32_t>(l.imm);
  MapLanes(c.Destination(l), c.lanes, [=](uint32_t i) {
    const uint32_t x = a[i] + k;
    return Signed(x) < 0 ? 0 - x : x;
  });
}

// flags of minima: unsigned, and clamp at zero.
enum : uint32_t { kUnsigned = 1, kRelu = 2 };

// predicate 0 true: the minimum.
template <bool kIsUnsigned>
void RunMinMax(Context& c, const Lowered& l) {
  const Input a(c, l, 0), b(c, l, 1);
  const uint32_t minimum = c.SourcePredicate(l, 0);
  const bool relu = (l.flags & kRelu) != 0;
  MapLanes(c.Destination(l), c.lanes, [=](uint32_t i) {
    const bool less = kIsUnsigned ? a[i] < b[i] : Signed(a[i]) < Signed(b[i]);
    const uint32_t result = less == (Bit(minimum, i) != 0) ? a[i] : b[i];
    return relu && Signed(result) < 0 ? 0 : result;
  });
}

// min or max of a + b and c.
template <bool kIsUnsigned>
void RunAddMinMax(Context& c, const Lowered& l) {
  const Input a(c, l, 0), b(c, l, 1), d(c, l, 2);
  const uint32_t minimum = c.SourcePredicate(l, 0);
  const auto k = static_cast<uint32_t>(l.imm);
  const bool relu = (l.flags & kRelu) != 0;
  MapLanes(c.Destination(l), c.lanes, [=](uint32_t i) {
    const uint32_t sum = a[i] + b[i] + k;
    const bool less = kIsUnsigned ? sum < d[i] : Signed(sum) < Signed(d[i]);
    const uint32_t result = less == (Bit(minimum, i) != 0) ? sum : d[i];
    return relu && Signed(result) < 0 ? 0 : result;
  });
}

// min or max of three: predicates 0 and 1 choose for (a, b) and for the result and c.
template <bool kIsUnsigned>
void RunMinMax3(Context& c, const Lowered& l) {
  const Input a(c, l, 0), b(c, l, 1), d(c, l, 2);
  const uint32_t minimum = c.SourcePredicate(l, 0);
  const bool relu = (l.flags & kRelu) != 0;
  MapLanes(c.Destination(l), c.lanes, [=](uint32_t i) {
    const bool wants_less = Bit(minimum, i) != 0;
    const bool first = kIsUnsigned ? a[i] < b[i] : Signed(a[i]) < Signed(b[i]);
    const uint32_t x = first == wants_less ? a[i] : b[i];
    const bool second = kIsUnsigned ? x < d[i] : Signed(x) < Signed(d[i]);
    const uint32_t result = second == wants_less ? x : d[i];
    return relu && Signed(result) < 0 ? 0 : result;
  });
}

// The same on two halves of 16 bits: min or max of a (or a + b, flags kPackedAdds) and the last operand.
enum : uint32_t { kPackedAdds = 4, kPackedSigned = 8 };

void RunPackedMinMax(Context& c, const Lowered& l) {
  const bool adds = (l.flags & kPackedAdds) != 0;
  const bool is_signed = (l.flags & kPackedSigned) != 0;
  const Row& a = c.Source(l, 0);
  const Row& b = c.Source(l, 1);
  const Row& other = c.Source(l, adds ? 2 : 1);
  const uint32_t minimum = c.SourcePredicate(l, 0);
  const auto number = [=](uint32_t bits) {
    return is_signed ? int32_t{static_cast<int16_t>(bits)} : int32_t{static_cast<uint16_t>(bits)};
  };
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) {
    uint32_t result = 0;
    for (uint32_t shift = 0; shift < 32; shift += 16) {
      const uint32_t x = (a.lane[i] >> shift) + (adds ? b.lane[i] >> shift : 0);
      const uint32_t y = other.lane[i] >> shift;
      uint32_t chosen = (number(x) < number(y)) == (Bit(minimum, i) != 0) ? x : y;
      if ((l.flags & kRelu) != 0 && number(chosen) < 0) chosen = 0;
      result |= (chosen & 0xffff) << shift;
    }
    return result;
  });
}

inline int64_t Field(uint32_t word, uint32_t position, uint32_t bits, bool is_signed) {
  const uint32_t field = word >> position & ((1u << bits) - 1);
  const bool negative = is_signed && (field >> (bits - 1) & 1) != 0;
  return negative ? int64_t{field} - (int64_t{1} << bits) : int64_t{field};
}

// flags of IDP.
enum : uint32_t { kASigned = 1, kBSigned = 2, kPairs = 4, kPairsHigh = 8 };

void RunIdp(Context& c, const Lowered& l) {
  const Row& a = c.Source(l, 0);
  const Row& b = c.Source(l, 1);
  const Input d(c, l, 2);
  const bool a_signed = (l.flags & kASigned) != 0;
  const bool b_signed = (l.flags & kBSigned) != 0;
  const bool pairs = (l.flags & kPairs) != 0;
  const uint32_t terms = pairs ? 2 : 4;
  const uint32_t a_bits = pairs ? 16 : 8;
  const uint32_t b_start = (l.flags & kPairsHigh) != 0 ? 16 : 0;
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) {
    int64_t sum = 0;
    for (uint32_t t = 0; t < terms; ++t)
      sum += Field(a.lane[i], t * a_bits, a_bits, a_signed) * Field(b.lane[i], b_start + t * 8, 8, b_signed);
    return static_cast<uint32_t>(sum) + d[i] + static_cast<uint32_t>(l.imm);
  });
}

// |a - b| + c
template <bool kIsUnsigned>
void RunVabsdiff(Context& c, const Lowered& l) {
  const Input a(c, l, 0), b(c, l, 1), d(c, l, 2);
  MapLanes(c.Destination(l), c.lanes, [=](uint32_t i) {
    const bool less = kIsUnsigned ? a[i] < b[i] : Signed(a[i]) < Signed(b[i]);
    return (less ? b[i] - a[i] : a[i] - b[i]) + d[i];
  });
}

// Per byte |a - b|; flags 1: the four are added to c, else c is ignored.
template <bool kIsUnsigned>
void RunVabsdiff4(Context& c, const Lowered& l) {
  const Row& a = c.Source(l, 0);
  const Row& b = c.Source(l, 1);
  const Row& d = c.Source(l, 2);
  const bool accumulates = l.flags != 0;
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) {
    uint32_t packed = 0;
    uint32_t sum = d.lane[i];
    for (uint32_t t = 0; t < 4; ++t) {
      const int64_t difference =
          Field(a.lane[i], 8 * t, 8, !kIsUnsigned) - Field(b.lane[i], 8 * t, 8, !kIsUnsigned);
      const auto magnitude = static_cast<uint32_t>(difference < 0 ? -difference : difference);
      packed |= (magnitude & 0xff) << 8 * t;
      sum += magnitude;
    }
    return accumulates ? sum : packed;
  });
}

void LowerAdd3Wide(Lowering& w) {
  w.Destination(0);
  for (size_t slot = 0; slot < 3; ++slot) w.out.imm += w.IntegerSource(slot, 2);
  w.out.run = &RunIadd64;
}

}  // namespace

// IADD3 R, [carry-out, [carry-out,]] a, b, c and IADD3.X ..., carry-in, carry-in. With .X, -x means ~x.
void LowerIadd3(Lowering& w) {
  if (w.Take(Mod::k64)) return LowerAdd3Wide(w);
  const bool extended = w.Take(Mod::kX);
  w.Destination(0);
  bool carries = w.TakeDestinationPredicate(0);
  if (carries) w.TakeDestinationPredicate(1);
  uint32_t negations = 0;
  for (size_t slot = 0; slot < 3; ++slot) negations += w.IntegerSource(slot);
  w.out.imm = extended ? 0 : negations;
  if (extended) {
    w.SourcePredicate(0);
    if (w.Peek() != nullptr) {
      w.SourcePredicate(1);
    } else {
      w.out.predicate_flip[1] = kAllLanes;  // PT inverted: no carry
    }
  }
  const bool third =
      w.out.source[2].row != kZeroRow || w.out.source[2].base != RowBase::kWarp || w.out.flip[2] != 0;
  if (extended) {
    w.out.run = third ? &RunIadd3Carry<true, true> : &RunIadd3Carry<true, false>;
  } else {
    w.out.run = !carries ? &RunIadd3 : third ? &RunIadd3Carry<false, true> : &RunIadd3Carry<false, false>;
  }
}

// VIADD R, a, b
void LowerViadd(Lowering& w) {
  w.Destination(0);
  w.out.imm = w.IntegerSource(0);
  w.out.imm += w.IntegerSource(1);
  w.out.run = &RunIadd2;
}

void LowerImad(Lowering& w) {
  // MOV, IADD and SHL are names that the disassembler gives to multiply-adds by 1 or a power of two.
  w.TakeOneOf({Mod::kMOV, Mod::kIADD, Mod::kSHL});
  const bool is_unsigned = w.Take(Mod::kU32);
  const bool extended = w.Take(Mod::kX);
  const bool wide = w.Take(Mod::kWIDE);
  const bool high = w.Take(Mod::kHI);
  w.Destination(0);
  const bool carries = (wide || high) && w.TakeDestinationPredicate(0);
  w.Source(0);
  w.Source(1);
  const uint32_t negation = w.IntegerSource(2, wide || high ? 2 : 1);
  w.out.imm = extended ? 0 : negation;
  if (extended) w.SourcePredicate(0);
  if (!wide && !high) {
    w.out.run = extended ? &RunImadX : &RunImad;
  } else if (wide && !carries && !extended) {
    w.out.run = is_unsigned ? &RunImadWide<false> : &RunImadWide<true>;
  } else {
    w.out.flags = (high ? kHighOnly : 0u) | (extended ? kCarryIn : 0u);
    w.out.run = is_unsigned ? &RunImadWideCarry<false> : &RunImadWideCarry<true>;
  }
}

void LowerLea(Lowering& w) {
  const bool high = w.Take(Mod::kHI);
  const bool extended = w.Take(Mod::kX);
  const bool sign_extends = w.Take(Mod::kSX32);
  w.Destination(0);
  const bool carries = w.TakeDestinationPredicate(0);
  uint64_t negations = w.IntegerSource(0);
  negations += w.IntegerSource(1);
  if (high && !sign_extends) w.Source(2);
  const uint64_t shift = w.Immediate();
  if (shift > 31) return w.Fail("a shift beyond 31");
  if (extended) {
    w.SourcePredicate(0);
    negations = 0;
  }
  w.out.imm = negations << 32 | shift;
  w.out.flags =
      (high ? kLeaHigh : 0u) | (sign_extends ? kLeaSignExtends : 0u) | (extended ? kLeaCarryIn : 0u);
  w.out.run = high || extended || carries || w.out.flip[0] != 0 ? &RunLeaGeneral : &RunLea;
}

void LowerIabs(Lowering& w) {
  w.Destination(0);
  w.out.imm = w.IntegerSource(0);
  w.out.run = &RunIabs;
}

// IMNMX and VIMNMX R, a, b, P
void LowerImnmx(Lowering& w) {
  const int packed = w.TakeOneOf({Mod::kU16x2, Mod::kS16x2});
  const bool is_unsigned = w.Take(Mod::kU32);
  w.Take(Mod::kS32);
  if (w.Take(Mod::kRELU)) w.out.flags = kRelu;
  w.Destination(0);
  w.Source(0);
  w.Source(1);
  w.SourcePredicate(0);
  w.out.run = is_unsigned ? &RunMinMax<true> : &RunMinMax<false>;
  if (packed < 0) return;
  if (packed == 1) w.out.flags |= kPackedSigned;
  w.out.run = &RunPackedMinMax;
}

void LowerVimnmx3(Lowering& w) {
  const bool is_unsigned = w.Take(Mod::kU32);
  w.Take(Mod::kS32);
  if (w.Take(Mod::kRELU)) w.out.flags = kRelu;
  w.Destination(0);
  for (size_t slot = 0; slot < 3; ++slot) w.Source(slot);
  w.SourcePredicate(0);
  w.out.run = is_unsigned ? &RunMinMax3<true> : &RunMinMax3<false>;
}

// VIADDMNMX R, a, b, c, P
void LowerViaddmnmx(Lowering& w) {
  const int packed = w.TakeOneOf({Mod::kU16x2, Mod::kS16x2});
  const bool is_unsigned = w.Take(Mod::kU32);
  w.Take(Mod::kS32);
  if (w.Take(Mod::kRELU)) w.out.flags = kRelu;
  w.Destination(0);
  w.out.imm = w.IntegerSource(0);
  w.out.imm += w.IntegerSource(1);
  w.Source(2);
  w.SourcePredicate(0);
  w.out.run = is_unsigned ? &RunAddMinMax<true> : &RunAddMinMax<false>;
  if (packed < 0) return;
  if (w.out.flip[0] != 0 || w.out.flip[1] != 0) return w.Fail("a negated pair");
  w.out.flags |= kPackedAdds | (packed == 1 ? kPackedSigned : 0u);
  w.out.run = &RunPackedMinMax;
}

// IDP.4A.<a>.<b> and IDP.2A.{LO,HI}.<a>.<b>: the first type is that of a, the second that of b.
void LowerIdp(Lowering& w) {
  const int shape = w.TakeOneOf({Mod::k4A, Mod::k2A});
  if (shape < 0) return w.Fail("an unknown shape");
  if (shape == 1) w.out.flags = kPairs;
  w.Take(Mod::kLO);
  if (w.Take(Mod::kHI)) w.out.flags |= kPairsHigh;
  uint32_t types = 0;
  for (int i = 0; i < w.instruction.modifier_count; ++i) {
    const Mod mod = w.instruction.modifiers[static_cast<size_t>(i)];
    const bool is_signed = mod == Mod::kS8 || mod == Mod::kS16;
    if (!is_signed && mod != Mod::kU8 && mod != Mod::kU16) continue;
    w.Take(mod);
    if (is_signed) w.out.flags |= types == 0 ? kASigned : kBSigned;
    ++types;
  }
  if (types != 2) return w.Fail("two types expected");
  w.Destination(0);
  w.Source(0);
  w.Source(1);
  w.out.imm = w.IntegerSource(2);
  w.out.run = &RunIdp;
}

void LowerVabsdiff(Lowering& w) {
  const bool is_unsigned = w.TakeOneOf({Mod::kU32, Mod::kU8}) >= 0;
  w.Take(Mod::kS32);
  w.Destination(0);
  for (size_t slot = 0; slot < 3; ++slot) w.Source(slot);
  w.out.run = is_unsigned ? &RunVabsdiff<true> : &RunVabsdiff<false>;
}

void LowerVabsdiff4(Lowering& w) {
  const bool is_unsigned = w.Take(Mod::kU8);
  w.Take(Mod::kS8);
  if (w.Take(Mod::kACC)) w.out.flags = 1;
  w.Destination(0);
  for (size_t slot = 0; slot < 3; ++slot) w.Source(slot);
  w.out.run = is_unsigned ? &RunVabsdiff4<true> : &RunVabsdiff4<false>;
}

}  // namespace heddle::emulator
