// A network of named nodes and links. Routes are computed once, when a machine is built; what runs over them
// reserves the links' calendars and never looks at the graph again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/types.h"

namespace heddle::interconnect {

using NodeId = uint32_t;
using LinkId = uint32_t;

struct Link {
  NodeId from = 0;
  NodeId to = 0;
  double bytes_per_cycle = 0;  // 0: no limit of its own
  Cycle latency_cycles = 0;
};

struct Route {
  std::vector<LinkId> links;  // in order
  Cycle latency_cycles = 0;   // of all links
};

class Network {
 public:
  Network();
  ~Network();
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;

  NodeId AddNode(std::string name);
  LinkId AddLink(const Link& link);  // one direction

  // The routes of least latency from a node to each of `to`; of equal ones, that with fewer links. A node
  // that cannot be reached is a contradiction of the model.
  std::vector<Route> Routes(NodeId from, const std::vector<NodeId>& to) const;

  const Link& link(LinkId id) const { return links_[id]; }
  const std::string& name(NodeId id) const { return names_[id]; }
  size_t link_count() const { return links_.size(); }

 private:
  struct Graph;
  std::unique_ptr<Graph> graph_;
  std::vector<std::string> names_;
  std::vector<Link> links_;
};

}  // namespace heddle::interconnect
