// Which metrics of CUPTI a measuring run takes.
#pragma once

#include <string>
#include <vector>

#include "sim/base/result.h"

namespace heddle::capture {

// Names of sets (counter_sets.def, and `all`) and of metrics, with commas between them, as metrics: each once, in the order of
// the table. Errors (kUsage): a word that is neither; metrics have two underscores in their name.
Result<std::vector<std::string>> CountersOf(const std::string& words);

// What --sass-metrics counts of each instruction.
std::vector<std::string> SassMetrics();

}  // namespace heddle::capture
