#include "tools/validate/ablate.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

namespace heddle::validate {

const std::vector<Mechanism>& Mechanisms() {
  static const std::vector<Mechanism> mechanisms = {
      {"control_bits", "a scoreboard that waits for registers instead", {"dependence=interlocked"}},
      {"instruction_fetch",
       "instruction caches without a time to miss",
       {"sm.instruction_caches.l0.miss_latency_cycles=0", "sm.instruction_caches.l1.miss_latency_cycles=0"}},
      {"reuse_cache", "operands always from the register file", {"sm.sub_core.reuse_cache=false"}},
      {"register_ports", "four ports a bank", {"sm.sub_core.read_ports_per_bank=4"}},
      {"scheduler", "the oldest warp instead of the youngest", {"sm.sub_core.scheduler=greedy_then_oldest"}},
      {"far_l2",
       "lines of the other partition as near as one's own",
       {"interconnect.partition_latency_cycles=0", "l2.replicate_far=false"}},
      {"gpc_port", "no limit between a GPC and L2", {"interconnect.gpc_read_bytes_per_cycle=65536"}},
      {"lsu_rate", "two cycles a request", {"sm.mio.lsu_interval_cycles=2"}},
      {"bank_conflicts",
       "every access of shared memory as if its lanes never met in a bank",
       {"sm.shared_memory.bank_conflicts=false"}},
      {"dram_banks", "rows open and close in no time", {"dram.trcd_ns=0", "dram.trp_ns=0"}},
      {"dram_refresh", "no refresh", {"dram.refresh_duration_ns=0"}},
      {"dram_turnaround", "reads and writes change in no time", {"dram.read_write_turnaround_ns=0"}},
      {"dirty_limit", "nothing is written back before L2 is full", {"l2.dirty_limit_fraction=1"}},
      {"tlb", "translations without a time to miss", {"tlb.l2.miss_latency_cycles=0"}},
      {"tma_limits",
       "bulk copies cut without delay",
       {"sm.tma.box_interval_cycles=0.25", "sm.tma.request_interval_cycles=0.25"}},
      {"cta_dispatch", "CTAs go out all at once", {"launch.cta_dispatch_interval_cycles=0"}},
      {"launch_overhead",
       "launches begin and end in no time",
       {"launch.overhead_cycles=0", "launch.drain_cycles=0"}},
      {"clock_table", "the boost clock under any load", {"board.sustained_clock=off"}},
  };
  return mechanisms;
}

namespace {

// Mean change of the first metrics of rows that both have, in percent.
double MeanChange(const Report& base, const Report& without, const std::string& category) {
  std::map<std::string, double> before;
  for (const RowResult& row : base.rows)
    if (row.skipped.empty() && !row.metrics.empty())
      before[row.planned->row->id] = row.metrics.front().pair.simulated;
  double sum = 0;
  size_t count = 0;
  for (const RowResult& row : without.rows) {
    if (!row.skipped.empty() || row.metrics.empty() || row.planned->row->category != category) continue;
    const auto found = before.find(row.planned->row->id);
    if (found == before.end() || found->second <= 0) continue;
    sum += 100 * (row.metrics.front().pair.simulated / found->second - 1);
    ++count;
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

const Group* WholeCategory(const Report& report, const std::string& category) {
  for (const Group& group : report.categories)
    if (group.gpu == "all" && group.category == category) return &group;
  return nullptr;
}

}  // namespace

Result<std::vector<Ablated>> Ablate(const std::vector<Row>& rows, const Recipes& recipes,
                                    const PlanOptions& plan, const SimulateOptions& simulate,
                                    const Report& base) {
  std::vector<Ablated> all;
  for (const Mechanism& mechanism : Mechanisms()) {
    PlanOptions changed = plan;
    changed.overrides.insert(changed.overrides.end(), mechanism.overrides.begin(), mechanism.overrides.end());
    const Result<Plan> planned = MakePlan(rows, recipes, changed);
    if (!planned.ok() && planned.error().code != ExitCode::kConfiguration) return planned.error();
    std::optional<Report> without;
    if (planned.ok()) {
      HEDDLE_ASSIGN_OR_RETURN(const std::vector<Measured> measured, RunSimulations(*planned, simulate));
      without = MakeReport(*planned, measured, recipes);
    }
    for (const Group& group : base.categories) {
      if (group.gpu != "all" || group.summary.count == 0) continue;
      Ablated& ablated = all.emplace_back();
      ablated.mechanism = mechanism.name;
      ablated.category = group.category;
      ablated.base = group.summary;
      if (!without) {
        ablated.refused = planned.error().message;
        continue;
      }
      if (const Group* same = WholeCategory(*without, group.category)) ablated.without = same->summary;
      ablated.mean_change_percent = MeanChange(base, *without, group.category);
    }
  }
  return all;
}

std::string AblationText(const std::vector<Ablated>& ablated) {
  std::string text = fmt::format("\n{:<20} {:<20} {:>8} {:>8} {:>8} {:>10} {:>9}\n", "without", "category",
                                 "median %", "p90 %", "mean %", "all mean %", "change %");
  for (const Ablated& one : ablated) {
    if (!one.refused.empty()) {
      text += fmt::format("{:<20} {:<20} these machines do not have it\n", one.mechanism, one.category);
      continue;
    }
    text += fmt::format("{:<20} {:<20} {:>8.1f} {:>8} {:>8.1f} {:>10.1f} {:>+9.1f}\n", one.mechanism,
                        one.category, one.without.median_abs_error_percent,
                        StatisticText(one.without.p90_abs_error_percent, 1), one.without.mape_percent,
                        one.base.mape_percent, one.mean_change_percent);
  }
  return text;
}

std::string AblationJson(const std::vector<Ablated>& ablated) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Ablated& one : ablated) {
    nlohmann::ordered_json entry = {{"mechanism", one.mechanism}, {"category", one.category}};
    if (!one.refused.empty()) {
      entry["refused"] = one.refused;
    } else {
      entry["rows"] = one.without.count;
      entry["median_abs_error_percent"] = one.without.median_abs_error_percent;
      entry["p90_abs_error_percent"] =
          StatisticJson<nlohmann::ordered_json>(one.without.p90_abs_error_percent);
      entry["mape_percent"] = one.without.mape_percent;
      entry["base_mape_percent"] = one.base.mape_percent;
      entry["mean_change_percent"] = one.mean_change_percent;
    }
    list.push_back(std::move(entry));
  }
  return nlohmann::ordered_json({{"schema_version", 1}, {"ablation", std::move(list)}}).dump(1);
}

}  // namespace heddle::validate
