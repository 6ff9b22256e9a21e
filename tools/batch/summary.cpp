#include "tools/batch/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <unordered_map>

#include "sim/base/suggest.h"

namespace heddle::batch {
namespace {

struct Times {
  uint64_t cycles = 0;
  uint64_t picoseconds = 0;
};

// All launches of a database by key.
Result<std::unordered_map<std::string, Times>> ReadLaunches(const std::string& path) {
  std::unordered_map<std::string, Times> launches;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return launches;
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Database database, results::OpenForReading(path));
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement select,
                          database.Prepare("SELECT key, end_cycle - start_cycle, duration_ps FROM launch"));
  while (true) {
    HEDDLE_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) break;
    launches[select.Text(0)] = {static_cast<uint64_t>(select.Integer(1)),
                                static_cast<uint64_t>(select.Integer(2))};
  }
  return launches;
}

constexpr std::array<std::pair<const char*, Objective>, 4> kObjectives = {{{"time", Objective::kTime},
                                                                           {"area", Objective::kArea},
                                                                           {"power", Objective::kPower},
                                                                           {"energy", Objective::kEnergy}}};

}  // namespace

Result<std::vector<Objective>> ParseObjectives(const std::string& text) {
  std::vector<std::string> names;
  for (const auto& [name, objective] : kObjectives) names.emplace_back(name);
  std::vector<Objective> objectives;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const auto found = std::find(names.begin(), names.end(), word);
    if (found == names.end()) {
      return Error{
          ExitCode::kUsage, "--pareto " + text,
          fmt::format("'{}' is not one of {}{}", word, fmt::join(names, ", "), DidYouMean(word, names)), ""};
    }
    const Objective objective = kObjectives[static_cast<size_t>(found - names.begin())].second;
    if (std::find(objectives.begin(), objectives.end(), objective) == objectives.end())
      objectives.push_back(objective);
  }
  if (objectives.size() < 2) {
    return Error{ExitCode::kUsage, "--pareto " + text, "takes two different objectives or more",
                 "as in --pareto time,area"};
  }
  return objectives;
}

double Value(Objective objective, const Design& design, const DesignResult& result) {
  switch (objective) {
    case Objective::kArea:
      return design.area.total();
    case Objective::kPower:
      return design.power_w;
    case Objective::kEnergy:
      return design.power_w * result.time_us();
    case Objective::kTime:
      break;
  }
  return result.time_us();
}

Result<std::vector<DesignResult>> Collect(const std::string& database, const Plan& plan) {
  HEDDLE_ASSIGN_OR_RETURN(const auto launches, ReadLaunches(database));
  std::vector<DesignResult> results(plan.designs.size());
  for (DesignResult& result : results) result.by_trace_ps.resize(plan.traces.size());
  for (const Job& job : plan.jobs) {
    DesignResult& result = results[job.design];
    for (const std::string& key : job.launch_keys) {
      const auto found = launches.find(key);
      if (found == launches.end()) {
        ++result.missing;
        continue;
      }
      result.cycles += found->second.cycles;
      result.picoseconds += found->second.picoseconds;
      result.by_trace_ps[job.trace] += found->second.picoseconds;
    }
  }
  return results;
}

Result<std::vector<bool>> JobsDone(const std::string& database, const Plan& plan) {
  HEDDLE_ASSIGN_OR_RETURN(const auto launches, ReadLaunches(database));
  std::vector<bool> done;
  for (const Job& job : plan.jobs) {
    done.push_back(std::all_of(job.launch_keys.begin(), job.launch_keys.end(),
                               [&](const std::string& key) { return launches.contains(key); }));
  }
  return done;
}

void MarkPareto(const std::vector<Objective>& objectives, const Plan& plan,
                std::vector<DesignResult>* results) {
  std::vector<std::vector<double>> values(results->size());
  for (size_t i = 0; i < results->size(); ++i)
    for (const Objective objective : objectives)
      values[i].push_back(Value(objective, plan.designs[i], (*results)[i]));
  const auto dominates = [&](size_t a, size_t b) {
    bool better = false;
    for (size_t k = 0; k < objectives.size(); ++k) {
      if (values[a][k] > values[b][k]) return false;
      better = better || values[a][k] < values[b][k];
    }
    return better;
  };
  for (size_t i = 0; i < results->size(); ++i) {
    (*results)[i].pareto = (*results)[i].missing == 0;
    for (size_t other = 0; other < results->size() && (*results)[i].pareto; ++other)
      if ((*results)[other].missing == 0 && dominates(other, i)) (*results)[i].pareto = false;
  }
}

std::vector<Sensitivity> Sensitivities(const Plan& plan, const std::vector<DesignResult>& results) {
  struct Mean {
    double logs = 0;
    size_t count = 0;
    double Get() const { return count == 0 ? 0 : logs / static_cast<double>(count); }
  };
  Mean all, base;
  std::vector<std::pair<std::pair<std::string, std::string>, Mean>> values;  // in order of appearance
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].missing != 0 || results[i].picoseconds == 0) continue;
    const double log_time = std::log(static_cast<double>(results[i].picoseconds));
    const auto add = [&](Mean* mean) {
      mean->logs += log_time;
      ++mean->count;
    };
    add(&all);
    if (plan.designs[i].values.empty()) add(&base);
    for (const auto& value : plan.designs[i].values) {
      auto found =
          std::find_if(values.begin(), values.end(), [&](const auto& entry) { return entry.first == value; });
      if (found == values.end()) found = values.insert(values.end(), {value, Mean{}});
      add(&found->second);
    }
  }
  const double reference = base.count != 0 ? base.Get() : all.Get();
  std::vector<Sensitivity> out;
  for (const std::string& path : plan.paths)
    for (const auto& [value, mean] : values)
      if (value.first == path) out.push_back({path, value.second, std::exp(mean.Get() - reference)});
  return out;
}

}  // namespace heddle::batch
