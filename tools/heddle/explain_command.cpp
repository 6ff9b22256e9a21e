// `heddle explain`: what kernels wait for, and what would help, measured.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "tools/explain/bottleneck_tree.h"
#include "tools/explain/tree_json.h"
#include "tools/heddle/desk_commands.h"
#include "tools/heddle/desk_options.h"
#include "tools/heddle/progress.h"
#include "tools/heddle/stop.h"
#include "tools/heddle/table.h"
#include "tools/report/text.h"

namespace heddle::tools {
namespace {

using analysis::KernelAnalysis;
using explain::BottleneckTree;

po::options_description Options() {
  po::options_description options("options");
  AddSelectionOptions(&options, 3);
  AddResimulationOptions(&options);
  options.add_options()("json", "print one JSON document")("quiet,q", "no progress on stderr");
  return options;
}

void PrintRanking(const char* title, const std::vector<explain::WorkloadGain>& ranking, bool by_kernel) {
  if (ranking.empty()) return;
  fmt::print("{}\n", title);
  Table table;
  table.header = {"wins", "% of all", "if there were"};
  table.right = {true, true, false};
  if (by_kernel) table.header.insert(table.header.end(), {"kernel", "machine"});
  for (const explain::WorkloadGain& gain : ranking) {
    std::vector<std::string> row = {report::HumanSeconds(gain.seconds),
                                    fmt::format("{:.1f}", 100 * gain.share), gain.relief};
    if (by_kernel) row.insert(row.end(), {report::ShortName(gain.kernel, 48), gain.machine});
    table.rows.push_back(std::move(row));
  }
  Print(table);
  fmt::print("\n");
}

Status Show(const po::variables_map& values, Arguments files) {
  if (files.size() != 1) return Error{ExitCode::kUsage, "heddle explain", "takes one database", ""};
  HEDDLE_ASSIGN_OR_RETURN(const analysis::Selection selection, ParseSelection(values));
  HEDDLE_ASSIGN_OR_RETURN(explain::Resimulator::Options resimulation, ParseResimulation(values));
  HEDDLE_ASSIGN_OR_RETURN(analysis::ResultsReader reader, analysis::ResultsReader::Open(files[0], selection));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<analysis::LaunchGroup> groups, TopGroups(reader, values));
  double workload_seconds = 0;
  for (const analysis::LaunchInfo& launch : reader.launches()) workload_seconds += launch.Seconds();

  explain::Resimulator resimulator(&reader, std::move(resimulation));
  const bool simulate = values.count("no-gains") == 0;
  explain::TreeOptions options;
  options.reliefs = values["reliefs"].as<uint32_t>();
  std::vector<KernelAnalysis> kernels;
  std::vector<BottleneckTree> trees;
  ProgressBar progress(values.count("quiet") != 0 || !simulate);
  for (const analysis::LaunchGroup& group : groups) {
    HEDDLE_ASSIGN_OR_RETURN(KernelAnalysis kernel, analysis::Analyse(&reader, group));
    progress.Update(kernel.kernel->name, trees.size(), groups.size(), 0);
    HEDDLE_ASSIGN_OR_RETURN(BottleneckTree tree,
                            explain::Explain(&reader, kernel, simulate ? &resimulator : nullptr, options));
    kernels.push_back(std::move(kernel));
    trees.push_back(std::move(tree));
  }
  progress.Clear();
  const auto by_kernel = explain::RankKernels(kernels, trees, workload_seconds);
  const auto by_relief = explain::RankReliefs(kernels, trees, workload_seconds);
  if (values.count("json") != 0) {
    fmt::print("{}\n", explain::TreesJson(kernels, trees, by_kernel, by_relief, workload_seconds));
    return Ok();
  }
  PrintRanking("What the whole would win, by kernel", by_kernel, true);
  if (kernels.size() > 1)
    PrintRanking("The same by what is relieved, over the kernels below", by_relief, false);
  for (size_t i = 0; i < kernels.size(); ++i)
    fmt::print("{}{}", i == 0 ? "" : "\n", explain::TreeText(kernels[i], trees[i], workload_seconds));
  return Ok();
}

ExitCode Run(const po::variables_map& values, Arguments arguments) {
  StopOnSignals();
  const Status status = Show(values, arguments);
  return status.ok() ? ExitCode::kOk : Report(status.error());
}

}  // namespace

Command ExplainCommand() {
  return {"explain", "What kernels wait for, and what would help, measured", Options, "DB", Run};
}

}  // namespace heddle::tools
