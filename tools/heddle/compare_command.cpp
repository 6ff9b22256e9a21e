// `heddle compare`: simulated launches beside measured ones.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "tools/compare/comparison.h"
#include "tools/heddle/commands.h"
#include "tools/heddle/output_file.h"

namespace heddle::tools {
namespace {

po::options_description Options() {
  po::options_description options("options");
  auto add = options.add_options();
  add("arch", po::value<std::string>()->value_name("NAME"), "machine, where several were simulated");
  add("gpu", po::value<std::string>()->value_name("TEXT"),
      "part of the GPU's name, where several were measured");
  add("source", po::value<std::string>()->value_name("TEXT"),
      "measurements of files whose name has this in it");
  add("run", po::value<int64_t>()->value_name("ID"), "launches of this run (table run); default: all");
  add("baseline", po::value<std::string>()->value_name("RUN"),
      "another run's id, or another database: what became better or worse, kernel by kernel");
  add("kernel", po::value<std::string>()->value_name("REGEX"), "kernels whose name has this in it");
  add("by", po::value<std::string>()->default_value("kernel")->value_name("WHAT"),
      "kernel, launch or category");
  add("rows", po::value<size_t>()->default_value(40)->value_name("N"), "rows of the table");
  add("json", "print one JSON document");
  add("csv", "print the rows as CSV");
  add("html", po::value<std::string>()->value_name("FILE"), "write a report that opens offline");
  add("max-error", po::value<double>()->value_name("PERCENT"),
      "fail with exit code 6 where the mean |error|, weighted by time, is larger");
  return options;
}

template <typename T>
std::optional<T> Given(const po::variables_map& values, const char* name) {
  return values.count(name) == 0 ? std::nullopt : std::optional(values[name].as<T>());
}

// The baseline's launches: of another run in the same database, or of another database.
Result<compare::SimulatedSet> LoadBaseline(const std::string& baseline, const std::string& database,
                                           compare::Selection* selection) {
  compare::Selection of_baseline = *selection;
  of_baseline.run.reset();
  const bool is_run = !baseline.empty() && baseline.size() < 10 &&
                      baseline.find_first_not_of("0123456789") == std::string::npos;
  if (!is_run) return compare::LoadSimulated(baseline, of_baseline);
  of_baseline.run = std::stoll(baseline);
  // What the machine was called then need not be what it is called now.
  of_baseline.machine.clear();
  if (!selection->run) selection->not_run = of_baseline.run;
  return compare::LoadSimulated(database, of_baseline);
}

Status Gate(const compare::Comparison& comparison, double most, const std::string& database) {
  if (comparison.rows.empty()) {
    return Error{ExitCode::kGateFailed, database, "no measured launch has a simulated partner",
                 "see the reasons above"};
  }
  if (comparison.totals.weighted_mape_percent <= most) return Ok();
  return Error{ExitCode::kGateFailed, database,
               fmt::format("the mean |error|, weighted by time, is {:.1f} %, above {}",
                           comparison.totals.weighted_mape_percent, most),
               ""};
}

Status CompareFiles(const po::variables_map& values, Arguments files) {
  const auto usage = [](std::string message) {
    return Error{ExitCode::kUsage, "heddle compare", std::move(message),
                 "heddle compare results.db [measured.db]"};
  };
  if (files.empty() || files.size() > 2)
    return usage("takes a results database, and another one where the measurements are elsewhere");
  const std::string& by_name = values["by"].as<std::string>();
  constexpr std::pair<std::string_view, compare::By> kBys[] = {{"kernel", compare::By::kKernel},
                                                               {"launch", compare::By::kLaunch},
                                                               {"category", compare::By::kCategory}};
  const auto by =
      std::find_if(std::begin(kBys), std::end(kBys), [&](const auto& each) { return each.first == by_name; });
  if (by == std::end(kBys))
    return usage(fmt::format("--by {} is neither kernel nor launch nor category", by_name));

  const auto most = Given<double>(values, "max-error");
  if (most && !(*most >= 0)) return usage("--max-error is no number of percent");

  compare::Selection selection;
  selection.machine = Given<std::string>(values, "arch").value_or("");
  selection.gpu = Given<std::string>(values, "gpu").value_or("");
  selection.source = Given<std::string>(values, "source").value_or("");
  selection.kernel = Given<std::string>(values, "kernel").value_or("");
  selection.run = Given<int64_t>(values, "run");
  std::optional<compare::SimulatedSet> baseline;
  if (const auto name = Given<std::string>(values, "baseline")) {
    HEDDLE_ASSIGN_OR_RETURN(baseline, LoadBaseline(*name, files[0], &selection));
  }
  HEDDLE_ASSIGN_OR_RETURN(const compare::SimulatedSet simulated, compare::LoadSimulated(files[0], selection));
  HEDDLE_ASSIGN_OR_RETURN(const compare::MeasuredSet measured,
                          compare::LoadMeasured(files.back(), selection));
  compare::Comparison comparison =
      compare::Compare(simulated, measured, by->second, baseline ? &*baseline : nullptr);
  HEDDLE_RETURN_IF_ERROR(compare::AddLines(files[0], files.back(), &comparison));
  if (const auto path = Given<std::string>(values, "html")) {
    HEDDLE_RETURN_IF_ERROR(WriteFile(*path, compare::ComparisonHtml(comparison)));
    fmt::print(stderr, "The report is in {}\n", *path);
  }
  if (values.count("json") != 0) {
    fmt::print("{}\n", compare::ComparisonJson(comparison));
  } else if (values.count("csv") != 0) {
    fmt::print("{}", compare::ComparisonCsv(comparison));
  } else {
    fmt::print("{}", compare::ComparisonText(comparison, values["rows"].as<size_t>()));
  }
  std::fflush(stdout);
  return most ? Gate(comparison, *most, files[0]) : Ok();
}

ExitCode Run(const po::variables_map& values, Arguments files) {
  const Status status = CompareFiles(values, files);
  return status.ok() ? ExitCode::kOk : Report(status.error());
}

}  // namespace

Command CompareCommand() {
  return {"compare", "Simulated launches beside those that a GPU ran: errors, counters, what has no partner",
          Options, "RESULTS.db [MEASURED.db]", Run};
}

}  // namespace heddle::tools
