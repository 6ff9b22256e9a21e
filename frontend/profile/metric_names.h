// Names of metrics: Nsight Compute's and CUPTI's to heddle's.
#pragma once

#include <string>
#include <string_view>

namespace heddle::profile {

// heddle's name for what Nsight Compute calls `name` (ncu_metrics.def, and what warps wait for), or `name` itself.
std::string HeddleName(std::string_view name);

}  // namespace heddle::profile
