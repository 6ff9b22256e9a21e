#include "sim/gpu/launch_graph.h"

#include <fmt/core.h>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/topological_sort.hpp>
#include <map>

#include "sim/isa/warp_stream.h"

namespace heddle::gpu {
namespace {
constexpr uint32_t kNone = ~0U;
}  // namespace

struct LaunchGraph::Graph {
  boost::adjacency_list<boost::setS, boost::vecS, boost::bidirectionalS> edges;  // setS: an edge once
  std::vector<uint32_t> waiting_for;                                             // by launch
  std::vector<bool> released;
  std::vector<uint32_t> programmatic;  // by launch: the one whose trigger starts it early, or kNone
  std::vector<bool> started;           // by a trigger
};

LaunchGraph::LaunchGraph() : graph_(std::make_unique<Graph>()) {}
LaunchGraph::~LaunchGraph() = default;
LaunchGraph::LaunchGraph(LaunchGraph&&) noexcept = default;
LaunchGraph& LaunchGraph::operator=(LaunchGraph&&) noexcept = default;

Result<LaunchGraph> LaunchGraph::Build(std::span<const LaunchRequest> launches) {
  LaunchGraph result;
  auto& edges = result.graph_->edges;
  std::map<uint32_t, uint32_t> last_of_stream;
  for (uint32_t i = 0; i < launches.size(); ++i) boost::add_vertex(edges);
  for (uint32_t i = 0; i < launches.size(); ++i) {
    for (uint32_t before : launches[i].depends_on) {
      if (before >= launches.size())
        return Error{ExitCode::kUsage, fmt::format("launch {} ({})", i, launches[i].name),
                     fmt::format("depends on launch {}, of which there are {}", before, launches.size()), ""};
      boost::add_edge(before, i, edges);
    }
    const auto [it, is_new] = last_of_stream.try_emplace(launches[i].stream, i);
    result.graph_->programmatic.push_back(kNone);
    if (!is_new) {
      boost::add_edge(it->second, i, edges);
      if (launches[i].program != nullptr && launches[i].program->shape().programmatic_start)
        result.graph_->programmatic.back() = it->second;
      it->second = i;
    }
  }
  try {
    std::vector<uint32_t> order;
    boost::topological_sort(edges, std::back_inserter(order));
  } catch (const boost::not_a_dag&) {
    return Error{ExitCode::kUsage, "launches",
                 "their streams and dependences form a cycle, so none of it can start",
                 "remove a dependence of a launch on a later one of its stream"};
  }
  result.graph_->released.resize(launches.size());
  result.graph_->started.resize(launches.size());
  for (uint32_t i = 0; i < launches.size(); ++i)
    result.graph_->waiting_for.push_back(static_cast<uint32_t>(boost::in_degree(i, edges)));
  return result;
}

std::vector<uint32_t> LaunchGraph::Roots() const {
  std::vector<uint32_t> roots;
  for (uint32_t i = 0; i < graph_->waiting_for.size(); ++i)
    if (graph_->waiting_for[i] == 0) roots.push_back(i);
  return roots;
}

std::vector<uint32_t> LaunchGraph::Trigger(uint32_t launch) {
  std::vector<uint32_t> ready;
  for (auto [it, end] = boost::out_edges(launch, graph_->edges); it != end; ++it) {
    const auto after = static_cast<uint32_t>(boost::target(*it, graph_->edges));
    if (graph_->programmatic[after] != launch || graph_->waiting_for[after] != 1 || graph_->started[after])
      continue;
    graph_->started[after] = true;
    ready.push_back(after);
  }
  return ready;
}

std::vector<uint32_t> LaunchGraph::Release(uint32_t launch) {
  graph_->released[launch] = true;
  std::vector<uint32_t> ready;
  for (auto [it, end] = boost::out_edges(launch, graph_->edges); it != end; ++it) {
    const auto after = boost::target(*it, graph_->edges);
    if (--graph_->waiting_for[after] == 0 && !graph_->started[after])
      ready.push_back(static_cast<uint32_t>(after));
  }
  return ready;
}

std::vector<uint32_t> LaunchGraph::WaitsFor(uint32_t launch) const {
  std::vector<uint32_t> result;
  for (auto [it, end] = boost::in_edges(launch, graph_->edges); it != end; ++it) {
    const auto before = boost::source(*it, graph_->edges);
    if (!graph_->released[before]) result.push_back(static_cast<uint32_t>(before));
  }
  return result;
}

}  // namespace heddle::gpu
