#include <fmt/core.h>

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <string>

#include "sim/config/validate.h"

namespace heddle::config {
namespace {

class Relations {
 public:
  explicit Relations(Draft* draft) : draft_(*draft) {}

  // Whether all of `paths` can be relied on; a relation is looked at only then.
  bool Know(std::initializer_list<const char*> paths) const {
    return std::none_of(paths.begin(), paths.end(), [&](const char* path) { return draft_.IsBroken(path); });
  }

  template <typename... Args>
  void Demand(bool holds, const std::string& path, fmt::format_string<Args...> message, Args&&... args) {
    if (!holds) draft_.Report(path, fmt::format(message, std::forward<Args>(args)...));
  }

 private:
  Draft& draft_;
};

void CheckSms(const Gpu& gpu, Relations* r) {
  if (r->Know({"runs_sm_versions", "sm_version"})) {
    const auto& runs = gpu.runs_sm_versions;
    r->Demand(std::find(runs.begin(), runs.end(), gpu.sm_version) != runs.end(), "runs_sm_versions",
              "lacks the machine's own sm_version, {}", gpu.sm_version);
  }
  if (!r->Know({"sm.count", "sm.sms_per_tpc", "gpc_count", "sms_per_gpc"})) return;
  const uint32_t per_tpc = gpu.sm.sms_per_tpc;
  r->Demand(gpu.sm.count % per_tpc == 0, "sm.count",
            "{} SMs are no whole number of TPCs of {} (sm.sms_per_tpc)", gpu.sm.count, per_tpc);
  r->Demand(gpu.sm.count / per_tpc >= gpu.gpc_count, "gpc_count", "{} GPCs are more than the {} TPCs",
            gpu.gpc_count, gpu.sm.count / per_tpc);
  r->Demand(gpu.sms_per_gpc.size() == gpu.gpc_count, "sms_per_gpc", "lists {} GPCs, gpc_count is {}",
            gpu.sms_per_gpc.size(), gpu.gpc_count);
  const uint64_t sum = std::accumulate(gpu.sms_per_gpc.begin(), gpu.sms_per_gpc.end(), uint64_t{0});
  r->Demand(sum == gpu.sm.count, "sms_per_gpc",
            "sums to {} SMs, sm.count is {}; leave it out to spread them evenly", sum, gpu.sm.count);
}

void CheckSmResources(const Sm& sm, Relations* r) {
  if (r->Know({"sm.max_warps", "sm.sub_core_count"})) {
    r->Demand(sm.max_warps % sm.sub_core_count == 0, "sm.max_warps",
              "{} warps do not spread over {} sub-cores", sm.max_warps, sm.sub_core_count);
  }
  if (r->Know({"sm.max_warps", "sm.max_threads_per_cta"})) {
    r->Demand(sm.max_threads_per_cta <= sm.max_warps * 32, "sm.max_threads_per_cta",
              "{} threads do not fit in {} warps (sm.max_warps)", sm.max_threads_per_cta, sm.max_warps);
  }
  if (r->Know({"sm.registers", "sm.register_allocation_unit", "sm.sub_core_count",
               "sm.max_registers_per_thread"})) {
    r->Demand(sm.registers % (sm.sub_core_count * sm.register_allocation_unit) == 0, "sm.registers",
              "{} registers are no whole number of allocation units of {} in each of {} sub-cores",
              sm.registers, sm.register_allocation_unit, sm.sub_core_count);
    r->Demand(uint64_t{sm.max_registers_per_thread} * 32 <= sm.registers / sm.sub_core_count,
              "sm.max_registers_per_thread", "a warp with {} registers a thread does not fit in a sub-core",
              sm.max_registers_per_thread);
  }
}

void CheckSharedMemory(const Sm& sm, Relations* r) {
  if (!r->Know({"sm.shared_memory", "sm.l1.unified_size_bytes", "sm.l1.sets", "sm.l1.line_bytes"})) return;
  const SharedMemory& shared = sm.shared_memory;
  const std::string path = "sm.shared_memory.capacities_bytes";
  r->Demand(std::is_sorted(shared.capacities_bytes.begin(), shared.capacities_bytes.end()), path,
            "must rise from one to the next");
  const uint32_t largest = *std::max_element(shared.capacities_bytes.begin(), shared.capacities_bytes.end());
  r->Demand(shared.max_per_cta_bytes + shared.reserved_per_cta_bytes <= largest,
            "sm.shared_memory.max_per_cta_bytes",
            "{} and {} reserved do not fit in the largest carve-out, {}", shared.max_per_cta_bytes,
            shared.reserved_per_cta_bytes, largest);
  const uint32_t way_bytes = sm.l1.sets * sm.l1.line_bytes;
  for (size_t i = 0; i < shared.capacities_bytes.size(); ++i) {
    const uint32_t capacity = shared.capacities_bytes[i];
    r->Demand(capacity < sm.l1.unified_size_bytes && (sm.l1.unified_size_bytes - capacity) % way_bytes == 0,
              fmt::format("{}[{}]", path, i),
              "{} leaves no whole number of ways of {} bytes (sm.l1.sets x line_bytes) of {} for L1",
              capacity, way_bytes, sm.l1.unified_size_bytes);
  }
}

void CheckCache(const CacheGeometry& cache, const std::string& path, Relations* r) {
  if (!r->Know({path.c_str()})) return;
  r->Demand(cache.size_bytes % (cache.line_bytes * cache.ways) == 0, path + ".size_bytes",
            "{} is no whole number of sets of {} ways x {} bytes", cache.size_bytes, cache.ways,
            cache.line_bytes);
}

void CheckL2(const Gpu& gpu, Relations* r) {
  const L2& l2 = gpu.l2;
  if (r->Know({"l2.slices", "l2.partitions"})) {
    r->Demand(l2.slices % l2.partitions == 0, "l2.slices", "{} slices do not spread over {} partitions",
              l2.slices, l2.partitions);
  }
  if (r->Know({"l2.size_bytes", "l2.slices", "l2.ways", "l2.line_bytes"})) {
    const uint64_t set_bytes = uint64_t{l2.slices} * l2.ways * l2.line_bytes;
    r->Demand(l2.size_bytes % set_bytes == 0, "l2.size_bytes",
              "{} is no whole number of sets of {} slices x {} ways x {} bytes = {}", l2.size_bytes,
              l2.slices, l2.ways, l2.line_bytes, set_bytes);
  }
  if (r->Know({"l2.slices", "dram.channels"})) {
    r->Demand(l2.slices % gpu.dram.channels == 0 || gpu.dram.channels % l2.slices == 0, "dram.channels",
              "{} channels and {} slices: one must be a multiple of the other", gpu.dram.channels, l2.slices);
  }
  if (r->Know({"l2.replacement", "l2.protected_fraction"})) {
    const bool is_protected = l2.replacement == Replacement::kProtectedLru;
    r->Demand(is_protected == l2.protected_fraction.has_value(), "l2.protected_fraction",
              "belongs to replacement protected_lru, and to it alone; replacement is {}",
              Name(l2.replacement));
  }
}

void CheckDram(const Dram& dram, Relations* r) {
  if (r->Know({"dram.row_bytes", "dram.burst_bytes"})) {
    r->Demand(dram.burst_bytes <= dram.row_bytes, "dram.burst_bytes", "{} is longer than a row, {}",
              dram.burst_bytes, dram.row_bytes);
  }
  if (r->Know({"dram.trcd_ns", "dram.tras_ns"})) {
    r->Demand(dram.trcd_ns <= dram.tras_ns, "dram.tras_ns", "{} ns is shorter than trcd_ns, {}", dram.tras_ns,
              dram.trcd_ns);
  }
  if (r->Know({"dram.refresh_interval_ns", "dram.refresh_duration_ns"})) {
    r->Demand(dram.refresh_duration_ns < dram.refresh_interval_ns, "dram.refresh_duration_ns",
              "{} ns leaves nothing of refresh_interval_ns, {}", dram.refresh_duration_ns,
              dram.refresh_interval_ns);
  }
}

void CheckTlb(const TlbLevel& level, const std::string& path, Relations* r) {
  if (!r->Know({path.c_str()})) return;
  r->Demand(level.entries % level.ways == 0, path + ".entries",
            "{} entries are no whole number of sets of {} ways", level.entries, level.ways);
}

}  // namespace

void CheckRelations(const Gpu& gpu, Draft* draft) {
  Relations r(draft);
  CheckSms(gpu, &r);
  CheckSmResources(gpu.sm, &r);
  CheckSharedMemory(gpu.sm, &r);
  CheckCache(gpu.sm.instruction_caches.l0, "sm.instruction_caches.l0", &r);
  CheckCache(gpu.sm.instruction_caches.l1, "sm.instruction_caches.l1", &r);
  CheckCache(gpu.sm.constant_caches.l0, "sm.constant_caches.l0", &r);
  CheckCache(gpu.sm.constant_caches.l1, "sm.constant_caches.l1", &r);
  CheckCache(gpu.sm.constant_caches.l1_5, "sm.constant_caches.l1_5", &r);
  CheckL2(gpu, &r);
  CheckDram(gpu.dram, &r);
  CheckTlb(gpu.tlb.l1, "tlb.l1", &r);
  CheckTlb(gpu.tlb.l2, "tlb.l2", &r);
  CheckTlb(gpu.tlb.l3, "tlb.l3", &r);
}

}  // namespace heddle::config
