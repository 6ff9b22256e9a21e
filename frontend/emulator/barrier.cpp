// CTA barriers: BAR and B2R.
#include <algorithm>
#include <bit>

#include "frontend/emulator/issue_log.h"
#include "frontend/emulator/lowering.h"
#include "frontend/emulator/splits.h"

namespace heddle::emulator {
namespace {

using isa::Mod;
using isa::OperandKind;

// flags: the operation, and above it CtaState::Reduction::Op.
enum : uint32_t { kSync = 0, kArrive = 1, kReduce = 2, kOperationMask = 3, kReductionShift = 2 };

// source 0: barrier; source 1: expected threads, RZ for all.
void RunBar(Context& c, const Lowered& l) {
  const auto lane = static_cast<uint32_t>(std::countr_zero(c.executing));
  const uint32_t id = c.Source(l, 0).lane[lane];
  const uint32_t expected = c.Source(l, 1).lane[lane];
  if (id >= kCtaBarriers) {
    c.issues->Report("bad_barrier", l.index);
    return;
  }
  const auto key = static_cast<uint8_t>(id);
  const uint32_t operation = l.flags & kOperationMask;
  if (operation == kArrive) {
    c.step->kind = isa::StepKind::kBarrier;
    c.step->barrier = {isa::BarrierOp::kArrive, key, kWarpLanes, expected};
    return;
  }
  if (operation == kReduce) {
    CtaState::Reduction& reduction = c.cta->reductions[id];
    reduction.op = static_cast<CtaState::Reduction::Op>(l.flags >> kReductionShift);
    reduction.threads += static_cast<uint32_t>(std::popcount(c.executing));
    reduction.true_threads += static_cast<uint32_t>(std::popcount(c.executing & c.SourcePredicate(l, 0)));
  }
  const uint32_t lanes = c.executing;
  BlockLanes(*c.warp, lanes, SplitState::kAtBarrier, key, expected);
  for (uint32_t i = 0; i < c.warp->split_count; ++i)
    if (c.warp->splits[i].lanes == lanes) c.warp->splits[i].reduces = operation == kReduce;
}

// The result of the barrier that completed last, as a number and as a predicate.
void RunB2r(Context& c, const Lowered& l) {
  const uint32_t result = c.cta->barrier_result;
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t) { return result; });
  c.WritePredicate(l, 0, result != 0 ? kAllLanes : 0);
}

}  // namespace

void CompleteBarrier(CtaState& cta, uint8_t id) {
  CtaState::Reduction& reduction = cta.reductions[id];
  if (reduction.threads == 0) return;
  using Op = CtaState::Reduction::Op;
  cta.barrier_result = reduction.op == Op::kPopc  ? reduction.true_threads
                       : reduction.op == Op::kAnd ? (reduction.true_threads == reduction.threads ? 1 : 0)
                                                  : std::min(reduction.true_threads, 1u);
  reduction = {};
}

void LowerBar(Lowering& w) {
  w.Take(Mod::kDEFER_BLOCKING);
  const int operation = w.TakeOneOf({Mod::kSYNC, Mod::kARV, Mod::kRED});
  if (operation < 0) return w.Fail("an unknown barrier operation");
  w.out.flags = static_cast<uint32_t>(operation);
  if (operation == kReduce) {
    const int reduction = w.TakeOneOf({Mod::kPOPC, Mod::kAND, Mod::kOR});
    if (reduction < 0) return w.Fail("an unknown reduction");
    w.out.flags |= static_cast<uint32_t>(reduction) << kReductionShift;
  }
  w.Source(0);
  if (w.Peek() != nullptr && !w.NextIs(OperandKind::kPredicate)) w.Source(1);
  if (operation == kReduce) w.SourcePredicate(0);
  w.out.run = &RunBar;
}

void LowerB2r(Lowering& w) {
  if (!w.Take(Mod::kRESULT)) return w.Fail("only B2R.RESULT");
  w.Destination(0);
  if (w.Peek() != nullptr) w.DestinationPredicate(0);
  w.out.run = &RunB2r;
}

}  // namespace heddle::emulator
