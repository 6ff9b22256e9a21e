// Traces of several processes of one run as one trace.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "frontend/trace/trace.h"
#include "sim/base/result.h"

namespace heddle::capture {

// `traces` with their places, for errors. Equal cubins become one module; streams of different traces stay apart; launches are
// ordered by their start where all were measured (on one clock: the same machine), else trace after trace. Errors (kTrace): traces
// that lie on the same addresses and are not of the same process cannot be replayed as one; definitions that differ.
Result<trace::Trace> MergeTraces(const std::vector<std::pair<std::string, trace::Trace>>& traces);

}  // namespace heddle::capture
