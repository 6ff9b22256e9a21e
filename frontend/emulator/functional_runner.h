// Runs launches without a timing model: what a kernel computes, and in how many warp instructions.
//
// CTAs take the places of a GPU of so many SMs in launch order; all resident CTAs advance in turn, so that
// grid barriers, spin locks and split-K semaphores finish. The CTAs of a cluster start together. Atomics take
// effect when they are issued, and so do asynchronous copies unless delay_seed says otherwise. Deterministic;
// one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "frontend/emulator/launch_program.h"
#include "sim/base/result.h"

namespace heddle::emulator {

struct RunnerOptions {
  uint32_t sms = 108;
  uint32_t ctas_per_sm = 0;  // 0: what registers, shared memory, threads and 32 CTAs allow on GA100 or GH100
  bool hash_stream = false;  // RunSummary::stream_hash
  bool by_cta = false;       // RunSummary::cta_warp_instructions
  uint64_t max_warp_instructions = 0;  // 0: none. An Error (kDidNotFinish) when more are needed
  std::vector<uint64_t> only_ctas;  // linear indices; empty: the whole grid. Of clusters: the whole of them
  // Not 0: asynchronous effects (bulk copies, LDGSTS, remote shared memory) take place at random moments, at the
  // latest when the program waits for them. A kernel that lacks a wait computes something else then.
  uint64_t delay_seed = 0;
  // Called for each step of a warp: the run before it, and what the instruction behind the run did.
  std::function<void(const isa::InstructionRun&, const isa::WarpStep&)> observe = nullptr;
};

struct RunSummary {
  uint64_t warp_instructions = 0;
  uint64_t memory_instructions = 0;  // those with an address
  // Depends on every warp's instructions, lanes and addresses in order, and not on how warps were
  // interleaved.
  uint64_t stream_hash = 0;
  std::map<uint64_t, uint64_t> cta_warp_instructions;  // by linear index
};

// Deadlock and the instruction limit are errors that say who waits where.
Result<RunSummary> RunFunctionally(EmulatedLaunch& launch, const RunnerOptions& options = {});

// CTAs of this shape that fit one SM with 64 Ki registers, 64 warps, 32 CTAs and the shared memory of the
// architecture.
uint32_t ResidentCtasPerSm(const isa::LaunchShape& shape, uint32_t sm_version);

}  // namespace heddle::emulator
