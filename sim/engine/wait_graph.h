// The deadlock report: who waits for what, and who holds it. Filled only when nothing can move any more.
#pragma once

#include <string>
#include <vector>

namespace heddle::engine {

struct Wait {
  std::string waiter;    // component path: "gpu[0].sm[17].cta[3].warp[2]"
  std::string resource;  // "barrier 0 (3 of 8 warps arrived)", "launch 'reduce' to end"
  std::string holder;    // path of the component that could let it go on; empty when nobody can
};

class WaitGraph {
 public:
  void Add(std::string waiter, std::string resource, std::string holder = {});

  const std::vector<Wait>& waits() const { return waits_; }

  // Waiters of one cycle of the graph, each waiting for the next and the last for the first; empty when there
  // is none.
  std::vector<std::string> FindCycle() const;

  // One line a wait, at most `max_lines` (the rest is counted), then the cycle if there is one.
  std::string ToString(size_t max_lines = 40) const;

 private:
  std::vector<Wait> waits_;
};

}  // namespace heddle::engine
