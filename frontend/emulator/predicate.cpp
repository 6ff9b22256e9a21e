// Integer comparisons, and predicates as bits of registers.
#include "frontend/emulator/compare.h"

namespace heddle::emulator {
namespace {

using isa::Mod;
using isa::OperandKind;

constexpr uint32_t kJoinShift = 8;
enum : uint32_t { kExtended = 1u << 16 };  // above the relation and the join

template <Relation kRelation, typename T>
uint32_t CompareAll(const uint32_t* a, const uint32_t* b, uint32_t flip, uint32_t k) {
  return MaskOf([=](uint32_t i) {
    const T x = static_cast<T>(a[i]);
    const T y = static_cast<T>((b[i] ^ flip) + k);
    if constexpr (kRelation == kLess) return x < y;
    if constexpr (kRelation == kEqual) return x == y;
    if constexpr (kRelation == kGreater) return x > y;
    if constexpr (kRelation == (kLess | kEqual)) return x <= y;
    if constexpr (kRelation == (kGreater | kEqual)) return x >= y;
    return x != y;
  });
}

// .EX compares the high words of two pairs: where they are equal the comparison of the low words decides.
template <Relation kRelation, typename T>
void RunIsetp(Context& c, const Lowered& l) {
  const uint32_t* a = c.Source(l, 0).lane;
  const uint32_t* b = c.Source(l, 1).lane;
  const auto k = static_cast<uint32_t>(l.imm);
  uint32_t result = CompareAll<kRelation, T>(a, b, l.flip[1], k);
  if ((l.flags & kExtended) != 0) {
    const uint32_t equal = CompareAll<kEqual, T>(a, b, l.flip[1], k);
    result = (equal & c.SourcePredicate(l, 1)) | (~equal & result);
  }
  WriteComparison(c, l, static_cast<Join>(l.flags >> kJoinShift & 0xff), result);
}

template <typename T>
Handler IsetpHandler(Relation relation) {
  switch (relation) {
    case kLess:
      return &RunIsetp<kLess, T>;
    case kEqual:
      return &RunIsetp<kEqual, T>;
    case kLess | kEqual:
      return &RunIsetp<kLess | kEqual, T>;
    case kGreater:
      return &RunIsetp<kGreater, T>;
    case kGreater | kEqual:
      return &RunIsetp<kGreater | kEqual, T>;
    default:
      return &RunIsetp<kLess | kGreater, T>;
  }
}

void RunConstantComparison(Context& c, const Lowered& l) {
  WriteComparison(c, l, static_cast<Join>(l.flags >> kJoinShift & 0xff), Low(l.imm));
}

// imm: the mask; flags: the lowest bit's position and, above it, the first predicate's index.
void RunP2r(Context& c, const Lowered& l) {
  const uint32_t* a = c.Source(l, 0).lane;
  const uint32_t* mask = c.Source(l, 1).lane;
  const uint32_t shift = l.flags & 0xff;
  const uint32_t* predicates = c.predicates + (l.flags >> 8);
  Row bits{};
  for (uint32_t p = 0; p < kTruePredicate; ++p) {
    const uint32_t lanes = predicates[p];
    HEDDLE_LANE_LOOP
    for (uint32_t i = 0; i < kWarpLanes; ++i) bits.lane[i] |= (lanes >> i & 1) << (p + shift);
  }
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) {
    const uint32_t m = mask[i] << shift;
    return (a[i] & ~m) | (bits.lane[i] & m);
  });
}

void RunR2p(Context& c, const Lowered& l) {
  const uint32_t* a = c.Source(l, 0).lane;
  const uint32_t* mask = c.Source(l, 1).lane;
  const uint32_t shift = l.flags & 0xff;
  uint32_t* predicates = c.predicates + (l.flags >> 8);
  for (uint32_t p = 0; p < kTruePredicate; ++p) {
    const uint32_t chosen = MaskOf([&](uint32_t i) { return (mask[i] >> p & 1) != 0; }) & c.lanes;
    const uint32_t values = MaskOf([&](uint32_t i) { return (a[i] >> (p + shift) & 1) != 0; });
    predicates[p] = (predicates[p] & ~chosen) | (values & chosen);
  }
}

// PR or UPR: the index of its first predicate.
uint32_t AllPredicates(Lowering& w) {
  const isa::Operand& operand = w.Next();
  if (operand.kind != OperandKind::kAllPredicates) w.Fail("no predicate set");
  const bool uniform = operand.Has(isa::kIsUniform);
  if (uniform && operand.is_destination) w.out.lane_fill = kAllLanes;
  return uniform ? kFirstUniformPredicate : 0;
}

// A register of which .B1 to .B3 may choose a byte: the bit that it starts at.
uint32_t ByteSource(Lowering& w, size_t slot) {
  const isa::Operand* next = w.Peek();
  if (next == nullptr || !next->Has(isa::kByteSelect)) {
    w.Source(slot);
    return 0;
  }
  const isa::Operand& operand = w.Next();
  const bool uniform = operand.kind == OperandKind::kUniformRegister;
  if (operand.scale > 3 || (!uniform && operand.kind != OperandKind::kRegister)) {
    w.Fail("an unknown byte");
    return 0;
  }
  w.out.source[slot].row = uniform ? w.layout.UniformReadRow(operand.reg) : w.layout.ReadRow(operand.reg);
  return operand.scale * 8u;
}

}  // namespace

Relation TakeComparison(Lowering& w, bool is_float) {
  struct Name {
    Mod mod;
    Relation relation;
  };
  constexpr Name kNames[] = {{Mod::kLT, 1},   {Mod::kEQ, 2},   {Mod::kLE, 3},   {Mod::kGT, 4},
                             {Mod::kNE, 5},   {Mod::kGE, 6},   {Mod::kNUM, 7},  {Mod::kNAN, 8},
                             {Mod::kLTU, 9},  {Mod::kEQU, 10}, {Mod::kLEU, 11}, {Mod::kGTU, 12},
                             {Mod::kNEU, 13}, {Mod::kGEU, 14}};
  for (const Name& name : kNames) {
    if (!w.Take(name.mod)) continue;
    if (!is_float && name.relation > 6) w.Fail("not a comparison of integers");
    return name.relation;
  }
  w.Fail("no comparison");
  return 0;
}

Join TakeJoin(Lowering& w) {
  const int join = w.TakeOneOf({Mod::kAND, Mod::kOR, Mod::kXOR});
  if (join < 0) w.Fail("no AND, OR or XOR");
  return static_cast<Join>(join < 0 ? 0 : join);
}

// ISETP.cmp{.U32}.join{.EX} P, P, a, b, P{, P}
void LowerIsetp(Lowering& w) {
  const bool is_unsigned = w.Take(Mod::kU32);
  const bool extended = w.Take(Mod::kEX);
  const bool always = w.Take(Mod::kT);
  const Relation relation = always ? 0 : TakeComparison(w, false);
  w.out.flags = static_cast<uint32_t>(TakeJoin(w)) << kJoinShift | (extended ? kExtended : 0u);
  w.DestinationPredicate(0);
  w.DestinationPredicate(1);
  w.Source(0);
  const uint32_t negation = w.IntegerSource(1);
  w.SourcePredicate(0);
  if (extended) w.SourcePredicate(1);
  w.out.imm = always ? kAllLanes : negation;
  w.out.run = always        ? &RunConstantComparison
              : is_unsigned ? IsetpHandler<uint32_t>(relation)
                            : IsetpHandler<int32_t>(relation);
}

// P2R{.B1} R, PR, a, mask: the predicates chosen by mask replace bits of a.
void LowerP2r(Lowering& w) {
  const int byte = w.TakeOneOf({Mod::kB1, Mod::kB2, Mod::kB3});
  w.Destination(0);
  const uint32_t first = AllPredicates(w);
  w.Source(0);
  w.Source(1);
  w.out.flags = static_cast<uint32_t>(byte + 1) * 8 | first << 8;
  w.out.run = &RunP2r;
}

// R2P PR, R{.B1}, mask
void LowerR2p(Lowering& w) {
  const int byte = w.TakeOneOf({Mod::kB1, Mod::kB2, Mod::kB3});
  const uint32_t first = AllPredicates(w);
  const uint32_t shift = ByteSource(w, 0) + static_cast<uint32_t>(byte + 1) * 8;
  w.Source(1);
  if (shift > 24) w.Fail("two byte selections");
  w.out.flags = shift | first << 8;
  w.out.run = &RunR2p;
}

}  // namespace heddle::emulator
