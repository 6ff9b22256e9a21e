// What the issue stage can leave out for an instruction, decided once per kernel.
#pragma once

#include <cstdint>

#include "sim/config/gpu_description.h"
#include "sim/sm/kernel_timing.h"

namespace heddle::sm {

// Results of variable latency, and sources that are read some time after issue: on a machine with a scoreboard these
// registers are waited for.
bool WaitsOnScoreboard(const InstructionTiming& timing);

// kIsQuiet, kAsksAtIssue and kPlainPipe, from the fields of `timing` and its kSharedPipe, kReadsConstant and
// kOnScoreboard.
uint16_t IssueFlagsOf(const InstructionTiming& timing);

// Where instruction `index` stands in its line, seen from the buffer of a warp that has just issued it: kEndsLine and
// kAsksAhead.
uint16_t FetchFlagsOf(const config::Gpu& gpu, uint64_t code_address, uint64_t index);

}  // namespace heddle::sm
