#include "frontend/capture/counter_sets.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::capture {
namespace {

struct CounterOfSet {
  std::string_view set;
  std::string_view metric;
};
constexpr CounterOfSet kCounters[] = {
#define HEDDLE_COUNTER(set, metric) {#set, metric},
#include "frontend/capture/counter_sets.def"
#undef HEDDLE_COUNTER
};

std::string SetNames() {
  std::vector<std::string_view> names;
  for (const CounterOfSet& each : kCounters)
    if (names.empty() || names.back() != each.set) names.push_back(each.set);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Result<std::vector<std::string>> CountersOf(const std::string& words) {
  std::vector<std::string> metrics;
  const auto add = [&](std::string_view metric) {
    if (std::find(metrics.begin(), metrics.end(), metric) == metrics.end()) metrics.emplace_back(metric);
  };
  for (size_t at = 0; at <= words.size();) {
    const size_t comma = std::min(words.find(',', at), words.size());
    const std::string word = words.substr(at, comma - at);
    at = comma + 1;
    bool known = false;
    for (const CounterOfSet& each : kCounters) {
      if (word != "all" && word != each.set) continue;
      known = true;
      add(each.metric);
    }
    if (!known && word.find("__") != std::string::npos && word.size() < 256) {
      known = true;
      add(word);
    }
    if (!known)
      return Error{ExitCode::kUsage, "--counters " + words, fmt::format("'{}' is no set of counters", word),
                   fmt::format("choose from {}, all, or give CUPTI's names of metrics", SetNames())};
  }
  return metrics;
}

std::vector<std::string> SassMetrics() {
  return {"smsp__sass_inst_executed", "smsp__sass_thread_inst_executed_pred_on",
          "smsp__sass_sectors_mem_global"};
}

}  // namespace heddle::capture
