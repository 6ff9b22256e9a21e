#include "sim/gpu/deadlock.h"

#include <fmt/core.h>

#include "sim/engine/wait_graph.h"

namespace heddle::gpu {
namespace {

std::string PathOf(const sm::WarpWait& wait, uint32_t sm) {
  return fmt::format("gpu[0].sm[{}].cta[{},{},{}].warp[{}]", sm, wait.cta.x, wait.cta.y, wait.cta.z,
                     wait.warp);
}

}  // namespace

Error DeadlockError(std::span<const LaunchRequest> launches,
                    const std::vector<std::unique_ptr<RunningLaunch>>& running, const Dispatcher& dispatcher,
                    const LaunchGraph& graph, const std::vector<sm::Sm>& sms, Cycle now) {
  engine::WaitGraph waits;
  for (const auto& launch : running) {
    const std::string name = "launch " + launch->request->name;
    waits.Add(name, fmt::format("the end of its CTAs ({} of {} have ended)", launch->finished, launch->ctas));
  }
  for (uint32_t launch : dispatcher.Waiting())
    waits.Add("launch " + launches[launch].name, "room for its next CTA on an SM");
  for (uint32_t launch = 0; launch < launches.size(); ++launch)
    for (uint32_t before : graph.WaitsFor(launch))
      waits.Add("launch " + launches[launch].name, "a launch before it to end",
                "launch " + launches[before].name);
  for (uint32_t sm = 0; sm < sms.size(); ++sm)
    for (const sm::WarpWait& wait : sms[sm].DescribeWaits())
      waits.Add(PathOf(wait, sm),
                fmt::format("{} at pc {:#06x} ({})",
                            stats::StallDefs()[static_cast<size_t>(wait.reason)].name, wait.pc, wait.detail));
  return Error{ExitCode::kDidNotFinish, running.empty() ? "" : running.front()->request->name,
               fmt::format("deadlock at cycle {}: nothing can go on\n{}", now, waits.ToString()), ""};
}

}  // namespace heddle::gpu
