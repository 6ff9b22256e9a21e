// `heddle run`: replays traces on machines and stores what comes out.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "heddle_version.h"
#include "sim/config/load.h"
#include "sim/results/results.h"
#include "tools/batch/publish.h"
#include "tools/heddle/commands.h"
#include "tools/heddle/launch_table.h"
#include "tools/heddle/progress.h"
#include "tools/heddle/run_settings.h"
#include "tools/heddle/stop.h"
#include "tools/replay/machine_record.h"
#include "tools/replay/trace_run.h"

namespace heddle::tools {
namespace {

using replay::MachineRecord;
using replay::RecordMachine;

using replay::NamedTrace;
using replay::TraceRun;

// Copies of the database, as --publish asks.
class Publisher {
 public:
  Publisher(std::string target, uint32_t every) : target_(std::move(target)), every_(every) {
    if (!target_.empty()) published_ = batch::LaunchCount(target_);
  }

  Status Committed(const results::Writer& writer) {
    if (target_.empty()) return Ok();
    const std::string file = batch::WorkingFile(writer.path());
    const uint64_t launches = batch::LaunchCount(file);
    if (launches < published_ + every_) return Ok();
    published_ = launches;
    return batch::Publish(file, target_);
  }

 private:
  std::string target_;
  uint32_t every_;
  uint64_t published_ = 0;
};

// One trace on one machine, into the database.
Status SimulateTrace(const RunSettings& settings, const MachineRecord& machine, const NamedTrace& trace,
                     results::Writer* writer, Publisher* publisher, ProgressBar* progress) {
  replay::TraceRunOptions options;
  options.mode = settings.mode;
  options.defines = settings.defines;
  options.lenient = settings.lenient;
  options.gpu.threads = settings.threads;
  options.gpu.cache_policy = settings.cache_policy;
  options.gpu.allow_foreign_cubins = settings.allow_foreign_cubins;
  options.gpu.max_cycles = settings.max_cycles;
  options.gpu.stop = &StopFlag();
  options.gpu.timeline = settings.timeline;
  const std::string what =
      fmt::format("{} on {}", std::filesystem::path(trace.path).filename().string(), machine.record.name);
  options.gpu.progress = [&](const gpu::Progress& at) {
    progress->Update(what, at.ctas_done, at.ctas_total, at.cycle);
  };
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<TraceRun> run, TraceRun::Open(trace, machine, options));
  run->Select(settings.launch_setting);
  // A launch that is there without the timeline that is wanted is run again.
  const auto is_done = [&](uint32_t ordinal) {
    const std::string key = run->Key(ordinal);
    return settings.timeline ? writer->HasTimeline(key) : writer->HasLaunch(key);
  };
  const auto take = [&](const replay::LaunchResult& result) -> Status {
    const std::string key = results::LaunchKey(result.record, machine.record.digest);
    HEDDLE_ASSIGN_OR_RETURN(const bool there, writer->HasLaunch(key));
    if (!there) {
      HEDDLE_RETURN_IF_ERROR(writer->AddLaunch(result.record, machine.record, result.program->code(),
                                               result.program->shape(), *result.stats, result.issues));
    }
    if (result.timeline != nullptr)
      HEDDLE_RETURN_IF_ERROR(writer->AddTimeline(key, *result.timeline, result.stats->start_cycle));
    return publisher->Committed(*writer);
  };
  return run->Run(is_done, take);
}

Status Simulate(const RunSettings& settings, const std::vector<MachineRecord>& machines,
                const std::vector<NamedTrace>& traces, results::Writer* writer) {
  ProgressBar progress(settings.quiet);
  Publisher publisher(settings.publish, settings.publish_every);
  for (const MachineRecord& machine : machines) {
    for (const NamedTrace& trace : traces) {
      HEDDLE_RETURN_IF_ERROR(SimulateTrace(settings, machine, trace, writer, &publisher, &progress));
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
    HEDDLE_ASSIGN_OR_RETURN(NamedTrace trace, replay::ReadNamedTrace(path));
    digests.push_back(trace.digest);
    traces.push_back(std::move(trace));
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
