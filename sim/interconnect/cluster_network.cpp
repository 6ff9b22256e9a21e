#include "sim/interconnect/cluster_network.h"

namespace heddle::interconnect {
namespace {
constexpr uint32_t kBucketCycles = 16;
}  // namespace

ClusterNetwork::ClusterNetwork(const config::Gpu& gpu)
    : latency_(gpu.cluster_network->latency_cycles),
      out_(gpu.sm.count, engine::Calendar(gpu.cluster_network->sm_bytes_per_cycle, kBucketCycles)),
      in_(out_) {}

Cycle ClusterNetwork::Pass(uint32_t from, uint32_t to, Cycle at, uint32_t bytes) {
  if (bytes == 0) return at + latency_;
  out_[from].AdvanceTo(at);
  in_[to].AdvanceTo(at + latency_);
  const Cycle gone = out_[from].Reserve(at, bytes) - 1;
  return in_[to].Reserve(gone + latency_, bytes) - 1;
}

}  // namespace heddle::interconnect
