#include "tools/validate/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace heddle::validate {
namespace {

// A value or the reason why there is none.
struct Value {
  double value = 0;
  std::string reason;
};

class RowEvaluator {
 public:
  RowEvaluator(const PlannedRow& planned, const std::vector<Measured>& measured, const Recipes& recipes)
      : planned_(planned), recipe_(*planned.recipe), measured_(measured), recipes_(recipes) {}

  RowResult Evaluate() {
    RowResult best;
    best.planned = &planned_;
    for (const Candidate& candidate : planned_.candidates) {
      RowResult result = EvaluateCandidate(candidate);
      const bool better = best.metrics.empty() || IsFaster(candidate);
      if (!result.skipped.empty()) {
        if (best.metrics.empty()) best.skipped = result.skipped;
      } else if (better) {
        best_microseconds_ = measured_[candidate.placements[0]].microseconds;
        best = std::move(result);
      }
    }
    return best;
  }

 private:
  bool IsFaster(const Candidate& candidate) const {
    return measured_[candidate.placements[0]].microseconds < best_microseconds_;
  }

  RowResult EvaluateCandidate(const Candidate& candidate) {
    RowResult result;
    result.planned = &planned_;
    result.trace_file = candidate.trace_file;
    for (const size_t index : candidate.placements) {
      if (!measured_[index].error.empty()) result.skipped = "not simulated: " + measured_[index].error;
    }
    if (result.skipped.empty()) result.skipped = CheckWork(measured_[candidate.placements[0]]);
    for (size_t i = 0; i < recipe_.metrics.size() && result.skipped.empty(); ++i)
      AddMetric(candidate, i, &result);
    if (result.skipped.empty() && result.metrics.empty())
      result.skipped = "the row lacks what its recipe compares";
    result.launch_key = measured_[candidate.placements[0]].launch_key;
    return result;
  }

  // What was executed against the operation's formula: a wrong parameter must not pass as a fast kernel.
  std::string CheckWork(const Measured& measured) const {
    if (!recipe_.work) return "";
    const std::string place = recipe_.name + ": work";
    const Result<int64_t> least = validate::Evaluate(recipe_.work->least, planned_.symbols, place);
    const Result<int64_t> most = validate::Evaluate(recipe_.work->most, planned_.symbols, place);
    if (!least.ok()) return least.error().ToString();
    if (!most.ok()) return most.error().ToString();
    const auto found = measured.counters.find(recipe_.work->counter);
    const auto work = found == measured.counters.end() ? 0 : static_cast<int64_t>(found->second);
    if (work >= *least && work <= *most) return "";
    return fmt::format("wrong work: {} is {}, not from {} to {}", recipe_.work->counter, work, *least, *most);
  }

  void AddMetric(const Candidate& candidate, size_t index, RowResult* result) {
    const Metric& metric = recipe_.metrics[index];
    if (!metric.where.empty()) {
      const Result<int64_t> holds = validate::Evaluate(metric.where, planned_.symbols, recipe_.name);
      if (!holds.ok() || *holds == 0) return;
    }
    MetricResult measured;
    measured.name = metric.name;
    measured.unit = UnitOf(metric);
    measured.pair.measured = planned_.row->value;
    if (!metric.measured.empty()) {
      const auto number = planned_.row->numbers.find(metric.measured);
      if (number == planned_.row->numbers.end() || number->second <= 0) return;
      measured.pair.measured = number->second;
    }
    for (size_t placement = 0; placement < candidate.placements.size(); ++placement) {
      const Value value = ValueOf(metric, index, candidate, measured_[candidate.placements[placement]]);
      if (!value.reason.empty()) result->skipped = value.reason;
      if (!value.reason.empty()) return;
      if (placement == 0) measured.pair.simulated = measured.least = measured.most = value.value;
      measured.least = std::min(measured.least, value.value);
      measured.most = std::max(measured.most, value.value);
    }
    result->metrics.push_back(std::move(measured));
  }

  static std::string UnitOf(const Metric& metric) {
    switch (metric.kind) {
      case MetricKind::kMicroseconds:
        return "us";
      case MetricKind::kCycles:
        return "cycle";
      case MetricKind::kBandwidth:
        return "GB/s";
      case MetricKind::kCounters:
        break;
    }
    for (const stats::CounterDef& def : stats::CounterDefs()) {
      if (def.name == metric.counters[0]) return std::string(def.unit);
    }
    return "inst";
  }

  double OverheadMicroseconds() const {
    const auto harness = recipes_.harnesses.find(recipe_.harness);
    if (harness == recipes_.harnesses.end()) return 0;
    return ForGpu(harness->second.overhead_us, planned_.row->gpu, 0.0);
  }

  // With "minus", of what the launches do beyond those with its defines: what the harness adds cancels.
  Value Bandwidth(const Metric& metric, size_t index, const Candidate& candidate,
                  const Measured& measured) const {
    const std::string place = recipe_.name + ": bytes";
    const Result<int64_t> bytes = validate::Evaluate(metric.bytes, planned_.symbols, place);
    if (!bytes.ok()) return {0, bytes.error().ToString()};
    const auto other = candidate.minus.find(index);
    if (other == candidate.minus.end()) {
      const double microseconds = measured.microseconds + OverheadMicroseconds();
      return {static_cast<double>(*bytes) / microseconds / 1e3, ""};
    }
    const Measured& less = measured_[other->second];
    if (!less.error.empty()) return {0, "not simulated: " + less.error};
    trace::Symbols symbols = planned_.symbols;
    for (const auto& [name, text] : metric.minus) {
      const Result<int64_t> value = validate::Evaluate(text, symbols, recipe_.name + ": minus");
      if (!value.ok()) return {0, value.error().ToString()};
      symbols[name] = *value;
    }
    const Result<int64_t> less_bytes = validate::Evaluate(metric.bytes, symbols, place);
    if (!less_bytes.ok()) return {0, less_bytes.error().ToString()};
    const double microseconds = measured.microseconds - less.microseconds;
    if (microseconds <= 0) return {0, "the launches take no longer than those of 'minus'"};
    return {static_cast<double>(*bytes - *less_bytes) / microseconds / 1e3, ""};
  }

  Value ValueOf(const Metric& metric, size_t index, const Candidate& candidate,
                const Measured& measured) const {
    const double microseconds = measured.microseconds + OverheadMicroseconds();
    switch (metric.kind) {
      case MetricKind::kMicroseconds:
        return {microseconds, ""};
      case MetricKind::kBandwidth:
        return Bandwidth(metric, index, candidate, measured);
      case MetricKind::kCounters: {
        double sum = 0;
        for (const std::string& name : metric.counters) {
          const auto counter = measured.counters.find(name);
          if (counter != measured.counters.end())
            sum += static_cast<double>(counter->second);
          else if (!name.starts_with("inst_"))
            return {0, fmt::format("there is no counter '{}'", name)};
        }
        return {sum, ""};
      }
      case MetricKind::kCycles: {
        double cycles = static_cast<double>(measured.cycles);
        if (const auto other = candidate.minus.find(index); other != candidate.minus.end()) {
          if (!measured_[other->second].error.empty())
            return {0, "not simulated: " + measured_[other->second].error};
          cycles -= static_cast<double>(measured_[other->second].cycles);
        }
        if (metric.per.empty()) return {cycles, ""};
        const Result<int64_t> per = validate::Evaluate(metric.per, planned_.symbols, recipe_.name + ": per");
        if (!per.ok()) return {0, per.error().ToString()};
        return *per > 0 ? Value{cycles / static_cast<double>(*per), ""} : Value{0, "'per' is not above 0"};
      }
    }
    return {};
  }

  const PlannedRow& planned_;
  const Recipe& recipe_;
  const std::vector<Measured>& measured_;
  const Recipes& recipes_;
  double best_microseconds_ = 0;
};

// Pairs of a group before they are summed up.
struct Collected {
  std::vector<Pair> pairs;
  size_t skipped = 0;
  std::map<KernelKind, size_t> kernels;
};
using GroupName = std::tuple<std::string, std::string, std::string>;  // category, metric, gpu ("" for all)

std::vector<Group> Summed(const std::map<GroupName, Collected>& collected) {
  std::vector<Group> groups;
  for (const auto& [name, collection] : collected) {
    const auto& [category, metric, gpu] = name;
    groups.push_back({category, gpu.empty() ? "all" : gpu, metric, collection.skipped, collection.kernels,
                      Summarise(collection.pairs)});
  }
  return groups;
}

std::map<std::string, std::vector<SkipCount>> CountSkipped(const std::vector<RowResult>& rows) {
  std::map<std::string, std::map<std::string, size_t>> counts;
  for (const RowResult& row : rows) {
    if (!row.skipped.empty()) ++counts[row.planned->row->category][row.skipped];
  }
  std::map<std::string, std::vector<SkipCount>> skipped;
  for (const auto& [category, reasons] : counts) {
    for (const auto& [reason, number] : reasons) skipped[category].push_back({reason, number});
    std::stable_sort(skipped[category].begin(), skipped[category].end(),
                     [](const SkipCount& a, const SkipCount& b) { return a.rows > b.rows; });
  }
  return skipped;
}

}  // namespace

Report MakeReport(const Plan& plan, const std::vector<Measured>& measured, const Recipes& recipes) {
  Report report;
  std::map<GroupName, Collected> categories, metrics, others;
  for (const PlannedRow& planned : plan.rows) {
    RowResult result;
    result.planned = &planned;
    result.skipped = planned.skipped;
    if (planned.skipped.empty()) result = RowEvaluator(planned, measured, recipes).Evaluate();
    const Row& row = *planned.row;
    for (const std::string& gpu : {row.gpu, std::string()}) {
      Collected& main = categories[{row.category, "", gpu}];
      const bool other = result.skipped.empty() && planned.recipe->kernel == KernelKind::kOther;
      if (!result.skipped.empty()) ++main.skipped;
      for (size_t i = 0; i < result.metrics.size() && result.skipped.empty(); ++i) {
        const std::string& name = result.metrics[i].name;
        if (other && i != 0) continue;
        Collected& into = other    ? others[{row.category, "", gpu}]
                          : i == 0 ? main
                                   : metrics[{row.category, name, gpu}];
        into.pairs.push_back(result.metrics[i].pair);
        ++into.kernels[planned.recipe->kernel];
      }
    }
    report.rows.push_back(std::move(result));
  }
  report.categories = Summed(categories);
  report.metrics = Summed(metrics);
  report.other_kernels = Summed(others);
  report.skipped = CountSkipped(report.rows);
  return report;
}

}  // namespace heddle::validate
