#include "tools/heddle/desk_options.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tools/heddle/run_settings.h"
#include "tools/heddle/stop.h"

namespace heddle::tools {

void AddSelectionOptions(po::options_description* options, uint32_t default_top) {
  options->add_options()("kernel,k", po::value<std::string>(),
                         "only kernels whose name matches this regular expression")(
      "arch,a", po::value<std::string>()->default_value(""), "only launches on the machine of this name")(
      "run", po::value<int64_t>()->default_value(0), "only launches of this run (table run); 0: of all")(
      "top", po::value<uint32_t>()->default_value(default_top),
      "the kernels that take the longest; launches of equal machine, kernel and shape count as one");
}

Result<analysis::Selection> ParseSelection(const po::variables_map& values) {
  analysis::Selection selection;
  selection.run_id = values["run"].as<int64_t>();
  selection.machine = values["arch"].as<std::string>();
  HEDDLE_ASSIGN_OR_RETURN(selection.kernel, ParseKernelPattern(values));
  return selection;
}

Result<std::optional<std::regex>> ParseKernelPattern(const po::variables_map& values) {
  if (values.count("kernel") == 0) return std::optional<std::regex>();
  const std::string pattern = values["kernel"].as<std::string>();
  try {
    return std::optional<std::regex>(pattern);
  } catch (const std::regex_error& error) {
    return Error{ExitCode::kUsage, "--kernel",
                 fmt::format("'{}' is no regular expression: {}", pattern, error.what()), ""};
  }
}

Result<std::vector<analysis::LaunchGroup>> TopGroups(const analysis::ResultsReader& reader,
                                                     const po::variables_map& values) {
  if (reader.launches().empty()) {
    return Error{ExitCode::kUsage, reader.path(), "has no launch that is asked for",
                 "`heddle db show` lists what is in it; see --kernel, --arch and --run"};
  }
  std::vector<analysis::LaunchGroup> groups = analysis::GroupLaunches(reader.launches());
  groups.resize(std::min<size_t>(groups.size(), std::max(1u, values["top"].as<uint32_t>())));
  return groups;
}

void AddResimulationOptions(po::options_description* options) {
  const auto words = [] { return po::value<std::vector<std::string>>(); };
  options->add_options()("trace", words(),
                         "a trace that the launches came from, where it is not where the run found it")(
      "define,d", words(), "NAME=INTEGER: a shape that the run changed, where its command does not tell")(
      "threads,t", po::value<uint32_t>()->default_value(0), "threads; 0: one a core")(
      "reliefs", po::value<uint32_t>()->default_value(8),
      "simulate so many changes of the machine for a kernel")("no-gains", "simulate nothing again");
}

Result<explain::Resimulator::Options> ParseResimulation(const po::variables_map& values) {
  explain::Resimulator::Options options;
  if (values.count("trace") != 0) options.traces = values["trace"].as<std::vector<std::string>>();
  if (values.count("define") != 0) {
    HEDDLE_ASSIGN_OR_RETURN(options.defines, ParseDefines(values["define"].as<std::vector<std::string>>()));
  }
  options.threads = values["threads"].as<uint32_t>();
  if (options.threads == 0) options.threads = std::max(1u, std::thread::hardware_concurrency());
  options.stop = &StopFlag();
  return options;
}

}  // namespace heddle::tools
