// What `heddle capture` asks of the library, through environment variables HEDDLE_CAPTURE_*.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::capture {

enum class Snapshot : uint8_t { kNone, kIndex, kAll };
enum class Measure : uint8_t { kNothing, kCounters, kSass, kPcSamples };

struct Settings {
  const char* folder = nullptr;  // HEDDLE_CAPTURE_FOLDER; null: capture nothing
  uint64_t skip = 0;             // HEDDLE_CAPTURE_SKIP: selected launches before the first that is recorded
  uint64_t count = UINT64_MAX;   // HEDDLE_CAPTURE_COUNT
  const char* range = nullptr;   // HEDDLE_CAPTURE_RANGE: an NVTX range's name
  Snapshot snapshot = Snapshot::kNone;  // HEDDLE_CAPTURE_SNAPSHOT
  const char* plan = nullptr;           // HEDDLE_CAPTURE_PLAN: a file
  Measure measure =
      Measure::kNothing;  // HEDDLE_CAPTURE_MEASURE: counters, sass or pc; kernel times are not taken then
  const char* metrics = nullptr;  // HEDDLE_CAPTURE_METRICS: names with commas between them
};

// Reads the environment and compiles HEDDLE_CAPTURE_KERNELS, an extended POSIX regular expression.
void ReadSettings();
const Settings& TheSettings();

bool SelectsKernel(const char* mangled_name);

// One launch of a selected kernel: is it to be recorded? Counts it.
bool AdmitLaunch();
bool WouldAdmitLaunch();  // the next one, without counting

// A range of NVTX begins: whether it is one that was asked for. LeaveRange() for each that is.
bool EnterRange(const char* name, size_t length);
void LeaveRange();

// Contents up to this many bytes are kept of one copy or one snapshot in mode `index`, and of an allocation in mode `all`.
inline constexpr size_t kIndexBytes = size_t{64} << 10;
inline constexpr size_t kAllBytes = size_t{256} << 20;

}  // namespace heddle::capture
