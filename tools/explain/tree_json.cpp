#include "tools/explain/tree_json.h"

#include <nlohmann/json.hpp>

#include "sim/results/results.h"

namespace heddle::explain {
namespace {

using Json = nlohmann::ordered_json;

Json InstructionJson(const analysis::KernelAnalysis& kernel, const BottleneckTree& tree, uint32_t index) {
  Json json{{"pc", kernel.kernel->PcOf(index)}};
  if (index < kernel.kernel->text.size()) json["text"] = kernel.kernel->text[index];
  if (const auto line = tree.source.find(index); line != tree.source.end()) json["source"] = line->second;
  if (index < kernel.counts.per_pc.size() && kernel.counts.per_pc[index].memory.any()) {
    const stats::MemorySums& memory = kernel.counts.per_pc[index].memory;
    json["memory"] = {{"requests", memory.requests},
                      {"sectors", memory.sectors},
                      {"ideal_sectors", memory.ideal_sectors},
                      {"wavefronts", memory.wavefronts},
                      {"bank_conflicts", memory.bank_conflicts}};
  }
  return json;
}

Json GainJson(const Gain& gain) {
  Json json{{"relief", gain.relief->key}, {"text", gain.relief->text}};
  if (!gain.error.empty()) {
    json["error"] = gain.error;
  } else {
    json["cycles"] = gain.cycles;
    json["time_won"] = gain.share;
  }
  return json;
}

Json TreeJson(const analysis::KernelAnalysis& kernel, const BottleneckTree& tree) {
  Json json{{"kernel", kernel.kernel->name},
            {"machine", kernel.machine->name},
            {"launch_id", kernel.launch.launch_id},
            {"launches", kernel.group.launches.size()},
            {"seconds", kernel.group.seconds},
            {"cycles", kernel.launch.Cycles()},
            {"lower_bound_cycles", kernel.bound.cycles}};
  json["causes"] = Json::array();
  for (const Cause& cause : tree.causes) {
    Json sites = Json::array();
    for (const Site& site : cause.sites) {
      Json each = InstructionJson(kernel, tree, site.index);
      each["share"] = site.share;
      if (site.waits_for) each["waits_for"] = InstructionJson(kernel, tree, *site.waits_for);
      sites.push_back(std::move(each));
    }
    Json reliefs = Json::array();
    for (const size_t gain : cause.gains) reliefs.push_back(tree.gains[gain].relief->key);
    json["causes"].push_back({{"stall", analysis::Name(cause.stall.stall)},
                              {"share", cause.stall.share},
                              {"sites", std::move(sites)},
                              {"reliefs", std::move(reliefs)}});
  }
  json["gains"] = Json::array();
  for (const Gain& gain : tree.gains) json["gains"].push_back(GainJson(gain));
  if (!tree.note.empty()) json["note"] = tree.note;
  return json;
}

Json RankingJson(const std::vector<WorkloadGain>& ranking) {
  Json json = Json::array();
  for (const WorkloadGain& gain : ranking) {
    Json each{{"relief", gain.relief}, {"seconds_won", gain.seconds}, {"share_of_all", gain.share}};
    if (!gain.kernel.empty()) each["kernel"] = gain.kernel, each["machine"] = gain.machine;
    json.push_back(std::move(each));
  }
  return json;
}

}  // namespace

std::string TreesJson(const std::vector<analysis::KernelAnalysis>& kernels,
                      const std::vector<BottleneckTree>& trees, const std::vector<WorkloadGain>& by_kernel,
                      const std::vector<WorkloadGain>& by_relief, double workload_seconds) {
  Json document{{"schema_version", results::kSchemaVersion}, {"seconds", workload_seconds}};
  document["by_kernel"] = RankingJson(by_kernel);
  document["by_relief"] = RankingJson(by_relief);
  document["kernels"] = Json::array();
  for (size_t i = 0; i < kernels.size(); ++i) document["kernels"].push_back(TreeJson(kernels[i], trees[i]));
  return document.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace heddle::explain
