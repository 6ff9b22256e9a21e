// Measurements of real GPUs as profilers export them: Nsight Systems (SQLite), Nsight Compute (CSV, long and wide) and
// PyTorch/Kineto (JSON, also gzipped), as one list of launches with times and counters in base units.
//
// Read is by column and by key: what an export lacks stays empty, what is not known is passed over. Only what is named
// here is looked at: exports of Nsight Systems also hold the environment of the process, which is never read. A file may
// come from anywhere; one that is malformed gives an error with its place and ExitCode::kTrace.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/types.h"

namespace heddle::profile {

enum class Format : uint8_t { kNsightSystems, kNsightCompute, kKineto };
const char* FormatName(Format format);  // "Nsight Systems", ...

// In base units: ps, byte, hz, cycle, inst, %, and quotients of these. Where heddle counts the same, `name` is its counter's
// (sim/stats/counters.def) or `duration_ps`; `stall_samples_CAUSE` and `stall_per_issue_CAUSE` are Nsight Compute's two
// ways of saying what warps wait for; otherwise it is the profiler's own name.
struct Metric {
  std::string name;
  std::string unit;
  double value = 0;
};

struct Launch {
  std::string kernel;        // as the profiler prints it: demangled where it does that
  std::string mangled_name;  // empty: not said
  std::string gpu;           // empty: not said
  std::optional<Dim3> grid, block, cluster;
  std::optional<uint64_t> registers_per_thread, static_shared_bytes, dynamic_shared_bytes;
  std::optional<uint64_t> device, context, stream, process, correlation, graph_node;
  std::string
      launch_call;  // the API call found by (correlation, process); empty: it lies outside the profile
  std::optional<int64_t> start_ns;
  std::vector<Metric> metrics;  // each name once
};

struct Profile {
  Format format = Format::kNsightSystems;
  std::string
      producer;  // "Nsight Systems 2026.1.1.204, schema 3.24.14"; without a version where none is stated
  std::string protocol;                   // what the times contain
  uint32_t time_resolution_ns = 1;        // 1000: the file has whole microseconds
  std::vector<Launch> launches;           // by start where there is one, else as in the file
  std::map<std::string, uint64_t> notes;  // what was passed over, and how often
};

// Recognised by contents, not by name.
Result<Profile> ReadProfile(const std::string& path);

// The same from memory, for text formats. `place` names it in errors.
Result<Profile> ReadNsightComputeCsv(const std::string& text, const std::string& place);
Result<Profile> ReadKinetoJson(const std::string& text, const std::string& place);

// heddle's name for what Nsight Compute and CUPTI call `name`, or `name` itself.
std::string MetricName(const std::string& name);

}  // namespace heddle::profile
