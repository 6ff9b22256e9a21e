// One GPU: a queue of launches, the SMs that run them, and the memory system behind.
//
// Time is simulated in windows (sim/engine/windows.h). Within a window SMs run alone and in parallel; at its
// edge their requests are served (MemorySystem), stores are published, and finished CTAs reach the
// dispatcher. The result is the same on any number of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/types.h"
#include "sim/stats/launch_stats.h"
#include "sim/stats/sampling.h"
#include "sim/stats/timeline.h"

namespace heddle::config {
struct Gpu;
}
namespace heddle::isa {
class LaunchProgram;
}

namespace heddle::gpu {

// What L2, the TLBs and the dirty lines of an earlier launch look like when a launch starts. Launches that
// overlap others share whatever these left. Under every policy a launch finds its code, parameters and translations as
// an earlier run of the same kernel leaves them.
enum class CachePolicy : uint8_t {
  kCold,   // empty of data, as under Nsight Compute's --cache-control all
  kWarm,   // as the launch before left them
  kFlush,  // full of another buffer's lines, dirty up to the limit: what a benchmark's flush kernel leaves
};

// A launch of which CTAs may be left out (sim/gpu/sampling.h).
struct SamplingRequest {
  uint64_t period_ctas = 1;   // CTAs do the same work as those so many later in the order of the grid
  std::string whole_because;  // why all of it must be simulated; empty: it need not
};

struct LaunchRequest {
  isa::LaunchProgram* program = nullptr;  // outlives Run
  std::string name;                       // for messages
  uint32_t stream = 0;                    // launches of a stream run one after the other, in the order given
  std::vector<uint32_t> depends_on;       // indices of launches that must have ended
  std::optional<SamplingRequest> sampling = std::nullopt;  // none: every CTA is simulated
  bool behind_in_graph = false;  // another launch of its CUDA graph runs before it: launch.graph_overhead_ns
};

struct Progress {
  Cycle cycle = 0;
  uint64_t ctas_done = 0;
  uint64_t ctas_total = 0;
  uint32_t launches_done = 0;
  uint32_t launches_total = 0;
  uint32_t launch = 0;  // index of a launch that runs
};

struct RunOptions {
  uint32_t threads = 1;
  CachePolicy cache_policy = CachePolicy::kCold;
  double window_fraction = 1.0;  // of the longest window that is sound; for tests
  uint64_t shuffle_seed =
      0;  // not 0: SMs, GPCs and slices are processed in another order, to the same result
  bool launch_overhead =
      true;  // count overhead_cycles, drain_cycles and l2_bytes of the description's launch
  bool allow_foreign_cubins = false;  // run cubins that the description does not list in runs_sm_versions
  bool per_pc = true;                 // collect LaunchStats::per_pc
  bool timeline = false;              // keep TakeTimelines(); it changes nothing else
  Cycle max_cycles = 0;               // of one launch, 0: no limit
  uint64_t placement_seed = 0;        // not 0: virtual pages lie in another order in DRAM
  std::function<void(const Progress&)> progress;  // called between windows, on the thread that called Run
  std::atomic<bool>* stop = nullptr;  // once true, launches that run finish and no further one starts
};

class Gpu {
 public:
  // The description has passed the checks of config::LoadGpu.
  Gpu(const config::Gpu& description, RunOptions options);
  ~Gpu();
  Gpu(Gpu&&) noexcept;
  Gpu& operator=(Gpu&&) noexcept;

  // Runs all launches to their end, in stream and dependence order, and returns their statistics in the order
  // given. Caches and time carry over from one call to the next. When `stop` became true, some launches have
  // not ended: see ended(). Errors: kTrace (a cubin of another architecture, a CTA that no SM can host),
  // kUsage (a dependence cycle or an index out of range), kDidNotFinish (deadlock, with the wait-for graph;
  // max_cycles).
  Result<std::vector<stats::LaunchStats>> Run(std::span<const LaunchRequest> launches);

  // Of the last Run: which launches ended, by index. Statistics of the others are zero.
  const std::vector<bool>& ended() const;

  // Of the last Run: what became of LaunchRequest::sampling, by index; empty for launches without one.
  const std::vector<std::optional<stats::Sampling>>& samplings() const;

  // Of the last Run, with RunOptions::timeline: by index, empty for launches that have not ended. Moves them out.
  std::vector<stats::Timeline> TakeTimelines();

  // The whole machine, all SMs: cycles simulated so far.
  Cycle now() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heddle::gpu
