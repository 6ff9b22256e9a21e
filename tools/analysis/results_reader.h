// What a results database holds, as plain structs: launches, the machines and kernels that they name, their counters,
// stalls and per-instruction sums. Reads through sim/sqlite and prints nothing. Databases come from anywhere: what does
// not fit together is an error with ExitCode::kTrace.
//
// launches() is one row each, cheap for a hundred thousand of them; CountsOf() reads what one launch has counted.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/types.h"
#include "sim/config/gpu_description.h"
#include "sim/isa/instruction.h"
#include "sim/sqlite/sqlite.h"
#include "sim/stats/launch_stats.h"

namespace heddle::analysis {

struct RunInfo {  // a row of `run`
  int64_t run_id = 0;
  std::string command, heddle_version, build, started_at, finished_at;
};

struct Machine {
  int64_t config_id = 0;
  std::string name;
  std::string digest;
  std::string text;  // the resolved description
  config::Gpu gpu;   // the same, parsed
};

struct Kernel {
  int64_t kernel_id = 0;
  std::string name;  // mangled
  uint32_t sm_version = 0;
  uint32_t registers_per_thread = 0;
  std::vector<std::string> text;               // by instruction index
  std::vector<isa::Instruction> instructions;  // read from the text, see code_text.h

  uint32_t PcOf(size_t index) const { return static_cast<uint32_t>(index) * isa::kInstructionBytes; }
};

struct LaunchInfo {  // a row of `launch`
  int64_t launch_id = 0;
  int64_t run_id = 0;
  int64_t config_id = 0;
  int64_t kernel_id = 0;
  std::string key, trace_digest, trace_name;
  uint32_t ordinal = 0;
  uint32_t stream = 0;
  Dim3 grid;
  Dim3 block;
  uint32_t shared_bytes_per_cta = 0;
  bool grid_frozen = true;
  std::string mode, execution, cache_policy, dependence;
  uint64_t start_cycle = 0;
  uint64_t end_cycle = 0;
  uint64_t duration_ps = 0;
  // Of a launch in sampled mode: the times are these plus or minus so much, with a confidence of 95 %, and this share of the
  // CTAs was simulated. Where nothing was left out: 0 and 1.
  uint64_t interval_cycles = 0;
  double simulated_share = 1;

  uint64_t Cycles() const { return end_cycle - start_cycle; }
  double Seconds() const { return static_cast<double>(duration_ps) / 1e12; }
  bool IsSampled() const { return simulated_share < 1; }
  double IntervalSeconds() const {
    return Cycles() == 0 ? 0
                         : Seconds() * static_cast<double>(interval_cycles) / static_cast<double>(Cycles());
  }
};

struct LaunchCounts {
  stats::Counters counters;
  stats::StallSlots slots{};
  std::vector<stats::PcStats> per_pc;  // by instruction index; empty where none were kept
};

struct Issue {  // a row of `trace_issue`
  std::string kind, detail;
  uint64_t count = 0;
};

struct BarrierWait {  // a row of `barrier_wait`
  uint32_t pc = 0;
  int64_t cause_pc = -1;
  uint64_t waits = 0;
  uint64_t cycles = 0;
};

// A measurement of a launch: by the launch's key, or of the same launch of the same trace; on a GPU that is not known to be
// another one than the launch's machine.
struct Measurement {
  std::string gpu, kernel_name, source, protocol;
  std::map<std::string, double, std::less<>> metrics;
};

struct Selection {
  int64_t run_id = 0;                // 0: of all runs
  std::string machine;               // name of the description; empty: all
  std::optional<std::regex> kernel;  // searched for in the kernel's name
};

class ResultsReader {
 public:
  static Result<ResultsReader> Open(const std::string& path, const Selection& selection = {});

  const std::string& path() const { return database_->path(); }
  // That the selection takes, by launch_id.
  const std::vector<LaunchInfo>& launches() const { return launches_; }
  const std::vector<RunInfo>& runs() const { return runs_; }
  const std::string& KernelName(int64_t kernel_id) const { return kernel_names_.at(kernel_id); }
  const std::string& MachineName(int64_t config_id) const { return machine_names_.at(config_id); }

  // Read and parsed at the first call for each; the reader keeps them.
  Result<const Machine*> MachineOf(int64_t config_id);
  Result<const Kernel*> KernelOf(int64_t kernel_id);

  Result<LaunchCounts> CountsOf(const LaunchInfo& launch, bool per_pc = true);
  Result<std::vector<Issue>> IssuesOf(int64_t launch_id);
  Result<std::vector<BarrierWait>> WaitsOf(int64_t launch_id);
  Result<std::vector<Measurement>> MeasurementsOf(const LaunchInfo& launch);

  sqlite::Database& database() { return *database_; }

 private:
  explicit ResultsReader(sqlite::Database database);
  Status ReadNames();
  Status ReadLaunches(const Selection& selection);
  Status ReadIntervals();  // of the launches that have been read
  Status ReadPerPc(const LaunchInfo& launch, LaunchCounts* counts);
  enum CountQuery : size_t { kValues, kStalls, kPcStalls, kPcMemory, kCountQueries };
  // Prepared once: thousands of launches are asked one after another.
  Result<sqlite::Statement*> RowsOf(CountQuery query, int64_t launch_id);
  bool IsOnBoard(const std::string& gpu, int64_t config_id);
  Status ReadMemorySums(const LaunchInfo& launch, LaunchCounts* counts);
  Status ReadSums(const LaunchInfo& launch, LaunchCounts* counts);

  std::unique_ptr<sqlite::Database> database_;
  std::vector<LaunchInfo> launches_;
  std::vector<RunInfo> runs_;
  std::map<int64_t, std::string> kernel_names_;
  std::map<int64_t, std::string> machine_names_;
  std::map<int64_t, uint64_t stats::Counters::*> counter_of_;  // by stat_id
  std::map<int64_t, size_t> stall_of_;                         // by stall_id
  std::map<int64_t, std::unique_ptr<Machine>> machines_;
  std::map<int64_t, std::unique_ptr<Kernel>> kernels_;
  std::map<std::string, std::vector<std::string>> archs_of_board_;
  std::array<std::optional<sqlite::Statement>, kCountQueries> count_queries_;
  bool has_measurements_ = false;
  bool has_hardware_launches_ = false;
  bool has_memory_sums_ = false;
};

// Launches that do the same work on the same machine: equal machine, kernel, grid, block, cache policy.
struct LaunchGroup {
  int64_t config_id = 0;
  int64_t kernel_id = 0;
  std::vector<size_t> launches;  // indices into `launches`, rising
  size_t representative = 0;     // the one of median duration
  double seconds = 0;            // of all of them
};
// By falling time of the whole group.
std::vector<LaunchGroup> GroupLaunches(const std::vector<LaunchInfo>& launches);

}  // namespace heddle::analysis
