#include "tools/report/analysis_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/results/results.h"

namespace heddle::report {
namespace {

using analysis::KernelAnalysis;
using Json = nlohmann::ordered_json;

Json RooflineJson(const analysis::Roofline& roofline) {
  Json json;
  json["arithmetic"] = roofline.kind;
  json["operations"] = roofline.ops;
  json["operations_per_second"] = roofline.ops_per_second;
  json["percent_of_rate"] = roofline.rate_percent;
  json["rates"] = Json::array();
  for (const analysis::Roof& rate : roofline.rates)
    json["rates"].push_back({{"name", rate.name}, {"operations_per_second", rate.per_second}});
  json["levels"] = Json::array();
  for (const analysis::RooflinePoint& point : roofline.points) {
    json["levels"].push_back(
        {{"level", analysis::Name(point.level)},
         {"bytes", point.bytes},
         {"bytes_per_second", point.bytes_per_second},
         {"peak_bytes_per_second", roofline.bandwidths[static_cast<size_t>(point.level)].per_second},
         {"operations_per_byte", point.ops_per_byte},
         {"percent_of_roof", point.roof_percent}});
  }
  json["measured"] = Json::array();
  for (const analysis::MeasuredPoint& point : roofline.measured) {
    Json each{{"source", point.source}, {"operations_per_second", point.ops_per_second}};
    each["operations_per_dram_byte"] = point.ops_per_byte ? Json(*point.ops_per_byte) : Json(nullptr);
    json["measured"].push_back(each);
  }
  return json;
}

Json BoundJson(const analysis::LowerBound& bound) {
  Json json{{"cycles", bound.cycles}, {"fixed_cycles", bound.fixed_cycles}, {"reached", bound.reached}};
  json["resources"] = Json::array();
  for (const analysis::ResourceBound& resource : bound.resources) {
    json["resources"].push_back({{"resource", analysis::Name(resource.resource)},
                                 {"work", resource.work},
                                 {"unit", analysis::UnitOf(resource.resource)},
                                 {"per_cycle", resource.per_cycle},
                                 {"cycles", resource.cycles}});
  }
  return json;
}

Json SectionsJson(const std::vector<analysis::Section>& sections) {
  Json json = Json::array();
  for (const analysis::Section& section : sections) {
    Json metrics = Json::array();
    for (const analysis::Metric& metric : section.metrics) {
      Json each{{"label", metric.label}};
      if (!metric.name.empty()) each["name"] = metric.name;
      if (metric.text.empty()) {
        each["value"] = metric.value;
        each["unit"] = metric.unit;
      } else {
        each["value"] = metric.text;
      }
      if (metric.measured) each["measured"] = *metric.measured;
      metrics.push_back(std::move(each));
    }
    json.push_back({{"section", section.title}, {"metrics", std::move(metrics)}});
  }
  return json;
}

Json KernelJson(const KernelAnalysis& kernel) {
  Json json;
  json["kernel"] = kernel.kernel->name;
  json["machine"] = kernel.machine->name;
  json["grid"] = {kernel.launch.grid.x, kernel.launch.grid.y, kernel.launch.grid.z};
  json["block"] = {kernel.launch.block.x, kernel.launch.block.y, kernel.launch.block.z};
  json["launch_id"] = kernel.launch.launch_id;
  json["launches"] = kernel.group.launches.size();
  json["seconds"] = kernel.group.seconds;
  json["cycles"] = kernel.launch.Cycles();
  if (kernel.launch.IsSampled()) {
    json["interval_cycles"] = kernel.launch.interval_cycles;
    json["simulated_cta_share"] = kernel.launch.simulated_share;
  }
  json["roofline"] = RooflineJson(kernel.roofline);
  json["lower_bound"] = BoundJson(kernel.bound);
  json["speed_of_light"] = SectionsJson(kernel.sections);
  json["stalls"] = Json::array();
  for (const analysis::StallShare& stall : kernel.ladder)
    json["stalls"].push_back(
        {{"stall", analysis::Name(stall.stall)}, {"slots", stall.slots}, {"share", stall.share}});
  return json;
}

}  // namespace

std::string AnalysisJson(const std::vector<KernelAnalysis>& kernels) {
  Json document;
  document["schema_version"] = results::kSchemaVersion;
  document["kernels"] = Json::array();
  for (const KernelAnalysis& kernel : kernels) document["kernels"].push_back(KernelJson(kernel));
  return document.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace heddle::report
