// Branches, calls, convergence barriers, exit.
#include <fmt/format.h>

#include <bit>
#include <string>

#include "frontend/emulator/issue_log.h"
#include "frontend/emulator/lowering.h"
#include "frontend/emulator/splits.h"

namespace heddle::emulator {
namespace {

using isa::Mod;
using isa::OperandKind;

constexpr uint32_t kNoTarget = kAllLanes;  // beyond any code: RunAhead reports it

uint32_t IndexOfOffset(int64_t offset) {
  if (offset < 0 || offset % isa::kInstructionBytes != 0 || offset / isa::kInstructionBytes >= kNoTarget)
    return kNoTarget;
  return static_cast<uint32_t>(offset / isa::kInstructionBytes);
}

// imm: target index. source_predicate 0: further condition.
void RunBranch(Context& c, const Lowered& l) {
  BranchTo(*c.warp, c.executing & c.SourcePredicate(l, 0), static_cast<uint32_t>(l.imm));
}

// Every active lane branches when the guard holds for any of them.
void RunBranchAny(Context& c, const Lowered& l) { BranchTo(*c.warp, c.active, static_cast<uint32_t>(l.imm)); }

// BRA.DIV and BRA.CONV: source 0 is a lane mask; flags 1: branch when all of it that is alive runs together.
void RunBranchDivergent(Context& c, const Lowered& l) {
  const uint32_t mask = (c.Source(l, 0).lane[0] ^ l.flip[0]) & c.warp->live;
  const bool converged = (mask & ~c.active) == 0;
  if (converged == (l.flags != 0)) BranchTo(*c.warp, c.executing, static_cast<uint32_t>(l.imm));
}

// imm: byte offset that is added to the register pair (or to the register's sign-extended value, flags 1).
void RunIndirect(Context& c, const Lowered& l) {
  const Row& low = c.Source(l, 0);
  const Row& high = c.Source(l, 0, 1);
  const auto target = [&](uint32_t lane) {
    const int64_t value = l.flags != 0 ? int64_t{Signed(low.lane[lane])}
                                       : static_cast<int64_t>(Pair(low.lane[lane], high.lane[lane]));
    return IndexOfOffset(value + static_cast<int64_t>(l.imm));
  };
  uint32_t rest = c.executing;
  while (rest != 0) {
    const uint32_t index = target(static_cast<uint32_t>(std::countr_zero(rest)));
    uint32_t group = 0;
    ForLanes(rest, [&](uint32_t lane) { group |= target(lane) == index ? 1u << lane : 0; });
    BranchTo(*c.warp, group, index);
    rest &= ~group;
  }
}

// An absolute address: one of the kernel's own, else a call out of the kernel, which is reported and skipped.
void RunAbsolute(Context& c, const Lowered& l) {
  const Row& low = c.Source(l, 0);
  const Row& high = c.Source(l, 0, 1);
  const int64_t code_bytes = int64_t{c.program->size()} * isa::kInstructionBytes;
  const auto target = [&](uint32_t lane) {
    const auto offset = static_cast<int64_t>(Pair(low.lane[lane], high.lane[lane]) - c.launch->code_address);
    return offset < 0 || offset >= code_bytes ? l.index + 1 : IndexOfOffset(offset);
  };
  uint32_t rest = c.executing;
  while (rest != 0) {
    const uint32_t index = target(static_cast<uint32_t>(std::countr_zero(rest)));
    uint32_t group = 0;
    ForLanes(rest, [&](uint32_t lane) { group |= target(lane) == index ? 1u << lane : 0; });
    if (index == l.index + 1) {
      c.issues->Report("external_call", l.index);
    } else {
      BranchTo(*c.warp, group, index);
    }
    rest &= ~group;
  }
}

void RunBssy(Context& c, const Lowered& l) {
  Row& barrier = c.rows[l.imm];
  const uint32_t mask = c.executing;
  HEDDLE_LANE_LOOP
  for (uint32_t i = 0; i < kWarpLanes; ++i) barrier.lane[i] = (mask >> i & 1) != 0 ? mask : barrier.lane[i];
}

// Calls f(group, value) for the executing lanes that hold the same value in `row`.
template <typename F>
void ForGroups(const Row& row, uint32_t executing, F f) {
  while (executing != 0) {
    const uint32_t value = row.lane[std::countr_zero(executing)];
    const uint32_t group = MaskOf([&](uint32_t i) { return row.lane[i] == value; }) & executing;
    executing &= ~group;
    f(group, value);
  }
}

void RunBsync(Context& c, const Lowered& l) {
  Warp& warp = *c.warp;
  ForGroups(c.rows[l.imm], c.executing, [&](uint32_t group, uint32_t mask) {
    const bool all_here = (mask & warp.live & ~group) == 0 && group == warp.Current().lanes;
    if (!all_here) BlockLanes(warp, group, SplitState::kAtConvergence, static_cast<uint8_t>(l.flags), mask);
  });
}

void RunBreak(Context& c, const Lowered& l) {
  Row& barrier = c.rows[l.imm];
  ForGroups(barrier, c.executing, [&](uint32_t group, uint32_t mask) {
    LeaveConvergence(*c.warp, barrier, static_cast<uint8_t>(l.flags), mask, group);
  });
}

// source 0: a lane mask per lane.
void RunWarpSync(Context& c, const Lowered& l) {
  Warp& warp = *c.warp;
  ForGroups(c.Source(l, 0), c.executing, [&](uint32_t group, uint32_t mask) {
    const bool all_here = (mask & warp.live & ~group) == 0 && group == warp.Current().lanes;
    if (!all_here) BlockLanes(warp, group, SplitState::kAtWarpSync, 0, mask);
  });
}

void RunExit(Context& c, const Lowered& l) {
  const uint32_t lanes = c.executing & c.SourcePredicate(l, 0);
  if (lanes == 0) return;
  c.step->kind = isa::StepKind::kExit;
  ExitLanes(*c.warp, lanes);
}

void RunTrap(Context& c, const Lowered& l) {
  c.issues->Report("trap", l.index);
  c.step->kind = isa::StepKind::kExit;
  ExitLanes(*c.warp, c.executing);
}

void RunYield(Context& c, const Lowered&) { c.warp->slice_left = 0; }

void RunSleep(Context& c, const Lowered& l) {
  const Row& row = c.Source(l, 0);
  uint32_t longest = 0;
  ForLanes(c.executing, [&](uint32_t i) { longest = row.lane[i] > longest ? row.lane[i] : longest; });
  c.step->kind = isa::StepKind::kSleep;
  c.step->sleep_ns = longest;
  c.warp->slice_left = 0;
}

void RunCopyRow(Context& c, const Lowered& l) {
  const Row& source = c.Source(l, 0);
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) { return source.lane[i]; });
}

void RunCopyRowAndClear(Context& c, const Lowered& l) {
  RunCopyRow(c, l);
  Blend(c.rows[l.source[0].row], Row{}, c.lanes);
}

void RunLepc(Context& c, const Lowered& l) {
  const uint64_t address = c.launch->code_address + l.imm;
  MapLanes64(c.Destination(l, 0, 0), c.Destination(l, 0, 1), c.lanes, [&](uint32_t) { return address; });
}

uint32_t TargetIndex(Lowering& w) {
  const isa::Operand& operand = w.Next();
  if (operand.kind != OperandKind::kTarget || operand.reg != isa::kNoRegister) w.Fail("no branch target");
  return IndexOfOffset(operand.value);
}

void ConvergenceBarrier(Lowering& w) {
  const isa::Operand& operand = w.Next();
  if (operand.kind != OperandKind::kConvergenceBarrier || operand.reg >= kConvergenceBarriers)
    return w.Fail("no convergence barrier");
  w.out.imm = w.layout.BarrierRow(operand.reg);
  w.out.flags = operand.reg;
}

}  // namespace

void RunNothing(Context&, const Lowered&) {}

void RunUnsupported(Context& c, const Lowered& l) {
  c.issues->Report(
      "unsupported_opcode", l.index,
      fmt::format(
          "the emulator has no meaning for what stands in kernel {} at pc {}; it was skipped, so results "
          "and perhaps the way of the kernel are wrong: report it with this line, or add it to "
          "frontend/emulator/lowerings.def",
          c.program->code().name, c.program->unsupported()[l.imm]));
}

// The modifiers of these say nothing that the functional model needs.
void LowerNothing(Lowering& w) {
  w.TakeAllModifiers();
  while (w.Peek() != nullptr) w.Next();
  w.out.run = &RunNothing;
}

void LowerBra(Lowering& w) {
  w.out.step_kind = isa::StepKind::kBranch;
  const bool uniform = w.Take(Mod::kU);
  const bool any = w.Take(Mod::kANY);
  const int divergence = w.TakeOneOf({Mod::kDIV, Mod::kCONV});
  if (divergence >= 0) {
    if (w.NextIs(OperandKind::kTarget)) {  // sm_75 has no operand for the mask: all lanes
      w.out.source[0] = {w.pool.Immediate(kAllLanes), RowBase::kPool};
    } else {
      w.IntegerSource(0);
    }
    w.out.flags = divergence == 1 ? 1 : 0;
    w.out.run = &RunBranchDivergent;
  } else {
    if (any && !uniform) w.Fail("BRA.ANY");
    w.TakeSourcePredicate(0);
    w.out.run = any ? &RunBranchAny : &RunBranch;
  }
  w.out.imm = TargetIndex(w);
}

// BRX R, imm: the next pc plus imm plus R.
void LowerBrx(Lowering& w) {
  w.out.step_kind = isa::StepKind::kBranch;
  w.TakeSourcePredicate(0);
  int64_t offset = w.instruction.pc + isa::kInstructionBytes;
  if (w.NextIs(OperandKind::kTarget)) {
    const isa::Operand& operand = w.Next();
    const bool is_uniform = operand.uniform_reg != isa::kNoRegister;
    w.out.source[0].row =
        is_uniform ? w.layout.UniformReadRow(operand.uniform_reg) : w.layout.ReadRow(operand.reg);
    if (!is_uniform && operand.reg == isa::kNoRegister) w.Fail("no register");
    offset = operand.value;
  } else {
    w.Source(0, 2);
    if (w.NextIs(OperandKind::kImmediate)) offset += Signed(Low(w.Immediate()));
    if (w.NextIs(OperandKind::kTarget)) offset = w.Next().value;
  }
  w.out.flags = 1;
  w.out.imm = static_cast<uint64_t>(offset);
  w.out.run = &RunIndirect;
}

// CALL.REL fn, CALL.REL R, fn, CALL.ABS R, RET.REL R, fn, RET.ABS R. The emulator keeps no call stack: ABI
// functions hold their return address in registers.
void LowerCall(Lowering& w) {
  w.out.step_kind = isa::StepKind::kBranch;
  w.Take(Mod::kNOINC);
  w.Take(Mod::kNODEC);
  const int kind = w.TakeOneOf({Mod::kREL, Mod::kABS});
  w.TakeSourcePredicate(0);
  if (kind < 0) return w.Fail("neither REL nor ABS");
  if (w.NextIs(OperandKind::kTarget) && w.Peek()->reg == isa::kNoRegister) {
    w.out.imm = TargetIndex(w);
    w.out.run = &RunBranch;
    return;
  }
  int64_t offset = 0;
  if (w.NextIs(OperandKind::kTarget)) {
    const isa::Operand& operand = w.Next();
    w.out.source[0].row = w.layout.ReadRow(operand.reg);
    offset = operand.value;
  } else {
    w.Source(0, 2);
    if (w.NextIs(OperandKind::kTarget)) offset = w.Next().value;
    if (w.NextIs(OperandKind::kImmediate)) offset += static_cast<int64_t>(w.Immediate());
  }
  if (kind == 1 && offset != 0) return w.Fail("an absolute address with an offset");
  w.out.imm = static_cast<uint64_t>(offset);
  w.out.run = kind == 0 ? &RunIndirect : &RunAbsolute;
}

void LowerBssy(Lowering& w) {
  w.TakeOneOf({Mod::kRECONVERGENT, Mod::kRELIABLE});
  ConvergenceBarrier(w);
  if (w.NextIs(OperandKind::kTarget)) w.Next();
  w.out.run = &RunBssy;
}

void LowerBsync(Lowering& w) {
  w.TakeOneOf({Mod::kRECONVERGENT, Mod::kRELIABLE});
  ConvergenceBarrier(w);
  w.out.run = &RunBsync;
}

void LowerBreak(Lowering& w) {
  w.TakeOneOf({Mod::kRECONVERGENT, Mod::kRELIABLE});
  w.TakeSourcePredicate(0);
  ConvergenceBarrier(w);
  w.out.run = &RunBreak;
}

// BMOV.32(.CLEAR) R, B and BMOV.32 B, R: participation masks are saved around calls.
void LowerBmov(Lowering& w) {
  w.Take(Mod::k32);
  const bool clear = w.Take(Mod::kCLEAR);
  w.out.run = clear ? &RunCopyRowAndClear : &RunCopyRow;
  if (w.NextIs(OperandKind::kConvergenceBarrier)) {
    ConvergenceBarrier(w);
    w.out.destination[0] = static_cast<uint16_t>(w.out.imm);
    if (clear) w.Fail("BMOV.CLEAR to a barrier");
    w.Source(0);
  } else {
    w.Destination(0);
    ConvergenceBarrier(w);
    w.out.source[0].row = static_cast<uint16_t>(w.out.imm);
  }
}

void LowerWarpSync(Lowering& w) {
  const bool all = w.Take(Mod::kALL);
  // .COLLECTIVE R, label: what follows up to ENDCOLLECTIVE runs converged, which it does once the lanes have
  // met.
  const bool collective = w.Take(Mod::kCOLLECTIVE);
  if (all) {
    w.out.source[0] = {w.pool.Immediate(kAllLanes), RowBase::kPool};
  } else {
    w.Source(0);
  }
  if (collective && w.NextIs(OperandKind::kTarget)) w.Next();
  w.out.run = &RunWarpSync;
}

void LowerExit(Lowering& w) {
  w.TakeSourcePredicate(0);
  w.out.run = &RunExit;
}

void LowerBpt(Lowering& w) {
  w.TakeAllModifiers();
  while (w.Peek() != nullptr) w.Next();
  w.out.run = &RunTrap;
}

void LowerYield(Lowering& w) {
  w.TakeSourcePredicate(0);
  w.out.run = &RunYield;
}

void LowerNanosleep(Lowering& w) {
  w.Take(Mod::kSYNCS);
  w.Take(Mod::kWARP);  // how sm_75 writes it
  w.TakeSourcePredicate(0);
  w.Source(0);
  w.out.run = &RunSleep;
}

void LowerLepc(Lowering& w) {
  w.Destination(0);
  w.out.imm = w.NextIs(OperandKind::kTarget) ? static_cast<uint64_t>(w.Next().value) : w.instruction.pc;
  w.out.run = &RunLepc;
}

}  // namespace heddle::emulator
