// Machines on which one resource is relieved (reliefs.def), and what a launch gains there, by simulating it again.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"
#include "sim/stats/launch_stats.h"
#include "tools/analysis/results_reader.h"
#include "tools/replay/trace_run.h"

namespace heddle::explain {

struct Relief {
  std::string_view key;      // "dram_bandwidth"
  std::string_view text;     // "twice the DRAM bandwidth"
  std::string_view stalls;   // names, separated by blanks, or "*"
  std::string_view changes;  // as in reliefs.def

  bool Helps(stats::Stall stall) const;
};
const std::vector<Relief>& Reliefs();  // in the order of reliefs.def

// The changes as overrides of this description ("path=value"), factors applied. Empty where it has none of the paths.
std::vector<std::string> OverridesOf(const Relief& relief, const config::Gpu& gpu);

struct Gain {
  const Relief* relief = nullptr;
  double cycles = 0;  // of the launch with the resource relieved
  double share = 0;   // of the launch's time that is won, negative where it is slower
  std::string error;  // not empty: could not be simulated
};

// Simulates launches of a results database again.
class Resimulator {
 public:
  struct Options {
    std::vector<std::string> traces;  // files; those that the runs' commands name are tried too
    trace::Symbols defines;           // beside those that the command names
    uint32_t threads = 1;
    std::atomic<bool>* stop = nullptr;
  };
  Resimulator(analysis::ResultsReader* reader, Options options)
      : reader_(reader), options_(std::move(options)) {}

  // The trace of a launch: a file whose digest is the launch's. An error says where it was looked for.
  Result<const replay::NamedTrace*> TraceOf(const analysis::LaunchInfo& launch);

  // Cycles and time of the launch on the machine that it ran on, changed by `overrides`. `same_key` is given whether the
  // unchanged launch has the key that the database has, so that its numbers there may be compared with.
  struct Outcome {
    double cycles = 0;
    double seconds = 0;
    bool same_key = false;
  };
  Result<Outcome> Simulate(const analysis::LaunchInfo& launch, const std::vector<std::string>& overrides);

  // The code with its control bits, which the database does not have.
  Result<isa::KernelCode> CodeOf(const analysis::LaunchInfo& launch);

 private:
  Result<replay::TraceRunOptions> OptionsOf(const analysis::LaunchInfo& launch) const;
  std::vector<std::string> WordsOf(int64_t run_id) const;
  std::vector<uint32_t> OrdinalsBeside(const analysis::LaunchInfo& launch) const;

  analysis::ResultsReader* reader_;
  Options options_;
  std::map<std::string, std::unique_ptr<replay::NamedTrace>> traces_;  // by digest
};

// A command line as `run.command` has it, into words: blanks separate, '...' keeps them together.
std::vector<std::string> SplitCommand(std::string_view command);

}  // namespace heddle::explain
