// Closed accounting of issue slots, and the same knowledge in words for the deadlock report.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "sim/base/check.h"
#include "sim/sm/machine.h"

namespace heddle::sm {
namespace {

using stats::Stall;

Stall PortStall(IssuePort port) {
  switch (port) {
    case IssuePort::kMio:
      return Stall::k_mio_throttle;
    case IssuePort::kGlobal:
      return Stall::k_lg_throttle;
    case IssuePort::kTma:
      return Stall::k_mio_throttle;
    case IssuePort::kGmma:
      return Stall::k_gmma;
    default:
      return Stall::k_math_pipe_throttle;
  }
}

Stall SpecialStall(TimingClass timing_class) {
  switch (timing_class) {
    case TimingClass::kDepbar:
      return Stall::k_long_scoreboard;
    case TimingClass::kMatrixGroup:
      return Stall::k_gmma;
    case TimingClass::kMatrixWait:
      return Stall::k_warpgroup_arrive;
    default:
      return Stall::k_misc;
  }
}

// The conditions that hold a warp back, in the order of the ladder: visit(until, reason, barrier or kNoBarrier), until
// it returns true.
template <typename Visit>
void VisitLadder(const Sm::Machine& machine, uint32_t id, const Launch& launch, Visit visit) {
  const Warp& warp = machine.warps[id];
  const InstructionTiming& timing = launch.instructions[warp.next];
  if (visit(warp.branch_until, Stall::k_branch_resolving, isa::kNoBarrier)) return;
  if (visit(warp.fetch_until, Stall::k_no_instruction, isa::kNoBarrier)) return;
  if (visit(warp.stall_until, Stall::k_wait, isa::kNoBarrier)) return;
  if (visit(warp.block_until, warp.block_reason, isa::kNoBarrier)) return;
  for (uint32_t left = timing.wait_mask; left != 0; left &= left - 1) {
    const auto barrier = static_cast<uint8_t>(std::countr_zero(left));
    if (visit(warp.counters.ZeroAt(barrier), warp.counters.reason[barrier], barrier)) return;
  }
  if (timing.timing_class >= kFirstSpecialWait) {
    const Stall reason = SpecialStall(timing.timing_class);
    if (visit(machine.SpecialUntil(id, timing), reason, timing.depbar_barrier)) return;
  }
  if (launch.timing->scoreboard) {
    const ScoreboardWaits& waits = machine.scoreboard_waits[id];
    if (visit(waits.fixed, Stall::k_wait, isa::kNoBarrier)) return;
    if (visit(waits.for_short, Stall::k_short_scoreboard, isa::kNoBarrier)) return;
    if (visit(waits.for_long, Stall::k_long_scoreboard, isa::kNoBarrier)) return;
  } else if (launch.tracks_registers) {
    if (visit(machine.HazardUntil(id), Stall::k_dispatch_stall, isa::kNoBarrier)) return;
  }
  visit(machine.sub_cores[machine.SubCoreOf(id)].ready.PortFree(timing.port), PortStall(timing.port),
        isa::kNoBarrier);
}

uint64_t Sum(const stats::StallSlots& slots) {
  return std::accumulate(slots.begin(), slots.end(), uint64_t{0});
}

}  // namespace

void Sm::Machine::ChargeBubble(uint32_t sub_core_id, uint32_t id, Cycle to) {
  SubCore& sub_core = sub_cores[sub_core_id];
  const Warp& warp = warps[id];
  Launch& launch = launches[warp.launch];
  Cycle from = sub_core.charged_until;
  if (from >= to) return;
  sub_core.charged_until = to;
  VisitLadder(*this, id, launch, [&](Cycle until, Stall reason, uint8_t) {
    if (until <= from) return false;
    const Cycle stop = std::min(until, to);
    Charge(&launch, warp.next, reason, stop - from);
    from = stop;
    return from == to;
  });
  // Nothing of its own held it: the operand reads of this instruction did.
  if (from < to) Charge(&launch, warp.next, Stall::k_dispatch_stall, to - from);
}

void Sm::Machine::Settle(uint32_t sub_core_id, Cycle to) {
  SubCore& sub_core = sub_cores[sub_core_id];
  if (sub_core.charged_until >= to) return;
  if (sub_core.ready.live() > 0) {
    const uint32_t local = sub_core.next_warp != kNoIndex ? sub_core.next_warp : sub_core.ready.first();
    ChargeBubble(sub_core_id, WarpAt(sub_core_id, local), to);
    return;
  }
  Launch* oldest = nullptr;
  for (Launch& launch : launches)
    if (launch.open && (oldest == nullptr || launch.order < oldest->order)) oldest = &launch;
  const Stall reason = sub_core.draining > 0 ? Stall::k_drain : Stall::k_no_warp;
  if (oldest != nullptr) oldest->slots[static_cast<size_t>(reason)] += to - sub_core.charged_until;
  sub_core.charged_until = to;
}

void Sm::Machine::CheckClosed(const Launch& launch, Cycle at) const {
  // One launch alone: its slots are those of the time that it was open. With others: the sum of all is.
  uint64_t charged = Sum(epoch_slots);
  for (const Launch& each : launches)
    if (each.open) charged += Sum(each.slots);
  HEDDLE_CHECK(charged == sub_core_count * (at - epoch_begin), Path(), at,
               fmt::format("issue slots: {} charged, {} sub-cores x {} cycles went by", charged,
                           sub_core_count, at - epoch_begin));
  const bool alone = open_launches == 1 && launch.opened == epoch_begin && Sum(epoch_slots) == 0;
  HEDDLE_CHECK(!alone || Sum(launch.slots) == sub_core_count * (at - launch.opened), Path(), at,
               "the slots of a launch that ran alone are not those of its time");
  HEDDLE_CHECK(launch.slots[static_cast<size_t>(Stall::k_selected)] == launch.counters.smsp_inst_executed,
               Path(), at, "slots charged as issued and instructions issued differ");
}

// Which mbarrier a warp waits for, and what is still on its way to it.
std::string Sm::Machine::DescribeWait(uint32_t id) const {
  const AsyncWarp& state = async->warps[id];
  if (state.wait == AsyncWarp::Wait::kCluster) return "the other CTAs of the cluster";
  std::string text = fmt::format("mbarrier {:#x}, phase {}", state.mbarrier, state.parity ? 1 : 0);
  uint32_t copies = 0;
  for (const BulkWork& work : async->tma.works()) {
    if (!work.in_use || work.kind != isa::BulkKind::kLoad || work.cta != warps[id].cta ||
        work.bulk->mbarrier != state.mbarrier)
      continue;
    ++copies;
    text += fmt::format("; a bulk load of pc {:#06x}: {} of {} requests are unanswered",
                        work.instruction * isa::kInstructionBytes, work.unanswered, work.requests);
  }
  if (copies == 0) text += "; no bulk load is on its way to it";
  return text;
}

std::vector<WarpWait> Sm::Machine::DescribeWaits() const {
  std::vector<WarpWait> waits;
  for (uint32_t id = 0; id < warps.size(); ++id) {
    const Warp& warp = warps[id];
    if (!warp.live) continue;
    const Cta& cta = ctas[warp.cta];
    WarpWait wait{.launch = warp.launch,
                  .cta = cta.id,
                  .warp = warp.in_cta,
                  .pc = warp.next * isa::kInstructionBytes,
                  .reason = Stall::k_misc,
                  .detail = {}};
    Cycle latest = 0;
    VisitLadder(*this, id, launches[warp.launch], [&](Cycle until, Stall reason, uint8_t barrier) {
      if (until <= latest) return false;
      latest = until;
      wait.reason = reason;
      wait.detail = until == kNever ? "an event that has no known time" : fmt::format("cycle {}", until);
      if (barrier != isa::kNoBarrier)
        wait.detail =
            fmt::format("scoreboard {}: {} answers outstanding", barrier, warp.counters.unanswered[barrier]);
      return false;
    });
    if (warp.blocked && async && async->warps[id].wait != AsyncWarp::Wait::kNothing) {
      wait.detail = DescribeWait(id);
    } else if (warp.blocked) {
      const BarrierUnit::State& state = cta.barriers.state(warp.barrier_id);
      const uint32_t expected =
          state.expected_threads != 0 ? state.expected_threads : kWarpLanes * cta.live_warps;
      wait.detail = fmt::format("barrier {}: {} of {} threads have arrived", warp.barrier_id,
                                state.arrived_threads, expected);
    } else if (warp.waits_for_acks) {
      wait.detail = fmt::format("{} stores without acknowledgement", warp.stores_unanswered);
    }
    waits.push_back(std::move(wait));
  }
  return waits;
}

}  // namespace heddle::sm
