// Graphs of a captured process: which launches, copies and fills a graph launch runs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace heddle::capture {

// Handles may come back for other graphs and nodes: what is said last counts.
class Graphs {
 public:
  void NodeCreated(uint64_t graph, uint64_t node, uint32_t type, uint64_t id);
  void NodeCloned(uint64_t graph, uint64_t node, uint64_t original, uint32_t type, uint64_t id);
  void NodeDependsOn(uint64_t node, uint64_t dependency);
  void Instantiated(uint64_t graph, uint64_t executable);
  // The node does this from now on: a launch, or a copy or fill (an index of the caller's).
  void SetAction(uint64_t node, uint32_t action);

  struct Step {
    bool is_kernel = false;
    uint32_t action = 0;
    std::vector<uint64_t> ids;         // CUPTI's numbers that its records may carry
    std::vector<uint32_t> depends_on;  // earlier steps in the list
  };
  // Nodes that do something, and what that is was not seen.
  struct Unknown {
    uint32_t kernels = 0;
    uint32_t transfers = 0;
    uint32_t nested = 0;  // child graphs, conditional nodes
  };
  // The kernels, copies and fills of an executable graph, each after those that it waits for. Other nodes only pass dependences on.
  std::vector<Step> Steps(uint64_t executable, Unknown* unknown) const;

 private:
  struct Node {
    uint64_t graph = 0;
    uint64_t original = 0;  // 0: none
    uint64_t id = 0;
    uint32_t type = 0;
    uint32_t action = UINT32_MAX;
    std::vector<uint64_t> depends_on;
    std::vector<uint64_t> clones;
  };
  uint32_t ActionOf(uint64_t node) const;
  std::vector<uint64_t> DependenciesOf(uint64_t node) const;

  std::map<uint64_t, Node> nodes_;
  std::map<uint64_t, std::vector<uint64_t>> graphs_;  // nodes in the order of creation
  std::map<uint64_t, uint64_t> executables_;          // -> graph
};

}  // namespace heddle::capture
