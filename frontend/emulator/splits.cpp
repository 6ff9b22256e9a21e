#include "frontend/emulator/splits.h"

#include <bit>

namespace heddle::emulator {
namespace {

void Remove(Warp& warp, uint32_t position) {
  for (uint32_t i = position + 1; i < warp.split_count; ++i) warp.splits[i - 1] = warp.splits[i];
  --warp.split_count;
  if (warp.current > position) --warp.current;
}

void RemoveEmpty(Warp& warp) {
  for (uint32_t i = warp.split_count; i-- > 0;)
    if (warp.splits[i].lanes == 0) Remove(warp, i);
}

bool SameMeeting(const Split& a, const Split& b) {
  return a.state == b.state && a.mask == b.mask && (a.state == SplitState::kAtWarpSync || a.key == b.key);
}

// Joins the splits of `released` (a bit per split) that continue at the same instruction.
void JoinReleased(Warp& warp, uint32_t released) {
  for (uint32_t i = 0; i < warp.split_count; ++i) {
    if ((released >> i & 1) == 0 || warp.splits[i].lanes == 0) continue;
    for (uint32_t j = i + 1; j < warp.split_count; ++j) {
      if ((released >> j & 1) == 0 || warp.splits[j].index != warp.splits[i].index) continue;
      warp.splits[i].lanes |= warp.splits[j].lanes;
      warp.splits[j].lanes = 0;
    }
  }
}

void ReleaseMeetings(Warp& warp) {
  for (uint32_t i = 0; i < warp.split_count; ++i) {
    const Split split = warp.splits[i];
    if (split.lanes == 0 ||
        (split.state != SplitState::kAtConvergence && split.state != SplitState::kAtWarpSync))
      continue;
    uint32_t present = 0;
    uint32_t members = 0;
    for (uint32_t j = i; j < warp.split_count; ++j) {
      if (!SameMeeting(warp.splits[j], split)) continue;
      present |= warp.splits[j].lanes;
      members |= 1u << j;
    }
    if ((split.mask & warp.live & ~present) != 0) continue;
    for (uint32_t j = i; j < warp.split_count; ++j)
      if ((members >> j & 1) != 0) warp.splits[j].state = SplitState::kReady;
    JoinReleased(warp, members);
  }
}

}  // namespace

void BranchTo(Warp& warp, uint32_t lanes, uint32_t target) {
  Split& current = warp.Current();
  if (lanes == current.lanes) {
    current.index = target;
    return;
  }
  if (lanes == 0) return;
  current.lanes &= ~lanes;
  Split& taken = warp.splits[warp.split_count++];
  taken = Split{.index = target, .lanes = lanes};
}

void BlockLanes(Warp& warp, uint32_t lanes, SplitState state, uint8_t key, uint32_t mask) {
  Split& current = warp.Current();
  const Split blocked{.index = current.index, .lanes = lanes, .mask = mask, .state = state, .key = key};
  if (lanes == current.lanes) {
    current = blocked;
    return;
  }
  current.lanes &= ~lanes;
  warp.splits[warp.split_count++] = blocked;
}

void ExitLanes(Warp& warp, uint32_t lanes) {
  warp.live &= ~lanes;
  warp.Current().lanes &= ~lanes;
}

void LeaveConvergence(Warp& warp, Row& barrier, uint8_t key, uint32_t mask, uint32_t lanes) {
  for (uint32_t i = 0; i < kWarpLanes; ++i)
    if ((mask >> i & 1) != 0 && barrier.lane[i] == mask) barrier.lane[i] = mask & ~lanes;
  for (uint32_t i = 0; i < warp.split_count; ++i) {
    Split& split = warp.splits[i];
    if (split.state == SplitState::kAtConvergence && split.key == key && split.mask == mask)
      split.mask &= ~lanes;
  }
}

void Reschedule(Warp& warp, Turn turn) {
  ReleaseMeetings(warp);
  const bool runs_on = warp.Current().lanes != 0 && warp.Current().state == SplitState::kReady;
  const uint32_t ran = warp.Current().lanes;
  RemoveEmpty(warp);
  if (runs_on && turn == Turn::kKeep) return;

  // Giving way goes round robin by first lane, otherwise the split furthest behind in the code is next.
  const bool round_robin = runs_on && turn == Turn::kGiveWay;
  const auto first_lane = static_cast<uint32_t>(std::countr_zero(ran));
  int best = -1;
  uint32_t best_rank = kAllLanes;
  for (uint32_t i = 0; i < warp.split_count; ++i) {
    const Split& split = warp.splits[i];
    if (split.state != SplitState::kReady) continue;
    const auto lane = static_cast<uint32_t>(std::countr_zero(split.lanes));
    const uint32_t rank = round_robin ? (lane - first_lane - 1) % kWarpLanes : split.index;
    if (best >= 0 && rank >= best_rank) continue;
    best_rank = rank;
    best = static_cast<int>(i);
  }
  const uint8_t next = best < 0 ? 0 : static_cast<uint8_t>(best);
  if (next != warp.current || turn != Turn::kFurthestBehind) warp.slice_left = kSplitSlice;
  warp.current = next;
}

}  // namespace heddle::emulator
