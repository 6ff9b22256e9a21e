// Runs the simulations of a plan, on several threads, and keeps what they counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/results/results.h"
#include "tools/validate/plan.h"

namespace heddle::validate {

// The launches of one simulation together.
struct Measured {
  Cycle cycles = 0;  // from submission to the last acknowledged write, summed over launches
  double microseconds = 0;
  std::map<std::string, uint64_t, std::less<>> counters;  // of counters.def, and inst_<OPCODE>
  std::string launch_key;  // of the results database; empty where there are several launches
  std::string error;       // not empty: could not be simulated
};

struct SimulateOptions {
  uint32_t jobs = 1;
  results::Writer* writer = nullptr;  // may be null; launches that it holds are not simulated again
  std::atomic<bool>* stop =
      nullptr;  // once true, simulations that run are finished and no further one starts
  std::function<void(size_t done, size_t total, const std::string& what)>
      progress;  // from any thread, one at a time
};

// In the order of plan.simulations. What is wrong with one simulation stands in its Measured; errors are those of the database
// and kInterrupted.
Result<std::vector<Measured>> RunSimulations(const Plan& plan, const SimulateOptions& options);

}  // namespace heddle::validate
