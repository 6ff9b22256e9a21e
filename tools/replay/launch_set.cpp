#include "tools/replay/launch_set.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::replay {

LaunchSet::LaunchSet(const trace::Trace& trace, const trace::ResolvedTrace& resolved,
                     const LaunchSetting& setting)
    : trace_(trace), resolved_(resolved), mode_(setting.mode), cache_(setting.cache) {
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

results::LaunchRecord RecordOf(const trace::Trace& trace, const trace::ResolvedTrace& resolved,
                               uint32_t ordinal, const std::string& digest, const std::string& name,
                               const std::string& mode, const std::string& cache,
                               const MachineRecord& machine) {
  const trace::ResolvedLaunch& launch = resolved.launches[ordinal];
  const bool recorded = trace.modules[trace.functions[launch.function].module].recorded();
  results::LaunchRecord record;
  record.trace_digest = digest;
  record.trace_name = name;
  record.ordinal = ordinal;
  record.stream = launch.stream;
  record.grid_frozen = launch.frozen_grid;
  record.mode = mode;
  record.cache_policy = cache;
  record.dependence = recorded ? "scoreboard" : machine.dependence;
  for (const auto& [define, value] : resolved.defines) record.options += fmt::format("{}={};", define, value);
  return record;
}

results::LaunchRecord LaunchSet::Record(uint32_t ordinal, const std::string& digest, const std::string& name,
                                        const MachineRecord& machine) const {
  results::LaunchRecord record = RecordOf(trace_, resolved_, ordinal, digest, name, mode_, cache_, machine);
  // Where launches share caches or SMs, the others are part of what made the result.
  if (cache_ != "cold" || !sequential_) {
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
