// Which launches of a trace a run simulates, and by which keys results know them. Needs the resolved trace alone, so that
// whoever plans many runs can tell what a database holds already without setting up a replay.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "frontend/trace/trace.h"
#include "tools/replay/machine_record.h"

namespace heddle::replay {

// What decides a launch's result beside trace and machine.
struct LaunchSetting {
  std::function<bool(uint32_t ordinal)> wanted = nullptr;  // none: every launch
  std::function<bool(const std::string& text)> kernel =
      nullptr;                    // asked for the kernel's name and the launch's label; none: all
  std::string mode = "skeleton";  // or "full", "sampled"
  std::string cache = "cold";     // "warm", "flush"
};

// What results say of a launch before it is simulated, as far as it is the launch's alone. `name` is the trace's file
// without its folder; mode and cache as in LaunchSetting.
results::LaunchRecord RecordOf(const trace::Trace& trace, const trace::ResolvedTrace& resolved,
                               uint32_t ordinal, const std::string& digest, const std::string& name,
                               const std::string& mode, const std::string& cache,
                               const MachineRecord& machine);

class LaunchSet {
 public:
  // `trace` and `resolved` outlive the set.
  LaunchSet(const trace::Trace& trace, const trace::ResolvedTrace& resolved, const LaunchSetting& setting);

  // Ordinals, rising.
  const std::vector<uint32_t>& selected() const { return selected_; }
  // Launches of one stream do not overlap: each can be committed before the next one starts.
  bool sequential() const { return sequential_; }
  // All of the record that the key is made of: RecordOf, and the others of the set where they share caches or SMs.
  results::LaunchRecord Record(uint32_t ordinal, const std::string& digest, const std::string& name,
                               const MachineRecord& machine) const;
  // Keys of the selected launches, in order.
  std::vector<std::string> Keys(const std::string& digest, const std::string& name,
                                const MachineRecord& machine) const;

 private:
  const trace::Trace& trace_;
  const trace::ResolvedTrace& resolved_;
  std::string mode_, cache_;
  std::vector<uint32_t> selected_;
  bool sequential_ = true;
};

}  // namespace heddle::replay
