// Where the issue slots of a launch went: as a ladder over the whole launch, and by instruction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/stats/launch_stats.h"
#include "tools/analysis/results_reader.h"

namespace heddle::analysis {

struct StallShare {
  stats::Stall stall{};
  uint64_t slots = 0;
  double share = 0;   // of all issue slots, 0 to 1
  double cycles = 0;  // share of the launch's time
};
std::string_view Name(stats::Stall stall);  // "long_scoreboard"
std::string_view Text(stats::Stall stall);  // "Waiting for data from L1, L2 or DRAM"

// Causes with slots, by falling share; `selected` among them.
std::vector<StallShare> StallLadder(const LaunchInfo& launch, const LaunchCounts& counts);

struct PcRow {
  uint32_t index = 0;  // of the instruction
  uint64_t issued = 0;
  uint64_t waited = 0;             // slots charged to it but not issued
  double share = 0;                // of all issue slots, issued and waited
  std::vector<StallShare> stalls;  // without `selected`, by falling share
  stats::MemorySums memory;
};
// "32.0 sectors a request where 4.0 would do, 1.5 wavefronts a request"; empty where the instruction asked nothing. `only_waste`:
// empty too where nothing more is moved than is asked for.
std::string MemoryText(const stats::MemorySums& memory, bool only_waste);
// Instructions with slots, by index.
std::vector<PcRow> PcTable(const LaunchInfo& launch, const LaunchCounts& counts);

// What the instructions of one kind asked of memory, over the launch: the rows of Nsight Compute's memory tables.
struct MemoryTraffic {
  std::string name;  // "Global Load", "Shared Store", "Global Atomic", "Bulk Copy", ...
  stats::MemorySums sums;
};
// Kinds that occur, in a fixed order.
std::vector<MemoryTraffic> MemoryTable(const Kernel& kernel, const LaunchCounts& counts);

}  // namespace heddle::analysis
