// How long a window of simulated time may be.
//
// Inside a window every SM runs alone, so a window must not be longer than the shortest time in which one SM
// can influence another or itself through the memory system: from a request's departure to the earliest
// reply.
#pragma once

#include "sim/base/types.h"
#include "sim/config/gpu_description.h"

namespace heddle::engine {

// The shortest time between MemoryRequest::cycle and MemoryRequest::reply_cycle on this machine, in cycles.
Cycle ShortestReply(const config::Gpu& gpu);

// The longest window while a launch with clusters runs: its CTAs reach each other over the cluster network, one way.
Cycle ClusterWindowLength(const config::Gpu& gpu, double fraction = 1.0);

// ShortestReply, shortened by `fraction` (0 < fraction <= 1) for the test that results do not depend on it;
// at least 1.
Cycle WindowLength(const config::Gpu& gpu, double fraction = 1.0);

}  // namespace heddle::engine
