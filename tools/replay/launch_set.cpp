#include "tools/replay/launch_set.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::replay {

LaunchSet::LaunchSet(const trace::Trace& trace, const trace::ResolvedTrace& resolved,
                     const LaunchSetting& setting)
    : trace_(trace), resolved_(resolved), setting_(setting) {
  for (uint32_t i = 0; i < resolved.launches.size(); ++i) {
    const trace::ResolvedLaunch& launch = resolved.launches[i];
    if (setting.wanted && !setting.wanted(i)) continue;
    if (setting.kernel && !setting.kernel(trace.functions[launch.function].name) &&
        !setting.kernel(launch.name)) {
      continue;
    }
    selected_.push_back(i);
  }
  sequential_ = std::all_of(selected_.begin(), selected_.end(), [&](uint32_t i) {
    return !resolved.launches[i].programmatic &&
           resolved.launches[i].stream == resolved.launches[selected_.front()].stream;
  });
}

results::LaunchRecord LaunchSet::Record(uint32_t ordinal, const std::string& digest, const std::string& name,
                                        const MachineRecord& machine) const {
  const trace::ResolvedLaunch& launch = resolved_.launches[ordinal];
  const bool recorded = trace_.modules[trace_.functions[launch.function].module].recorded();
  results::LaunchRecord record;
  record.trace_digest = digest;
  record.trace_name = name;
  record.ordinal = ordinal;
  record.stream = launch.stream;
  record.grid_frozen = launch.frozen_grid;
  record.mode = setting_.mode;
  record.cache_policy = setting_.cache;
  record.dependence = recorded ? "scoreboard" : machine.dependence;
  for (const auto& [define, value] : resolved_.defines)
    record.options += fmt::format("{}={};", define, value);
  // Where launches share caches or SMs, the others are part of what made the result.
  if (setting_.cache != "cold" || !sequential_) {
    record.options += fmt::format("with {}", fmt::join(selected_, ","));
  }
  return record;
}

std::vector<std::string> LaunchSet::Keys(const std::string& digest, const std::string& name,
                                         const MachineRecord& machine) const {
  std::vector<std::string> keys;
  for (const uint32_t i : selected_)
    keys.push_back(results::LaunchKey(Record(i, digest, name, machine), machine.record.digest));
  return keys;
}

}  // namespace heddle::replay
