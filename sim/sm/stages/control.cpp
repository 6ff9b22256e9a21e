// Control: barriers between warps, fences, and the end of warps and CTAs.
#include <algorithm>
#include <bit>

#include "sim/base/check.h"
#include "sim/sm/machine.h"

namespace heddle::sm {

void Sm::Machine::Synchronise(uint32_t id, Cycle at) {
  Warp& warp = warps[id];
  const isa::BarrierAccess& access = step.barrier;
  warp.barrier_id = access.id;
  ctas[warp.cta].barriers.Arrive(access.id, access.arriving_threads, access.expected_threads, warp.in_cta,
                                 access.op != isa::BarrierOp::kArrive);
  ReleaseIfComplete(warp.cta, access.id, at);
}

void Sm::Machine::ReleaseIfComplete(uint32_t cta_id, uint32_t barrier, Cycle at) {
  Cta& cta = ctas[cta_id];
  if (!cta.barriers.Complete(barrier, cta.live_warps)) return;
  const uint64_t waiting = cta.barriers.Release(barrier);
  launches[cta.launch].stream->ReleaseBarrier(cta.slot, static_cast<uint8_t>(barrier));
  for (uint64_t left = waiting; left != 0; left &= left - 1) {
    const uint32_t id = cta.warps[static_cast<size_t>(std::countr_zero(left))];
    Warp& warp = warps[id];
    if (!warp.live || !warp.blocked) continue;  // another of its splits goes on
    warp.blocked = false;
    warp.block_until = at + config.barrier_latency_cycles;
    NextRun(id, warp.next, at);
    Refresh(id);
    Select(SubCoreOf(id));
  }
}

// MEMBAR: the warp goes on when its stores and reductions have been acknowledged.
void Sm::Machine::Fence(uint32_t id, const InstructionTiming& timing, Cycle at) {
  Warp& warp = warps[id];
  const bool within_cta = (timing.flags & kCtaScope) != 0;
  warp.block_reason = stats::Stall::k_membar;
  warp.fence_cycles = within_cta                           ? config.fences.cta_cycles
                      : (timing.flags & kSystemScope) != 0 ? config.fences.system_cycles
                                                           : config.fences.gpu_cycles;
  warp.fence_barriers = 0;
  for (const uint8_t barrier : {timing.read_barrier, timing.write_barrier}) {
    if (barrier == isa::kNoBarrier) continue;
    warp.fence_barriers = static_cast<uint8_t>(warp.fence_barriers | 1u << barrier);
    warp.counters.IncrementUnanswered(barrier, stats::Stall::k_membar);
  }
  warp.waits_for_acks = true;
  warp.block_until = kNever;
  warp.stores_acked = std::max(warp.stores_acked, at);
  if (within_cta || warp.stores_unanswered == 0) SettleFence(id, within_cta ? at : warp.stores_acked);
}

void Sm::Machine::SettleFence(uint32_t id, Cycle acknowledged) {
  Warp& warp = warps[id];
  warp.waits_for_acks = false;
  warp.block_until = acknowledged + warp.fence_cycles;
  for (uint32_t left = warp.fence_barriers; left != 0; left &= left - 1)
    warp.counters.Answer(static_cast<uint32_t>(std::countr_zero(left)), warp.block_until);
}

void Sm::Machine::Exit(uint32_t id, Cycle at) {
  Warp& warp = warps[id];
  SubCore& sub_core = sub_cores[SubCoreOf(id)];
  const uint32_t local = LocalOf(id);
  warp.live = false;
  sub_core.ready.Remove(local);
  ++sub_core.draining;
  if (sub_core.greedy == local) sub_core.greedy = kNoIndex;
  Cta& cta = ctas[warp.cta];
  --cta.live_warps;
  for (uint32_t barrier = 0; barrier < kNamedBarriers && cta.live_warps > 0; ++barrier) {
    const BarrierUnit::State& state = cta.barriers.state(barrier);
    if (state.arrived_threads != 0 && state.expected_threads == 0) ReleaseIfComplete(warp.cta, barrier, at);
  }
  if (async) AsyncExit(id, at);
  warp.loads_done = std::max(warp.loads_done, at + 1);
  if (warp.loads_unanswered == 0)
    PushArrival({.cycle = warp.loads_done, .kind = Arrival::Kind::kDrain, .index = id});
}

// The last load and copy of a warp that has exited have arrived.
void Sm::Machine::Drained(uint32_t id, Cycle at) {
  const uint32_t sub_core = SubCoreOf(id);
  Settle(sub_core, at);
  --sub_cores[sub_core].draining;
  Launch& launch = launches[warps[id].launch];
  launch.counters.smsp_warps_active += at - warps[id].started;
  Cta& cta = ctas[warps[id].cta];
  if (--cta.undrained_warps > 0) return;
  if (async) LeaveCluster(warps[id].cta, at);
  launch.stream->EndCta(cta.slot);
  launch.slots_in_use &= ~(uint64_t{1} << cta.slot);
  --launch.resident;
  FreeResources(&cta, launch.shape);
  if (ctas_used == 0) launch.counters.sm_cycles_active += at - active_since;
  finished.push_back({static_cast<LaunchHandle>(cta.launch), cta.id, at,
                      async && async->ctas[warps[id].cta].reported_trigger});
}

}  // namespace heddle::sm
