// `heddle report`: results as one HTML file.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "tools/explain/bottleneck_tree.h"
#include "tools/heddle/desk_commands.h"
#include "tools/heddle/desk_options.h"
#include "tools/heddle/output_file.h"
#include "tools/heddle/progress.h"
#include "tools/heddle/stop.h"
#include "tools/report/report.h"
#include "tools/report/text.h"

namespace heddle::tools {
namespace {

using analysis::ResultsReader;

po::options_description Options() {
  po::options_description options("options");
  AddSelectionOptions(&options, 500);
  options.add_options()("output,o", po::value<std::string>()->required(), "the HTML file to write")(
      "explain", po::value<uint32_t>()->default_value(0),
      "of so many kernels of each database, simulate again what would help (see `heddle explain`)");
  AddResimulationOptions(&options);
  options.add_options()("quiet,q", "no progress on stderr");
  return options;
}

// One database with the trees of its first kernels, which go to `page` from position `first` on.
Result<report::ReportPart> Open(const po::variables_map& values, const std::string& file, size_t first,
                                ResultsReader* reader, ProgressBar* progress, report::ReportOptions* page) {
  report::ReportPart part;
  part.name = std::filesystem::path(file).filename().string();
  part.reader = reader;
  HEDDLE_ASSIGN_OR_RETURN(part.groups, TopGroups(*reader, values));
  for (const analysis::LaunchInfo& launch : reader->launches()) part.seconds += launch.Seconds();
  HEDDLE_ASSIGN_OR_RETURN(explain::Resimulator::Options options, ParseResimulation(values));
  explain::Resimulator resimulator(reader, std::move(options));
  explain::TreeOptions tree_options;
  tree_options.reliefs = values["reliefs"].as<uint32_t>();
  const size_t explained = std::min<size_t>(values["explain"].as<uint32_t>(), part.groups.size());
  const bool simulate = values.count("no-gains") == 0;
  std::vector<analysis::KernelAnalysis> kernels;
  std::vector<explain::BottleneckTree> trees;
  for (size_t i = 0; i < explained; ++i) {
    HEDDLE_ASSIGN_OR_RETURN(analysis::KernelAnalysis kernel, analysis::Analyse(reader, part.groups[i]));
    progress->Update("explain " + kernel.kernel->name, i, explained, 0);
    HEDDLE_ASSIGN_OR_RETURN(
        explain::BottleneckTree tree,
        explain::Explain(reader, kernel, simulate ? &resimulator : nullptr, tree_options));
    page->trees[first + i] = explain::TreeText(kernel, tree, part.seconds);
    page->source[first + i] = tree.source;
    kernels.push_back(std::move(kernel));
    trees.push_back(std::move(tree));
  }
  for (const explain::WorkloadGain& gain : explain::RankKernels(kernels, trees, part.seconds))
    part.explained += fmt::format("{:5.1f} % of all time: {} in {}\n", 100 * gain.share, gain.relief,
                                  report::ShortName(gain.kernel, 60));
  return part;
}

Status Write(const po::variables_map& values, Arguments files) {
  if (files.empty())
    return Error{ExitCode::kUsage, "heddle report", "no database given",
                 "name one or more results databases"};
  HEDDLE_ASSIGN_OR_RETURN(const analysis::Selection selection, ParseSelection(values));
  ProgressBar progress(values.count("quiet") != 0);
  report::ReportOptions options;
  std::vector<std::unique_ptr<ResultsReader>> readers;
  std::vector<report::ReportPart> parts;
  size_t first = 0;
  for (const std::string& file : files) {
    HEDDLE_ASSIGN_OR_RETURN(ResultsReader reader, ResultsReader::Open(file, selection));
    readers.push_back(std::make_unique<ResultsReader>(std::move(reader)));
    HEDDLE_ASSIGN_OR_RETURN(report::ReportPart part,
                            Open(values, file, first, readers.back().get(), &progress, &options));
    first += part.groups.size();
    parts.push_back(std::move(part));
  }
  progress.Clear();
  HEDDLE_ASSIGN_OR_RETURN(const std::string page, report::ReportPage(parts, options));
  return WriteFile(values["output"].as<std::string>(), page);
}

ExitCode Run(const po::variables_map& values, Arguments arguments) {
  StopOnSignals();
  const Status status = Write(values, arguments);
  return status.ok() ? ExitCode::kOk : Report(status.error());
}

}  // namespace

Command ReportCommand() {
  return {"report", "Results as one HTML file that is read offline", Options, "DB...", Run};
}

}  // namespace heddle::tools
