// What to say when nothing can go on any more: who waits for what.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/types.h"
#include "sim/gpu/dispatcher.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/launch_graph.h"
#include "sim/gpu/running_launch.h"
#include "sim/sm/sm.h"

namespace heddle::gpu {

// kDidNotFinish, with the wait-for graph of launches, CTAs that find no room, and warps.
Error DeadlockError(std::span<const LaunchRequest> launches,
                    const std::vector<std::unique_ptr<RunningLaunch>>& running, const Dispatcher& dispatcher,
                    const LaunchGraph& graph, const std::vector<sm::Sm>& sms, Cycle now);

}  // namespace heddle::gpu
