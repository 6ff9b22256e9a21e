#include "sim/engine/wait_graph.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

namespace heddle::engine {
namespace {

enum class Mark { kNew, kOnPath, kDone };

// Depth-first with an explicit stack: a chain of waits may be as long as there are warps.
std::vector<std::string> CycleFrom(const std::string& root,
                                   const std::multimap<std::string, std::string>& edges,
                                   std::map<std::string, Mark>* marks) {
  using Range = std::pair<std::multimap<std::string, std::string>::const_iterator,
                          std::multimap<std::string, std::string>::const_iterator>;
  std::vector<std::pair<std::string, Range>> path;
  const auto enter = [&](const std::string& node) {
    (*marks)[node] = Mark::kOnPath;
    path.emplace_back(node, edges.equal_range(node));
  };
  enter(root);
  while (!path.empty()) {
    auto& [node, range] = path.back();
    if (range.first == range.second) {
      (*marks)[node] = Mark::kDone;
      path.pop_back();
      continue;
    }
    const std::string next = (range.first++)->second;
    const Mark mark = (*marks)[next];
    if (mark == Mark::kNew) {
      enter(next);
    } else if (mark == Mark::kOnPath) {
      std::vector<std::string> cycle;
      auto it = std::find_if(path.begin(), path.end(), [&](const auto& step) { return step.first == next; });
      for (; it != path.end(); ++it) cycle.push_back(it->first);
      return cycle;
    }
  }
  return {};
}

}  // namespace

void WaitGraph::Add(std::string waiter, std::string resource, std::string holder) {
  waits_.push_back({std::move(waiter), std::move(resource), std::move(holder)});
}

std::vector<std::string> WaitGraph::FindCycle() const {
  std::multimap<std::string, std::string> edges;
  for (const Wait& wait : waits_)
    if (!wait.holder.empty()) edges.emplace(wait.waiter, wait.holder);
  std::map<std::string, Mark> marks;
  for (const auto& edge : edges) {
    if (marks[edge.first] != Mark::kNew) continue;
    if (auto cycle = CycleFrom(edge.first, edges, &marks); !cycle.empty()) return cycle;
  }
  return {};
}

std::string WaitGraph::ToString(size_t max_lines) const {
  std::string text;
  for (size_t i = 0; i < std::min(waits_.size(), max_lines); ++i) {
    const Wait& wait = waits_[i];
    text += fmt::format("{} waits for {}{}{}\n", wait.waiter, wait.resource,
                        wait.holder.empty() ? "" : ", held by ", wait.holder);
  }
  if (waits_.size() > max_lines) text += fmt::format("and {} more\n", waits_.size() - max_lines);
  const std::vector<std::string> cycle = FindCycle();
  if (!cycle.empty()) {
    text += "cycle: ";
    for (const std::string& node : cycle) text += node + " -> ";
    text += cycle.front() + "\n";
  }
  return text;
}

}  // namespace heddle::engine
