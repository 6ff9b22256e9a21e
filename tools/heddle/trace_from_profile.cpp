#include "tools/heddle/trace_from_profile.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "frontend/trace/htrace.h"
#include "sim/config/load.h"
#include "tools/compare/built_kernels.h"
#include "tools/compare/from_profile.h"
#include "tools/heddle/table.h"
#include "tools/toolchain/toolchain.h"

namespace heddle::tools {
namespace {

constexpr const char* kExample =
    "heddle trace from-profile report.sqlite --traces traces --arch h100_sxm5 -o X.htrace";

std::string Shape(const std::optional<Dim3>& shape) {
  return shape ? fmt::format("{}x{}x{}", shape->x, shape->y, shape->z) : "";
}

// The start of a long name and its end, where template arguments differ.
std::string Shortened(const std::string& name) {
  return name.size() <= 48 ? name : name.substr(0, 33) + "..." + name.substr(name.size() - 12);
}

void PrintTable(const compare::FromProfile& result) {
  Table table{{"kernel", "grid", "block", "launches", "ms", "% of time", "trace", "note"},
              {},
              {false, true, true, true, true, true}};
  for (const compare::ProfiledKernel& kernel : result.kernels) {
    table.rows.push_back(
        {Shortened(kernel.kernel), Shape(kernel.grid), Shape(kernel.block),
         fmt::format("{}", kernel.launches), fmt::format("{:.3f}", kernel.total_ps / 1e9),
         fmt::format("{:.1f}", result.total_ps > 0 ? 100 * kernel.total_ps / result.total_ps : 0.0),
         kernel.trace.empty() ? "-" : std::filesystem::path(kernel.trace).filename().string(),
         kernel.reason});
  }
  Print(table);
  fmt::print("\n{} of {} launches, {:.1f} % of the time\n", result.matched_launches, result.launches,
             result.CoveredPercent());
}

void PrintJson(const compare::FromProfile& result) {
  nlohmann::ordered_json json = {{"schema_version", 1},
                                 {"launches", result.launches},
                                 {"matched_launches", result.matched_launches},
                                 {"total_ps", result.total_ps},
                                 {"matched_ps", result.matched_ps},
                                 {"covered_time_percent", result.CoveredPercent()}};
  json["kernels"] = nlohmann::ordered_json::array();
  for (const compare::ProfiledKernel& kernel : result.kernels) {
    json["kernels"].push_back({{"kernel", kernel.kernel},
                               {"grid", Shape(kernel.grid)},
                               {"block", Shape(kernel.block)},
                               {"launches", kernel.launches},
                               {"total_ps", kernel.total_ps},
                               {"trace", kernel.trace},
                               {"note", kernel.reason}});
  }
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace

po::options_description FromProfileOptionsTable() {
  po::options_description options("options");
  auto add = options.add_options();
  add("output,o", po::value<std::string>()->value_name("FILE"), "the trace to write (.htrace)");
  add("traces", po::value<std::vector<std::string>>()->value_name("PATH")->composing(),
      "traces to look for kernels in: a file, or a folder with all that is in it; may be given again");
  add("kernels", po::value<std::string>()->value_name("DIR"),
      "launch descriptions of kernels that are built where no trace has them; kernels/ of the sources when "
      "left out");
  add("no-build", po::bool_switch(), "look for kernels in --traces alone");
  add("arch,a", po::value<std::string>()->value_name("NAME"), "machine that grids are worked out for");
  add("every-launch", po::bool_switch(),
      "the whole sequence of launches; otherwise each kernel and shape once");
  add("json", po::bool_switch(), "print JSON");
  return options;
}

Status FromProfile(const po::variables_map& values, Arguments positional) {
  const auto usage = [](std::string message) {
    return Error{ExitCode::kUsage, "heddle trace from-profile", std::move(message), kExample};
  };
  if (positional.size() != 1) return usage("give one profile");
  for (const char* needed : {"output", "arch"}) {
    if (values.count(needed) == 0) return usage(fmt::format("--{} is not given", needed));
  }
  HEDDLE_ASSIGN_OR_RETURN(const config::Gpu gpu, config::LoadGpu(values["arch"].as<std::string>()));
  compare::FromProfileOptions options;
  if (values.count("traces") != 0) options.traces = values["traces"].as<std::vector<std::string>>();
  if (!values["no-build"].as<bool>()) {
    options.kernels =
        values.count("kernels") != 0 ? values["kernels"].as<std::string>() : compare::KernelFolder();
    options.cache = compare::TraceCacheFolder();
    options.toolchain = toolchain::Default();
  }
  options.every_launch = values["every-launch"].as<bool>();
  HEDDLE_ASSIGN_OR_RETURN(const compare::FromProfile result,
                          compare::TraceFromProfile(positional[0], gpu, options));
  for (const std::string& note : result.notes) fmt::print(stderr, "{}\n", note);
  HEDDLE_RETURN_IF_ERROR(trace::WriteTrace(result.trace, values["output"].as<std::string>()));
  if (values["json"].as<bool>()) {
    PrintJson(result);
  } else {
    PrintTable(result);
  }
  return Ok();
}

}  // namespace heddle::tools
