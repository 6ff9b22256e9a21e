#include "frontend/profile/metric_names.h"

#include <map>

namespace heddle::profile {
namespace {

const std::map<std::string_view, std::string_view>& Names() {
  static const std::map<std::string_view, std::string_view> names = {
#define HEDDLE_NCU_METRIC(theirs, ours) {theirs, #ours},
#include "frontend/profile/ncu_metrics.def"
#undef HEDDLE_NCU_METRIC
  };
  return names;
}

// "<prefix>long_scoreboard<suffix>" -> "long_scoreboard"; empty: something else.
std::string_view Between(std::string_view name, std::string_view prefix, std::string_view suffix) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix) || name.size() <= prefix.size() + suffix.size())
    return {};
  return name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
}

std::string Cause(std::string_view cause) {
  return cause == "no_instructions" ? "no_instruction" : std::string(cause);
}

}  // namespace

std::string HeddleName(std::string_view name) {
  if (const auto found = Names().find(name); found != Names().end()) return std::string(found->second);
  for (const std::string_view prefix : {"smsp__pcsamp_warps_issue_stalled_", "smsp__pcsamp_warp_stall_"}) {
    const std::string_view cause = Between(name, prefix, "");
    if (!cause.empty() && !cause.ends_with("_not_issued")) return "stall_samples_" + Cause(cause);
  }
  for (const auto& [prefix, suffix] : {std::pair<std::string_view, std::string_view>{
                                           "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"},
                                       {"smsp__warp_cycles_per_issue_stall_", ""}}) {
    const std::string_view cause = Between(name, prefix, suffix);
    if (!cause.empty() && !cause.ends_with("_not_issued")) return "stall_per_issue_" + Cause(cause);
  }
  return std::string(name);
}

}  // namespace heddle::profile
