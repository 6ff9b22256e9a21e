#include "tools/replay/trace_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "frontend/trace/htrace.h"
#include "tools/replay/sustained_clock.h"

namespace heddle::replay {
namespace {

template <typename Names, typename Value>
std::string_view NameIn(const Names& names, Value value) {
  for (const auto& [name, each] : names)
    if (each == value) return name;
  return "";
}

template <typename Value, size_t N>
std::optional<Value> ValueIn(const std::array<std::pair<const char*, Value>, N>& names,
                             std::string_view text) {
  for (const auto& [name, value] : names)
    if (name == text) return value;
  return std::nullopt;
}

Error Interrupted() {
  return {ExitCode::kInterrupted, "", "stopped by a signal; what was finished is kept",
          "run the same command again to go on"};
}

}  // namespace

std::string_view Name(Mode mode) { return NameIn(kModes, mode); }
std::string_view Name(gpu::CachePolicy policy) { return NameIn(kCachePolicies, policy); }
std::optional<Mode> ModeOf(std::string_view name) { return ValueIn(kModes, name); }
std::optional<gpu::CachePolicy> CachePolicyOf(std::string_view name) { return ValueIn(kCachePolicies, name); }

Result<std::vector<std::string>> TraceFiles(const std::vector<std::string>& paths) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code code;
    if (!fs::is_directory(path, code)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    for (fs::recursive_directory_iterator i(path, code), end; !code && i != end; i.increment(code))
      if (i->path().extension() == ".htrace") found.push_back(i->path().string());
    if (code) return Error{ExitCode::kTrace, path, fmt::format("cannot be listed: {}", code.message()), ""};
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

Result<NamedTrace> ReadNamedTrace(const std::string& path) {
  NamedTrace named;
  named.path = path;
  HEDDLE_ASSIGN_OR_RETURN(named.trace, trace::ReadTrace(path, &named.digest));
  return named;
}

Result<std::unique_ptr<TraceRun>> TraceRun::Open(const NamedTrace& trace, const MachineRecord& machine,
                                                 TraceRunOptions options) {
  std::unique_ptr<TraceRun> run(new TraceRun(trace, machine, std::move(options)));
  HEDDLE_ASSIGN_OR_RETURN(
      run->replay_, Replay::Open(trace.trace, machine.gpu, {run->options_.mode, run->options_.defines}));
  run->Select({.wanted = [](uint32_t) { return false; }});
  return run;
}

void TraceRun::Select(LaunchSetting setting) {
  setting.mode = Name(options_.mode);
  setting.cache = Name(options_.gpu.cache_policy);
  launches_.emplace(trace_.trace, replay_->resolved(), setting);
}

results::LaunchRecord TraceRun::Record(uint32_t ordinal) const {
  return launches_->Record(ordinal, trace_.digest, std::filesystem::path(trace_.path).filename().string(),
                           machine_);
}

std::string TraceRun::Key(uint32_t ordinal) const {
  return results::LaunchKey(Record(ordinal), machine_.record.digest);
}

Status TraceRun::Run(const IsDone& is_done, const Take& take) {
  bool all_done = true;
  for (size_t k = 0; all_done && k < selected().size(); ++k) {
    HEDDLE_ASSIGN_OR_RETURN(all_done, is_done(selected()[k]));
  }
  if (all_done) return Ok();
  if (!gpu_) gpu_.emplace(machine_.gpu, options_.gpu);
  return sequential() ? RunOneByOne(is_done, take) : RunTogether(is_done, take);
}

Status TraceRun::RunOneByOne(const IsDone& is_done, const Take& take) {
  struct Simulated {
    uint32_t ordinal;
    stats::LaunchStats stats;
    stats::Sampling sampling;
  };
  std::map<std::string, Simulated> alike;  // sampled mode: launches by Replay::Likeness
  const bool reuses = options_.mode == Mode::kSampled && options_.gpu.cache_policy == gpu::CachePolicy::kCold;
  for (const uint32_t i : selected()) {
    HEDDLE_ASSIGN_OR_RETURN(const bool done, is_done(i));
    if (done && options_.gpu.cache_policy == gpu::CachePolicy::kCold) {
      HEDDLE_RETURN_IF_ERROR(replay_->ExecuteFunctionally(i));  // later launches may read what it wrote
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(isa::LaunchProgram * program, replay_->Prepare(i));
    const std::string likeness = reuses ? replay_->Likeness(i) : "";
    if (const auto like = alike.find(likeness); like != alike.end()) {
      stats::Sampling sampling = like->second.sampling;
      sampling.like_ordinal = like->second.ordinal;
      HEDDLE_RETURN_IF_ERROR(Hand(i, *program, like->second.stats, sampling, nullptr, take));
      replay_->Close(i);
      continue;
    }
    gpu::LaunchRequest request{program, replay_->resolved().launches[i].name, 0, {}};
    HEDDLE_ASSIGN_OR_RETURN(request.sampling, replay_->Sampling(i));
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<stats::LaunchStats> stats, gpu_->Run({&request, 1}));
    const std::vector<stats::Timeline> timelines = gpu_->TakeTimelines();
    if (gpu_->ended()[0] && !done) {
      HEDDLE_RETURN_IF_ERROR(Hand(i, *program, stats[0], gpu_->samplings()[0],
                                  timelines.empty() ? nullptr : &timelines[0], take));
    }
    if (gpu_->ended()[0] && !likeness.empty())
      alike.try_emplace(likeness, Simulated{i, stats[0], *gpu_->samplings()[0]});
    replay_->Close(i);
    if (Stopped()) return Interrupted();
  }
  return Ok();
}

Status TraceRun::RunTogether(const IsDone& is_done, const Take& take) {
  std::vector<gpu::LaunchRequest> requests;
  replay_->PlaceContentsAtStart();
  for (const uint32_t i : selected()) {
    HEDDLE_ASSIGN_OR_RETURN(isa::LaunchProgram * program, replay_->Prepare(i));
    const trace::ResolvedLaunch& launch = replay_->resolved().launches[i];
    requests.push_back({program, launch.name, launch.stream, DependencesOf(i)});
    HEDDLE_ASSIGN_OR_RETURN(requests.back().sampling, replay_->Sampling(i));
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<stats::LaunchStats> stats, gpu_->Run(requests));
  if (Stopped() &&
      !std::all_of(gpu_->ended().begin(), gpu_->ended().end(), [](bool ended) { return ended; })) {
    return Interrupted();  // what overlapped an unfinished launch is not kept: it would be another result
  }
  const std::vector<stats::Timeline> timelines = gpu_->TakeTimelines();
  for (size_t k = 0; k < selected().size(); ++k) {
    HEDDLE_ASSIGN_OR_RETURN(const bool done, is_done(selected()[k]));
    if (done) continue;
    const stats::Timeline* timeline = timelines.empty() ? nullptr : &timelines[k];
    HEDDLE_RETURN_IF_ERROR(
        Hand(selected()[k], *requests[k].program, stats[k], gpu_->samplings()[k], timeline, take));
  }
  return Stopped() ? Status(Interrupted()) : Ok();
}

// Edges of the trace between selected launches, as positions among them.
std::vector<uint32_t> TraceRun::DependencesOf(uint32_t launch) const {
  std::vector<uint32_t> dependences;
  for (const trace::Edge& edge : trace_.trace.edges) {
    const auto from = std::find(selected().begin(), selected().end(), edge.from);
    if (edge.to == launch && from != selected().end())
      dependences.push_back(static_cast<uint32_t>(from - selected().begin()));
  }
  return dependences;
}

Status TraceRun::Hand(uint32_t i, const isa::LaunchProgram& program, const stats::LaunchStats& stats,
                      const std::optional<stats::Sampling>& sampling, const stats::Timeline* timeline,
                      const Take& take) {
  LaunchResult result{i, Record(i), &program, &stats, program.Issues(), timeline};
  if (!result.issues.empty() && !options_.lenient) {
    std::string text;
    for (const isa::StreamIssue& issue : result.issues)
      text += fmt::format("\n  {} x {}: {}", issue.count, issue.kind, issue.detail);
    return Error{ExitCode::kTrace, fmt::format("{} launch {}", trace_.path, i),
                 fmt::format("the trace is not complete:{}", text),
                 "give the contents that are missing, or run with --lenient to count this in the results"};
  }
  for (isa::StreamIssue& note : replay_->notes(i)) result.issues.push_back(std::move(note));
  result.record.sampling = sampling;
  result.record.execution = replay_->execution(i);
  result.record.duration_ps = SustainedPicoseconds(machine_.gpu, program.code(), stats);
  return take(result);
}

}  // namespace heddle::replay
