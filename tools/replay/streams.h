// What the kernels of kernels/streams wrote down about themselves (kernels/streams/streams.cu): on a GPU, and in the emulator.
//
// Both execute the same machine code, so each thread must have used the same addresses in the same order, and stored the same results.
// Which lanes came to a place together is the hardware's choice and is not compared. Executed counts of instructions come from a capture of
// the GPU's run with SASS metrics: a launch is one warp, so that the counts of a launch are those of a warp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "frontend/trace/trace.h"
#include "sim/base/result.h"
#include "sim/config/gpu_description.h"

namespace heddle::replay {

inline constexpr const char* kStreamBuffers[] = {
    "log", "out"};  // what is kept of a run, one file each: <buffer>.bin

// The bytes of the two buffers behind the last launch.
struct StreamMemory {
  std::vector<std::byte> log, out;
};
// Errors (kTrace): a file is missing or not of the buffers' size.
Result<StreamMemory> ReadStreams(const std::string& folder, const trace::ResolvedTrace& resolved);
Status WriteStreams(const StreamMemory& memory, const std::string& folder);

struct ExecutedStreams {
  StreamMemory memory;
  std::vector<std::vector<uint64_t>> counts;  // by launch and instruction
  // Accesses that a launch wrote down and that no instruction of the thread made: the log would not speak of the machine code.
  std::vector<uint64_t> strays;
};
// Executes a trace that was built from kernels/streams. Errors (kTrace): another trace.
Result<ExecutedStreams> ExecuteStreams(const trace::Trace& trace, const config::Gpu& gpu);

struct StreamComparison {
  std::string kernel;
  uint64_t measured_accesses = 0, executed_accesses = 0;  // of all threads
  uint32_t threads_that_differ = 0;
  std::string first_difference;  // empty: none
  bool same_results = true;
  uint64_t strays = 0;
  bool is_counted = false;  // the rest is known
  double measured_instructions = 0, executed_instructions = 0;
  uint32_t instructions_that_differ = 0;

  bool Agrees() const {
    return threads_that_differ == 0 && same_results && strays == 0 && instructions_that_differ == 0 &&
           measured_accesses != 0;
  }
};
// One for each launch. `counted`: a capture of the run with SASS metrics; nullptr: none. Errors (kTrace): it is of other launches.
Result<std::vector<StreamComparison>> CompareStreams(const trace::Trace& trace, const StreamMemory& measured,
                                                     const ExecutedStreams& executed,
                                                     const trace::Trace* counted);

}  // namespace heddle::replay
