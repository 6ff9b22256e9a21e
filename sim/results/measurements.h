// Measurements from one results database into another.
#pragma once

#include <string>

#include "sim/base/result.h"
#include "sim/results/results.h"

namespace heddle::results {

// Adds the measurements of `source`, and nothing else of it, within the writer's run. A profile that is there already, by
// its source, is not added again.
Status MergeMeasurements(Writer* writer, const std::string& source);

}  // namespace heddle::results
