// What a measuring run found, into the trace of the run before it.
#pragma once

#include <cstddef>
#include <vector>

#include "frontend/trace/trace.h"

namespace heddle::capture {

struct JoinedMeasurements {
  size_t joined = 0;      // launches that have counters now
  size_t unmeasured = 0;  // launches of the measuring run without counters
  size_t strangers = 0;   // launches with counters that the trace has no partner for
};

// Runs of the same program give launches other correlations and other addresses: the n-th launch of a cubin's kernel with a grid and a
// block is the n-th one there. Counters of `measured` are added to those of `trace`, named for its launches.
JoinedMeasurements JoinMeasured(const trace::Trace& measured, trace::Trace* trace);

// For each trace of a measuring run the one of `traces` with the most launches in common, each taken once; SIZE_MAX: none.
std::vector<size_t> PartnersOf(const std::vector<const trace::Trace*>& measured,
                               const std::vector<const trace::Trace*>& traces);

}  // namespace heddle::capture
