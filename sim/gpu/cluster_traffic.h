// What the SMs of clusters say to each other, carried at the edges of windows: messages over the cluster network, bulk
// loads that L2 answered for several SMs, and cluster barriers.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "sim/base/types.h"
#include "sim/config/gpu_description.h"
#include "sim/gpu/memory_system.h"
#include "sim/interconnect/cluster_network.h"
#include "sim/sm/cluster.h"
#include "sim/sm/sm.h"

namespace heddle::gpu {

class ClusterTraffic {
 public:
  explicit ClusterTraffic(const config::Gpu& gpu);  // that has a cluster_network

  // The cluster of the CTA that starts as `rank`: the CTAs of a cluster start one after the other, from rank 0 on.
  sm::Cluster* Join(uint32_t rank, uint32_t size);

  // Carries what leaves SMs before `end`, in the order (cycle, SM, sequence), and delivers it: it arrives at `end` or later.
  // Calls touched(sm, at) for every SM to which something comes at `at`.
  void Carry(std::vector<sm::Sm>* sms, MemorySystem* memory, Cycle end,
             const std::function<void(uint32_t sm, Cycle at)>& touched);

  // No cluster is resident and no message on its way.
  void Forget() { clusters_.clear(); }

 private:
  void Arrive(const sm::ClusterMessage& message, bool ended);
  void Release(sm::Cluster* cluster);
  void Deliver(const sm::ClusterMessage& message);

  interconnect::ClusterNetwork network_;
  Cycle barrier_latency_;
  std::deque<sm::Cluster> clusters_;
  std::vector<sm::ClusterMessage*> order_;
  // Of the current Carry.
  std::vector<sm::Sm>* sms_ = nullptr;
  Cycle end_ = 0;
  const std::function<void(uint32_t sm, Cycle at)>* touched_ = nullptr;
};

}  // namespace heddle::gpu
