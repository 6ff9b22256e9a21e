#include "sim/interconnect/network.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <limits>

#include "sim/base/check.h"

namespace heddle::interconnect {

struct EdgeProperties {
  LinkId link = 0;
  uint64_t cost = 0;
};

struct Network::Graph {
  boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, EdgeProperties> edges;
};

Network::Network() : graph_(std::make_unique<Graph>()) {}
Network::~Network() = default;
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;

NodeId Network::AddNode(std::string name) {
  names_.push_back(std::move(name));
  return static_cast<NodeId>(boost::add_vertex(graph_->edges));
}

LinkId Network::AddLink(const Link& link) {
  const LinkId id = static_cast<LinkId>(links_.size());
  links_.push_back(link);
  // Latency first, then the number of links.
  boost::add_edge(link.from, link.to, EdgeProperties{id, link.latency_cycles << 16 | 1}, graph_->edges);
  return id;
}

std::vector<Route> Network::Routes(NodeId from, const std::vector<NodeId>& to) const {
  const auto& graph = graph_->edges;
  std::vector<uint64_t> distance(boost::num_vertices(graph));
  std::vector<LinkId> arrived_by(distance.size(), std::numeric_limits<LinkId>::max());

  struct Recorder : boost::default_dijkstra_visitor {
    std::vector<LinkId>* arrived_by;
    void edge_relaxed(const boost::graph_traits<decltype(Graph::edges)>::edge_descriptor& edge,
                      const decltype(Graph::edges)& graph) const {
      (*arrived_by)[boost::target(edge, graph)] = graph[edge].link;
    }
  };
  Recorder recorder;
  recorder.arrived_by = &arrived_by;
  boost::dijkstra_shortest_paths(graph, from,
                                 boost::weight_map(boost::get(&EdgeProperties::cost, graph))
                                     .distance_map(distance.data())
                                     .visitor(recorder));
  std::vector<Route> routes;
  for (NodeId node : to) {
    Route route;
    while (node != from) {
      HEDDLE_CHECK(arrived_by[node] < links_.size(), names_[node], 0, "no route from " + names_[from]);
      route.links.push_back(arrived_by[node]);
      route.latency_cycles += links_[route.links.back()].latency_cycles;
      node = links_[route.links.back()].from;
    }
    std::reverse(route.links.begin(), route.links.end());
    routes.push_back(std::move(route));
  }
  return routes;
}

}  // namespace heddle::interconnect
