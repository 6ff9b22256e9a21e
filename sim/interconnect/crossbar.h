// The network inside one GPU: SM -> TPC -> GPC -> crossbar of its L2 partition -> slice, and back.
//
// Ports of an SM, a TPC and a GPC have a bandwidth in each direction and are reserved in calendars. The
// bandwidth of a slice is that of its data array, and the links between partitions belong to the slices
// (SliceGroup), so that every calendar here belongs to one GPC: GPCs can be served in parallel.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/types.h"
#include "sim/config/gpu_description.h"
#include "sim/engine/calendar.h"
#include "sim/interconnect/network.h"

namespace heddle::interconnect {

class Crossbar {
 public:
  explicit Crossbar(const config::Gpu& gpu);
  Crossbar(const Crossbar&) = delete;
  Crossbar& operator=(const Crossbar&) = delete;

  // `bytes` of payload leave the SM from `at` on; returns the arrival of the last at a slice of the SM's
  // partition. A request without payload passes without taking bandwidth.
  Cycle Request(uint32_t sm, Cycle at, uint32_t bytes) {
    return Pass(sms_[sm].up, at, bytes) + sms_[sm].up_latency;
  }
  // `bytes` leave a slice of the SM's partition from `at` on; returns the arrival of the last at the SM.
  Cycle Reply(uint32_t sm, Cycle at, uint32_t bytes) {
    return Pass(sms_[sm].down, at + sms_[sm].down_latency, bytes);
  }

  // The same for several SMs of one GPC (bit i of `destinations`: sms[i]): its port and those of TPCs take the bytes once.
  void Multicast(const std::array<uint32_t, 16>& sms, uint32_t destinations, Cycle at, uint32_t bytes,
                 std::array<Cycle, 16>* arrival);

  // No later request of this GPC will ask for a cycle before `cycle`.
  void AdvanceTo(uint32_t gpc, Cycle cycle);
  void Reset();

  uint32_t sm_count() const { return static_cast<uint32_t>(sms_.size()); }
  uint32_t gpc_count() const { return static_cast<uint32_t>(gpcs_.size()); }
  uint32_t GpcOf(uint32_t sm) const { return sms_[sm].gpc; }
  uint32_t TpcOf(uint32_t sm) const { return sms_[sm].tpc; }
  uint32_t PartitionOf(uint32_t sm) const { return sms_[sm].partition; }

  // The whole way, through the partition link where there is one.
  Route RouteTo(uint32_t sm, uint32_t slice) const;
  const Network& network() const { return network_; }

 private:
  static constexpr uint32_t kPorts = 3;  // SM, TPC, GPC
  using Path = std::array<engine::Calendar*, kPorts>;
  struct SmPort {
    uint32_t gpc = 0;
    uint32_t tpc = 0;
    uint32_t partition = 0;
    Cycle up_latency = 0;
    Cycle down_latency = 0;
    Path up{};
    Path down{};
  };
  struct Gpc {
    std::vector<engine::Calendar*> calendars;
  };

  static Cycle Pass(const Path& path, Cycle at, uint32_t bytes) {
    if (bytes == 0) return at;
    for (engine::Calendar* port : path)
      at = port->Reserve(at, bytes) - 1;  // the cycle in which the last byte moves
    return at;
  }
  void BuildNetwork(const config::Gpu& gpu);
  void BuildPaths();

  Network network_;
  std::vector<SmPort> sms_;
  std::vector<Gpc> gpcs_;
  std::vector<NodeId> sm_nodes_;
  std::vector<NodeId> partition_nodes_;
  std::vector<NodeId> slice_nodes_;
  std::vector<engine::Calendar> calendars_;  // by link; only those with a bandwidth are used
};

}  // namespace heddle::interconnect
