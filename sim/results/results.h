// The results database: what was simulated, on which machine, and what came out. schema.sql says what stands
// where.
//
// A writer works on "<file>.partial" and renames it over <file> at Finish(), so that <file> is always whole.
// A partial file left behind by an interrupted run is continued; a finished file is copied and continued.
// Launches that are already in it (by key) are not simulated again.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/types.h"
#include "sim/isa/warp_stream.h"
#include "sim/sqlite/sqlite.h"
#include "sim/stats/launch_stats.h"
#include "sim/stats/sampling.h"
#include "sim/stats/timeline.h"

namespace heddle::results {

inline constexpr int32_t kApplicationId = 0x4845444c;  // "HEDL"
inline constexpr int kSchemaVersion = 7;
inline constexpr int kTimelineVersion = 4;    // the first with the tables cta and counter_sample
inline constexpr int kMemorySumsVersion = 7;  // the first with the table pc_memory
extern const char* const
    kModelVersion;  // changes when the same input gives other cycles; part of every launch key

struct RunManifest {
  std::string command;
  std::string heddle_version;
  std::string build;
};

struct ConfigRecord {
  std::string digest;
  std::string name;
  std::string text;
  uint32_t sm_count = 0;
  uint64_t sm_clock_hz = 0;
  uint64_t dram_bytes_per_second = 0;
  uint64_t tensor_ops_per_second = 0;
  uint64_t fma_ops_per_second = 0;
};

struct LaunchRecord {
  std::string trace_digest;
  std::string trace_name;
  uint32_t ordinal = 0;
  uint32_t stream = 0;
  bool grid_frozen = true;
  std::string mode;
  std::string execution;  // follows from the rest: not part of the key
  std::string cache_policy;
  std::string dependence;
  std::optional<stats::Sampling> sampling;  // of mode sampled; follows from the rest
  std::string options;                      // whatever else changes the result; only hashed
  uint64_t duration_ps = 0;
};

// Which launch of a profiled process was measured: the row of hardware_launch. What is not known stays empty.
struct HardwareLaunch {
  std::string mangled_name;
  std::optional<Dim3> grid, block, cluster;
  std::optional<uint64_t> registers_per_thread, static_shared_bytes, dynamic_shared_bytes;
  std::optional<uint64_t> device, context, stream, process, correlation, graph_node;
  std::string launch_call;
  std::optional<int64_t> start_ns;
  uint32_t time_resolution_ns = 1;
  std::string trace_digest;
  std::optional<uint32_t> trace_ordinal;
};

// A measurement on real hardware. Metrics that are named like a counter of the launch stand in v_error beside it.
struct HardwareRecord {
  struct Metric {
    std::string name;
    std::string unit;
    double value = 0;
  };
  std::string gpu;
  std::string kernel_name;
  std::string source;
  std::string protocol;
  std::string launch_key;  // that it is compared with; empty: none
  // A number of one instruction, under the name that the metric of the whole launch has.
  struct PcMetric {
    uint64_t pc = 0;  // byte offset, as in isa::Instruction
    std::string name;
    double value = 0;
  };
  std::vector<Metric> metrics;
  std::optional<HardwareLaunch> launch;  // of a profile
  std::string kernel_digest;             // KernelDigest of what ran; only where there are pc_metrics
  std::vector<PcMetric> pc_metrics;      // each (pc, name) once
};

// SHA-256 of name and machine code: kernel.digest.
std::string KernelDigest(std::string_view name, std::span<const std::byte> code);

// SHA-256 over everything that decides a launch's result.
std::string LaunchKey(const LaunchRecord& record, const std::string& config_digest);

class Writer {
 public:
  static Result<Writer> Open(const std::string& path);

  Status BeginRun(const RunManifest& manifest);
  Result<bool> HasLaunch(const std::string& key);
  // One transaction: the launch with its config, kernel, counters, stalls, per-PC sums and issues.
  Status AddLaunch(const LaunchRecord& record, const ConfigRecord& config, const isa::KernelCode& code,
                   const isa::LaunchShape& shape, const stats::LaunchStats& stats,
                   const std::vector<isa::StreamIssue>& issues);
  // One transaction: the timeline of a launch that is there already. Nothing where it has one. `start`: of the launch,
  // by the timeline's clock; the launch may have been simulated before, beginning at another cycle.
  Status AddTimeline(const std::string& key, const stats::Timeline& timeline, Cycle start);
  Result<bool> HasTimeline(const std::string& key);
  // Replaces what an earlier run wrote of the same gpu, kernel and source.
  Status AddHardware(const HardwareRecord& record);
  // One transaction: the launches of a profile, in their order, in place of all that stands there of the same source.
  // Every record has `source` as its source and a launch.
  Status ReplaceProfile(const std::string& source, const std::vector<HardwareRecord>& records);
  // Marks the run as finished, puts the file in its place.
  Status Finish();
  // After an error: keeps the partial file when launches are in it, for the next run; removes it otherwise.
  void Abandon();
  sqlite::Database& database() { return database_; }
  const std::string& path() const { return path_; }

 private:
  explicit Writer(sqlite::Database database) : database_(std::move(database)) {}
  Result<int64_t> ConfigId(const ConfigRecord& config);
  Result<int64_t> KernelId(const isa::KernelCode& code, const isa::LaunchShape& shape);
  Status AddCounts(int64_t launch_id, const stats::LaunchStats& stats,
                   const std::vector<isa::StreamIssue>& issues);
  Status AddMemorySums(int64_t launch_id, const stats::LaunchStats& stats);

  sqlite::Database database_;
  std::string path_;
  int64_t run_id_ = 0;
};

// Opens a finished results database for reading; refuses other files and newer versions.
Result<sqlite::Database> OpenForReading(const std::string& path);

// Adds the launches of `sources` to `target` (created when missing). A launch that is there already is not
// counted twice.
Status Merge(const std::string& target, const std::vector<std::string>& sources);

// Text that is the same for the same input: every table ordered by content, without ids, commands and times.
Result<std::string> CanonicalDump(sqlite::Database* database);

// Markdown made from schema.sql.
std::string SchemaMarkdown();

}  // namespace heddle::results
