#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_map>

#include "tools/compare/comparison.h"
#include "tools/compare/kernel_name.h"
#include "tools/validate/statistics.h"

namespace heddle::compare {
namespace {

constexpr size_t kNobody = ~size_t{0};

struct Key {
  std::string canonical;
  Dim3 grid, block;

  auto Tied() const { return std::tie(canonical, grid.x, grid.y, grid.z, block.x, block.y, block.z); }
  bool operator<(const Key& other) const { return Tied() < other.Tied(); }
};

Key KeyOf(const Simulated& launch) { return {launch.canonical, launch.grid, launch.block}; }

struct Group {
  std::vector<size_t> simulated;
  std::vector<size_t> measured;
  std::map<size_t, size_t> partner;  // measured -> simulated, of those that are known
  std::string note;
};

using Groups = std::map<Key, Group>;

// Finds the simulated kernel of a measured launch.
class Joiner {
 public:
  Joiner(const SimulatedSet& simulated, Groups* groups) : simulated_(simulated), groups_(groups) {
    for (size_t i = 0; i < simulated.launches.size(); ++i) {
      const Simulated& launch = simulated.launches[i];
      (*groups_)[KeyOf(launch)].simulated.push_back(i);
      by_key_[launch.key] = i;
      // Of several simulations of one launch (other cache policies, say) the last is the one meant.
      by_trace_[{launch.trace_digest, launch.ordinal}] = i;
    }
    for (const auto& [key, group] : *groups_) {
      by_name_[key.canonical].push_back(&key);
      by_function_[FunctionName(key.canonical)].push_back(&key);
    }
  }

  // Puts it into its group; otherwise says why there is none.
  std::string Join(const Measured& launch, size_t index) {
    if (const size_t partner = Known(launch); partner != kNobody) {
      Group& group = (*groups_)[KeyOf(simulated_.launches[partner])];
      group.measured.push_back(index);
      group.partner[index] = partner;
      return "";
    }
    if (launch.grid && launch.block) {
      const auto exact = groups_->find(Key{launch.canonical, *launch.grid, *launch.block});
      if (exact != groups_->end()) {
        exact->second.measured.push_back(index);
        return "";
      }
    }
    // A name alone: Nsight Compute prints functions without their templates, cuobjdump and cubins have them.
    const bool is_function = launch.canonical.find_first_of("<:") == std::string::npos;
    const std::vector<const Key*>& named = Named(by_name_, launch.canonical);
    const std::vector<const Key*>& candidates =
        named.empty() && is_function ? Named(by_function_, launch.canonical) : named;
    if (candidates.empty()) return "not simulated";
    std::vector<const Key*> fitting;
    for (const Key* key : candidates) {
      if ((!launch.grid || *launch.grid == key->grid) && (!launch.block || *launch.block == key->block))
        fitting.push_back(key);
    }
    if (fitting.empty()) return "simulated with another grid or block only";
    if (fitting.size() > 1) return "its name and shape fit several simulated kernels";
    Group& group = (*groups_)[*fitting[0]];
    group.measured.push_back(index);
    group.note = !launch.grid || !launch.block ? "joined by name: the profile has no grid"
                                               : "joined by the function's name";
    return "";
  }

 private:
  using Index = std::unordered_map<std::string, std::vector<const Key*>>;

  static const std::vector<const Key*>& Named(const Index& index, const std::string& name) {
    static const std::vector<const Key*> none;
    const auto found = index.find(name);
    return found == index.end() ? none : found->second;
  }

  size_t Known(const Measured& launch) const {
    if (!launch.launch_key.empty()) {
      if (const auto found = by_key_.find(launch.launch_key); found != by_key_.end()) return found->second;
    }
    if (!launch.trace_digest.empty() && launch.trace_ordinal) {
      const auto found = by_trace_.find({launch.trace_digest, *launch.trace_ordinal});
      // The same launch of a trace may have been run with other shapes.
      if (found != by_trace_.end()) {
        const Simulated& simulated = simulated_.launches[found->second];
        if ((!launch.grid || *launch.grid == simulated.grid) &&
            (!launch.block || *launch.block == simulated.block))
          return found->second;
      }
    }
    return kNobody;
  }

  const SimulatedSet& simulated_;
  Groups* groups_;
  std::unordered_map<std::string, size_t> by_key_;
  std::map<std::pair<std::string, uint32_t>, size_t> by_trace_;
  Index by_name_, by_function_;
};

// Means over launches, of what they have.
class NumbersMean {
 public:
  void Add(const Numbers& numbers) {
    for (size_t i = 0; i < kMembers.size(); ++i) {
      if (!(numbers.*kMembers[i])) continue;
      sum_[i] += *(numbers.*kMembers[i]);
      ++count_[i];
    }
    if (numbers.waits.empty()) return;
    ++with_waits_;
    for (const auto& [cause, percent] : numbers.waits) waits_[cause] += percent;
  }

  Numbers Mean() const {
    Numbers mean;
    for (size_t i = 0; i < kMembers.size(); ++i) {
      if (count_[i] != 0) mean.*kMembers[i] = sum_[i] / static_cast<double>(count_[i]);
    }
    for (const auto& [cause, percent] : waits_)
      mean.waits[cause] = percent / static_cast<double>(with_waits_);
    return mean;
  }

 private:
  static constexpr std::array kMembers = {&Numbers::instructions, &Numbers::dram_bytes,
                                          &Numbers::l2_hit_percent, &Numbers::occupancy_percent};
  std::array<double, 4> sum_{};
  std::array<size_t, 4> count_{};
  size_t with_waits_ = 0;
  std::map<std::string, double> waits_;
};

// The measured launches of a group whose times count: Nsight Compute's only where there are no others.
std::vector<size_t> Timed(const Group& group, const MeasuredSet& measured) {
  std::vector<size_t> running, replayed;
  for (const size_t i : group.measured) {
    const Measured& launch = measured.launches[i];
    if (launch.ps) (launch.is_replayed ? replayed : running).push_back(i);
  }
  return running.empty() ? replayed : running;
}

double MeanSimulated(const Group& group, const SimulatedSet& simulated, double Simulated::*value) {
  double sum = 0;
  for (const size_t i : group.simulated) sum += simulated.launches[i].*value;
  return sum / static_cast<double>(group.simulated.size());
}

Row MakeRow(const Key& key, const Group& group, const std::vector<size_t>& timed,
            const SimulatedSet& simulated, const MeasuredSet& measured) {
  Row row;
  row.kernel = DisplayName(simulated.launches[group.simulated[0]].name);
  row.category = CategoryOf(row.kernel);
  row.grid = key.grid;
  row.block = key.block;
  row.measured = timed.size();
  row.simulated = group.simulated.size();
  for (const size_t i : timed) row.total_ps += *measured.launches[i].ps;
  row.measured_ps = row.total_ps / static_cast<double>(timed.size());
  row.simulated_ps = MeanSimulated(group, simulated, &Simulated::ps);
  row.interval_ps = MeanSimulated(group, simulated, &Simulated::interval_ps);
  NumbersMean ours, theirs;
  for (const size_t i : group.simulated) {
    ours.Add(simulated.launches[i].numbers);
    row.simulated_ids.push_back(simulated.launches[i].launch_id);
  }
  for (const size_t i : group.measured) {
    theirs.Add(measured.launches[i].numbers);
    row.measured_ids.push_back(measured.launches[i].hardware_run_id);
  }
  row.simulated_numbers = ours.Mean();
  row.measured_numbers = theirs.Mean();
  row.note = group.note;
  if (measured.launches[timed[0]].from_cycles) {
    row.note += fmt::format("{}time from measured cycles", row.note.empty() ? "" : "; ");
  } else if (measured.launches[timed[0]].is_replayed) {
    row.note += fmt::format("{}time by Nsight Compute, each launch alone", row.note.empty() ? "" : "; ");
  }
  return row;
}

// One row a measured launch: beside the launch that it is known to be, the one at the same place among as many, or the mean.
void AddLaunchRows(const Row& kernel, const Group& group, const std::vector<size_t>& timed,
                   const SimulatedSet& simulated, const MeasuredSet& measured, std::vector<Row>* rows) {
  for (size_t n = 0; n < timed.size(); ++n) {
    const Measured& launch = measured.launches[timed[n]];
    Row row = kernel;
    row.measured = row.simulated = 1;
    row.measured_ps = row.total_ps = *launch.ps;
    row.measured_numbers = launch.numbers;
    row.measured_ids = {launch.hardware_run_id};
    size_t partner = kNobody;
    if (const auto known = group.partner.find(timed[n]); known != group.partner.end()) {
      partner = known->second;
    } else if (timed.size() == group.simulated.size()) {
      partner = group.simulated[n];
    }
    if (partner != kNobody) {
      row.simulated_ps = simulated.launches[partner].ps;
      row.interval_ps = simulated.launches[partner].interval_ps;
      row.simulated_numbers = simulated.launches[partner].numbers;
      row.simulated_ids = {simulated.launches[partner].launch_id};
    } else if (group.simulated.size() > 1) {
      row.simulated = group.simulated.size();
      row.note +=
          fmt::format("{}mean of {} simulations", row.note.empty() ? "" : "; ", group.simulated.size());
    }
    rows->push_back(std::move(row));
  }
}

std::vector<Row> ByCategory(const std::vector<Row>& kernels) {
  std::map<std::string, Row> sums;
  for (const Row& kernel : kernels) {
    Row& sum = sums[kernel.category];
    sum.kernel = sum.category = kernel.category;
    sum.measured += kernel.measured;
    sum.simulated += kernel.simulated;
    const auto count = static_cast<double>(kernel.measured);
    sum.total_ps += kernel.total_ps;
    sum.measured_ps += kernel.total_ps;
    sum.simulated_ps += kernel.simulated_ps * count;
    sum.interval_ps += kernel.interval_ps * count;
    if (kernel.baseline_ps) sum.baseline_ps = sum.baseline_ps.value_or(0) + *kernel.baseline_ps * count;
  }
  std::vector<Row> rows;
  for (auto& [name, row] : sums) rows.push_back(std::move(row));
  // A sum over some of its kernels only would be another number.
  for (Row& row : rows) {
    for (const Row& kernel : kernels) {
      if (kernel.category == row.category && !kernel.baseline_ps) row.baseline_ps.reset();
    }
  }
  return rows;
}

Totals TotalsOf(const std::vector<Row>& rows, bool of_baseline, bool only_with_baseline) {
  Totals totals;
  std::vector<validate::Pair> pairs;
  double weighted = 0;
  for (const Row& row : rows) {
    if (only_with_baseline && !row.baseline_ps) continue;
    const double simulated = of_baseline ? *row.baseline_ps : row.simulated_ps;
    pairs.push_back({row.measured_ps, simulated});
    const double scale = row.total_ps / row.measured_ps;  // launches; 1 for sums
    totals.measured_ps += row.total_ps;
    totals.simulated_ps += simulated * scale;
    weighted += std::fabs(simulated - row.measured_ps) * scale;
  }
  const validate::Summary summary = validate::Summarise(pairs);
  totals.rows = pairs.size();
  if (totals.measured_ps > 0) {
    totals.total_error_percent = 100 * (totals.simulated_ps / totals.measured_ps - 1);
    totals.weighted_mape_percent = 100 * weighted / totals.measured_ps;
  }
  totals.mape_percent = summary.mape_percent;
  totals.median_abs_error_percent = summary.median_abs_error_percent;
  totals.p90_abs_error_percent = summary.p90_abs_error_percent;
  totals.correlation = summary.correlation;
  return totals;
}

// Cycles that were measured without a time, at the clock of the simulated launch beside them.
void TakeCyclesAsTime(const Groups& groups, const SimulatedSet& simulated, MeasuredSet* measured) {
  for (const auto& [key, group] : groups) {
    for (const size_t i : group.measured) {
      Measured& launch = measured->launches[i];
      const auto known = group.partner.find(i);
      const Simulated& beside =
          simulated.launches[known == group.partner.end() ? group.simulated[0] : known->second];
      if (!launch.ps && launch.cycles && beside.cycles > 0) {
        launch.ps = *launch.cycles * beside.ps / beside.cycles;
        launch.from_cycles = true;
      }
    }
  }
}

class AloneList {
 public:
  void Add(const std::string& name, const std::optional<Dim3>& grid, const std::optional<Dim3>& block,
           double ps, const std::string& reason) {
    const Dim3 g = grid.value_or(Dim3{0, 0, 0}), b = block.value_or(Dim3{0, 0, 0});
    auto [found, is_new] = index_.try_emplace({reason, Key{name, g, b}}, list_.size());
    if (is_new) list_.push_back({DisplayName(name), grid, block, 0, 0, reason});
    Unmatched& entry = list_[found->second];
    ++entry.launches;
    entry.total_ps += ps;
  }

  std::vector<Unmatched> Sorted() {
    std::stable_sort(list_.begin(), list_.end(),
                     [](const Unmatched& a, const Unmatched& b) { return a.total_ps > b.total_ps; });
    return std::move(list_);
  }

 private:
  std::map<std::pair<std::string, Key>, size_t> index_;
  std::vector<Unmatched> list_;
};

void ListSimulatedAlone(const Groups& groups, const SimulatedSet& simulated, const MeasuredSet& measured,
                        Comparison* comparison) {
  std::map<std::string, bool> measured_names;
  for (const Measured& launch : measured.launches) measured_names[launch.canonical] = true;
  AloneList alone;
  for (const auto& [key, group] : groups) {
    if (!Timed(group, measured).empty()) {
      comparison->simulated_matched += group.simulated.size();
      continue;
    }
    const char* reason = !group.measured.empty()                  ? "measured without a time"
                         : measured_names.contains(key.canonical) ? "measured with another grid or block only"
                                                                  : "not measured";
    for (const size_t i : group.simulated) {
      alone.Add(simulated.launches[i].name, key.grid, key.block, simulated.launches[i].ps, reason);
    }
  }
  comparison->simulated_alone = alone.Sorted();
}

}  // namespace

Comparison Compare(const SimulatedSet& simulated, const MeasuredSet& given, By by,
                   const SimulatedSet* baseline) {
  Comparison comparison;
  MeasuredSet measured = given;
  comparison.machine = simulated.machine;
  comparison.gpu = measured.gpu;
  comparison.by = by;
  comparison.measured_launches = measured.launches.size();
  comparison.simulated_launches = simulated.launches.size();

  Groups groups;
  Joiner joiner(simulated, &groups);
  AloneList alone;
  for (size_t i = 0; i < measured.launches.size(); ++i) {
    const Measured& launch = measured.launches[i];
    const std::string reason = joiner.Join(launch, i);
    if (launch.time_resolution_ns > 1) comparison.whole_microseconds = true;
    if (reason.empty()) continue;
    alone.Add(launch.name, launch.grid, launch.block, launch.ps.value_or(0), reason);
    comparison.measured_ps += launch.ps.value_or(0);
  }

  TakeCyclesAsTime(groups, simulated, &measured);

  std::map<Key, std::pair<double, size_t>> before;
  if (baseline != nullptr) {
    for (const Simulated& launch : baseline->launches) {
      auto& [sum, count] = before[KeyOf(launch)];
      sum += launch.ps;
      ++count;
    }
  }
  std::vector<Row> kernels, launches;
  for (const auto& [key, group] : groups) {
    const std::vector<size_t> timed = Timed(group, measured);
    comparison.measured_matched += group.measured.size();
    if (timed.empty()) continue;
    Row row = MakeRow(key, group, timed, simulated, measured);
    if (const auto found = before.find(key); found != before.end()) {
      row.baseline_ps = found->second.first / static_cast<double>(found->second.second);
    }
    if (by == By::kLaunch) AddLaunchRows(row, group, timed, simulated, measured, &launches);
    comparison.measured_ps += row.total_ps;
    kernels.push_back(std::move(row));
  }
  comparison.rows = by == By::kLaunch     ? std::move(launches)
                    : by == By::kCategory ? ByCategory(kernels)
                                          : std::move(kernels);
  std::stable_sort(comparison.rows.begin(), comparison.rows.end(),
                   [](const Row& a, const Row& b) { return a.total_ps > b.total_ps; });
  comparison.totals = TotalsOf(comparison.rows, false, false);
  if (baseline != nullptr) {
    comparison.baseline = TotalsOf(comparison.rows, true, true);
    comparison.against_baseline = TotalsOf(comparison.rows, false, true);
  }
  comparison.measured_alone = alone.Sorted();
  ListSimulatedAlone(groups, simulated, measured, &comparison);
  return comparison;
}

}  // namespace heddle::compare
