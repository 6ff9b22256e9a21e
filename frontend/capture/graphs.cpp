#include "frontend/capture/graphs.h"

#include <algorithm>
#include <set>

namespace heddle::capture {
namespace {

enum NodeType : uint32_t {
  kKernel = 0,
  kCopy = 1,
  kFill = 2,
  kChildGraph = 4,
  kConditional = 13
};                              // CUgraphNodeType
constexpr int kMostSteps = 64;  // along a chain of clones

}  // namespace

void Graphs::NodeCreated(uint64_t graph, uint64_t node, uint32_t type, uint64_t id) {
  if (const auto old = nodes_.find(node); old != nodes_.end()) std::erase(graphs_[old->second.graph], node);
  nodes_[node] = {graph, 0, id, type, UINT32_MAX, {}, {}};
  graphs_[graph].push_back(node);
}

void Graphs::NodeCloned(uint64_t graph, uint64_t node, uint64_t original, uint32_t type, uint64_t id) {
  NodeCreated(graph, node, type, id);
  if (original == node) return;
  nodes_[node].original = original;
  if (const auto found = nodes_.find(original); found != nodes_.end()) found->second.clones.push_back(node);
}

void Graphs::NodeDependsOn(uint64_t node, uint64_t dependency) {
  if (const auto found = nodes_.find(node); found != nodes_.end())
    found->second.depends_on.push_back(dependency);
}

void Graphs::Instantiated(uint64_t graph, uint64_t executable) { executables_[executable] = graph; }

void Graphs::SetAction(uint64_t node, uint32_t action) { nodes_[node].action = action; }

uint32_t Graphs::ActionOf(uint64_t node) const {
  for (int step = 0; step < kMostSteps; ++step) {
    const auto found = nodes_.find(node);
    if (found == nodes_.end()) return UINT32_MAX;
    if (found->second.action != UINT32_MAX) return found->second.action;
    node = found->second.original;
  }
  return UINT32_MAX;
}

// A clone's are those of its original where nothing was said of its own.
std::vector<uint64_t> Graphs::DependenciesOf(uint64_t node) const {
  for (int step = 0; step < kMostSteps; ++step) {
    const auto found = nodes_.find(node);
    if (found == nodes_.end()) return {};
    if (!found->second.depends_on.empty() || found->second.original == 0) return found->second.depends_on;
    node = found->second.original;
  }
  return {};
}

std::vector<Graphs::Step> Graphs::Steps(uint64_t executable, Unknown* unknown) const {
  *unknown = {};
  const auto executable_graph = executables_.find(executable);
  const uint64_t graph = executable_graph == executables_.end() ? 0 : executable_graph->second;
  const auto members = graphs_.find(graph);
  if (members == graphs_.end()) return {};

  // Dependences may name a clone's original: both stand for the member.
  std::map<uint64_t, uint64_t> member_of;
  for (const uint64_t node : members->second) {
    member_of[node] = node;
    if (const uint64_t original = nodes_.at(node).original; original != 0)
      member_of.try_emplace(original, node);
  }
  std::vector<Step> steps;
  std::map<uint64_t, std::set<uint32_t>>
      waits_for;  // member -> steps that who waits for it waits for: itself where it is one
  for (const uint64_t node : members->second) {  // creation order: dependences come first
    std::set<uint32_t>& before = waits_for[node];
    for (const uint64_t dependency : DependenciesOf(node)) {
      const auto member = member_of.find(dependency);
      if (member == member_of.end() || member->second == node) continue;
      if (const auto known = waits_for.find(member->second); known != waits_for.end())
        before.insert(known->second.begin(), known->second.end());
    }
    const Node& each = nodes_.at(node);
    if (each.type == kChildGraph || each.type == kConditional) ++unknown->nested;
    if (each.type != kKernel && each.type != kCopy && each.type != kFill) continue;
    Step step;
    step.is_kernel = each.type == kKernel;
    step.action = ActionOf(node);
    if (step.action == UINT32_MAX) {
      ++(step.is_kernel ? unknown->kernels : unknown->transfers);
      continue;
    }
    step.ids.push_back(each.id);
    for (const uint64_t clone : each.clones)
      if (const auto found = nodes_.find(clone); found != nodes_.end()) step.ids.push_back(found->second.id);
    step.depends_on.assign(before.begin(), before.end());
    steps.push_back(std::move(step));
    before = {static_cast<uint32_t>(steps.size() - 1)};
  }
  return steps;
}

}  // namespace heddle::capture
