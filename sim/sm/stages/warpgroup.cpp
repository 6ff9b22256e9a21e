// Warpgroups: matrix instructions that run on four tensor cores beside the warps that issued them, and registers that
// change hands.
#include <algorithm>
#include <bit>

#include "sim/base/check.h"
#include "sim/sm/machine.h"

namespace heddle::sm {
namespace {

// Operands are read in pieces of this many cycles of the data array, so that other requests find gaps between.
constexpr uint32_t kOperandPieceCycles = 8;

}  // namespace

void Sm::Machine::IssueMatrixGroup(uint32_t id, const InstructionTiming& timing, Cycle at) {
  const Warp& warp = warps[id];
  AsyncWarp& state = async->warps[id];
  Warpgroup& group = WarpgroupOf(id);
  const uint32_t queue_ticket = async->queues[id].Push();
  const uint32_t group_ticket = (timing.flags & kClosesGroup) != 0 ? state.groups.Push(kUnknown, now) : 0;
  group.Issue(warp.in_cta % kWarpgroupWarps, at, queue_ticket, group_ticket);
  if (timing.read_barrier != isa::kNoBarrier) ReleaseSources(id, timing, at + timing.source_release_cycles);
  while (const Warpgroup::Entry* ready = group.Ready()) BeginMatrixGroup(id, *ready, timing);
}

// All warps of the warpgroup have issued: the tensor cores start together and take their operands from shared memory.
void Sm::Machine::BeginMatrixGroup(uint32_t id, const Warpgroup::Entry& entry,
                                   const InstructionTiming& timing) {
  const Cta& cta = ctas[warps[id].cta];
  Warpgroup& group = WarpgroupOf(id);
  const uint32_t first = warps[id].in_cta / kWarpgroupWarps * kWarpgroupWarps;
  constexpr auto kTensor = static_cast<size_t>(IssuePort::kTensor);
  uint64_t start = 4 * (entry.last + async->gmma->issue_latency_cycles);
  for (uint32_t m = 0; m < group.warps(); ++m)
    start = std::max(start, sub_cores[SubCoreOf(cta.warps[first + m])].port_free_quarters[kTensor]);
  const uint64_t quarters = timing.interval_quarters + 4 * ReadOperands(start / 4, timing);
  const Cycle begin = (start + 3) / 4;
  const Cycle done = (start + quarters + 3) / 4 + timing.result_cycles;
  stats::Counters& counters = launches[warps[id].launch].counters;
  for (uint32_t m = 0; m < group.warps(); ++m) {
    const uint32_t member = cta.warps[first + m];
    SubCore& sub_core = sub_cores[SubCoreOf(member)];
    sub_core.port_free_quarters[kTensor] = start + quarters;
    sub_core.ready.SetPortFree(IssuePort::kTensor, (start + quarters + 3) / 4);
    counters.sm_pipe_tensor_cycles_active += (quarters + 3) / 4;
    async->queues[member].Begin(entry.queue_ticket[m], begin);
    if ((timing.flags & kClosesGroup) != 0) async->warps[member].groups.Answer(entry.group_ticket[m], done);
    // A copy that is still to be read, or an accumulator to be written: the warp's registers stay.
    warps[member].loads_done = std::max(warps[member].loads_done, done);
    if (member != id && warps[member].live) Refresh(member);
    Select(SubCoreOf(member));
  }
  group.Begin();
}

// Returns by how many cycles operands in shared memory make the instruction longer than the tensor cores do.
Cycle Sm::Machine::ReadOperands(Cycle start, const InstructionTiming& timing) {
  const uint32_t cycles = CeilDiv<uint32_t>(timing.constant_offset, shared_bytes_per_cycle);
  if (cycles == 0) return 0;
  const uint32_t pieces = CeilDiv(cycles, kOperandPieceCycles);
  const uint64_t interval = timing.interval_quarters / 4;
  Cycle late = 0;
  for (uint32_t i = 0, taken = 0; i < pieces; ++i) {
    const uint32_t here = cycles * (i + 1) / pieces - taken;
    taken += here;
    const Cycle due = start + interval * i / pieces;
    const Cycle end = lsu.Reserve(due, here);
    const Cycle wanted = start + interval * (i + 1) / pieces;
    late = std::max(late, std::max(end, wanted) - wanted);
  }
  return late;
}

// From when an instruction may issue that waits for more than its control bits say.
Cycle Sm::Machine::SpecialUntil(uint32_t id, const InstructionTiming& timing) const {
  switch (timing.timing_class) {
    case TimingClass::kDepbar:
      return DepbarUntil(id, timing);
    case TimingClass::kMatrixGroup:
      return async->queues[id].FreeAt();
    case TimingClass::kMatrixWait:
      return async->warps[id].groups.AtMost(timing.depbar_count);
    case TimingClass::kRegisterPool:
      return (timing.flags & kAllocates) != 0 &&
                     RegistersWanted(id, timing) > async->ctas[warps[id].cta].spare_registers
                 ? kNever
                 : 0;
    case TimingClass::kGridWait:
      return launches[warps[id].launch].grid_ready;
    default:
      return 0;
  }
}

// Of the whole warp, more than it has.
int64_t Sm::Machine::RegistersWanted(uint32_t id, const InstructionTiming& timing) const {
  return (int64_t{timing.constant_offset} - int64_t{async->warps[id].registers}) * kWarpLanes;
}

void Sm::Machine::MoveRegisters(uint32_t id, const InstructionTiming& timing) {
  AsyncWarp& state = async->warps[id];
  const uint32_t cta_id = warps[id].cta;
  async->ctas[cta_id].spare_registers -= RegistersWanted(id, timing);
  state.registers = timing.constant_offset;
  if ((timing.flags & kAllocates) != 0) return;
  for (const uint32_t other : ctas[cta_id].warps) {
    if (other == id || !warps[other].live ||
        TimingOf(warps[other]).timing_class != TimingClass::kRegisterPool)
      continue;
    // It was held back until now, not until whenever the registers came to be known.
    warps[other].block_until = std::max(warps[other].block_until, now + 1);
    warps[other].block_reason = stats::Stall::k_misc;
    Refresh(other);
    Select(SubCoreOf(other));
  }
}

}  // namespace heddle::sm
