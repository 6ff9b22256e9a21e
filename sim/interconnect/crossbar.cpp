#include "sim/interconnect/crossbar.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "sim/base/check.h"

namespace heddle::interconnect {
namespace {

// Long enough that a port's calendar stays small when DRAM is slow; what asks in order is served exactly anyway.
constexpr uint32_t kBucketCycles = 16;

}  // namespace

Crossbar::Crossbar(const config::Gpu& gpu) {
  BuildNetwork(gpu);
  calendars_.reserve(network_.link_count());
  for (LinkId link = 0; link < network_.link_count(); ++link) {
    const double rate = network_.link(link).bytes_per_cycle;
    calendars_.emplace_back(rate > 0 ? rate : 1, kBucketCycles);
  }
  BuildPaths();
}

void Crossbar::BuildNetwork(const config::Gpu& gpu) {
  const config::Interconnect& net = gpu.interconnect;
  for (uint32_t p = 0; p < gpu.l2.partitions; ++p)
    partition_nodes_.push_back(network_.AddNode(fmt::format("partition[{}]", p)));
  for (uint32_t a = 0; a < gpu.l2.partitions; ++a) {
    for (uint32_t b = 0; b < gpu.l2.partitions; ++b) {
      if (a == b) continue;
      const Cycle there = net.partition_latency_cycles / 2;
      network_.AddLink({partition_nodes_[a], partition_nodes_[b], net.partition_bytes_per_cycle,
                        a < b ? there : net.partition_latency_cycles - there});
    }
  }
  for (uint32_t s = 0; s < gpu.l2.slices; ++s) {
    slice_nodes_.push_back(network_.AddNode(fmt::format("slice[{}]", s)));
    const NodeId partition = partition_nodes_[s / (gpu.l2.slices / gpu.l2.partitions)];
    network_.AddLink({partition, slice_nodes_[s], 0, 0});
    network_.AddLink({slice_nodes_[s], partition, 0, 0});
  }
  uint32_t tpc = 0;
  for (uint32_t g = 0; g < gpu.sms_per_gpc.size(); ++g) {
    const uint32_t home = static_cast<uint32_t>(g * gpu.l2.partitions / gpu.sms_per_gpc.size());
    const NodeId gpc_node = network_.AddNode(fmt::format("gpc[{}]", g));
    network_.AddLink(
        {gpc_node, partition_nodes_[home], net.gpc_write_bytes_per_cycle, net.request_latency_cycles});
    network_.AddLink(
        {partition_nodes_[home], gpc_node, net.gpc_read_bytes_per_cycle, net.reply_latency_cycles});
    NodeId tpc_node = 0;
    for (uint32_t i = 0; i < gpu.sms_per_gpc[g]; ++i) {
      if (i % gpu.sm.sms_per_tpc == 0) {
        tpc_node = network_.AddNode(fmt::format("tpc[{}]", tpc++));
        network_.AddLink({tpc_node, gpc_node, net.tpc_write_bytes_per_cycle, 0});
        network_.AddLink({gpc_node, tpc_node, net.tpc_read_bytes_per_cycle, 0});
      }
      const NodeId sm = network_.AddNode(fmt::format("sm[{}]", sm_nodes_.size()));
      network_.AddLink({sm, tpc_node, net.sm_write_bytes_per_cycle, 0});
      network_.AddLink({tpc_node, sm, net.sm_read_bytes_per_cycle, 0});
      sm_nodes_.push_back(sm);
      SmPort port;
      port.gpc = g;
      port.tpc = tpc - 1;
      port.partition = home;
      sms_.push_back(port);
    }
  }
  gpcs_.resize(gpu.sms_per_gpc.size());
}

void Crossbar::BuildPaths() {
  const auto path_of = [&](const Route& route) {
    Path path{};
    uint32_t ports = 0;
    for (LinkId link : route.links) {
      if (network_.link(link).bytes_per_cycle <= 0) continue;
      HEDDLE_CHECK(ports < kPorts, "gpu.crossbar", 0, "more ports on the way than SM, TPC and GPC");
      path[ports++] = &calendars_[link];
    }
    HEDDLE_CHECK(ports == kPorts, "gpu.crossbar", 0, "a port has no bandwidth");
    return path;
  };
  std::vector<std::vector<Route>> down;  // by partition, then SM
  for (NodeId partition : partition_nodes_) down.push_back(network_.Routes(partition, sm_nodes_));
  for (uint32_t sm = 0; sm < sms_.size(); ++sm) {
    SmPort& port = sms_[sm];
    const Route up = network_.Routes(sm_nodes_[sm], {partition_nodes_[port.partition]}).front();
    const Route& back = down[port.partition][sm];
    port.up = path_of(up);
    port.up_latency = up.latency_cycles;
    port.down = path_of(back);
    port.down_latency = back.latency_cycles;
    for (const Path* path : {&port.up, &port.down})
      for (engine::Calendar* calendar : *path) {
        auto& own = gpcs_[port.gpc].calendars;
        if (std::find(own.begin(), own.end(), calendar) == own.end()) own.push_back(calendar);
      }
  }
}

void Crossbar::Multicast(const std::array<uint32_t, 16>& sms, uint32_t destinations, Cycle at, uint32_t bytes,
                         std::array<Cycle, 16>* arrival) {
  const SmPort& first = sms_[sms[static_cast<size_t>(std::countr_zero(destinations))]];
  const Cycle at_gpc = first.down[0]->Reserve(at + first.down_latency, bytes) - 1;
  std::array<Cycle, 16> at_tpcs{};
  for (uint32_t left = destinations; left != 0; left &= left - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(left));
    const SmPort& port = sms_[sms[i]];
    HEDDLE_CHECK(port.gpc == first.gpc, "gpu.crossbar", at, "a multicast leaves its GPC");
    Cycle at_tpc = 0;
    for (uint32_t before = destinations & ((1u << i) - 1); before != 0 && at_tpc == 0; before &= before - 1) {
      const auto j = static_cast<size_t>(std::countr_zero(before));
      if (sms_[sms[j]].tpc == port.tpc) at_tpc = at_tpcs[j];
    }
    if (at_tpc == 0) at_tpc = port.down[1]->Reserve(at_gpc, bytes) - 1;
    at_tpcs[i] = at_tpc;
    (*arrival)[i] = port.down[2]->Reserve(at_tpc, bytes) - 1;
  }
}

Route Crossbar::RouteTo(uint32_t sm, uint32_t slice) const {
  return network_.Routes(sm_nodes_[sm], {slice_nodes_[slice]}).front();
}

void Crossbar::AdvanceTo(uint32_t gpc, Cycle cycle) {
  for (engine::Calendar* calendar : gpcs_[gpc].calendars) calendar->AdvanceTo(cycle);
}

void Crossbar::Reset() {
  for (engine::Calendar& calendar : calendars_) calendar.Reset();
}

}  // namespace heddle::interconnect
