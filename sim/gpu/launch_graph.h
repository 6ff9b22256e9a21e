// Which launch may start after which others: streams are chains, depends_on adds edges (Boost.Graph).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sim/base/result.h"
#include "sim/gpu/gpu.h"

namespace heddle::gpu {

class LaunchGraph {
 public:
  // kUsage: an index that does not exist, or a cycle.
  static Result<LaunchGraph> Build(std::span<const LaunchRequest> launches);
  ~LaunchGraph();
  LaunchGraph(LaunchGraph&&) noexcept;
  LaunchGraph& operator=(LaunchGraph&&) noexcept;

  // Launches that nothing holds back, in the order given to Build.
  std::vector<uint32_t> Roots() const;
  // Every CTA of `launch` has triggered: the launch behind it in its stream, when that has programmatic_start and waits for
  // nothing else. Release does not name it again.
  std::vector<uint32_t> Trigger(uint32_t launch);
  // `launch` has ended: those that only waited for it.
  std::vector<uint32_t> Release(uint32_t launch);
  // Launches that `launch` waits for and that have not been released.
  std::vector<uint32_t> WaitsFor(uint32_t launch) const;

 private:
  struct Graph;
  LaunchGraph();
  std::unique_ptr<Graph> graph_;
};

}  // namespace heddle::gpu
