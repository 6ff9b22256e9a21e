// `heddle roofline`: how far kernels are from what the machine could do.
#include <fmt/format.h>

#include "tools/heddle/desk_commands.h"
#include "tools/heddle/desk_options.h"
#include "tools/heddle/output_file.h"
#include "tools/heddle/table.h"
#include "tools/report/analysis_json.h"
#include "tools/report/roofline_plot.h"
#include "tools/report/text.h"
#include "tools/report/text_roofline.h"

namespace heddle::tools {
namespace {

using analysis::KernelAnalysis;
using analysis::MemoryLevel;
using report::Human;

std::string LevelText(const KernelAnalysis& kernel, MemoryLevel level) {
  for (const analysis::RooflinePoint& point : kernel.roofline.points) {
    if (point.level != level) continue;
    const double peak = kernel.roofline.bandwidths[static_cast<size_t>(level)].per_second;
    return fmt::format("{:.0f}", 100 * point.bytes_per_second / peak);
  }
  return "";
}

std::string IntensityText(const KernelAnalysis& kernel) {
  for (const analysis::RooflinePoint& point : kernel.roofline.points)
    if (point.level == MemoryLevel::kDram && kernel.roofline.ops > 0)
      return fmt::format("{:.3g}", point.ops_per_byte);
  return "";
}

std::string BoundText(const KernelAnalysis& kernel) {
  const analysis::LowerBound& bound = kernel.bound;
  if (bound.resources.empty() || bound.fixed_cycles > bound.resources[0].cycles) return "launch overhead";
  return std::string(analysis::Name(bound.resources[0].resource));
}

void PrintKernels(const std::vector<KernelAnalysis>& kernels) {
  Table table;
  table.header = {"",     "machine", "kernel", "launches", "us each",  "arithmetic", "op/s",      "%rate",
                  "op/B", "DRAM%",   "L2%",    "L1%",      "bound us", "reached%",   "bounded by"};
  table.right = {false, false, false, true, true, false, true, true,
                 true,  true,  true,  true, true, true,  false};
  for (size_t i = 0; i < kernels.size(); ++i) {
    const KernelAnalysis& k = kernels[i];
    const double us = k.launch.Seconds() * 1e6;
    table.rows.push_back({std::string(1, report::MarkOf(i)), k.machine->name,
                          report::ShortName(k.kernel->name), fmt::format("{}", k.group.launches.size()),
                          fmt::format("{:.1f}", us), k.roofline.kind,
                          k.roofline.ops > 0 ? Human(k.roofline.ops_per_second, "op/s") : "",
                          k.roofline.ops > 0 ? fmt::format("{:.1f}", k.roofline.rate_percent) : "",
                          IntensityText(k), LevelText(k, MemoryLevel::kDram), LevelText(k, MemoryLevel::kL2),
                          LevelText(k, MemoryLevel::kL1), fmt::format("{:.1f}", us * k.bound.reached),
                          fmt::format("{:.0f}", 100 * k.bound.reached), BoundText(k)});
  }
  Print(table);
}

void PrintDetails(const KernelAnalysis& kernel) {
  fmt::print("\nLower bound by resource\n");
  Table bounds;
  bounds.header = {"resource", "work", "unit", "a cycle", "cycles", "% of the launch"};
  bounds.right = {false, true, false, true, true, true};
  const auto cycles = static_cast<double>(std::max<uint64_t>(1, kernel.work.cycles));
  bounds.rows.push_back({"launch overhead", "", "", "", fmt::format("{:.0f}", kernel.bound.fixed_cycles),
                         fmt::format("{:.1f}", 100 * kernel.bound.fixed_cycles / cycles)});
  for (const analysis::ResourceBound& each : kernel.bound.resources) {
    bounds.rows.push_back({std::string(analysis::Name(each.resource)), fmt::format("{:.0f}", each.work),
                           std::string(analysis::UnitOf(each.resource)),
                           fmt::format("{:.4g}", each.per_cycle), fmt::format("{:.0f}", each.cycles),
                           fmt::format("{:.1f}", 100 * each.cycles / cycles)});
  }
  Print(bounds);
  for (const analysis::Section& section : kernel.sections) {
    Table table;
    table.header = {section.title, "simulated", "measured"};
    table.right = {false, true, true};
    for (const analysis::Metric& metric : section.metrics) {
      table.rows.push_back({metric.label,
                            metric.text.empty() ? Human(metric.value, metric.unit) : metric.text,
                            metric.measured ? Human(*metric.measured, metric.unit) : ""});
    }
    fmt::print("\n");
    Print(table);
  }
}

po::options_description Options() {
  po::options_description options("options");
  AddSelectionOptions(&options, 20);
  options.add_options()("json", "print one JSON document")("html", po::value<std::string>(),
                                                           "write an HTML page to this file");
  return options;
}

Status Show(const po::variables_map& values, Arguments files) {
  if (files.size() != 1) return Error{ExitCode::kUsage, "heddle roofline", "takes one database", ""};
  HEDDLE_ASSIGN_OR_RETURN(const analysis::Selection selection, ParseSelection(values));
  HEDDLE_ASSIGN_OR_RETURN(analysis::ResultsReader reader, analysis::ResultsReader::Open(files[0], selection));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<analysis::LaunchGroup> groups, TopGroups(reader, values));
  std::vector<KernelAnalysis> kernels;
  for (const analysis::LaunchGroup& group : groups) {
    HEDDLE_ASSIGN_OR_RETURN(KernelAnalysis kernel, analysis::Analyse(&reader, group));
    kernel.counts.per_pc.clear();  // not shown here, and long
    kernels.push_back(std::move(kernel));
  }
  if (values.count("html") != 0)
    HEDDLE_RETURN_IF_ERROR(WriteFile(values["html"].as<std::string>(), report::RooflinePage(kernels)));
  if (values.count("json") != 0) {
    fmt::print("{}\n", report::AnalysisJson(kernels));
    return Ok();
  }
  PrintKernels(kernels);
  const std::string chart = report::RooflineChart(kernels);
  if (!chart.empty()) fmt::print("\n{}", chart);
  if (kernels.size() == 1) PrintDetails(kernels[0]);
  return Ok();
}

ExitCode Run(const po::variables_map& values, Arguments arguments) {
  const Status status = Show(values, arguments);
  return status.ok() ? ExitCode::kOk : Report(status.error());
}

}  // namespace

Command RooflineCommand() {
  return {"roofline", "How far kernels are from what the machine could do", Options, "DB", Run};
}

}  // namespace heddle::tools
