// What tools/analysis says of launches, as JSON text: stable keys, base units.
#pragma once

#include <string>
#include <vector>

#include "tools/analysis/kernel_analysis.h"

namespace heddle::report {

// {"schema_version", "kernels": [{"kernel", "machine", "launches", "seconds", "roofline", "lower_bound",
// "speed_of_light", "stalls"}, ...]}
std::string AnalysisJson(const std::vector<analysis::KernelAnalysis>& kernels);

}  // namespace heddle::report
