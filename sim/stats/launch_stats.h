// What is counted while a launch runs: plain numbers in plain structs, added up over SMs and slices in a fixed order.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/types.h"

namespace heddle::stats {

enum class Stall : uint8_t {
#define HEDDLE_STALL(name, text) k_##name,
#include "sim/stats/stalls.def"
#undef HEDDLE_STALL
};

inline constexpr int kStallCount = 0
#define HEDDLE_STALL(name, text) +1
#include "sim/stats/stalls.def"
#undef HEDDLE_STALL
    ;

using StallSlots = std::array<uint64_t, kStallCount>;

struct Counters {
#define HEDDLE_COUNTER(name, unit, text) uint64_t name = 0;
#include "sim/stats/counters.def"
#undef HEDDLE_COUNTER

  Counters& operator+=(const Counters& other);
};

struct CounterDef {
  std::string_view name;
  std::string_view unit;
  std::string_view text;
  uint64_t Counters::*member;
};
const std::vector<CounterDef>& CounterDefs();  // in the order of counters.def

struct StallDef {
  std::string_view name;
  std::string_view text;
};
const std::vector<StallDef>& StallDefs();  // indexed by Stall

// What an instruction asked of memory: counted once for each warp that executed it with a lane, or for each request into
// which the TMA unit cut it.
struct MemorySums {
  uint64_t requests = 0;
  uint64_t sectors = 0;         // of 32 bytes, that requests to global and local memory touched
  uint64_t ideal_sectors = 0;   // that the bytes of their lanes fill; no more than `sectors`
  uint64_t wavefronts = 0;      // of shared memory
  uint64_t bank_conflicts = 0;  // of them, beyond those that the access needs without conflicts

  bool any() const { return requests != 0; }
  MemorySums& operator+=(const MemorySums& other);
};
void Scale(double factor, MemorySums* sums);  // each sum rounded to the nearest number

// The same accounting per instruction: slots are charged to the instruction that the blocked warp wants to issue.
struct PcStats {
  uint64_t issued = 0;
  StallSlots slots{};
  MemorySums memory;
};

// Waits for mbarriers and cluster barriers, by what waited and what ended the wait.
struct WaitSum {
  uint64_t count = 0;
  uint64_t cycles = 0;
};
inline constexpr uint32_t kUnknownCause = ~0u;
// {index of the instruction that waited, index of the one whose arrival or copy let it go on, or kUnknownCause}
using WaitSums = std::map<std::pair<uint32_t, uint32_t>, WaitSum>;
void Add(const WaitSums& from, WaitSums* to);

struct LaunchStats {
  Cycle start_cycle = 0;  // launch accepted by the front end of the GPU
  Cycle end_cycle = 0;    // last CTA finished and its writes acknowledged
  Counters counters;
  StallSlots slots{};           // sums to counters.smsp_issue_slots
  std::vector<PcStats> per_pc;  // by instruction index
  WaitSums waits;
};

}  // namespace heddle::stats
