// Issue: which warp goes next, whether what it needs is free, and what its instruction starts.
#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/base/check.h"
#include "sim/sm/machine.h"

namespace heddle::sm {

Cycle Sm::Machine::DepbarUntil(uint32_t id, const InstructionTiming& timing) const {
  if (timing.depbar_barrier == isa::kNoBarrier || timing.depbar_count == 0) return 0;
  return counted[id * kBarriers + timing.depbar_barrier].AtMost(timing.depbar_count);
}

namespace {

// When a warp can issue what it wants next, ports apart.
inline Cycle ReadyAt(Sm::Machine& machine, uint32_t id, const Warp& warp, const Launch& launch,
                     const InstructionTiming& timing) {
  Cycle ready = std::max({warp.fetch_until, warp.stall_until, warp.block_until});
  for (uint32_t left = timing.wait_mask; left != 0; left &= left - 1)
    ready = std::max(ready, warp.counters.ZeroAt(static_cast<uint32_t>(std::countr_zero(left))));
  if (timing.timing_class >= kFirstSpecialWait) ready = std::max(ready, machine.SpecialUntil(id, timing));
  if (launch.tracks_registers)
    ready =
        std::max(ready, launch.timing->scoreboard ? machine.ScoreboardUntil(id) : machine.HazardUntil(id));
  return ready;
}

}  // namespace

void Sm::Machine::Refresh(uint32_t id) {
  const Warp& warp = warps[id];
  const Launch& launch = launches[warp.launch];
  const InstructionTiming& timing = launch.instructions[warp.next];
  sub_cores[SubCoreOf(id)].ready.Set(LocalOf(id), ReadyAt(*this, id, warp, launch, timing), timing.port);
}

inline void Sm::Machine::Select(uint32_t sub_core_id, SubCore& sub_core) {
  const ReadyList::Choice choice = policy == config::SchedulerPolicy::kLooseRoundRobin
                                       ? sub_core.ready.NextInTurn(sub_core.free_at, sub_core.greedy)
                                       : sub_core.ready.Next(sub_core.free_at, sub_core.greedy);
  next_issue[sub_core_id] = choice.cycle;
  sub_core.next_warp = choice.warp;
}

void Sm::Machine::Select(uint32_t sub_core_id) { Select(sub_core_id, sub_cores[sub_core_id]); }

// `local` is about to issue.
inline void Sm::Machine::OccupyPort(SubCore& sub_core, uint32_t local, const InstructionTiming& timing,
                                    Cycle at) {
  const auto occupy = [at, local, &sub_core](SubCore& which, IssuePort port, uint32_t quarters) {
    uint64_t& free_quarters = which.port_free_quarters[static_cast<size_t>(port)];
    free_quarters = std::max(free_quarters, 4 * at) + quarters;
    which.ready.SetPortFree(port, (free_quarters + 3) / 4, &which == &sub_core ? local : kNoIndex);
  };
  if ((timing.flags & kPlainPipe) != 0) {
    occupy(sub_core, timing.port, timing.interval_quarters);
    return;
  }
  // The heavy half of the FMA pipe is not free before the whole.
  const auto hold_heavy = [&] {
    const Cycle fma = sub_core.ready.PortFree(IssuePort::kFma);
    if (sub_core.ready.PortFree(IssuePort::kFmaHeavy) < fma)
      sub_core.ready.SetPortFree(IssuePort::kFmaHeavy, fma);
  };
  switch (timing.port) {
    case IssuePort::kMio:
    case IssuePort::kGlobal:  // the queue decides
    case IssuePort::kTma:     // likewise
    case IssuePort::kNone:
      return;
    case IssuePort::kGmma:
      occupy(sub_core, IssuePort::kGmma, gmma_issue_quarters);
      return;
    case IssuePort::kFmaHeavy:  // one half of the FMA pipe, whose issue it takes too
      occupy(sub_core, IssuePort::kFmaHeavy, timing.interval_quarters);
      occupy(sub_core, IssuePort::kFma, fma_quarters);
      hold_heavy();
      return;
    case IssuePort::kFma:
      occupy(sub_core, IssuePort::kFma, timing.interval_quarters);
      hold_heavy();
      return;
    default:
      for (SubCore& each : sub_cores) occupy(each, timing.port, timing.interval_quarters);
  }
}

// What Select found may have lost its pipe to another sub-core, its constant may be absent, or L1 full of
// misses.
bool Sm::Machine::MayIssue(uint32_t sub_core_id, uint32_t id, const InstructionTiming& timing, Cycle at) {
  SubCore& sub_core = sub_cores[sub_core_id];
  if (sub_core.ready.PortFree(timing.port) > at) return false;
  if ((timing.flags & kReadsConstant) != 0 && !HasConstant(sub_core_id, id, timing, at)) return false;
  if (timing.port == IssuePort::kGlobal) {
    if (l1.MissFree()) return true;
    sub_core.ready.SetPortFree(IssuePort::kGlobal, kNever);  // until an answer comes
    return false;
  }
  return true;
}

bool Sm::Machine::HasConstant(uint32_t sub_core_id, uint32_t id, const InstructionTiming& timing, Cycle at) {
  Warp& warp = warps[id];
  const uint64_t address = ConstantAddress(warp, timing);
  const Cycle arrival = constants.Operand(sub_core_id, address, at, &port);
  if (arrival <= at) return true;
  ChargeBubble(sub_core_id, id, at);
  BlockForConstant(id, address, arrival);
  Refresh(id);
  return false;
}

void Sm::Machine::BlockForConstant(uint32_t id, uint64_t address, Cycle arrival) {
  Warp& warp = warps[id];
  warp.block_until = arrival;
  warp.block_reason = stats::Stall::k_imc_miss;
  warp.block_line = address & ~uint64_t{memory::kLineBytes - 1};
}

// Inlined where it is called, once: the loop below is where the time of a simulation goes.
[[gnu::always_inline]] inline void Sm::Machine::Issue(uint32_t sub_core_id) {
  SubCore& sub_core = sub_cores[sub_core_id];
  const uint32_t local = sub_core.next_warp;
  const uint32_t id = WarpAt(sub_core_id, local);
  Warp& warp = warps[id];
  Launch& launch = launches[warp.launch];
  const uint32_t issued = warp.next;
  const InstructionTiming& timing = launch.instructions[issued];
  now = next_issue[sub_core_id];
  if ((timing.flags & kAsksAtIssue) != 0 && !MayIssue(sub_core_id, id, timing, now)) {
    Select(sub_core_id, sub_core);
    return;
  }
  const Cycle at =
      now + sub_core.registers.Reserve(timing, local, now, timing.timing_class == TimingClass::kFixed);
  if (sub_core.charged_until < at) ChargeBubble(sub_core_id, id, at);
  Charge(&launch, issued, stats::Stall::k_selected, 1);
  sub_core.charged_until = sub_core.free_at = at + 1;
  sub_core.greedy = local;
  launch.counters.smsp_inst_executed += 1;
  if (timing.port == IssuePort::kGmma) launch.counters.sm_ops_tensor += launch.timing->tensor_ops[issued];
  if (timing.port == IssuePort::kTensor) {
    launch.counters.sm_pipe_tensor_cycles_active += (timing.interval_quarters + 3u) / 4;
    launch.counters.sm_ops_tensor += launch.timing->tensor_ops[issued];
  }
  OccupyPort(sub_core, local, timing, at);
  warp.stall_until = at + timing.stall_cycles;
  if (launch.tracks_registers) NoteWrites(id, issued, at);
  if (issued == warp.run_end) {
    launch.stream->Execute(warp.stream_warp, at, &step);
    Perform(id, sub_core, timing, at);
    Follow(id, issued, at);
  } else {
    if ((timing.flags & kIsQuiet) == 0) {
      step.kind = isa::StepKind::kLocal;
      Perform(id, sub_core, timing, at);
    }
    warp.next = issued + 1;
    if ((timing.flags & (kEndsLine | kAsksAhead)) != 0) AdvanceFetch(id, issued, at);
  }
  if (warp.live) {
    const InstructionTiming& next = launch.instructions[warp.next];
    sub_core.ready.Set(local, ReadyAt(*this, id, warp, launch, next), next.port);
  }
  Select(sub_core_id, sub_core);
}

// Of a tie, the first; sub-cores that are not there never issue.
template <uint32_t kSubCores>
inline uint32_t Sm::Machine::FirstToIssue() const {
  uint32_t first = 0;
  Cycle cycle = next_issue[0];
  for (uint32_t i = 1; i < kSubCores; ++i) {
    first = next_issue[i] < cycle ? i : first;
    cycle = std::min(cycle, next_issue[i]);
  }
  return first;
}

// Answers, arrivals and issues in the order of their cycles, and in this order of one cycle; sub-cores by number.
void Sm::Machine::RunWindow(Cycle begin, Cycle end) {
  HEDDLE_CHECK(between_windows, Path(), begin, "a window begins before the replies have been taken");
  between_windows = false;
  for (;;) {
    const uint32_t first = sub_core_count <= 4 ? FirstToIssue<4>() : FirstToIssue<kMaxSubCores>();
    const Cycle issue = next_issue[first];
    if (next_event <= issue) {
      if (next_event >= end) return;
      TakeEvent();
    } else {
      if (issue >= end) return;
      Issue(first);
    }
  }
}

// Starts what the instruction does in this SM; `step` says what the stream did.
void Sm::Machine::Perform(uint32_t id, SubCore& sub_core, const InstructionTiming& timing, Cycle at) {
  switch (timing.timing_class) {
    case TimingClass::kMemory:
    case TimingClass::kAsyncCopy:
    case TimingClass::kConstant:
    case TimingClass::kMioOnly:
      IssueMemory(id, sub_core, timing, at);
      return;
    case TimingClass::kGroup:
      CloseGroup(id, timing, at);
      return;
    case TimingClass::kMbarrier:
      IssueMbarrier(id, sub_core, timing, at);
      return;
    case TimingClass::kMatrixGroup:
      IssueMatrixGroup(id, timing, at);
      return;
    case TimingClass::kBulk:
      IssueBulk(id, timing, at);
      return;
    case TimingClass::kBulkGroup:
      CloseBulkGroup(id, timing, at);
      return;
    case TimingClass::kRegisterPool:
      MoveRegisters(id, timing);
      break;
    case TimingClass::kFence:
      Fence(id, timing, at);
      return;
    case TimingClass::kInvalidate:
      l1.Invalidate();
      break;
    case TimingClass::kFixed:
      // A uniform load with an index: its address is known only now.
      if (step.kind == isa::StepKind::kMemory && step.memory.space == isa::MemorySpace::kConstant)
        LoadUniform(id, at);
      break;
    default:
      break;
  }
  const bool scoreboard = (timing.flags & kOnScoreboard) != 0;
  if (scoreboard || timing.read_barrier != isa::kNoBarrier)
    ReleaseSources(id, timing, at + timing.source_release_cycles);
  if (scoreboard || timing.write_barrier != isa::kNoBarrier) Result(id, timing, at + timing.result_cycles);
}

// After Execute: barriers, sleep and exit, and where the warp goes on.
void Sm::Machine::Follow(uint32_t id, uint32_t issued, Cycle at) {
  Warp& warp = warps[id];
  if (step.kind == isa::StepKind::kSleep) {
    warp.block_until = at + static_cast<Cycle>(std::ceil(step.sleep_ns * sm_mhz / 1000));
    warp.block_reason = stats::Stall::k_sleeping;
  }
  const isa::WarpState state = step.state;
  if (state == isa::WarpState::kBlocked) {
    warp.blocked = true;
    warp.block_until = kNever;
    warp.block_reason = stats::Stall::k_barrier;
    if (async) NoteWait(id, at);
  }
  if (step.kind == isa::StepKind::kClusterArrive) ArriveAtCluster(id, at);
  // Before sm_90 nothing can be started early: the CTA's end counts as the trigger.
  if (step.kind == isa::StepKind::kTrigger && async) Trigger(id, at);
  if (step.kind == isa::StepKind::kBarrier) Synchronise(id, at);
  if (state == isa::WarpState::kFinished) Exit(id, at);
  if (state == isa::WarpState::kRunnable) NextRun(id, issued, at);
}

// Every instruction of the run, and the one behind it, will be issued.
void Sm::Machine::StartRun(Warp* warp, const isa::InstructionRun& run) {
  warp->next = run.first;
  warp->run_end = run.first + run.count;
  launches[warp->launch].counters.smsp_thread_inst_executed +=
      static_cast<uint64_t>(std::popcount(run.lanes)) * (run.count + 1);
}

// Asks the stream where a warp goes on that has executed `issued`.
void Sm::Machine::NextRun(uint32_t id, uint32_t issued, Cycle at) {
  Warp& warp = warps[id];
  const Launch& launch = launches[warp.launch];
  const isa::InstructionRun run = launch.stream->NextRun(warp.stream_warp);
  HEDDLE_CHECK(run.state == isa::WarpState::kRunnable, Path(), at,
               "a warp that may go on has nothing to execute");
  HEDDLE_CHECK(uint64_t{run.first} + run.count < launch.timing->instructions.size(), Path(), at,
               "a run that leaves the kernel's code");
  StartRun(&warp, run);
  if (run.first == issued + 1) {
    AdvanceFetch(id, issued, at);
  } else {
    warp.branch_until = at + config.sub_core.branch_latency_cycles;
    StartFetch(id, warp.branch_until);
  }
}

}  // namespace heddle::sm
