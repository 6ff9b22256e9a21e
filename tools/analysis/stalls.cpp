#include "tools/analysis/stalls.h"

#include <fmt/format.h>

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

constexpr const char* kMemoryKinds[] = {"Global Load",   "Global Store", "Global Atomic", "Async Copy",
                                        "Local Load",    "Local Store",  "Shared Load",   "Shared Store",
                                        "Shared Atomic", "Generic Load", "Generic Store", "Bulk Copy",
                                        "Other"};

const char* MemoryKindOf(isa::Op op) {
  using isa::Op;
  switch (op) {
    case Op::kLDG:
    case Op::kLDGMC:
      return "Global Load";
    case Op::kSTG:
      return "Global Store";
    case Op::kATOM:
    case Op::kATOMG:
    case Op::kRED:
    case Op::kREDG:
      return "Global Atomic";
    case Op::kLDGSTS:
      return "Async Copy";
    case Op::kLDL:
      return "Local Load";
    case Op::kSTL:
      return "Local Store";
    case Op::kLDS:
    case Op::kLDSM:
      return "Shared Load";
    case Op::kSTS:
    case Op::kSTSM:
      return "Shared Store";
    case Op::kATOMS:
    case Op::kREDS:
      return "Shared Atomic";
    case Op::kLD:
      return "Generic Load";
    case Op::kST:
      return "Generic Store";
    default:
      return isa::PipeOf(op) == isa::Pipe::kTma ? "Bulk Copy" : "Other";
  }
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
    row.memory = pc.memory;
    SortBySlots(&row.stalls);
    if (row.issued + row.waited != 0) table.push_back(std::move(row));
  }
  return table;
}

std::string MemoryText(const stats::MemorySums& memory, bool only_waste) {
  if (!memory.any()) return "";
  const auto a_request = [&](uint64_t sum) {
    return static_cast<double>(sum) / static_cast<double>(memory.requests);
  };
  std::string text;
  const bool spread = memory.sectors > memory.ideal_sectors;
  if (memory.sectors != 0 && (spread || !only_waste)) {
    text += fmt::format("{:.1f} sectors a request", a_request(memory.sectors));
    if (spread) text += fmt::format(" where {:.1f} would do", a_request(memory.ideal_sectors));
  }
  if (memory.wavefronts != 0 && (memory.bank_conflicts != 0 || !only_waste)) {
    text +=
        fmt::format("{}{:.1f} wavefronts a request", text.empty() ? "" : ", ", a_request(memory.wavefronts));
    if (memory.bank_conflicts != 0)
      text += fmt::format(", {:.1f} of them bank conflicts", a_request(memory.bank_conflicts));
  }
  return text;
}

std::vector<MemoryTraffic> MemoryTable(const Kernel& kernel, const LaunchCounts& counts) {
  std::vector<MemoryTraffic> table;
  for (const char* name : kMemoryKinds) {
    MemoryTraffic row{name, {}};
    for (size_t i = 0; i < std::min(counts.per_pc.size(), kernel.instructions.size()); ++i)
      if (counts.per_pc[i].memory.any() && MemoryKindOf(kernel.instructions[i].op) == std::string_view(name))
        row.sums += counts.per_pc[i].memory;
    if (row.sums.any()) table.push_back(std::move(row));
  }
  return table;
}

}  // namespace heddle::analysis
