// The launches of one trace on one machine, one after the other or together, as the trace orders them: the loop behind
// every command that simulates traces. What becomes of a result is the caller's.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/trace/trace.h"
#include "sim/base/result.h"
#include "sim/gpu/gpu.h"
#include "sim/results/results.h"
#include "tools/replay/launch_set.h"
#include "tools/replay/machine_record.h"
#include "tools/replay/replay.h"

namespace heddle::replay {

struct NamedTrace {
  trace::Trace trace;
  std::string digest;
  std::string path;
};
Result<NamedTrace> ReadNamedTrace(const std::string& path);
// The files among `paths`, and the .htrace files in and below its folders in the order of their names. Errors: a folder that cannot
// be listed.
Result<std::vector<std::string>> TraceFiles(const std::vector<std::string>& paths);

// Names as results and the command line have them.
inline constexpr std::array<std::pair<const char*, Mode>, 3> kModes{
    {{"skeleton", Mode::kSkeleton}, {"full", Mode::kFull}, {"sampled", Mode::kSampled}}};
inline constexpr std::array<std::pair<const char*, gpu::CachePolicy>, 3> kCachePolicies{
    {{"cold", gpu::CachePolicy::kCold},
     {"warm", gpu::CachePolicy::kWarm},
     {"flush", gpu::CachePolicy::kFlush}}};
std::string_view Name(Mode mode);
std::string_view Name(gpu::CachePolicy policy);
std::optional<Mode> ModeOf(std::string_view name);
std::optional<gpu::CachePolicy> CachePolicyOf(std::string_view name);

struct TraceRunOptions {
  Mode mode = Mode::kSkeleton;
  trace::Symbols defines;
  gpu::RunOptions gpu;   // threads, cache policy, limits, stop, progress
  bool lenient = false;  // oddities of the trace are part of a result instead of an error
};

// Valid during the call that hands it out.
struct LaunchResult {
  uint32_t ordinal = 0;
  results::LaunchRecord record;
  const isa::LaunchProgram* program = nullptr;
  const stats::LaunchStats* stats = nullptr;
  std::vector<isa::StreamIssue> issues;
  const stats::Timeline* timeline = nullptr;  // where gpu.timeline asks for it
};

class TraceRun {
 public:
  // `trace` and `machine` outlive the run.
  static Result<std::unique_ptr<TraceRun>> Open(const NamedTrace& trace, const MachineRecord& machine,
                                                TraceRunOptions options);

  // Launches that are simulated; none before the first call. Mode and cache policy are those of the options, whatever
  // `setting` says.
  void Select(LaunchSetting setting);
  const std::vector<uint32_t>& selected() const { return launches_->selected(); }
  // The selected launches follow one another: each is handed on before the next one starts.
  bool sequential() const { return launches_->sequential(); }
  uint32_t launch_count() const { return replay_->launch_count(); }
  const isa::KernelCode& code(uint32_t ordinal) const { return replay_->code(ordinal); }

  // What results say of a launch before it is simulated, and its key.
  results::LaunchRecord Record(uint32_t ordinal) const;
  std::string Key(uint32_t ordinal) const;

  // Simulates the selected launches; called again after another Select, it goes on with the same machine. Launches of
  // which `is_done` says so are not handed to `take`; where they neither overlap others nor leave caches behind they are
  // executed without timing, because later launches may read what they wrote. Errors: of the trace, of either function,
  // kInterrupted once gpu.stop is true.
  using IsDone = std::function<Result<bool>(uint32_t ordinal)>;
  using Take = std::function<Status(const LaunchResult&)>;
  Status Run(const IsDone& is_done, const Take& take);

 private:
  TraceRun(const NamedTrace& trace, const MachineRecord& machine, TraceRunOptions options)
      : trace_(trace), machine_(machine), options_(std::move(options)) {}
  Status RunOneByOne(const IsDone& is_done, const Take& take);
  Status RunTogether(const IsDone& is_done, const Take& take);
  Status Hand(uint32_t ordinal, const isa::LaunchProgram& program, const stats::LaunchStats& stats,
              const std::optional<stats::Sampling>& sampling, const stats::Timeline* timeline,
              const Take& take);
  std::vector<uint32_t> DependencesOf(uint32_t launch) const;
  bool Stopped() const { return options_.gpu.stop != nullptr && *options_.gpu.stop; }

  const NamedTrace& trace_;
  const MachineRecord& machine_;
  TraceRunOptions options_;
  std::unique_ptr<Replay> replay_;
  std::optional<gpu::Gpu> gpu_;
  std::optional<LaunchSet> launches_;
};

}  // namespace heddle::replay
