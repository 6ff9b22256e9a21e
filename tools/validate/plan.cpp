#include "tools/validate/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <regex>

#include "frontend/trace/expression.h"
#include "frontend/trace/htrace.h"
#include "sim/config/load.h"
#include "tools/replay/replay.h"

namespace heddle::validate {
namespace {

constexpr double kMostRounded = 9e15;  // what a double holds exactly

// Makes the plan row by row; traces and machines are read once.
class Planner {
 public:
  Planner(const Recipes& recipes, const PlanOptions& options, Plan* plan)
      : recipes_(recipes), options_(options), plan_(plan) {
    for (const config::ArchFile& arch : config::ListArchs()) archs_.push_back(arch.name);
  }

  Status Add(const Row& row) {
    PlannedRow planned;
    planned.row = &row;
    if (const auto place = refused_.find(&row); place != refused_.end()) {
      planned.skipped = place->second;
    } else {
      HEDDLE_RETURN_IF_ERROR(PlanRow(row, &planned));
    }
    if (!planned.skipped.empty()) planned.candidates.clear();
    plan_->rows.push_back(std::move(planned));
    return Ok();
  }

  void Refuse(const Row& row, std::string reason) { refused_.emplace(&row, std::move(reason)); }

 private:
  Status PlanRow(const Row& row, PlannedRow* planned) {
    const auto machine = recipes_.machines.find(row.gpu);
    if (machine == recipes_.machines.end() ||
        std::find(archs_.begin(), archs_.end(), machine->second) == archs_.end()) {
      planned->skipped = fmt::format("no machine description of {}", row.gpu);
      return Ok();
    }
    planned->symbols = RowSymbols(row);
    const std::shared_ptr<const replay::MachineRecord> plain = CachedMachine(machine->second, {});
    if (plain == nullptr) return machine_error_;
    AddMachineSymbols(plain->gpu, &planned->symbols);
    planned->recipe = FindRecipe(row, plain->gpu.sm_version, planned->symbols);
    if (planned->recipe == nullptr) {
      planned->skipped = "no recipe";
      return Ok();
    }
    const Recipe& recipe = *planned->recipe;
    planned->machine = plain;
    if (const auto clock = planned->symbols.find(recipe.clock_mhz); clock != planned->symbols.end()) {
      planned->machine = CachedMachine(machine->second, {fmt::format("clocks.sm_mhz={}", clock->second)});
      if (planned->machine == nullptr) return machine_error_;
    }
    if (!Define(recipe.defines, recipe.name, &planned->symbols, &planned->skipped)) return Ok();
    return AddCandidates(planned);
  }

  static void AddMachineSymbols(const config::Gpu& gpu, trace::Symbols* symbols) {
    for (const auto& [name, value] : replay::DeviceSymbols(gpu)) symbols->emplace(name, value);
    symbols->emplace("sm_version", gpu.sm_version);
  }

  const Recipe* FindRecipe(const Row& row, uint32_t sm, const trace::Symbols& symbols) const {
    for (const Recipe& recipe : recipes_.list) {
      const std::vector<uint32_t>& versions = recipe.match.sm;
      const bool fits = versions.empty() || std::find(versions.begin(), versions.end(), sm) != versions.end();
      if (fits && Matches(recipe.match, row, symbols)) return &recipe;
    }
    return nullptr;
  }

  // Adds names to symbols; false with a reason where one cannot be evaluated.
  static bool Define(const std::map<std::string, std::string>& defines, const std::string& place,
                     trace::Symbols* symbols, std::string* reason) {
    for (const auto& [name, text] : defines) {
      const Result<int64_t> value = Evaluate(text, *symbols, place + ": " + name);
      if (!value.ok()) {
        *reason = value.error().ToString();
        return false;
      }
      (*symbols)[name] = *value;
    }
    return true;
  }

  Status AddCandidates(PlannedRow* planned) {
    const Recipe& recipe = *planned->recipe;
    std::string missing;
    for (const TraceChoice& choice : recipe.traces) {
      const auto& versions = choice.sm;
      const uint32_t sm = planned->machine->gpu.sm_version;
      if (!versions.empty() && std::find(versions.begin(), versions.end(), sm) == versions.end()) continue;
      trace::Symbols symbols = planned->symbols;
      if (!Define(choice.defines, recipe.name, &symbols, &planned->skipped)) return Ok();
      if (!choice.where.empty()) {
        const Result<int64_t> holds = Evaluate(choice.where, symbols, recipe.name + ": where");
        if (!holds.ok()) planned->skipped = holds.error().ToString();
        if (!holds.ok()) return Ok();
        if (*holds == 0) continue;
      }
      const TraceFile* file = ReadTraceFile(choice.file);
      if (file == nullptr) return trace_error_;
      if (file->trace == nullptr) {
        missing =
            fmt::format("{} is missing{}{}", choice.file, choice.build.empty() ? "" : ": ", choice.build);
        continue;
      }
      HEDDLE_RETURN_IF_ERROR(AddCandidate(choice, *file, symbols, planned));
      if (!planned->skipped.empty()) return Ok();
    }
    if (planned->candidates.empty())
      planned->skipped = missing.empty() ? fmt::format("{} has no trace for it", recipe.name) : missing;
    return Ok();
  }

  struct TraceFile {
    std::shared_ptr<const trace::Trace> trace;  // null: there is no such file
    std::string digest;
    std::string path;
  };

  // The numbers of `choice`'s launches for these symbols. False, and the reason in `skipped`, where one cannot be told.
  static bool ChooseLaunches(const TraceChoice& choice, const TraceFile& file, const trace::Symbols& symbols,
                             std::vector<uint32_t>* launches, std::string* skipped) {
    for (const std::string& text : choice.launches) {
      const Result<int64_t> number = Evaluate(text, symbols, choice.file + ": launches");
      if (!number.ok()) {
        *skipped = number.error().ToString();
        return false;
      }
      const auto count = static_cast<int64_t>(file.trace->launches.size());
      if (*number >= count) {
        *skipped = fmt::format("{}: launches: '{}' is {}, the trace has {}", choice.file, text, *number, count);
        return false;
      }
      if (*number >= 0) launches->push_back(static_cast<uint32_t>(*number));
    }
    // An empty list would stand for all of them.
    if (!choice.launches.empty() && launches->empty())
      *skipped = fmt::format("{}: launches: each is left out", choice.file);
    return skipped->empty();
  }

  Status AddCandidate(const TraceChoice& choice, const TraceFile& file, const trace::Symbols& symbols,
                      PlannedRow* planned) {
    const Recipe& recipe = *planned->recipe;
    Simulation simulation;
    simulation.trace_path = file.path;
    simulation.trace = file.trace;
    simulation.trace_digest = file.digest;
    if (!ChooseLaunches(choice, file, symbols, &simulation.launches, &planned->skipped)) return Ok();
    simulation.machine = planned->machine;
    simulation.replays = recipe.replays;
    simulation.sampled = options_.sampled;
    if (const auto harness = recipes_.harnesses.find(recipe.harness); harness != recipes_.harnesses.end())
      simulation.in_graph = ForGpu(harness->second.in_graph, planned->row->gpu, false);
    for (const std::map<std::string, std::string>& defines : {recipe.defines, choice.defines}) {
      for (const auto& [name, text] : defines) {
        const bool known = std::any_of(file.trace->defines.begin(), file.trace->defines.end(),
                                       [&name = name](const auto& define) { return define.first == name; });
        if (known) simulation.defines[name] = symbols.at(name);
      }
    }
    simulation.cache = recipe.cache;

    Candidate candidate;
    candidate.trace_file = choice.file;
    for (uint32_t placement = 0; placement < std::max(1u, options_.placements); ++placement) {
      simulation.placement = placement;
      candidate.placements.push_back(IndexOf(simulation));
    }
    simulation.placement = 0;
    for (size_t i = 0; i < recipe.metrics.size(); ++i) {
      if (recipe.metrics[i].minus.empty()) continue;
      Simulation other = simulation;
      trace::Symbols values = symbols;
      if (!Define(recipe.metrics[i].minus, recipe.name, &values, &planned->skipped)) return Ok();
      for (const auto& [name, text] : recipe.metrics[i].minus) other.defines[name] = values.at(name);
      candidate.minus[i] = IndexOf(other);
    }
    planned->candidates.push_back(std::move(candidate));
    return Ok();
  }

  size_t IndexOf(const Simulation& simulation) {
    const auto [place, is_new] = indices_.try_emplace(simulation.Key(), plan_->simulations.size());
    if (is_new) plan_->simulations.push_back(simulation);
    return place->second;
  }

  // Null with machine_error_ set where the description is wrong.
  std::shared_ptr<const replay::MachineRecord> CachedMachine(const std::string& name,
                                                             const std::vector<std::string>& more) {
    const std::string key = fmt::format("{} {}", name, fmt::join(more, " "));
    const auto [place, is_new] = machines_.try_emplace(key);
    if (!is_new) return place->second;
    std::vector<std::string> overrides = more;
    overrides.insert(overrides.end(), options_.overrides.begin(), options_.overrides.end());
    Result<config::Gpu> gpu = config::LoadGpu(name, overrides);
    if (!gpu.ok()) {
      machine_error_ = gpu.error();
    } else {
      place->second = std::make_shared<const replay::MachineRecord>(replay::RecordMachine(std::move(*gpu)));
    }
    return place->second;
  }

  // Null with trace_error_ set where it cannot be read.
  const TraceFile* ReadTraceFile(const std::string& name) {
    const auto [place, is_new] = traces_.try_emplace(name);
    TraceFile& file = place->second;
    if (!is_new) return &file;
    file.path = (std::filesystem::path(recipes_.root) / name).string();
    if (!std::filesystem::exists(file.path)) return &file;
    Result<trace::Trace> trace = trace::ReadTrace(file.path, &file.digest);
    if (!trace.ok()) {
      trace_error_ = trace.error();
      traces_.erase(place);
      return nullptr;
    }
    file.trace = std::make_shared<const trace::Trace>(std::move(*trace));
    return &file;
  }

  const Recipes& recipes_;
  const PlanOptions& options_;
  Plan* plan_;
  std::vector<std::string> archs_;
  std::map<const Row*, std::string> refused_;
  std::map<std::string, std::shared_ptr<const replay::MachineRecord>> machines_;
  std::map<std::string, TraceFile> traces_;
  std::map<std::string, size_t> indices_;
  Error machine_error_;
  Error trace_error_;
};

Result<std::regex> Compile(const std::string& option, const std::string& text) {
  try {
    return std::regex(text.empty() ? ".*" : text);
  } catch (const std::regex_error& error) {
    return Error{ExitCode::kUsage, option,
                 fmt::format("'{}' is no regular expression: {}", text, error.what()), ""};
  }
}

Result<std::vector<const Row*>> Select(const std::vector<Row>& rows, const Recipes& recipes,
                                       const PlanOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const std::regex category, Compile("--category", options.category));
  HEDDLE_ASSIGN_OR_RETURN(const std::regex gpu, Compile("--gpu", options.gpu));
  std::vector<const Row*> selected;
  for (const Row& row : rows) {
    const auto machine = recipes.machines.find(row.gpu);
    const bool of_arch =
        options.arch.empty() || (machine != recipes.machines.end() && machine->second == options.arch);
    if (of_arch && std::regex_match(row.category, category) && std::regex_match(row.gpu, gpu))
      selected.push_back(&row);
  }
  if (selected.empty())
    return Error{ExitCode::kUsage, "heddle validate", "no row is of this category, GPU and machine",
                 "look at the columns category and gpu of the suite"};
  return selected;
}

// Why the options leave the row out; empty: they do not.
std::string LeftOut(const Row& row, const PlanOptions& options) {
  if (row.value < options.least_us) return fmt::format("below --min-us {}", options.least_us);
  if (options.most_us > 0 && row.value > options.most_us)
    return fmt::format("above --max-us {}", options.most_us);
  if (options.where.empty()) return "";
  const Result<int64_t> holds = Evaluate(options.where, RowSymbols(row), "--where");
  return holds.ok() && *holds != 0 ? "" : "left out by --where";
}

// Of each category and GPU, `count` rows spread over the measured values, smallest and largest among them.
void Sample(const std::map<std::pair<std::string, std::string>, std::vector<const Row*>>& groups,
            uint32_t count, Planner* planner) {
  for (auto [name, group] : groups) {
    if (group.size() <= count) continue;
    std::stable_sort(group.begin(), group.end(),
                     [](const Row* a, const Row* b) { return a->value < b->value; });
    std::vector<bool> kept(group.size(), false);
    for (uint32_t i = 0; i < count; ++i)
      kept[count == 1 ? group.size() / 2 : i * (group.size() - 1) / (count - 1)] = true;
    for (size_t i = 0; i < group.size(); ++i) {
      if (!kept[i]) planner->Refuse(*group[i], "not sampled");
    }
  }
}

}  // namespace

std::string Simulation::Key() const {
  std::string text =
      fmt::format("{} {} {} {} {} {} {} {} ", trace_digest, machine->record.digest, static_cast<int>(cache),
                  replays, in_graph, sampled, placement, fmt::join(launches, ","));
  for (const auto& [name, value] : defines) text += fmt::format("{}={};", name, value);
  return text;
}

trace::Symbols RowSymbols(const Row& row) {
  trace::Symbols symbols;
  for (const auto& [name, value] : row.numbers) {
    if (std::fabs(value) < kMostRounded) symbols[name] = std::llround(value);
    if (std::fabs(value) < kMostRounded / 1000) symbols[name + "_milli"] = std::llround(value * 1000);
  }
  return symbols;
}

Result<int64_t> Evaluate(const std::string& expression, const trace::Symbols& symbols,
                         const std::string& place) {
  trace::Scope scope;
  scope.symbols.insert(symbols.begin(), symbols.end());
  return trace::EvaluateInteger(expression, scope, place);
}

bool Matches(const Match& match, const Row& row, const trace::Symbols& symbols) {
  const std::map<std::string, const std::string*, std::less<>> fields = {
      {"category", &row.category}, {"gpu", &row.gpu},       {"op", &row.op},
      {"dtype", &row.dtype},       {"kernel", &row.kernel}, {"source", &row.source}};
  for (const auto& [name, pattern] : match.fields) {
    const std::string& field = *fields.find(name)->second;
    if (!(name == "kernel" ? std::regex_search(field, pattern.regex)
                           : std::regex_match(field, pattern.regex)))
      return false;
  }
  for (const auto& [name, pattern] : match.texts) {
    const auto text = row.texts.find(name);
    if (text == row.texts.end() || !std::regex_match(text->second, pattern.regex)) return false;
  }
  if (match.where.empty()) return true;
  const Result<int64_t> holds = Evaluate(match.where, symbols, "where");
  return holds.ok() && *holds != 0;
}

Result<Plan> MakePlan(const std::vector<Row>& rows, const Recipes& recipes, const PlanOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<const Row*> selected, Select(rows, recipes, options));
  Plan plan;
  Planner planner(recipes, options, &plan);
  std::map<std::pair<std::string, std::string>, std::vector<const Row*>> groups;
  for (const Row* row : selected) {
    std::string reason = LeftOut(*row, options);
    if (reason.empty())
      groups[{row->category, row->gpu}].push_back(row);
    else
      planner.Refuse(*row, std::move(reason));
  }
  if (options.sample != 0) Sample(groups, options.sample, &planner);
  for (const Row* row : selected) HEDDLE_RETURN_IF_ERROR(planner.Add(*row));
  return plan;
}

}  // namespace heddle::validate
