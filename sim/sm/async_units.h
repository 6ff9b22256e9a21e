// What an SM has from sm_90 on beside its sub-cores: state of the stages warpgroup.cpp, mbarrier.cpp, bulk.cpp and
// cluster.cpp. Absent on machines without these units, and untouched by kernels that do not use them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/types.h"
#include "sim/config/gpu_description.h"
#include "sim/sm/cluster.h"
#include "sim/sm/units/dependence_counters.h"
#include "sim/sm/units/gmma_unit.h"
#include "sim/sm/units/tma_unit.h"

namespace heddle::sm {

// Beside Warp, by warp slot.
struct AsyncWarp {
  enum class Wait : uint8_t { kNothing, kMbarrier, kCluster };
  Wait wait = Wait::kNothing;
  bool parity = false;    // of the phase that it waits for
  uint32_t mbarrier = 0;  // offset in the CTA's window
  Cycle wait_since = 0;
  uint32_t wait_instruction = 0;

  uint32_t registers = 0;  // of a thread
  uint32_t matrices_issued = 0;
  CountedBarrier groups;  // of matrix instructions: gsb0
  uint32_t open_bulk_group = kNoBulkGroup;
  bool triggered = false;  // PREEXIT
};

// The bulk stores of a warp between two UTMACMDFLUSH.
struct BulkGroup {
  uint32_t warp = 0;
  uint32_t undecided = 0;  // stores whose end of reading is not known yet
  Cycle done = 0;
  uint32_t ticket = 0;
  uint8_t barrier = isa::kNoBarrier;
  bool closed = false;
};

// Beside Cta, by CTA.
struct AsyncCta {
  Cluster* cluster = nullptr;
  uint32_t rank = 0;
  uint64_t generation = 0;
  uint64_t arrived_warps = 0;  // at the cluster barrier, bit by warp of the CTA
  uint64_t exited_warps = 0;
  uint64_t triggered_warps = 0;
  bool reported_trigger = false;
  int64_t spare_registers = 0;  // given back by USETMAXREG.DEALLOC
  std::vector<Warpgroup> warpgroups;
};

struct AsyncUnits {
  explicit AsyncUnits(const config::Gpu& gpu)
      : gmma(gpu.sm.gmma),
        wake_cycles(gpu.sm.mbarrier->wake_cycles),
        cluster_latency_cycles(gpu.cluster_network->latency_cycles),
        cluster_barrier_cycles(gpu.cluster_network->barrier_latency_cycles),
        tma(*gpu.sm.tma, gpu.interconnect.sm_write_bytes_per_cycle),
        issue_to_bulk_request(gpu.sm.tma->issue_to_request_cycles),
        queues(gpu.sm.max_warps, GmmaQueue(gmma ? gmma->queue_entries : 0)),
        warps(gpu.sm.max_warps),
        ctas(gpu.sm.max_ctas) {
    for (const config::OperationTiming& entry : gpu.sm.operations)
      if (entry.op == "LDS" && entry.width_bits == 32) shared_access_cycles = entry.result_cycles;
    shared_access_cycles -= std::min(shared_access_cycles, gpu.sm.mio.issue_to_lsu_cycles);
  }

  const std::optional<config::Gmma> gmma;  // absent: code that needs it is refused before it starts
  const Cycle wake_cycles;
  const Cycle cluster_latency_cycles;
  const Cycle cluster_barrier_cycles;
  uint32_t shared_access_cycles = 0;  // from the LSU to a value out of shared memory
  TmaUnit tma;
  const Cycle issue_to_bulk_request;
  std::vector<GmmaQueue> queues;  // by warp slot
  std::vector<AsyncWarp> warps;
  std::vector<AsyncCta> ctas;
  uint64_t generation = 0;

  std::vector<std::pair<uint32_t, uint32_t>> arrivals_after_copies;  // ARRIVES.LDGSTSBAR: warp, token

  std::vector<BulkGroup> groups;
  std::vector<uint32_t> free_groups;
  std::vector<uint32_t> ready_works;  // whose tensor map has come
  std::vector<uint32_t> empty_works;  // scratch

  ClusterOutbox outbox;
  Cycle next_departure = kUnknown;   // of a message that has not been carried
  std::deque<ClusterMessage> inbox;  // by Arrival::index
  std::vector<uint32_t> free_inbox;
};

}  // namespace heddle::sm
