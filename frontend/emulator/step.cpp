#include "frontend/emulator/step.h"

#include <algorithm>

#include "frontend/emulator/issue_log.h"
#include "frontend/emulator/splits.h"
#include "sim/base/prefetch.h"

namespace heddle::emulator {
namespace {

inline isa::WarpState StateNow(const Warp& warp) {
  if (warp.live == 0) return isa::WarpState::kFinished;
  return warp.Current().state == SplitState::kReady ? isa::WarpState::kRunnable : isa::WarpState::kBlocked;
}

inline void PointAt(Context& context, Warp& warp) {
  context.rows = warp.rows;
  context.bases[static_cast<size_t>(RowBase::kWarp)] = warp.rows;
  context.predicates = warp.predicates.data();
  context.warp = &warp;
  context.cta = warp.cta;
  context.active = warp.Current().lanes;
}

inline bool SetLanes(Context& context, const Lowered& l) {
  const uint32_t executing = context.active & (context.predicates[l.guard] ^ l.guard_flip);
  context.executing = executing;
  context.lanes = executing | l.lane_fill;
  return executing != 0;
}

// Lanes of which instruction `index` reads an unknown register or predicate.
uint32_t UnknownReads(const Context& context, const UnknownFlow& flow) {
  const Warp& warp = *context.warp;
  const std::vector<uint16_t>& rows = context.program->flow_rows;
  uint32_t unknown = 0;
  for (uint32_t i = 0; i < flow.read_count; ++i) unknown |= warp.unknown[rows[flow.first_read + i]];
  ForLanes(flow.predicate_reads, [&](uint32_t p) { unknown |= warp.unknown_predicates[p]; });
  if (flow.crosses_lanes && (unknown & context.executing) != 0) unknown = kAllLanes;
  return unknown;
}

// `operands`: lanes of which an operand was unknown; Context::unknown_result adds what a load has found.
void MarkWrites(const Context& context, const UnknownFlow& flow, uint32_t operands) {
  Warp& warp = *context.warp;
  const uint32_t lanes = context.lanes;
  const auto mark = [&](uint32_t& mask, uint32_t unknown) {
    // A uniform result is unknown as a whole.
    if (lanes != context.executing) unknown = (unknown & context.executing) != 0 ? kAllLanes : 0;
    mask = (mask & ~lanes) | (unknown & lanes);
  };
  const auto& loaded = context.unknown_result;
  for (uint32_t i = 0; i < flow.write_count; ++i)
    mark(warp.unknown[context.program->flow_rows[flow.first_write + i]],
         operands | loaded[std::min<size_t>(i, loaded.size() - 1)]);
  ForLanes(flow.predicate_writes,
           [&](uint32_t p) { mark(warp.unknown_predicates[p], operands | loaded[0]); });
}

[[gnu::noinline]] void RunTracked(Context& context, const Lowered* begin, const Lowered* end) {
  for (const Lowered* l = begin; l != end; ++l) {
    if (!SetLanes(context, *l)) continue;
    const UnknownFlow& flow = context.program->flows[l->index];
    const uint32_t unknown = UnknownReads(context, flow) | context.warp->unknown_predicates[l->guard];
    context.unknown_result = {};
    l->run(context, *l);
    MarkWrites(context, flow, unknown);
  }
}

// Before an instruction that is not local: unknown values must not decide where it goes.
void CheckUnknown(Context& context, const Lowered& l) {
  const Warp& warp = *context.warp;
  const isa::Effect effect = context.program->effects[l.index];
  if ((warp.unknown_predicates[l.guard] & context.active) != 0)
    context.issues->Report(effect == isa::Effect::kMemory ? "unknown_predicate" : "unknown_branch", l.index);
  const isa::Instruction& instruction = context.program->code().instructions[l.index];
  const RowLayout& layout = context.program->layout();
  for (uint32_t i = 0; i < instruction.operand_count; ++i) {
    const isa::Operand& operand = instruction.operands[i];
    uint32_t unknown = 0;
    const bool is_control = effect == isa::Effect::kControl;
    if (operand.kind == isa::OperandKind::kMemory ||
        (is_control &&
         (operand.kind == isa::OperandKind::kRegister || operand.kind == isa::OperandKind::kTarget))) {
      if (operand.reg < isa::kNoRegister) unknown |= warp.unknown[layout.ReadRow(operand.reg)];
      if (operand.uniform_reg < isa::kNoRegister)
        unknown |= warp.unknown[layout.UniformReadRow(operand.uniform_reg)];
      if (operand.Has(isa::kAddress64) && operand.reg < isa::kNoRegister)
        unknown |= warp.unknown[layout.ReadRow(operand.reg) + 1];
    }
    if ((unknown & context.executing) != 0)
      context.issues->Report(is_control ? "unknown_branch" : "unknown_address", l.index);
  }
}

void RunStep(Context& context, const Lowered& l) {
  if (context.warp->unknown == nullptr) {
    if (SetLanes(context, l)) l.run(context, l);
    return;
  }
  const bool runs = SetLanes(context, l);
  const bool is_local = context.program->effects[l.index] == isa::Effect::kLocal;
  if (!is_local) CheckUnknown(context, l);
  if (!runs) return;
  const UnknownFlow& flow = context.program->flows[l.index];
  uint32_t unknown = is_local ? UnknownReads(context, flow) | context.warp->unknown_predicates[l.guard] : 0;
  context.unknown_result = {};
  l.run(context, l);
  MarkWrites(context, flow, unknown);
}

// Once no split can go on: those that wait at a CTA barrier count as the warp's arrival there.
void ArriveAtBarrier(Warp& warp, isa::WarpStep* step) {
  bool told = false;
  uint8_t id = 0;
  // Lanes that wait for something else will come here later.
  for (uint32_t i = 0; i < warp.split_count; ++i)
    if (warp.splits[i].state == SplitState::kAtMbarrier || warp.splits[i].state == SplitState::kAtCluster)
      return;
  for (uint32_t i = 0; i < warp.split_count; ++i) {
    Split& split = warp.splits[i];
    if (split.state != SplitState::kAtBarrier || split.arrived || (told && split.key != id)) continue;
    if (!told) {
      told = true;
      id = split.key;
      step->kind = isa::StepKind::kBarrier;
      step->barrier = {.op = split.reduces ? isa::BarrierOp::kReduce : isa::BarrierOp::kSync,
                       .id = id,
                       .arriving_threads = kWarpLanes,
                       .expected_threads = split.mask};
    }
    split.arrived = true;
  }
}

// The end of the code can only be reached in a malformed kernel.
void LeaveCode(Context& context, Warp& warp) {
  context.issues->Report("left_code", warp.Current().index);
  ExitLanes(warp, warp.Current().lanes);
  Reschedule(warp, Turn::kKeep);
}

}  // namespace

isa::WarpState StateOf(const Warp& warp) { return StateNow(warp); }

void PrefetchNext(const Program& program, const Warp& warp) {
  constexpr uint32_t kMostSteps = 4;
  const auto prefetch_row = [&](uint32_t row) { PrefetchRange(&warp.rows[row], &warp.rows[row + 1]); };
  const auto prefetch_of = [&](const Lowered& l) {
    for (const SourceRow& source : l.source)
      if (source.base == RowBase::kWarp && source.row >= kFirstRegisterRow) prefetch_row(source.row);
    if (l.destination[0] >= kFirstRegisterRow) prefetch_row(l.destination[0]);
  };
  uint32_t index = warp.Current().index;
  for (uint32_t i = 0; i < kMostSteps && index < program.size(); ++i) {
    const uint32_t step = program.run_end[index];
    for (uint32_t l = program.ahead_begin[index]; l < program.ahead_begin[step]; ++l)
      prefetch_of(program.ahead[l]);
    if (step >= program.size()) return;
    prefetch_of(program.steps[step]);
    index = step + 1;
  }
}

isa::InstructionRun RunAhead(Context& context, Warp& warp) {
  const Program& program = *context.program;
  isa::InstructionRun run;
  uint32_t end = 0;
  while (true) {
    run.state = StateNow(warp);
    if (run.state != isa::WarpState::kRunnable) return run;
    run.first = warp.Current().index;
    if (run.first < program.size()) {
      end = program.run_end[run.first];
      if (end < program.size()) break;
    }
    LeaveCode(context, warp);
  }
  if (warp.pending_scoreboards != 0) [[unlikely]] {
    uint32_t stop = run.first;
    while (stop < end && (program.wait_masks[stop] & warp.pending_scoreboards) == 0) ++stop;
    end = stop;
  }
  run.count = end - run.first;
  run.lanes = warp.Current().lanes;

  PointAt(context, warp);
  context.step = nullptr;
  context.now = 0;
  const Lowered* begin = program.ahead.data() + program.ahead_begin[run.first];
  const Lowered* const last = program.ahead.data() + program.ahead_begin[end];
  if (warp.unknown != nullptr) [[unlikely]] {
    RunTracked(context, begin, last);
  } else {
    for (const Lowered* l = begin; l != last; ++l)
      if (SetLanes(context, *l)) l->run(context, *l);
  }
  warp.Current().index = end;
  warp.slice_left -= static_cast<int32_t>(run.count);
  return run;
}

void StepOne(Context& context, Warp& warp, Cycle now, isa::WarpStep* step) {
  const Program& program = *context.program;
  const uint32_t index = warp.Current().index;
  const Lowered& l = program.steps[index];
  PointAt(context, warp);
  context.step = step;
  context.now = now;
  step->kind = l.step_kind;
  step->index = index;
  const uint32_t splits = warp.split_count;
  ++warp.Current().index;
  RunStep(context, l);
  step->lanes = context.executing;

  const bool slice_over = --warp.slice_left < 0;
  const Split& current = warp.Current();
  if (warp.split_count > 1 || current.state != SplitState::kReady || current.lanes == 0 || slice_over) {
    Reschedule(warp, slice_over                  ? Turn::kGiveWay
                     : warp.split_count > splits ? Turn::kFurthestBehind
                                                 : Turn::kKeep);
    if (StateNow(warp) == isa::WarpState::kBlocked) ArriveAtBarrier(warp, step);
  }
  step->state = StateNow(warp);
  step->taken = step->state == isa::WarpState::kRunnable && warp.Current().index != index + 1;
}

void ReleaseBarrier(Warp& warp, uint8_t id) {
  for (uint32_t i = 0; i < warp.split_count; ++i) {
    Split& split = warp.splits[i];
    if (split.state == SplitState::kAtBarrier && split.key == id && split.arrived)
      split.state = SplitState::kReady;
  }
  if (warp.live != 0) Reschedule(warp, Turn::kKeep);
}

void ResetWarp(Warp& warp, const RowLayout& layout, uint32_t lanes, uint32_t entry) {
  for (uint32_t i = 0; i < layout.count; ++i) warp.rows[i] = Row{};
  if (warp.unknown != nullptr)
    for (uint32_t i = 0; i < layout.count; ++i) warp.unknown[i] = 0;
  warp.predicates.fill(0);
  warp.unknown_predicates.fill(0);
  warp.predicates[kTruePredicate] = kAllLanes;
  warp.predicates[kTruePredicate + kFirstUniformPredicate] = kAllLanes;
  warp.live = lanes;
  warp.slice_left = kSplitSlice;
  warp.pending_scoreboards = 0;
  warp.pending_results = {};
  warp.cluster_arrivals = 0;
  warp.current = 0;
  warp.split_count = 1;
  warp.splits[0] = Split{.index = entry, .lanes = lanes};
  warp.products.clear();
}

}  // namespace heddle::emulator
