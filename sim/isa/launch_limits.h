// What a launch may ask for on an architecture: the limits that the driver checks before it lets a kernel start.
// Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
#pragma once

#include <cstdint>
#include <string>

#include "sim/isa/warp_stream.h"

namespace heddle::isa {

// What the system takes of shared memory for each CTA, since sm_80. Since sm_90 it lies in front of the kernel's own, and
// a kernel that has shared memory counts it in its static size.
inline constexpr uint32_t kReservedSharedBytes = 1024;

struct LaunchLimits {
  uint32_t sm_version;  // 80, 86, ...
  uint32_t max_threads_per_cta;
  uint32_t max_registers_per_cta;
  uint32_t max_cluster_ctas;  // with cudaFuncAttributeNonPortableClusterSizeAllowed; 1: no clusters
  uint32_t max_warps_per_sm;
  uint32_t max_ctas_per_sm;
  uint32_t shared_bytes_per_sm;  // one CTA may have all of it, less what is reserved
};

// Null for an architecture that is not in the table.
const LaunchLimits* FindLaunchLimits(uint32_t sm_version);

// Those of the newest architecture in the table that is not newer; of the oldest where there is none.
const LaunchLimits& NearestLaunchLimits(uint32_t sm_version);

// Empty when a GPU of that architecture can hold a CTA and a cluster of this shape, or when the architecture is not
// known; otherwise which limit is exceeded: "2048 threads a CTA, sm_80 allows 1024".
std::string ExceededLimit(uint32_t sm_version, const LaunchShape& shape);

}  // namespace heddle::isa
