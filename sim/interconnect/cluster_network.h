// The network between the SMs of a cluster (distributed shared memory): one latency, and a bandwidth of each SM in and
// out, reserved in calendars.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/types.h"
#include "sim/config/gpu_description.h"
#include "sim/engine/calendar.h"

namespace heddle::interconnect {

class ClusterNetwork {
 public:
  explicit ClusterNetwork(const config::Gpu& gpu);  // that has a cluster_network

  // `bytes` leave SM `from` at `at`; returns the arrival of the last at SM `to`: at least latency_cycles later. A message
  // without payload takes no bandwidth. Calls come with rising `at`, so that what lies behind it can be forgotten.
  Cycle Pass(uint32_t from, uint32_t to, Cycle at, uint32_t bytes);

 private:
  Cycle latency_;
  std::vector<engine::Calendar> out_;  // by SM
  std::vector<engine::Calendar> in_;
};

}  // namespace heddle::interconnect
