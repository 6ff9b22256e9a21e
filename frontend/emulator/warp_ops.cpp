// Instructions that look across the lanes of the warp.
#include <array>
#include <bit>

#include "frontend/emulator/lowering.h"

namespace heddle::emulator {
namespace {

using isa::Mod;

enum class Shuffle : uint32_t { kIdx, kUp, kDown, kBfly };

// PTX ISA, shfl.sync: c holds the clamp value in bits 0..4 and the segment mask in bits 8..12.
void RunShfl(Context& c, const Lowered& l) {
  const Row value = c.Source(l, 0);  // the destination may be the source
  const Row& b = c.Source(l, 1);
  const Row& control = c.Source(l, 2);
  Row result;
  uint32_t in_range = 0;
  for (uint32_t i = 0; i < kWarpLanes; ++i) {
    const uint32_t offset = b.lane[i] & 0x1f;
    const uint32_t clamp = control.lane[i] & 0x1f;
    const uint32_t segment = control.lane[i] >> 8 & 0x1f;
    const auto most = static_cast<int32_t>((i & segment) | (clamp & ~segment));
    const uint32_t least = i & segment;
    int32_t source = 0;
    bool valid = false;
    switch (static_cast<Shuffle>(l.flags)) {
      case Shuffle::kIdx:
        source = static_cast<int32_t>(least | (offset & ~segment & 0x1f));
        valid = source <= most;
        break;
      case Shuffle::kUp:
        source = static_cast<int32_t>(i) - static_cast<int32_t>(offset);
        valid = source >= most;
        break;
      case Shuffle::kDown:
        source = static_cast<int32_t>(i + offset);
        valid = source <= most;
        break;
      case Shuffle::kBfly:
        source = static_cast<int32_t>(i ^ offset);
        valid = source <= most;
        break;
    }
    result.lane[i] = value.lane[valid ? static_cast<uint32_t>(source) & 0x1f : i];
    in_range |= (valid ? 1u : 0u) << i;
  }
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) { return result.lane[i]; });
  c.WritePredicate(l, 0, in_range);
}

enum class Vote : uint32_t { kAny, kAll, kEq };

void RunVote(Context& c, const Lowered& l) {
  const uint32_t ballot = c.SourcePredicate(l, 0) & c.executing;
  bool holds = false;
  switch (static_cast<Vote>(l.flags)) {
    case Vote::kAny:
      holds = ballot != 0;
      break;
    case Vote::kAll:
      holds = ballot == c.executing;
      break;
    case Vote::kEq:
      holds = ballot == 0 || ballot == c.executing;
      break;
  }
  MapLanes(c.Destination(l), c.lanes, [=](uint32_t) { return ballot; });
  c.WritePredicate(l, 0, holds ? kAllLanes : 0);
}

// flags: 1 all lanes must agree, 2 the values are pairs.
void RunMatch(Context& c, const Lowered& l) {
  const Row low = c.Source(l, 0);
  const Row high = (l.flags & 2) != 0 ? c.Source(l, 0, 1) : Row{};
  Row result{};
  uint32_t agree = 0;
  ForLanes(c.executing, [&](uint32_t i) {
    const uint32_t equal =
        MaskOf([&](uint32_t j) { return low.lane[j] == low.lane[i] && high.lane[j] == high.lane[i]; }) &
        c.executing;
    const bool all = equal == c.executing;
    agree |= (all ? 1u : 0u) << i;
    result.lane[i] = (l.flags & 1) == 0 ? equal : all ? equal : 0;
  });
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) { return result.lane[i]; });
  c.WritePredicate(l, 0, agree);
}

enum class Reduction : uint32_t { kAnd, kOr, kXor, kSum, kMinSigned, kMaxSigned, kMin, kMax };

void RunRedux(Context& c, const Lowered& l) {
  const Row& a = c.Source(l, 0);
  uint32_t result = a.lane[std::countr_zero(c.executing)];
  ForLanes(c.executing & (c.executing - 1), [&](uint32_t i) {
    const uint32_t x = a.lane[i];
    switch (static_cast<Reduction>(l.flags)) {
      case Reduction::kAnd:
        result &= x;
        break;
      case Reduction::kOr:
        result |= x;
        break;
      case Reduction::kXor:
        result ^= x;
        break;
      case Reduction::kSum:
        result += x;
        break;
      case Reduction::kMinSigned:
        result = Signed(x) < Signed(result) ? x : result;
        break;
      case Reduction::kMaxSigned:
        result = Signed(x) > Signed(result) ? x : result;
        break;
      case Reduction::kMin:
        result = x < result ? x : result;
        break;
      case Reduction::kMax:
        result = x > result ? x : result;
        break;
    }
  });
  Splat(c.Destination(l), result);
}

// The value of the first executing lane. The predicate, per lane: the value differs from it; flags 1 (.OR): or the
// predicate was set already. Loops over the distinct values of a register are made of these.
void RunR2ur(Context& c, const Lowered& l) {
  const Row& a = c.Source(l, 0);
  const uint32_t first = a.lane[std::countr_zero(c.executing)];
  const uint32_t differs = MaskOf([&](uint32_t i) { return a.lane[i] != first; });
  uint32_t& predicate = c.predicates[l.destination_predicate[0]];
  const uint32_t before = l.flags != 0 ? predicate : 0;
  predicate = (predicate & ~c.executing) | ((before | differs) & c.executing);
  Splat(c.Destination(l), first);
}

// The lowest executing lane: its predicate is true, its number goes to the uniform register.
void RunElect(Context& c, const Lowered& l) {
  const uint32_t candidates = c.executing & c.SourcePredicate(l, 0);
  const uint32_t elected = candidates & (0 - candidates);
  uint32_t& predicate = c.predicates[l.destination_predicate[0]];
  predicate = (predicate & ~c.executing) | elected;
  Splat(c.Destination(l), static_cast<uint32_t>(std::countr_zero(candidates)) & 0x1f);
}

}  // namespace

// SHFL.mode P, R, a, b, c
void LowerShfl(Lowering& w) {
  const int mode = w.TakeOneOf({Mod::kIDX, Mod::kUP, Mod::kDOWN, Mod::kBFLY});
  if (mode < 0) return w.Fail("an unknown mode");
  w.out.flags = static_cast<uint32_t>(mode);
  w.TakeDestinationPredicate(0);
  w.Destination(0);
  for (size_t slot = 0; slot < 3; ++slot) w.Source(slot);
  w.out.run = &RunShfl;
}

// VOTE.mode R, P, P; VOTEU.mode UR, UP, P; either destination may be missing.
void LowerVote(Lowering& w) {
  const int mode = w.TakeOneOf({Mod::kANY, Mod::kALL, Mod::kEQ});
  if (mode < 0) return w.Fail("an unknown mode");
  w.out.flags = static_cast<uint32_t>(mode);
  if (w.NextIs(isa::OperandKind::kRegister) || w.NextIs(isa::OperandKind::kUniformRegister)) w.Destination(0);
  w.TakeDestinationPredicate(0);
  w.SourcePredicate(0);
  if (w.instruction.op == isa::Op::kVOTEU) w.out.lane_fill = kAllLanes;
  w.out.run = &RunVote;
}

// MATCH.ANY R, a and MATCH.ALL P, R, a
void LowerMatch(Lowering& w) {
  const int mode = w.TakeOneOf({Mod::kANY, Mod::kALL});
  const bool wide = w.TakeOneOf({Mod::kU64, Mod::kS64, Mod::k64}) >= 0;
  w.TakeOneOf({Mod::kU32, Mod::kS32});
  if (mode < 0) return w.Fail("an unknown mode");
  w.out.flags = static_cast<uint32_t>(mode) | (wide ? 2u : 0u);
  w.TakeDestinationPredicate(0);
  w.Destination(0);
  w.Source(0, wide ? 2 : 1);
  w.out.run = &RunMatch;
}

// REDUX{.op}{.S32} UR, a; without an operation it is AND.
void LowerRedux(Lowering& w) {
  const int operation = w.TakeOneOf({Mod::kAND, Mod::kOR, Mod::kXOR, Mod::kSUM, Mod::kMIN, Mod::kMAX});
  const bool is_signed = w.Take(Mod::kS32);
  w.Take(Mod::kU32);
  auto reduction = static_cast<Reduction>(operation < 0 ? 0 : operation);
  if (operation == 4) reduction = is_signed ? Reduction::kMinSigned : Reduction::kMin;
  if (operation == 5) reduction = is_signed ? Reduction::kMaxSigned : Reduction::kMax;
  w.out.flags = static_cast<uint32_t>(reduction);
  w.Destination(0);
  w.Source(0);
  w.out.run = &RunRedux;
}

void LowerR2ur(Lowering& w) {
  if (w.Take(Mod::kOR)) w.out.flags = 1;
  w.TakeDestinationPredicate(0);
  w.Destination(0);
  w.Source(0);
  w.out.run = &RunR2ur;
}

void LowerElect(Lowering& w) {
  w.TakeDestinationPredicate(0);
  w.Destination(0);
  w.TakeSourcePredicate(0);
  w.out.run = &RunElect;
}

}  // namespace heddle::emulator
