#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "sim/config/validate.h"

namespace heddle::config {
namespace {

using Paths = std::vector<std::string>;

// One relation: the fields that it ties together, the first of which the message is about.
class Relation {
 public:
  Relation(Draft* draft, Paths paths) : draft_(*draft), paths_(std::move(paths)) {}

  // Whether no field has a fault of its own; only then does the relation mean anything.
  explicit operator bool() const {
    return std::none_of(paths_.begin(), paths_.end(),
                        [&](const std::string& path) { return draft_.IsBroken(path); });
  }

  // The fault stands where the latest of the fields was given: that is the change that broke it.
  template <typename... Args>
  bool Demand(bool holds, fmt::format_string<Args...> message, Args&&... args) const {
    if (!holds) {
      draft_.ReportAt(draft_.LatestLocation(paths_), paths_.front(),
                      fmt::format(message, std::forward<Args>(args)...));
    }
    return holds;
  }

 private:
  Draft& draft_;
  const Paths paths_;
};

void CheckSms(const Gpu& gpu, Draft* draft) {
  if (const Relation r(draft, {"runs_sm_versions", "sm_version"}); r) {
    const auto& runs = gpu.runs_sm_versions;
    r.Demand(std::find(runs.begin(), runs.end(), gpu.sm_version) != runs.end(),
             "lacks the machine's own sm_version, {}", gpu.sm_version);
  }
  const uint32_t per_tpc = gpu.sm.sms_per_tpc;
  if (const Relation r(draft, {"sm.count", "sm.sms_per_tpc"}); r) {
    r.Demand(gpu.sm.count % per_tpc == 0, "{} SMs are no whole number of TPCs of {} (sm.sms_per_tpc)",
             gpu.sm.count, per_tpc);
  }
  if (const Relation r(draft, {"gpc_count", "sm.count", "sm.sms_per_tpc"}); r) {
    r.Demand(gpu.sm.count / per_tpc >= gpu.gpc_count, "{} GPCs are more than the {} TPCs", gpu.gpc_count,
             gpu.sm.count / per_tpc);
  }
  if (const Relation r(draft, {"sms_per_gpc", "gpc_count", "sm.count"}); r) {
    const uint64_t sum = std::accumulate(gpu.sms_per_gpc.begin(), gpu.sms_per_gpc.end(), uint64_t{0});
    if (!r.Demand(gpu.sms_per_gpc.size() == gpu.gpc_count, "lists {} GPCs, gpc_count is {}",
                  gpu.sms_per_gpc.size(), gpu.gpc_count)) {
      return;
    }
    r.Demand(sum == gpu.sm.count, "sums to {} SMs, sm.count is {}; leave it out to spread them evenly", sum,
             gpu.sm.count);
  }
}

void CheckSmResources(const Sm& sm, Draft* draft) {
  if (const Relation r(draft, {"sm.max_warps", "sm.sub_core_count"}); r) {
    r.Demand(sm.max_warps % sm.sub_core_count == 0, "{} warps do not spread over {} sub-cores", sm.max_warps,
             sm.sub_core_count);
  }
  if (const Relation r(draft, {"sm.max_threads_per_cta", "sm.max_warps"}); r) {
    r.Demand(sm.max_threads_per_cta <= sm.max_warps * 32, "{} threads do not fit in {} warps (sm.max_warps)",
             sm.max_threads_per_cta, sm.max_warps);
  }
  if (const Relation r(draft, {"sm.registers", "sm.register_allocation_unit", "sm.sub_core_count"}); r) {
    r.Demand(sm.registers % (sm.sub_core_count * sm.register_allocation_unit) == 0,
             "{} registers are no whole number of allocation units of {} in each of {} sub-cores",
             sm.registers, sm.register_allocation_unit, sm.sub_core_count);
  }
  if (const Relation r(draft, {"sm.max_registers_per_thread", "sm.registers", "sm.sub_core_count"}); r) {
    r.Demand(uint64_t{sm.max_registers_per_thread} * 32 <= sm.registers / sm.sub_core_count,
             "a warp with {} registers a thread does not fit in a sub-core", sm.max_registers_per_thread);
  }
}

void CheckSharedMemory(const Sm& sm, Draft* draft) {
  const SharedMemory& shared = sm.shared_memory;
  const std::string capacities = "sm.shared_memory.capacities_bytes";
  const Relation rising(draft, {capacities});
  if (!rising ||
      !rising.Demand(std::is_sorted(shared.capacities_bytes.begin(), shared.capacities_bytes.end()),
                     "must rise from one to the next")) {
    return;
  }
  if (const Relation r(draft, {"sm.shared_memory.max_per_cta_bytes",
                               "sm.shared_memory.reserved_per_cta_bytes", capacities});
      r) {
    r.Demand(shared.max_per_cta_bytes + shared.reserved_per_cta_bytes <= shared.capacities_bytes.back(),
             "{} and {} reserved do not fit in the largest carve-out, {}", shared.max_per_cta_bytes,
             shared.reserved_per_cta_bytes, shared.capacities_bytes.back());
  }
  const uint32_t way_bytes = sm.l1.sets * sm.l1.line_bytes;
  for (size_t i = 0; i < shared.capacities_bytes.size(); ++i) {
    const uint32_t capacity = shared.capacities_bytes[i];
    const Relation r(draft, {Element(capacities, static_cast<int>(i)), "sm.l1.unified_size_bytes",
                             "sm.l1.sets", "sm.l1.line_bytes"});
    if (!r) continue;
    r.Demand(capacity < sm.l1.unified_size_bytes && (sm.l1.unified_size_bytes - capacity) % way_bytes == 0,
             "{} leaves no whole number of ways of {} bytes (sm.l1.sets x line_bytes) of {} for L1", capacity,
             way_bytes, sm.l1.unified_size_bytes);
  }
}

void CheckCache(const CacheGeometry& cache, const std::string& path, Draft* draft) {
  const Relation r(draft, {path + ".size_bytes", path + ".ways", path + ".line_bytes"});
  if (!r) return;
  r.Demand(cache.size_bytes % (cache.line_bytes * cache.ways) == 0,
           "{} is no whole number of sets of {} ways x {} bytes", cache.size_bytes, cache.ways,
           cache.line_bytes);
}

void CheckL2(const Gpu& gpu, Draft* draft) {
  const L2& l2 = gpu.l2;
  if (const Relation r(draft, {"l2.slices", "l2.partitions"}); r) {
    r.Demand(l2.slices % l2.partitions == 0, "{} slices do not spread over {} partitions", l2.slices,
             l2.partitions);
  }
  if (const Relation r(draft, {"l2.size_bytes", "l2.slices", "l2.ways", "l2.line_bytes"}); r) {
    const uint64_t set_bytes = uint64_t{l2.slices} * l2.ways * l2.line_bytes;
    r.Demand(l2.size_bytes % set_bytes == 0,
             "{} is no whole number of sets of {} slices x {} ways x {} bytes = {}", l2.size_bytes, l2.slices,
             l2.ways, l2.line_bytes, set_bytes);
  }
  if (const Relation r(draft, {"dram.channels", "l2.slices"}); r) {
    r.Demand(l2.slices % gpu.dram.channels == 0 || gpu.dram.channels % l2.slices == 0,
             "{} channels and {} slices: one must be a multiple of the other", gpu.dram.channels, l2.slices);
  }
  if (const Relation r(draft, {"dram.channels", "l2.partitions"}); r) {
    r.Demand(gpu.dram.channels % l2.partitions == 0, "{} channels do not spread over {} partitions",
             gpu.dram.channels, l2.partitions);
  }
  if (const Relation r(draft, {"l2.protected_fraction", "l2.replacement"}); r) {
    r.Demand(l2.replacement != Replacement::kProtectedLru || l2.protected_fraction.has_value(),
             "missing: replacement {} needs it", Name(l2.replacement));
  }
}

void CheckDram(const Dram& dram, Draft* draft) {
  if (const Relation r(draft, {"dram.burst_bytes", "dram.row_bytes"}); r) {
    r.Demand(dram.burst_bytes <= dram.row_bytes, "{} is longer than a row, {}", dram.burst_bytes,
             dram.row_bytes);
  }
  if (const Relation r(draft, {"dram.tras_ns", "dram.trcd_ns"}); r) {
    r.Demand(dram.trcd_ns <= dram.tras_ns, "{} ns is shorter than trcd_ns, {}", dram.tras_ns, dram.trcd_ns);
  }
  if (const Relation r(draft, {"dram.refresh_duration_ns", "dram.refresh_interval_ns"}); r) {
    r.Demand(dram.refresh_duration_ns < dram.refresh_interval_ns,
             "{} ns leaves nothing of refresh_interval_ns, {}", dram.refresh_duration_ns,
             dram.refresh_interval_ns);
  }
}

void CheckBoard(const Board& board, Draft* draft) {
  const Relation r(draft, {"board.sustained_clocks"});
  if (!r) return;
  const auto& clocks = board.sustained_clocks;
  for (size_t i = 1; i < clocks.size(); ++i) {
    const SustainedClock &last = clocks[i - 1], &next = clocks[i];
    r.Demand(last.pipe != next.pipe || (last.activity < next.activity && last.sm_mhz >= next.sm_mhz),
             "activity must rise from one entry of {} to the next and the clock must not, {} at {} MHz "
             "follows {} at {} MHz",
             Name(next.pipe), next.activity, next.sm_mhz, last.activity, last.sm_mhz);
  }
}

// Units that came with an architecture: a description has them from there on and says nothing of them before.
void CheckUnits(const Gpu& gpu, Draft* draft) {
  const auto check = [&](const std::string& path, bool given, bool exists) {
    const Relation r(draft, {path, "sm_version"});
    if (!r) return;
    r.Demand(given || !exists, "missing: sm_version {} has it", gpu.sm_version);
    r.Demand(!given || exists, "sm_version {} has no such unit", gpu.sm_version);
  };
  const bool hopper_or_later = gpu.sm_version >= 90;
  check("sm.tma", gpu.sm.tma.has_value(), hopper_or_later);
  check("sm.mbarrier", gpu.sm.mbarrier.has_value(), hopper_or_later);
  check("sm.gmma", gpu.sm.gmma.has_value(), gpu.sm_version == 90);
  check("cluster_network", gpu.cluster_network.has_value(), hopper_or_later);
}

void CheckClusters(const Gpu& gpu, Draft* draft) {
  const Relation r(draft, {"cluster_network.latency_cycles", "cluster_network.barrier_latency_cycles"});
  if (!r || !gpu.cluster_network) return;
  r.Demand(gpu.cluster_network->latency_cycles <= gpu.cluster_network->barrier_latency_cycles,
           "{} cycles one way, and a barrier between SMs takes {}", gpu.cluster_network->latency_cycles,
           gpu.cluster_network->barrier_latency_cycles);
}

void CheckTlb(const TlbLevel& level, const std::string& path, Draft* draft) {
  const Relation r(draft, {path + ".entries", path + ".ways"});
  if (!r) return;
  r.Demand(level.entries % level.ways == 0, "{} entries are no whole number of sets of {} ways",
           level.entries, level.ways);
}

}  // namespace

void CheckRelations(const Gpu& gpu, Draft* draft) {
  CheckSms(gpu, draft);
  CheckSmResources(gpu.sm, draft);
  CheckSharedMemory(gpu.sm, draft);
  CheckCache(gpu.sm.instruction_caches.l0, "sm.instruction_caches.l0", draft);
  CheckCache(gpu.sm.instruction_caches.l1, "sm.instruction_caches.l1", draft);
  CheckCache(gpu.sm.constant_caches.l0, "sm.constant_caches.l0", draft);
  CheckCache(gpu.sm.constant_caches.l1, "sm.constant_caches.l1", draft);
  CheckCache(gpu.sm.constant_caches.l1_5, "sm.constant_caches.l1_5", draft);
  CheckBoard(gpu.board, draft);
  CheckUnits(gpu, draft);
  CheckClusters(gpu, draft);
  CheckL2(gpu, draft);
  CheckDram(gpu.dram, draft);
  CheckTlb(gpu.tlb.l1, "tlb.l1", draft);
  CheckTlb(gpu.tlb.l2, "tlb.l2", draft);
  CheckTlb(gpu.tlb.l3, "tlb.l3", draft);
}

}  // namespace heddle::config
