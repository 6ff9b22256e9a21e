// How the lanes of a warp part and meet again. Every function keeps: the lanes of the splits are disjoint and
// together the live lanes of the warp.
#pragma once

#include "frontend/emulator/warp.h"

namespace heddle::emulator {

// The given lanes of the current split go on at `target`, the others where the split's index says.
void BranchTo(Warp& warp, uint32_t lanes, uint32_t target);

// The given lanes of the current split wait. `key` and `mask` as in Split.
void BlockLanes(Warp& warp, uint32_t lanes, SplitState state, uint8_t key, uint32_t mask);

// The given lanes of the current split are gone.
void ExitLanes(Warp& warp, uint32_t lanes);

// The given lanes no longer take part in instance `mask` of convergence barrier `key`.
void LeaveConvergence(Warp& warp, Row& barrier, uint8_t key, uint32_t mask, uint32_t lanes);

enum class Turn : uint8_t {
  kKeep,            // the split that ran runs on if it can
  kFurthestBehind,  // the ready split with the lowest pc: the lanes just parted
  kGiveWay,         // another ready split, if there is one
};

// Lets splits go whose partners have all arrived, joins those that met, and chooses the split that runs next.
void Reschedule(Warp& warp, Turn turn);

// Instructions that a ready split executes before another ready one gets its turn, so that lanes that spin on
// a lock held by other lanes of their own warp make progress.
inline constexpr int32_t kSplitSlice = 1024;

}  // namespace heddle::emulator
