// `heddle sweep`: many designs, one table.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tools/batch/local.h"
#include "tools/batch/spec.h"
#include "tools/heddle/commands.h"
#include "tools/heddle/output_file.h"
#include "tools/heddle/progress.h"
#include "tools/heddle/run_settings.h"
#include "tools/heddle/stop.h"
#include "tools/heddle/sweep_cluster.h"
#include "tools/heddle/table.h"

namespace heddle::tools {
namespace {

constexpr size_t kMostFollowedShown = 3;

po::options_description Options() {
  po::options_description options("options");
  const auto words = [] { return po::value<std::vector<std::string>>(); };
  options.add_options()("arch,a", words(), "machine to start from: a name of `heddle arch list` or a file")(
      "axis,x", words(),
      "PATH=VALUES: a field of the machine and its values: 1,2,4 or [1:9:2] or [1:64:x2]; may be repeated")(
      "shape", po::value<std::string>()->default_value(""),
      "which values go together: grid (all combinations), list (the first of each, the second, ...), random, "
      "one-at-a-time; default: grid")("samples", po::value<uint32_t>()->default_value(0),
                                      "designs that --shape random draws from the grid")(
      "seed", po::value<uint64_t>()->default_value(1), "of --shape random")(
      "trace,T", words(), "trace to replay on every design; may be repeated")(
      "set,s", words(), "PATH=VALUE: change all designs alike; may be repeated")(
      "define,d", words(), "NAME=INTEGER: change a shape that the traces define; may be repeated")(
      "kernel,k", po::value<std::string>(), "only launches whose kernel matches this regular expression")(
      "launch,l", po::value<std::string>()->default_value(""),
      "only these launches of each trace: 0-3,7,12-")(
      "mode", po::value<std::string>()->default_value("skeleton"),
      "skeleton; full: compute all data too; or sampled: leave out the middle of large grids, with an "
      "interval")("cache", po::value<std::string>()->default_value("cold"),
                  "caches before each launch: cold, warm or flush")(
      "max-cycles", po::value<uint64_t>()->default_value(0),
      "give up on a launch after this many cycles; 0: never")(
      "allow-foreign", "run cubins of another architecture than the machine's")(
      "lenient", "count oddities of a trace instead of stopping at them")(
      "db", po::value<std::string>()->default_value("sweep.db"),
      "results database; what is in it is not run again")(
      "cache-dir", po::value<std::string>()->default_value(""),
      "folder where results of jobs stay, so that other databases need not run them again")(
      "jobs,j", po::value<uint32_t>()->default_value(0), "jobs at a time; 0: one a core")(
      "threads,t", po::value<uint32_t>()->default_value(0), "threads of a job; 0: the cores, over the jobs")(
      "dry-run", "check everything and print the designs; run nothing")(
      "pareto", po::value<std::string>()->default_value(""),
      "mark the best trade-offs between two or more of time, area, power, energy")(
      "html", po::value<std::string>()->default_value(""), "write a page with table and plots to this file")(
      "json", "print one JSON document instead of a table")("csv", "print comma-separated values")(
      "quiet,q", "no progress and no words on stderr but errors");
  options.add(ClusterOptions());
  return options;
}

std::vector<std::string> Words(const po::variables_map& values, const char* name) {
  return values.count(name) == 0 ? std::vector<std::string>() : values[name].as<std::vector<std::string>>();
}

// Options of `heddle run` that each job repeats.
std::vector<std::string> RunOptions(const po::variables_map& values) {
  std::vector<std::string> options;
  const auto add = [&](std::string option, std::string value) {
    options.push_back(std::move(option));
    options.push_back(std::move(value));
  };
  for (const std::string& define : Words(values, "define")) add("-d", define);
  if (values.count("kernel") != 0) add("-k", values["kernel"].as<std::string>());
  for (const char* name : {"launch", "mode", "cache"})
    if (!values[name].defaulted()) add(fmt::format("--{}", name), values[name].as<std::string>());
  if (!values["max-cycles"].defaulted())
    add("--max-cycles", fmt::format("{}", values["max-cycles"].as<uint64_t>()));
  for (const char* name : {"allow-foreign", "lenient"})
    if (values.count(name) != 0) options.push_back(fmt::format("--{}", name));
  return options;
}

// What is wrong with the texts goes into the request's faults: the plan finds the rest and says all of it.
batch::SweepRequest ParseRequest(const po::variables_map& values, Arguments specs) {
  batch::SweepRequest request;
  const auto check = [&](const auto& result) {
    if (!result.ok()) request.faults.push_back(result.error());
    return result.ok();
  };
  const std::vector<std::string> archs = Words(values, "arch");
  if (!archs.empty()) request.arch = archs.front();
  if (archs.size() > 1)
    check(Status(Error{ExitCode::kUsage, "--arch", "a sweep starts from one machine", "run one for each"}));
  request.overrides = Words(values, "set");
  request.axes = Words(values, "axis");
  request.traces = Words(values, "trace");
  request.samples = values["samples"].as<uint32_t>();
  request.seed = values["seed"].as<uint64_t>();
  if (specs.size() > 1)
    check(Status(
        Error{ExitCode::kUsage, "heddle sweep", "takes one specification at most", "traces go by --trace"}));
  for (const std::string& spec : specs) check(batch::ReadSpec(spec, &request));
  if (const std::string word = values["shape"].as<std::string>(); !word.empty()) {
    const Result<batch::Shape> shape = batch::ParseShape(word);
    if (check(shape)) request.shape = *shape;
  }
  if (const std::string text = values["pareto"].as<std::string>(); !text.empty())
    check(batch::ParseObjectives(text));
  check(CheckBackend(values));
  const std::vector<std::string> any = {"-"};
  RunSettings settings = ParseRunSettings(values, any, &request.faults);
  request.defines = std::move(settings.defines);
  request.launch_setting = std::move(settings.launch_setting);
  request.allow_foreign_cubins = settings.allow_foreign_cubins;
  request.run_options = RunOptions(values);
  return request;
}

std::string ValueOf(const batch::Assignments& assignments, const std::string& path) {
  const auto found = std::find_if(assignments.begin(), assignments.end(),
                                  [&](const auto& item) { return item.first == path; });
  return found == assignments.end() ? "" : found->second;
}

// What moved along, "sms_per_gpc" left out: that follows every SM count.
std::string Followed(const batch::Design& design) {
  std::vector<std::string> texts;
  for (const auto& [path, value] : design.followed)
    if (path != "sms_per_gpc") texts.push_back(path + "=" + value);
  const size_t more = texts.size() > kMostFollowedShown ? texts.size() - kMostFollowedShown : 0;
  texts.resize(texts.size() - more);
  return fmt::format("{}{}", fmt::join(texts, " "), more == 0 ? "" : fmt::format(" and {} more", more));
}

Table ResultTable(const batch::Plan& plan, const std::vector<batch::DesignResult>& results, bool pareto,
                  bool ran) {
  Table table;
  const auto column = [&](std::string title, bool right) {
    table.header.push_back(std::move(title));
    table.right.push_back(right);
  };
  for (const std::string& path : plan.paths) column(path, true);
  if (ran) {
    column("time us", true);
    column("vs first", true);
    for (const std::string& trace : plan.traces)
      if (plan.traces.size() > 1) column(std::filesystem::path(trace).stem().string() + " us", true);
  }
  column("area mm2", true);
  column("power W", true);
  if (pareto) column("pareto", false);
  column("moved along", false);
  for (size_t i = 0; i < results.size(); ++i) {
    const batch::Design& design = plan.designs[i];
    const batch::DesignResult& result = results[i];
    std::vector<std::string> row;
    for (const std::string& path : plan.paths) row.push_back(ValueOf(design.values, path));
    if (ran) {
      const bool whole = result.missing == 0;
      row.push_back(whole ? fmt::format("{:.2f}", result.time_us()) : "-");
      const bool comparable = whole && results.front().missing == 0 && result.picoseconds != 0;
      row.push_back(comparable ? fmt::format("{:.3f}", results.front().time_us() / result.time_us()) : "-");
      for (const uint64_t ps : result.by_trace_ps)
        if (plan.traces.size() > 1) row.push_back(fmt::format("{:.2f}", static_cast<double>(ps) / 1e6));
    }
    row.push_back(fmt::format("{:.0f}", design.area.total()));
    row.push_back(fmt::format("{:.0f}", design.power_w));
    if (pareto) row.push_back(result.pareto ? "*" : "");
    row.push_back(Followed(design));
    table.rows.push_back(std::move(row));
  }
  return table;
}

void PrintCsv(const Table& table) {
  const auto line = [](const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) {
      std::string cell = cells[i];
      if (cell.find_first_of(",\"\n") != std::string::npos) {
        for (size_t at = 0; (at = cell.find('"', at)) != std::string::npos; at += 2) cell.insert(at, 1, '"');
        cell = "\"" + cell + "\"";
      }
      fmt::print("{}{}", i == 0 ? "" : ",", cell);
    }
    fmt::print("\n");
  };
  line(table.header);
  for (const std::vector<std::string>& row : table.rows) line(row);
}

std::string ProgressWords(const batch::Progress& progress) {
  std::string words = fmt::format("{} of {} jobs", progress.done, progress.jobs);
  if (progress.found != 0) words += fmt::format(", {} were there", progress.found);
  if (progress.failed != 0) words += fmt::format(", {} failed", progress.failed);
  if (progress.seconds_left >= 0) words += fmt::format(", {:.0f} s left", progress.seconds_left);
  return words;
}

Status Print(const po::variables_map& values, const batch::SweepRequest& request, const batch::Plan& plan,
             std::vector<batch::DesignResult>* results, bool ran) {
  std::vector<batch::Objective> objectives;
  if (const std::string text = values["pareto"].as<std::string>(); !text.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(objectives, batch::ParseObjectives(text));
    if (ran) batch::MarkPareto(objectives, plan, results);
  }
  if (values.count("json") != 0) {
    fmt::print("{}\n", batch::ResultsJson(request, plan, *results));
  } else {
    const Table table = ResultTable(plan, *results, ran && !objectives.empty(), ran);
    if (values.count("csv") != 0)
      PrintCsv(table);
    else
      tools::Print(table);
  }
  const std::string html = values["html"].as<std::string>();
  if (html.empty() || !ran) return Ok();
  if (objectives.empty())
    batch::MarkPareto({batch::Objective::kTime, batch::Objective::kArea}, plan, results);
  return WriteFile(html, batch::Html(request, plan, *results, objectives));
}

Status ReportEnd(const batch::LocalReport& report, const std::string& database) {
  if (report.interrupted) {
    return Error{ExitCode::kInterrupted, "", "stopped by a signal; what was finished is kept",
                 "run the same command again to go on"};
  }
  if (report.failures.empty()) return Ok();
  std::string text = fmt::format("{} of {} jobs failed:", report.failures.size(), report.progress.jobs);
  for (const batch::Failure& failure : report.failures)
    text += fmt::format("\n  exit {}: {}\n    {}", failure.exit_code, failure.last_line, failure.command);
  return Error{ExitCode::kDidNotFinish, database, text, "the commands above run them alone"};
}

Status Sweep(const po::variables_map& values, Arguments specs) {
  const batch::SweepRequest request = ParseRequest(values, specs);
  const bool quiet = values.count("quiet") != 0;
  HEDDLE_ASSIGN_OR_RETURN(const batch::Plan plan, batch::MakePlan(request));
  for (const std::string& note : plan.notes)
    if (!quiet) fmt::print(stderr, "note: {}\n", note);
  batch::LocalOptions options;
  options.program = std::filesystem::read_symlink("/proc/self/exe").string();
  options.database = values["db"].as<std::string>();
  options.cache = values["cache-dir"].as<std::string>();
  options.slots = values["jobs"].as<uint32_t>();
  if (options.slots == 0) options.slots = std::max(1u, std::thread::hardware_concurrency());
  options.threads = values["threads"].as<uint32_t>();
  if (values.count("dry-run") != 0) {
    std::vector<batch::DesignResult> none(plan.designs.size());
    return Print(values, request, plan, &none, false);
  }
  if (values["backend"].as<std::string>() != "local")
    return SweepOnCluster(values, request, plan, options.program, options.database);
  batch::LocalReport report;
  {
    ProgressBar progress(quiet);
    HEDDLE_ASSIGN_OR_RETURN(report,
                            batch::RunLocal(request, plan, options, &StopFlag(), [&](const auto& now) {
                              progress.Show(ProgressWords(now), now.done, now.jobs);
                            }));
  }
  if (!quiet) fmt::print(stderr, "{}\n", ProgressWords(report.progress));
  HEDDLE_ASSIGN_OR_RETURN(std::vector<batch::DesignResult> results, batch::Collect(options.database, plan));
  HEDDLE_RETURN_IF_ERROR(Print(values, request, plan, &results, true));
  return ReportEnd(report, options.database);
}

ExitCode Run(const po::variables_map& values, Arguments specs) {
  StopOnSignals();
  const Status status = Sweep(values, specs);
  return status.ok() ? ExitCode::kOk : Report(status.error());
}

}  // namespace

Command SweepCommand() {
  return {"sweep", "Simulate many designs and rank them", Options, "[SPEC.json]", Run};
}

}  // namespace heddle::tools
