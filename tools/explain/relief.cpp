#include "tools/explain/relief.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>

#include "sim/config/describe.h"
#include "sim/config/load.h"

namespace heddle::explain {
namespace {

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end != 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// "sm.tensor[*].latency_cycles" matches "sm.tensor[HMMA.16.8.16.f16.f32].latency_cycles".
bool Matches(std::string_view pattern, std::string_view path) {
  const size_t star = pattern.find("[*]");
  if (star == std::string_view::npos) return pattern == path;
  const std::string_view head = pattern.substr(0, star + 1), tail = pattern.substr(star + 2);
  return path.size() > head.size() + tail.size() && path.starts_with(head) && path.ends_with(tail);
}

// The value times a factor, whole where it was whole, and never turned into 0.
std::string Scaled(const std::string& text, double factor) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return text;
  const bool whole = text.find_first_of(".eE") == std::string::npos;
  const double scaled = value * factor;
  if (!whole) return fmt::format("{}", scaled);
  return fmt::format("{:.0f}", value > 0 ? std::max(1.0, std::round(scaled)) : 0.0);
}

bool IsDefine(std::string_view word, trace::Symbols* defines) {
  const size_t equals = word.find('=');
  int64_t value = 0;
  if (equals == std::string_view::npos || equals == 0) return false;
  const std::string_view number = word.substr(equals + 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || end != number.data() + number.size()) return false;
  (*defines)[std::string(word.substr(0, equals))] = value;
  return true;
}

}  // namespace

bool Relief::Helps(stats::Stall stall) const {
  const std::string_view name = stats::StallDefs()[static_cast<size_t>(stall)].name;
  for (const std::string_view word : Words(stalls))
    if (word == "*" || word == name) return true;
  return false;
}

const std::vector<Relief>& Reliefs() {
  static const std::vector<Relief> reliefs = {
#define HEDDLE_RELIEF(key, text, stalls, changes) {#key, text, stalls, changes},
#include "tools/explain/reliefs.def"
#undef HEDDLE_RELIEF
  };
  return reliefs;
}

std::vector<std::string> OverridesOf(const Relief& relief, const config::Gpu& gpu) {
  const std::vector<config::Value> values = config::Flatten(gpu);
  std::vector<std::string> overrides;
  for (const std::string_view change : Words(relief.changes)) {
    const size_t equals = change.find('=');
    const size_t times = change.rfind('*');
    const std::string_view pattern = change.substr(0, equals != std::string_view::npos ? equals : times);
    for (const config::Value& value : values) {
      if (!Matches(pattern, value.path)) continue;
      if (equals != std::string_view::npos) {
        overrides.push_back(fmt::format("{}{}", value.path, change.substr(equals)));
        continue;
      }
      const std::string factor(change.substr(times + 1));
      const std::string scaled = Scaled(value.text, std::strtod(factor.c_str(), nullptr));
      if (scaled != value.text) overrides.push_back(value.path + "=" + scaled);
    }
  }
  return overrides;
}

std::vector<std::string> SplitCommand(std::string_view command) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false, open = false;
  for (size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (c == '\'') {
      quoted = !quoted;
      open = true;
    } else if (c == '\\' && !quoted && i + 1 < command.size()) {
      word += command[++i];
      open = true;
    } else if (c == ' ' && !quoted) {
      if (open || !word.empty()) words.push_back(std::move(word));
      word.clear();
      open = false;
    } else {
      word += c;
    }
  }
  if (open || !word.empty()) words.push_back(std::move(word));
  return words;
}

std::vector<std::string> Resimulator::WordsOf(int64_t run_id) const {
  for (const analysis::RunInfo& run : reader_->runs())
    if (run.run_id == run_id) return SplitCommand(run.command);
  return {};
}

Result<const replay::NamedTrace*> Resimulator::TraceOf(const analysis::LaunchInfo& launch) {
  if (const auto known = traces_.find(launch.trace_digest); known != traces_.end())
    return known->second.get();
  std::vector<std::string> files = options_.traces;
  const std::string folder = std::filesystem::path(reader_->path()).parent_path().string();
  for (const std::string& word : WordsOf(launch.run_id)) {
    if (std::filesystem::path(word).filename() != launch.trace_name) continue;
    files.push_back(word);
  }
  files.push_back((std::filesystem::path(folder) / launch.trace_name).string());
  std::string tried;
  for (const std::string& file : files) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error)) {
      tried += "\n  " + file + ": not there";
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(replay::NamedTrace trace, replay::ReadNamedTrace(file));
    const std::string digest = trace.digest;
    traces_[digest] = std::make_unique<replay::NamedTrace>(std::move(trace));
    if (digest == launch.trace_digest) return traces_[digest].get();
    tried += "\n  " + file + ": another trace";
  }
  return Error{ExitCode::kTrace, launch.trace_name,
               "the trace of this launch was not found; looked for it as" + tried,
               "name its file with --trace"};
}

Result<replay::TraceRunOptions> Resimulator::OptionsOf(const analysis::LaunchInfo& launch) const {
  replay::TraceRunOptions options;
  const auto unknown = [&](const std::string& word, const char* what) {
    return Error{ExitCode::kTrace, reader_->path(),
                 fmt::format("launch {}: '{}' is no {}", launch.launch_id, word, what), ""};
  };
  const std::optional<replay::Mode> mode = replay::ModeOf(launch.mode);
  if (!mode) return unknown(launch.mode, "mode");
  options.mode = *mode;
  const std::optional<gpu::CachePolicy> policy = replay::CachePolicyOf(launch.cache_policy);
  if (!policy) return unknown(launch.cache_policy, "cache policy");
  options.gpu.cache_policy = *policy;
  options.gpu.threads = options_.threads;
  options.gpu.allow_foreign_cubins = true;  // the run that is repeated was let to
  options.gpu.per_pc = true;                // a board's sustained clock follows from it
  options.gpu.stop = options_.stop;
  options.lenient = true;
  const std::vector<std::string> words = WordsOf(launch.run_id);
  for (size_t i = 0; i + 1 < words.size(); ++i)
    if (words[i] == "-d" || words[i] == "--define") IsDefine(words[i + 1], &options.defines);
  for (const std::string& word : words)
    if (word.starts_with("--define=")) IsDefine(std::string_view(word).substr(9), &options.defines);
  for (const auto& [name, value] : options_.defines) options.defines[name] = value;
  return options;
}

// The launches that were simulated with it: what it read may be what they wrote.
std::vector<uint32_t> Resimulator::OrdinalsBeside(const analysis::LaunchInfo& launch) const {
  std::set<uint32_t> ordinals = {launch.ordinal};
  for (const analysis::LaunchInfo& each : reader_->launches())
    if (each.trace_digest == launch.trace_digest && each.config_id == launch.config_id &&
        each.cache_policy == launch.cache_policy)
      ordinals.insert(each.ordinal);
  return {ordinals.begin(), ordinals.end()};
}

Result<Resimulator::Outcome> Resimulator::Simulate(const analysis::LaunchInfo& launch,
                                                   const std::vector<std::string>& overrides) {
  HEDDLE_ASSIGN_OR_RETURN(const replay::NamedTrace* trace, TraceOf(launch));
  HEDDLE_ASSIGN_OR_RETURN(const analysis::Machine* base, reader_->MachineOf(launch.config_id));
  HEDDLE_ASSIGN_OR_RETURN(config::Gpu gpu, config::ParseStoredGpu(base->text, base->name, overrides));
  const replay::MachineRecord machine = replay::RecordMachine(std::move(gpu));
  HEDDLE_ASSIGN_OR_RETURN(replay::TraceRunOptions options, OptionsOf(launch));
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<replay::TraceRun> run,
                          replay::TraceRun::Open(*trace, machine, std::move(options)));
  const std::vector<uint32_t> beside = OrdinalsBeside(launch);
  const bool cold = launch.cache_policy == replay::Name(gpu::CachePolicy::kCold);
  const auto select = [&](uint32_t last) {
    run->Select({.wanted = [&](uint32_t ordinal) {
      return ordinal <= last && std::binary_search(beside.begin(), beside.end(), ordinal);
    }});
  };
  select(~0u);
  Outcome outcome;
  if (launch.ordinal < run->launch_count())
    outcome.same_key = results::LaunchKey(run->Record(launch.ordinal), base->digest) == launch.key;
  if (cold && run->sequential()) select(launch.ordinal);  // what comes later is not needed
  bool taken = false;
  HEDDLE_RETURN_IF_ERROR(run->Run([&](uint32_t ordinal) { return Result<bool>(ordinal != launch.ordinal); },
                                  [&](const replay::LaunchResult& result) {
                                    if (result.ordinal != launch.ordinal) return Ok();
                                    taken = true;
                                    outcome.cycles = static_cast<double>(result.stats->end_cycle -
                                                                         result.stats->start_cycle);
                                    outcome.seconds = static_cast<double>(result.record.duration_ps) / 1e12;
                                    return Ok();
                                  }));
  if (taken) return outcome;
  return Error{ExitCode::kTrace, trace->path, fmt::format("has no launch {}", launch.ordinal), ""};
}

Result<isa::KernelCode> Resimulator::CodeOf(const analysis::LaunchInfo& launch) {
  HEDDLE_ASSIGN_OR_RETURN(const replay::NamedTrace* trace, TraceOf(launch));
  HEDDLE_ASSIGN_OR_RETURN(const analysis::Machine* base, reader_->MachineOf(launch.config_id));
  const replay::MachineRecord machine = replay::RecordMachine(base->gpu);
  HEDDLE_ASSIGN_OR_RETURN(replay::TraceRunOptions options, OptionsOf(launch));
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<replay::TraceRun> run,
                          replay::TraceRun::Open(*trace, machine, std::move(options)));
  if (launch.ordinal < run->launch_count()) return run->code(launch.ordinal);
  return Error{ExitCode::kTrace, trace->path, fmt::format("has no launch {}", launch.ordinal), ""};
}

}  // namespace heddle::explain
