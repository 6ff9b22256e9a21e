#include "tools/heddle/validate_hardware.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "heddle_version.h"
#include "sim/config/load.h"
#include "sim/results/results.h"
#include "tools/compare/comparison.h"
#include "tools/heddle/command.h"
#include "tools/heddle/commands.h"
#include "tools/heddle/progress.h"
#include "tools/heddle/stop.h"
#include "tools/replay/trace_run.h"

namespace heddle::tools {
namespace {

namespace fs = std::filesystem;

Result<std::set<std::string>> MeasuredDigests(const compare::MeasuredSet& measured, const std::string& file) {
  std::set<std::string> digests;
  for (const compare::Measured& launch : measured.launches)
    if (!launch.trace_digest.empty()) digests.insert(launch.trace_digest);
  if (digests.empty())
    return Error{ExitCode::kTrace, file, "no measured launch is of a trace",
                 "measure traces with tools/measure-gpu; profiles are compared by `heddle compare`"};
  return digests;
}

// Of the files and folders, and of what lies beside the measurements.
Result<std::vector<std::string>> Candidates(const HardwareValidation& settings) {
  std::vector<std::string> paths = settings.traces;
  std::error_code ec;
  if (const std::string beside = settings.measurements + ".traces"; fs::is_directory(beside, ec))
    paths.push_back(beside);
  return replay::TraceFiles(paths);
}

Status SimulateTrace(const replay::NamedTrace& trace, const replay::MachineRecord& machine,
                     results::Writer* writer, ProgressBar* progress) {
  replay::TraceRunOptions options;
  options.gpu.stop = &StopFlag();
  const std::string what = fs::path(trace.path).filename().string();
  options.gpu.progress = [&](const gpu::Progress& at) {
    progress->Update(what, at.ctas_done, at.ctas_total, at.cycle);
  };
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<replay::TraceRun> run,
                          replay::TraceRun::Open(trace, machine, options));
  replay::LaunchSetting all;
  run->Select(all);
  return run->Run([&](uint32_t ordinal) { return writer->HasLaunch(run->Key(ordinal)); },
                  [&](const replay::LaunchResult& result) {
                    return writer->AddLaunch(result.record, machine.record, result.program->code(),
                                             result.program->shape(), *result.stats, result.issues);
                  });
}

// Returns how many of `digests` were found. A trace that the machine cannot run is said and passed over.
Result<size_t> SimulateMeasured(const HardwareValidation& settings, const std::set<std::string>& digests,
                                const replay::MachineRecord& machine, results::Writer* writer) {
  ProgressBar progress(settings.quiet);
  std::set<std::string> found;
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> files, Candidates(settings));
  for (const std::string& path : files) {
    const Result<replay::NamedTrace> trace = replay::ReadNamedTrace(path);
    if (!trace.ok() || !digests.contains(trace->digest) || !found.insert(trace->digest).second) continue;
    const Status done = SimulateTrace(*trace, machine, writer, &progress);
    if (done.ok()) continue;
    if (done.error().code == ExitCode::kInterrupted) return done.error();
    fmt::print(stderr, "{}\n", done.error().ToString());
  }
  return found.size();
}

Status Gate(const compare::Comparison& comparison, const HardwareValidation& settings) {
  if (settings.max_error < 0) return Ok();
  const auto fault = [&](std::string message) {
    return Error{ExitCode::kGateFailed, settings.measurements, std::move(message), ""};
  };
  if (comparison.rows.empty()) return fault("no measured launch was simulated");
  if (comparison.totals.median_abs_error_percent <= settings.max_error) return Ok();
  return fault(fmt::format("the median |error| is {:.1f} %, above {}",
                           comparison.totals.median_abs_error_percent, settings.max_error));
}

Status Print(const HardwareValidation& settings, const std::set<std::string>& digests,
             const compare::MeasuredSet& measured, const std::string& database, const std::string& machine) {
  compare::Selection selection;
  selection.machine = machine;
  HEDDLE_ASSIGN_OR_RETURN(compare::SimulatedSet simulated, compare::LoadSimulated(database, selection));
  std::erase_if(simulated.launches, [&](const auto& each) { return !digests.contains(each.trace_digest); });
  const compare::Comparison comparison = compare::Compare(simulated, measured, compare::By::kLaunch, nullptr);
  fmt::print("{}{}", settings.json ? ComparisonJson(comparison) : ComparisonText(comparison, settings.worst),
             settings.json ? "\n" : "");
  return Gate(comparison, settings);
}

}  // namespace

Status ValidateHardware(const HardwareValidation& settings) {
  if (settings.arch.empty())
    return Error{ExitCode::kUsage, "heddle validate --hardware", "no machine is given",
                 "add --arch, the description of the GPU that was measured"};
  HEDDLE_ASSIGN_OR_RETURN(const compare::MeasuredSet measured,
                          compare::LoadMeasured(settings.measurements, {}));
  HEDDLE_ASSIGN_OR_RETURN(const std::set<std::string> digests,
                          MeasuredDigests(measured, settings.measurements));
  HEDDLE_ASSIGN_OR_RETURN(config::Gpu gpu, config::LoadGpu(settings.arch, settings.overrides));
  const replay::MachineRecord machine = replay::RecordMachine(std::move(gpu));
  std::error_code ec;
  const bool keep = !settings.database.empty();
  const std::string database =
      keep ? settings.database
           : (fs::temp_directory_path(ec) / fmt::format("heddle_validate_{}.db", getpid())).string();
  HEDDLE_ASSIGN_OR_RETURN(results::Writer writer, results::Writer::Open(database));
  HEDDLE_RETURN_IF_ERROR(writer.BeginRun(
      {CommandLine(), HEDDLE_VERSION, fmt::format("{}, {}", HEDDLE_BUILD_TYPE, HEDDLE_COMPILER)}));
  const Result<size_t> found = SimulateMeasured(settings, digests, machine, &writer);
  if (!found.ok() || *found == 0) {
    writer.Abandon();
    if (!found.ok()) return found.error();
    return Error{ExitCode::kTrace, settings.measurements,
                 fmt::format("none of the {} measured traces was found", digests.size()),
                 "name their files or folders with --traces"};
  }
  if (*found < digests.size())
    fmt::print(stderr, "heddle: {} of {} measured traces were not found\n", digests.size() - *found,
               digests.size());
  HEDDLE_RETURN_IF_ERROR(writer.Finish());
  const Status status = Print(settings, digests, measured, database, machine.record.name);
  if (!keep) fs::remove(database, ec);
  return status;
}

}  // namespace heddle::tools
