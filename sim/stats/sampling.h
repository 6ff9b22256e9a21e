// What sampled mode (sim/gpu/sampling.h) did with a launch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/base/types.h"

namespace heddle::stats {

struct Sampling {
  uint64_t ctas_left_out = 0;  // 0: the launch was simulated whole, and nothing in its statistics is extrapolated
  uint32_t jumps = 0;          // parts of the grid that were left out
  Cycle interval_cycles = 0;   // the launch takes its cycles plus or minus so many, with a confidence of 95 %
  std::string whole_because;   // why nothing was left out
  std::optional<uint32_t> like_ordinal;  // the launch of the trace that this is alike and whose results these are
};

}  // namespace heddle::stats
