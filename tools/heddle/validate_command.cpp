// `heddle validate`: simulates what others measured and says how far apart the two are.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "heddle_version.h"
#include "sim/results/results.h"
#include "tools/heddle/commands.h"
#include "tools/heddle/progress.h"
#include "tools/heddle/stop.h"
#include "tools/heddle/validate_hardware.h"
#include "tools/validate/ablate.h"
#include "tools/validate/evaluate.h"
#include "tools/validate/header_table.h"
#include "tools/validate/recipe.h"
#include "tools/validate/report.h"
#include "tools/validate/simulate.h"
#include "tools/validate/suite.h"

namespace heddle::tools {
namespace {

po::options_description Options() {
  po::options_description options("options");
  const auto text = [] { return po::value<std::string>()->default_value(""); };
  options.add_options()("suite", text(), "measurements: a CSV file with the columns of the public suite")(
      "hardware", text(),
      "measurements: a database of tools/measure-gpu; its launches are simulated on --arch instead of a "
      "suite's")("traces", po::value<std::vector<std::string>>(),
                 "with --hardware: traces, or folders of them, that were measured; may be repeated")(
      "arch,a", text(), "only rows of the GPUs that this machine description stands for")(
      "category,c", text(), "only categories that match this regular expression as a whole")(
      "gpu", text(), "only GPUs, as the suite names them, that match this regular expression as a whole")(
      "where", text(), "only rows whose shape fulfils this expression, as in 'm >= 512'; others are skipped")(
      "min-us", po::value<double>()->default_value(0, "0"), "skip rows with a smaller value")(
      "max-us", po::value<double>()->default_value(0, "0"), "skip rows with a larger value; 0: no limit")(
      "sample", po::value<uint32_t>()->default_value(0),
      "only this many rows of each category and GPU, spread over their values; 0: all")(
      "placements", po::value<uint32_t>()->default_value(1),
      "simulate each row with this many placements of its buffers in DRAM; the first one counts")(
      "sampled", "leave out the middle of large grids, as heddle run --mode sampled does")(
      "set,s", po::value<std::vector<std::string>>(), "PATH=VALUE: change every machine; may be repeated")(
      "recipes", text(), "folder of recipes; that of the sources when left out")(
      "db", text(),
      "also write launches and measurements to this results database; launches in it are not run again")(
      "jobs,j", po::value<uint32_t>()->default_value(0), "rows that are simulated at a time; 0: one a core")(
      "worst", po::value<uint32_t>()->default_value(10), "rows to list for each category")(
      "max-error", po::value<double>(),
      "exit with 6 where the median |error| of a category is above this, in percent, or none of its rows was "
      "simulated")(
      "ablate",
      "simulate the rows again without each mechanism of the model in turn, and print how the errors change")(
      "write-header", "write the errors to the heads of the machine descriptions")(
      "list",
      "simulate nothing: count the rows that have a recipe and a trace, and say why the others have none; "
      "with "
      "--json row by row")("json", "print one JSON document instead of tables")("quiet,q", "no progress");
  return options;
}

struct Settings {
  std::string suite;
  std::string recipes;
  validate::PlanOptions plan;
  std::string database;
  uint32_t jobs = 1;
  uint32_t worst = 10;
  double max_error = -1;
  bool write_header = false;
  bool ablate = false;
  bool list = false;
  bool json = false;
  bool quiet = false;
};

Settings ReadSettings(const po::variables_map& values) {
  Settings settings;
  settings.suite = values["suite"].as<std::string>();
  settings.recipes = values["recipes"].as<std::string>();
  if (settings.recipes.empty()) settings.recipes = validate::RecipeFolder();
  settings.plan.arch = values["arch"].as<std::string>();
  settings.plan.category = values["category"].as<std::string>();
  settings.plan.gpu = values["gpu"].as<std::string>();
  settings.plan.where = values["where"].as<std::string>();
  settings.plan.least_us = values["min-us"].as<double>();
  settings.plan.most_us = values["max-us"].as<double>();
  settings.plan.sample = values["sample"].as<uint32_t>();
  settings.plan.sampled = values.count("sampled") != 0;
  settings.plan.placements = values["placements"].as<uint32_t>();
  if (values.count("set") != 0) settings.plan.overrides = values["set"].as<std::vector<std::string>>();
  settings.database = values["db"].as<std::string>();
  settings.jobs = values["jobs"].as<uint32_t>();
  if (settings.jobs == 0) settings.jobs = std::max(1u, std::thread::hardware_concurrency());
  settings.worst = values["worst"].as<uint32_t>();
  if (values.count("max-error") != 0) settings.max_error = values["max-error"].as<double>();
  settings.ablate = values.count("ablate") != 0;
  settings.write_header = values.count("write-header") != 0;
  settings.list = values.count("list") != 0;
  settings.json = values.count("json") != 0;
  settings.quiet = values.count("quiet") != 0;
  return settings;
}

// The measurements beside the launches that were simulated for them.
Status StoreMeasurements(const validate::Report& report, results::Writer* writer) {
  for (const validate::RowResult& row : report.rows) {
    if (!row.skipped.empty()) continue;
    const validate::Row& source = *row.planned->row;
    results::HardwareRecord record;
    record.gpu = source.gpu;
    record.kernel_name = source.kernel;
    record.source = fmt::format("{} #{}", source.source, source.id);
    record.protocol = fmt::format("{}; {}", row.planned->recipe->doc, source.note);
    record.launch_key = row.launch_key;
    for (const validate::MetricResult& metric : row.metrics)
      record.metrics.push_back({metric.name, metric.unit, metric.pair.measured});
    HEDDLE_RETURN_IF_ERROR(writer->AddHardware(record));
  }
  return Ok();
}

Result<validate::Report> Simulate(const Settings& settings, const validate::Recipes& recipes,
                                  const validate::Plan& plan) {
  std::optional<results::Writer> writer;
  if (!settings.database.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(writer, results::Writer::Open(settings.database));
    HEDDLE_RETURN_IF_ERROR(writer->BeginRun(
        {CommandLine(), HEDDLE_VERSION, fmt::format("{}, {}", HEDDLE_BUILD_TYPE, HEDDLE_COMPILER)}));
  }
  ProgressBar progress(settings.quiet);
  validate::SimulateOptions options;
  options.jobs = settings.jobs;
  options.writer = writer ? &*writer : nullptr;
  options.stop = &StopFlag();
  options.progress = [&progress](size_t done, size_t total, const std::string& what) {
    progress.Update(what, done, total, 0);
  };
  const Result<std::vector<validate::Measured>> measured = RunSimulations(plan, options);
  if (!measured.ok()) {
    if (writer) writer->Abandon();
    return measured.error();
  }
  validate::Report report = MakeReport(plan, *measured, recipes);
  if (writer) {
    HEDDLE_RETURN_IF_ERROR(StoreMeasurements(report, &*writer));
    HEDDLE_RETURN_IF_ERROR(writer->Finish());
  }
  return report;
}

Result<std::vector<validate::Ablated>> Ablate(const Settings& settings,
                                              const std::vector<validate::Row>& rows,
                                              const validate::Recipes& recipes,
                                              const validate::Report& base) {
  ProgressBar progress(settings.quiet);
  validate::SimulateOptions options;
  options.jobs = settings.jobs;
  options.stop = &StopFlag();
  options.progress = [&progress](size_t done, size_t total, const std::string& what) {
    progress.Update(what, done, total, 0);
  };
  return validate::Ablate(rows, recipes, settings.plan, options, base);
}

// What holds the gate shut; empty: nothing.
std::string GateFault(const validate::Report& report, double max_error) {
  for (const validate::Group& group : report.categories) {
    if (group.gpu != "all") continue;
    if (group.summary.count == 0) return fmt::format("no row of {} was simulated", group.category);
    if (group.summary.median_abs_error_percent > max_error) {
      return fmt::format("the median error of {} is {:.1f} %, above {}", group.category,
                         group.summary.median_abs_error_percent, max_error);
    }
  }
  return "";
}

Status Validate(const Settings& settings) {
  HEDDLE_ASSIGN_OR_RETURN(const validate::Recipes recipes, validate::ReadRecipes(settings.recipes));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<validate::Row> rows, validate::ReadSuite(settings.suite));
  HEDDLE_ASSIGN_OR_RETURN(const validate::Plan plan, validate::MakePlan(rows, recipes, settings.plan));
  if (settings.list) {
    fmt::print("{}", settings.json ? PlanJson(plan) + "\n" : PlanText(plan));
    return Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(const validate::Report report, Simulate(settings, recipes, plan));
  if (settings.ablate) {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<validate::Ablated> ablated,
                            Ablate(settings, rows, recipes, report));
    if (!settings.json) fmt::print("{}", ReportText(report, settings.worst));
    fmt::print("{}", settings.json ? AblationJson(ablated) + "\n" : AblationText(ablated));
    return Ok();
  }
  fmt::print("{}{}", settings.json ? ReportJson(report) : ReportText(report, settings.worst),
             settings.json ? "\n" : "");
  if (settings.write_header) HEDDLE_RETURN_IF_ERROR(WriteHeaders(report, recipes, rows));
  if (settings.max_error < 0) return Ok();
  const std::string fault = GateFault(report, settings.max_error);
  return fault.empty() ? Ok() : Status(Error{ExitCode::kGateFailed, settings.suite, fault, ""});
}

Status ValidateAgainst(const po::variables_map& values, const std::string& hardware) {
  HardwareValidation settings;
  settings.measurements = hardware;
  if (values.count("traces") != 0) settings.traces = values["traces"].as<std::vector<std::string>>();
  settings.arch = values["arch"].as<std::string>();
  if (values.count("set") != 0) settings.overrides = values["set"].as<std::vector<std::string>>();
  settings.database = values["db"].as<std::string>();
  if (values.count("max-error") != 0) settings.max_error = values["max-error"].as<double>();
  settings.worst = values["worst"].as<uint32_t>();
  settings.json = values.count("json") != 0;
  settings.quiet = values.count("quiet") != 0;
  return ValidateHardware(settings);
}

ExitCode Run(const po::variables_map& values, Arguments) {
  StopOnSignals();
  const std::string& hardware = values["hardware"].as<std::string>();
  const std::string& suite = values["suite"].as<std::string>();
  if (hardware.empty() == suite.empty())
    return Report(
        {ExitCode::kUsage, "heddle validate", "give either --suite or --hardware",
         "heddle validate --suite suite.csv, or --hardware measured.db --traces traces -a h100_sxm5"});
  if (!hardware.empty()) {
    const Status status = ValidateAgainst(values, hardware);
    return status.ok() ? ExitCode::kOk : Report(status.error());
  }
  const Status status = Validate(ReadSettings(values));
  return status.ok() ? ExitCode::kOk : Report(status.error());
}

}  // namespace

Command ValidateCommand() {
  return {"validate", "Simulate what others measured; print how far apart the two are", Options, "", Run};
}

}  // namespace heddle::tools
