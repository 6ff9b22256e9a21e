#include "tools/analysis/stalls.h"

#include <algorithm>
#include <numeric>

namespace heddle::analysis {
namespace {

void SortBySlots(std::vector<StallShare>* shares) {
  std::stable_sort(shares->begin(), shares->end(),
                   [](const StallShare& a, const StallShare& b) { return a.slots > b.slots; });
}

// What one slot is of the launch's issue slots.
double SlotShare(const LaunchCounts& counts) {
  const uint64_t all = std::accumulate(counts.slots.begin(), counts.slots.end(), uint64_t{0});
  return all == 0 ? 0 : 1.0 / static_cast<double>(all);
}

StallShare ShareOf(size_t stall, uint64_t slots, double slot_share, const LaunchInfo& launch) {
  const double share = static_cast<double>(slots) * slot_share;
  return {static_cast<stats::Stall>(stall), slots, share, share * static_cast<double>(launch.Cycles())};
}

}  // namespace

std::string_view Name(stats::Stall stall) { return stats::StallDefs()[static_cast<size_t>(stall)].name; }
std::string_view Text(stats::Stall stall) { return stats::StallDefs()[static_cast<size_t>(stall)].text; }

std::vector<StallShare> StallLadder(const LaunchInfo& launch, const LaunchCounts& counts) {
  const double slot_share = SlotShare(counts);
  std::vector<StallShare> ladder;
  for (size_t i = 0; i < counts.slots.size(); ++i)
    if (counts.slots[i] != 0) ladder.push_back(ShareOf(i, counts.slots[i], slot_share, launch));
  SortBySlots(&ladder);
  return ladder;
}

std::vector<PcRow> PcTable(const LaunchInfo& launch, const LaunchCounts& counts) {
  const double slot_share = SlotShare(counts);
  std::vector<PcRow> table;
  for (size_t i = 0; i < counts.per_pc.size(); ++i) {
    const stats::PcStats& pc = counts.per_pc[i];
    PcRow row;
    row.index = static_cast<uint32_t>(i);
    row.issued = pc.issued;
    for (size_t stall = 0; stall < pc.slots.size(); ++stall) {
      if (pc.slots[stall] == 0 || stall == static_cast<size_t>(stats::Stall::k_selected)) continue;
      row.waited += pc.slots[stall];
      row.stalls.push_back(ShareOf(stall, pc.slots[stall], slot_share, launch));
    }
    row.share = static_cast<double>(row.issued + row.waited) * slot_share;
    SortBySlots(&row.stalls);
    if (row.issued + row.waited != 0) table.push_back(std::move(row));
  }
  return table;
}

}  // namespace heddle::analysis
