// Runs a trace's launches in the emulator, computing everything, and checks the output; and whether skeleton mode, which
// computes what decides control flow and addresses alone, gives the same instructions, lanes and addresses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/trace/check.h"
#include "frontend/trace/trace.h"
#include "sim/base/result.h"
#include "sim/config/gpu_description.h"
#include "sim/isa/warp_stream.h"

namespace heddle::replay {

struct Verification {
  trace::CheckReport check;
  uint64_t warp_instructions = 0;
  std::vector<isa::StreamIssue> issues;  // of all launches, in their order
  std::vector<uint64_t> stream_hashes;   // by launch

  bool verified() const { return check.passed(); }
};

// `delay_seed` not 0: asynchronous effects take place at random moments (emulator::RunnerOptions), so that a kernel that
// lacks a wait fails its check. Errors: what Replay::Open and RunCheck refuse, a deadlock, an instruction that cannot be
// executed.
Result<Verification> Verify(const trace::Trace& trace, const config::Gpu& gpu, const trace::Symbols& defines,
                            uint64_t delay_seed = 0);

// By launch, in skeleton mode. Errors as above.
Result<std::vector<uint64_t>> SkeletonStreamHashes(const trace::Trace& trace, const config::Gpu& gpu,
                                                   const trace::Symbols& defines);

}  // namespace heddle::replay
