// The architectural state of one warp.
//
// Every value that an instruction can read is a Row. A warp owns one block of rows, laid out by RowLayout:
//   rows 0..3     RZ, URZ and absent operands, up to four registers wide: always zero
//   rows 4..7     what is written to RZ or URZ; never read
//   first_r ..    R0, R1, ...
//   first_ur ..   UR0, UR1, ...: every lane holds the same value (the uniform datapath runs on splats)
//   first_b ..    convergence barriers B0..B15: the participation mask, per lane
// Immediates and constants lie in rows of their own that all warps of a launch share (ConstantPool in
// program.h).
//
// Predicates are lane masks: 0..6 P0..P6, 7 PT, 8..14 UP0..UP6 (all lanes or none), 15 UPT, 16 takes what is
// written to PT.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "frontend/emulator/row.h"
#include "sim/isa/instruction.h"

namespace heddle::emulator {

inline constexpr uint16_t kZeroRow = 0;
inline constexpr uint16_t kDiscardRow = 4;
inline constexpr uint16_t kFirstRegisterRow = 8;
inline constexpr uint8_t kTruePredicate = 7;
inline constexpr uint8_t kFirstUniformPredicate = 8;
inline constexpr uint8_t kDiscardPredicate = 16;
inline constexpr uint32_t kPredicateCount = 17;
inline constexpr uint32_t kConvergenceBarriers = 16;

struct RowLayout {
  uint16_t first_r = kFirstRegisterRow;
  uint16_t first_ur = kFirstRegisterRow;
  uint16_t first_b = kFirstRegisterRow;
  uint16_t count = kFirstRegisterRow;

  uint16_t ReadRow(uint8_t r) const {
    return r == isa::kZeroRegister ? kZeroRow : static_cast<uint16_t>(first_r + r);
  }
  uint16_t WriteRow(uint8_t r) const {
    return r == isa::kZeroRegister ? kDiscardRow : static_cast<uint16_t>(first_r + r);
  }
  uint16_t UniformReadRow(uint8_t ur) const {
    return ur == isa::kZeroUniformRegister ? kZeroRow : static_cast<uint16_t>(first_ur + ur);
  }
  uint16_t UniformWriteRow(uint8_t ur) const {
    return ur == isa::kZeroUniformRegister ? kDiscardRow : static_cast<uint16_t>(first_ur + ur);
  }
  uint16_t BarrierRow(uint8_t b) const { return static_cast<uint16_t>(first_b + b); }
};

enum class SplitState : uint8_t {
  kReady,
  kAtConvergence,  // BSYNC: until every live lane of the barrier instance (key, mask) is here
  kAtWarpSync,     // WARPSYNC: until every live lane of mask is here
  kAtBarrier,      // BAR: until ReleaseBarrier(key)
  kAtMbarrier,     // SYNCS..TRYWAIT: until the phase is complete (mbarrier.h)
  kAtCluster,      // UCGABAR_WAIT: until ReleaseClusterBarrier
};

// Lanes that run together. Splits are joined by BSYNC and WARPSYNC only, never because they meet at one pc
// (that would break recursion).
struct Split {
  uint32_t index = 0;  // of the next instruction, behind the blocking one while blocked
  uint32_t lanes = 0;
  uint32_t mask = 0;  // whom a blocked split waits for; kAtBarrier: expected threads
  SplitState state = SplitState::kReady;
  uint8_t key = 0;       // B register or CTA barrier
  bool arrived = false;  // kAtBarrier: the simulator has been told
  bool reduces = false;  // kAtBarrier: BAR.RED
};

// A product of a warp group that has been issued and not waited for (warp_group.cpp).
struct PendingProduct {
  uint32_t index = 0;  // of the instruction
  bool accumulates = false;
  bool closes_group = false;
  uint64_t descriptor_a = 0;
  uint64_t descriptor_b = 0;
  std::array<Row, 4> a;  // of the RS forms
};

struct CtaState;

struct Warp {
  Row* rows = nullptr;          // layout.count of them
  uint32_t* unknown = nullptr;  // per row: lanes whose value is unknown; null when nothing is tracked
  CtaState* cta = nullptr;
  std::array<uint32_t, kPredicateCount> predicates{};
  std::array<uint32_t, kPredicateCount> unknown_predicates{};
  uint32_t live = 0;  // lanes that have not exited
  uint32_t id_in_cta = 0;
  uint32_t slot_on_sm = 0;  // %warpid
  int32_t slice_left = 0;   // instructions until another ready split gets its turn
  // Scoreboards whose results PerformAtSlice has yet to deliver, one bit each: RunAhead stops before who
  // waits for one.
  uint8_t pending_scoreboards = 0;
  uint32_t cluster_arrivals = 0;  // UCGABAR_ARV so far
  std::array<uint16_t, 6> pending_results{};  // how many of them each scoreboard stands for
  uint8_t current = 0;                        // the split that runs
  uint8_t split_count = 0;
  std::array<Split, kWarpLanes> splits{};
  std::vector<PendingProduct> products;

  Split& Current() { return splits[current]; }
  const Split& Current() const { return splits[current]; }
};

// The lanes of `lanes` start at instruction `entry` with all registers zero. rows and unknown (if any) must
// be set.
void ResetWarp(Warp& warp, const RowLayout& layout, uint32_t lanes, uint32_t entry);

}  // namespace heddle::emulator
