// Traces of several processes of one run as one trace.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "frontend/trace/trace.h"
#include "sim/base/result.h"

namespace heddle::capture {

struct MergedTraces {
  trace::Trace trace;
  std::vector<std::string>
      relocated;  // traces whose memory was moved: it lay on addresses of one before them
};

// `traces` with their places, for errors. Equal cubins become one module; streams of different traces stay apart; launches are
// ordered by their start where all were measured (on one clock: the same machine), else trace after trace. Each process has an address space of
// its own: one that overlaps with those before it is moved (relocate.h). Errors (kTrace): traces that are not of captured
// processes, definitions that differ.
Result<MergedTraces> MergeTraces(std::vector<std::pair<std::string, trace::Trace>> traces);

}  // namespace heddle::capture
