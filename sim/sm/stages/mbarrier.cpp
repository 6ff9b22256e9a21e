// Barriers in shared memory: SYNCS and ARRIVES through the memory queue, and the warps that wait for a phase.
#include <algorithm>
#include <bit>

#include "sim/base/check.h"
#include "sim/sm/machine.h"

namespace heddle::sm {

void Sm::Machine::IssueMbarrier(uint32_t id, SubCore& sub_core, const InstructionTiming& timing, Cycle at) {
  const Cycle late = PushMio(sub_core, at, 1);
  ReleaseSources(id, timing, at + late + timing.source_release_cycles);
  Result(id, timing, at + late + timing.result_cycles);
  if (step.kind != isa::StepKind::kMbarrier) return;
  const isa::MbarrierAccess& access = step.mbarrier;
  AsyncWarp& state = async->warps[id];
  if (access.op == isa::MbarrierOp::kWait && access.blocked) {
    state.mbarrier = access.shared_address;
    state.parity = access.parity;
  }
  if (access.remote != nullptr)
    SendRemote(id, *access.remote, warps[id].next, at + late + config.mio.issue_to_lsu_cycles, kNoIndex);
  if (access.op == isa::MbarrierOp::kArriveAfterCopies) ArriveAfterCopies(id, access.token, at + late);
  Wake(warps[id].launch, warps[id].next, at + late + config.mio.issue_to_lsu_cycles);
}

// The warp has executed a wait, and nothing lets it go on.
void Sm::Machine::NoteWait(uint32_t id, Cycle at) {
  AsyncWarp& state = async->warps[id];
  if (step.kind == isa::StepKind::kMbarrier) {
    state.wait = AsyncWarp::Wait::kMbarrier;
    // Nsight Compute has no name of its own for it: SYNCS is a shared-memory instruction with a scoreboard.
    warps[id].block_reason = stats::Stall::k_short_scoreboard;
    ++launches[warps[id].launch].counters.mbarrier_waits;
  } else if (step.kind == isa::StepKind::kClusterWait) {
    state.wait = AsyncWarp::Wait::kCluster;
  } else {
    return;
  }
  state.wait_since = at;
  state.wait_instruction = step.index;
}

// Warps that the stream let go on, because of `cause`: an index of an instruction, or stats::kUnknownCause.
void Sm::Machine::Wake(uint32_t launch_id, uint32_t cause, Cycle at) {
  Launch& launch = launches[launch_id];
  std::vector<uint32_t>& woken = launch.stream->woken();
  if (woken.empty()) return;
  const uint32_t warps_per_cta = launch.shape.WarpsPerCta();
  for (const uint32_t stream_warp : woken) {
    const Cta& cta = ctas[launch.cta_of_slot[stream_warp / warps_per_cta]];
    const uint32_t id = cta.warps[stream_warp % warps_per_cta];
    if (!warps[id].live || !warps[id].blocked) continue;  // another of its splits goes on
    WakeWarp(id, cause, at + async->wake_cycles);
  }
  woken.clear();
}

void Sm::Machine::WakeWarp(uint32_t id, uint32_t cause, Cycle until) {
  Warp& warp = warps[id];
  AsyncWarp& state = async->warps[id];
  warp.blocked = false;
  warp.block_until = until;
  if (state.wait != AsyncWarp::Wait::kNothing) {
    stats::WaitSum& sum = launches[warp.launch].waits[{state.wait_instruction, cause}];
    ++sum.count;
    sum.cycles += until - state.wait_since;
    state.wait = AsyncWarp::Wait::kNothing;
  }
  NextRun(id, warp.next, now);
  Refresh(id);
  Select(SubCoreOf(id));
}

// ARRIVES.LDGSTSBAR: takes effect when the copies that the warp has issued so far have arrived.
void Sm::Machine::ArriveAfterCopies(uint32_t id, uint32_t token, Cycle at) {
  Warp& warp = warps[id];
  if (warp.open_group == kNoIndex && warp.groups_unanswered == 0) {
    PushArrival({.cycle = std::max(at + 1, warp.copies_done),
                 .kind = Arrival::Kind::kArriveAfterCopies,
                 .launch = warp.launch,
                 .index = token});
    return;
  }
  const uint32_t group_id = OpenGroup(id);
  warp.open_group = kNoIndex;
  CopyGroup& group = groups[group_id];
  group.done = std::max(group.done, at + 1);
  group.closed = true;
  group.arrives = true;
  group.token = token;
  ++warp.groups_unanswered;
  if (group.unanswered == 0) SettleGroup(group_id);
}

// Every copy of the warp has been answered: arrivals that wait for those before them happen when the last is there.
void Sm::Machine::SettleArrivalsAfterCopies(uint32_t id) {
  std::erase_if(async->arrivals_after_copies, [&](const std::pair<uint32_t, uint32_t>& each) {
    if (each.first != id) return false;
    PushArrival({.cycle = std::max(warps[id].copies_done, now),
                 .kind = Arrival::Kind::kArriveAfterCopies,
                 .launch = warps[id].launch,
                 .index = each.second});
    return true;
  });
}

// A suspended wait whose attempt fails: nothing else can happen in the machine.
bool Sm::Machine::FailWaits(Cycle at) {
  bool any = false;
  if (!async) return false;
  for (uint32_t id = 0; id < warps.size(); ++id) {
    Warp& warp = warps[id];
    if (!warp.live || !warp.blocked || async->warps[id].wait != AsyncWarp::Wait::kMbarrier) continue;
    if (!launches[warp.launch].stream->FailWait(warp.stream_warp, at)) continue;
    launches[warp.launch].stream->woken().clear();
    now = std::max(now, at);
    WakeWarp(id, stats::kUnknownCause, at + 1);
    any = true;
  }
  return any;
}

}  // namespace heddle::sm
