// `heddle run`: replays traces on machines and stores what comes out.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "frontend/trace/htrace.h"
#include "heddle_version.h"
#include "sim/config/load.h"
#include "sim/results/results.h"
#include "tools/heddle/commands.h"
#include "tools/heddle/launch_table.h"
#include "tools/heddle/progress.h"
#include "tools/heddle/run_settings.h"
#include "tools/heddle/stop.h"
#include "tools/replay/machine_record.h"
#include "tools/replay/sustained_clock.h"

namespace heddle::tools {
namespace {

using replay::MachineRecord;
using replay::RecordMachine;

struct NamedTrace {
  trace::Trace trace;
  std::string digest;
  std::string path;
};

// One trace on one machine.
class TraceRun {
 public:
  TraceRun(const RunSettings& settings, const MachineRecord& machine, const NamedTrace& trace,
           results::Writer* writer, ProgressBar* progress)
      : settings_(settings),
        machine_(machine),
        trace_(trace.trace),
        digest_(trace.digest),
        name_(std::filesystem::path(trace.path).filename().string()),
        path_(trace.path),
        writer_(writer),
        progress_(progress) {}

  Status Run() {
    HEDDLE_ASSIGN_OR_RETURN(replay_,
                            replay::Replay::Open(trace_, machine_.gpu, {settings_.mode, settings_.defines}));
    Select();
    HEDDLE_ASSIGN_OR_RETURN(const bool done, AllDone());
    if (selected_.empty() || done) return Ok();
    gpu_.emplace(machine_.gpu, Options());
    return Sequential() ? RunOneByOne() : RunTogether();
  }

 private:
  void Select() {
    for (uint32_t i = 0; i < replay_->launch_count(); ++i) {
      const bool wanted = settings_.launches.Contains(i) &&
                          (!settings_.kernel || std::regex_search(replay_->code(i).name, *settings_.kernel) ||
                           std::regex_search(replay_->resolved().launches[i].name, *settings_.kernel));
      if (wanted) selected_.push_back(i);
    }
  }

  gpu::RunOptions Options() {
    gpu::RunOptions options;
    options.threads = settings_.threads;
    options.cache_policy = settings_.cache_policy;
    options.allow_foreign_cubins = settings_.allow_foreign_cubins;
    options.max_cycles = settings_.max_cycles;
    options.stop = &StopFlag();
    options.progress = [this](const gpu::Progress& progress) {
      progress_->Update(fmt::format("{} on {}", name_, machine_.record.name), progress.ctas_done,
                        progress.ctas_total, progress.cycle);
    };
    return options;
  }

  // Launches of one stream do not overlap: each can be committed before the next one starts.
  bool Sequential() const {
    for (const uint32_t i : selected_) {
      const trace::ResolvedLaunch& launch = replay_->resolved().launches[i];
      if (launch.programmatic || launch.stream != replay_->resolved().launches[selected_.front()].stream)
        return false;
    }
    return true;
  }

  results::LaunchRecord Record(uint32_t i) const {
    const trace::ResolvedLaunch& launch = replay_->resolved().launches[i];
    results::LaunchRecord record;
    record.trace_digest = digest_;
    record.trace_name = name_;
    record.ordinal = i;
    record.stream = launch.stream;
    record.grid_frozen = launch.frozen_grid;
    record.mode = settings_.mode_name;
    record.cache_policy = settings_.cache_name;
    record.dependence = replay_->recorded(i) ? "scoreboard" : machine_.dependence;
    for (const auto& [name, value] : replay_->resolved().defines)
      record.options += fmt::format("{}={};", name, value);
    // Where launches share caches or SMs, the others are part of what made the result.
    if (settings_.cache_policy != gpu::CachePolicy::kCold || !Sequential()) {
      record.options += fmt::format("with {}", fmt::join(selected_, ","));
    }
    return record;
  }

  Result<bool> AllDone() const {
    for (const uint32_t i : selected_) {
      HEDDLE_ASSIGN_OR_RETURN(const bool done,
                              writer_->HasLaunch(results::LaunchKey(Record(i), machine_.record.digest)));
      if (!done) return false;
    }
    return true;
  }

  Status RunOneByOne() {
    for (const uint32_t i : selected_) {
      HEDDLE_ASSIGN_OR_RETURN(const bool done,
                              writer_->HasLaunch(results::LaunchKey(Record(i), machine_.record.digest)));
      if (done && settings_.cache_policy == gpu::CachePolicy::kCold) {
        HEDDLE_RETURN_IF_ERROR(replay_->ExecuteFunctionally(i));  // later launches may read what it wrote
        continue;
      }
      HEDDLE_ASSIGN_OR_RETURN(isa::LaunchProgram * program, replay_->Prepare(i));
      const gpu::LaunchRequest request{program, replay_->resolved().launches[i].name, 0, {}};
      HEDDLE_ASSIGN_OR_RETURN(const std::vector<stats::LaunchStats> stats, gpu_->Run({&request, 1}));
      if (gpu_->ended()[0] && !done) HEDDLE_RETURN_IF_ERROR(Commit(i, *program, stats[0]));
      replay_->Close(i);
      if (StopFlag()) return Interrupted();
    }
    return Ok();
  }

  Status RunTogether() {
    std::vector<gpu::LaunchRequest> requests;
    for (const uint32_t i : selected_) {
      HEDDLE_ASSIGN_OR_RETURN(isa::LaunchProgram * program, replay_->Prepare(i));
      const trace::ResolvedLaunch& launch = replay_->resolved().launches[i];
      requests.push_back({program, launch.name, launch.stream, DependencesOf(i)});
    }
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<stats::LaunchStats> stats, gpu_->Run(requests));
    if (StopFlag() &&
        !std::all_of(gpu_->ended().begin(), gpu_->ended().end(), [](bool ended) { return ended; })) {
      return Interrupted();  // what overlapped an unfinished launch is not committed: it would be another result
    }
    for (size_t k = 0; k < selected_.size(); ++k) {
      HEDDLE_RETURN_IF_ERROR(Commit(selected_[k], *requests[k].program, stats[k]));
    }
    return StopFlag() ? Interrupted() : Ok();
  }

  // Edges of the trace between selected launches, as positions in selected_.
  std::vector<uint32_t> DependencesOf(uint32_t launch) const {
    std::vector<uint32_t> dependences;
    for (const trace::Edge& edge : trace_.edges) {
      const auto from = std::find(selected_.begin(), selected_.end(), edge.from);
      if (edge.to == launch && from != selected_.end()) {
        dependences.push_back(static_cast<uint32_t>(from - selected_.begin()));
      }
    }
    return dependences;
  }

  Status Commit(uint32_t i, const isa::LaunchProgram& program, const stats::LaunchStats& stats) {
    std::vector<isa::StreamIssue> issues = program.Issues();
    if (!issues.empty() && !settings_.lenient) {
      std::string text;
      for (const isa::StreamIssue& issue : issues)
        text += fmt::format("\n  {} x {}: {}", issue.count, issue.kind, issue.detail);
      return Error{ExitCode::kTrace, fmt::format("{} launch {}", path_, i),
                   fmt::format("the trace is not complete:{}", text),
                   "give the contents that are missing, or run with --lenient to count this in the results"};
    }
    for (isa::StreamIssue& note : replay_->notes(i)) issues.push_back(std::move(note));
    results::LaunchRecord record = Record(i);
    record.execution = replay_->execution(i);
    record.duration_ps = replay::SustainedPicoseconds(machine_.gpu, program.code(), stats);
    return writer_->AddLaunch(record, machine_.record, program.code(), program.shape(), stats, issues);
  }

  Error Interrupted() const {
    return {ExitCode::kInterrupted, "", "stopped by a signal; what was finished is kept",
            "run the same command again to go on"};
  }

  const RunSettings& settings_;
  const MachineRecord& machine_;
  const trace::Trace& trace_;
  std::string digest_;
  std::string name_;
  std::string path_;
  results::Writer* writer_;
  ProgressBar* progress_;
  std::unique_ptr<replay::Replay> replay_;
  std::optional<gpu::Gpu> gpu_;
  std::vector<uint32_t> selected_;
};

Status Simulate(const RunSettings& settings, const std::vector<MachineRecord>& machines,
                const std::vector<NamedTrace>& traces, results::Writer* writer) {
  ProgressBar progress(settings.quiet);
  for (const MachineRecord& machine : machines) {
    for (const NamedTrace& trace : traces) {
      TraceRun run(settings, machine, trace, writer, &progress);
      HEDDLE_RETURN_IF_ERROR(run.Run());
    }
  }
  return Ok();
}

// An SQL condition on v_launch: launches of the traces with these digests on these machines.
std::string LaunchesOf(const std::vector<MachineRecord>& machines,
                       const std::vector<std::string>& trace_digests) {
  std::vector<std::string> configs;
  for (const MachineRecord& machine : machines) configs.push_back(fmt::format("'{}'", machine.record.digest));
  std::vector<std::string> digests;
  for (const std::string& digest : trace_digests) digests.push_back(fmt::format("'{}'", digest));
  return fmt::format(
      "launch_id IN (SELECT launch_id FROM launch JOIN config USING (config_id) "
      "WHERE digest IN ({}) AND trace_digest IN ({}))",
      fmt::join(configs, ", "), fmt::join(digests, ", "));
}

Status RunAll(const RunSettings& settings) {
  // Everything that can be wrong with the command is found before anything is simulated.
  std::vector<MachineRecord> machines;
  for (const std::string& arch : settings.archs) {
    HEDDLE_ASSIGN_OR_RETURN(config::Gpu gpu, config::LoadGpu(arch, settings.overrides));
    machines.push_back(RecordMachine(std::move(gpu)));
  }
  std::vector<NamedTrace> traces;
  std::vector<std::string> digests;
  for (const std::string& path : settings.traces) {
    HEDDLE_ASSIGN_OR_RETURN(trace::Trace trace, trace::ReadTrace(path, &digests.emplace_back()));
    traces.push_back({std::move(trace), digests.back(), path});
  }
  HEDDLE_ASSIGN_OR_RETURN(results::Writer writer, results::Writer::Open(settings.database));
  HEDDLE_RETURN_IF_ERROR(writer.BeginRun(
      {CommandLine(), HEDDLE_VERSION, fmt::format("{}, {}", HEDDLE_BUILD_TYPE, HEDDLE_COMPILER)}));
  if (const Status done = Simulate(settings, machines, traces, &writer); !done.ok()) {
    writer.Abandon();
    return done;
  }
  HEDDLE_RETURN_IF_ERROR(writer.Finish());
  if (!settings.table && !settings.json) return Ok();
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Database database, results::OpenForReading(settings.database));
  const std::string where = LaunchesOf(machines, digests);
  return settings.json ? PrintLaunchJson(&database, where) : PrintLaunchTable(&database, where);
}

ExitCode Run(const po::variables_map& values, Arguments traces) {
  const Result<RunSettings> settings = ParseRunSettings(values, traces);
  if (!settings.ok()) return Report(settings.error());
  StopOnSignals();
  const Status status = RunAll(*settings);
  if (!status.ok()) return Report(status.error());
  if (!settings->quiet) fmt::print(stderr, "Results are in {}\n", settings->database);
  return ExitCode::kOk;
}

}  // namespace

Command RunCommand() {
  return {"run", "Replay traces on machines; results go to a database", RunOptionsDescription, "TRACE...",
          Run};
}

}  // namespace heddle::tools
