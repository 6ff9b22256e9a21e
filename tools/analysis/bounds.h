// How long a launch takes at least, by each resource that its counted work needs. A resource moves so many units a cycle
// and no more, so that work / rate cycles cannot be beaten; the largest of them, and what a launch costs before its first
// and after its last CTA, is the lower bound of the launch. The simulator must never be faster (tests/property).
//
// The bound takes the work as it was counted. Fewer DRAM bytes, say, by a larger L2, would lower it.
#pragma once

#include <string_view>
#include <vector>

#include "sim/config/gpu_description.h"
#include "tools/analysis/work.h"

namespace heddle::analysis {

enum class Resource : uint8_t {
  kDram,          // bytes
  kL2,            // bytes through the slices' arrays
  kL2Atomics,     // requests
  kL2Fabric,      // bytes between the partitions of L2
  kNetworkRead,   // bytes from L2 to SMs
  kNetworkWrite,  // bytes from SMs to L2
  kL1,            // cycles of the data arrays: L1 and shared memory
  kLsu,           // instructions that the LSUs take
  kIssue,         // issue slots
  kTensor,        // cycles of the pipes, from here on
  kFma,
  kAlu,
  kFp16,
  kFp64,
  kXu,
  kUniform,
  kCbu,
  kAdu,
  kDispatch,  // CTAs
};
inline constexpr int kResourceCount = static_cast<int>(Resource::kDispatch) + 1;
std::string_view Name(Resource resource);    // "DRAM", "L2 slices", ...
std::string_view UnitOf(Resource resource);  // "byte", ...

struct ResourceBound {
  Resource resource{};
  double work = 0;
  double per_cycle = 0;  // at most, the SMs that can take part
  double cycles = 0;     // work / per_cycle
};

struct LowerBound {
  std::vector<ResourceBound> resources;  // that the launch needs at all, by falling cycles
  double fixed_cycles = 0;               // launch overhead, CTA launch latency and drain
  double cycles = 0;                     // fixed_cycles and the first of resources
  double reached = 0;                    // cycles / what the launch took: 1 cannot be passed
};

// `launch_overhead`: as gpu::RunOptions says.
LowerBound LowerBoundOf(const config::Gpu& gpu, const LaunchWork& work, bool launch_overhead = true);

// Units a cycle that the whole machine moves.
double PeakPerCycle(const config::Gpu& gpu, Resource resource);

}  // namespace heddle::analysis
