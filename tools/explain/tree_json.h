// Bottleneck trees as JSON text: stable keys, base units.
#pragma once

#include <string>
#include <vector>

#include "tools/explain/bottleneck_tree.h"

namespace heddle::explain {

std::string TreesJson(const std::vector<analysis::KernelAnalysis>& kernels,
                      const std::vector<BottleneckTree>& trees, const std::vector<WorkloadGain>& by_kernel,
                      const std::vector<WorkloadGain>& by_relief, double workload_seconds);

}  // namespace heddle::explain
