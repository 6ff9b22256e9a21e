// Everything behind the SMs of one GPU: address translation, crossbar, L2 and DRAM, served at the edges of
// windows.
//
// Stages, each parallel over owners that share nothing:
//   GPC    brings the requests of its SMs into the order (cycle, SM, sequence), translates, passes the
//   request ports group  merges what the GPCs sent, in the same order, and serves each request to its end
//   (SliceGroup) GPC    passes the reply ports and writes reply_cycle
// What misses the GPCs' TLBs is looked up in the GPU's in one thread between; such misses are rare.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/types.h"
#include "sim/config/gpu_description.h"
#include "sim/engine/workers.h"
#include "sim/interconnect/crossbar.h"
#include "sim/memory/address_map.h"
#include "sim/memory/memory_request.h"
#include "sim/memory/slice_group.h"
#include "sim/memory/tlb.h"
#include "sim/stats/launch_stats.h"

namespace heddle::gpu {

class MemorySystem {
 public:
  explicit MemorySystem(const config::Gpu& gpu, uint64_t placement_seed = 0);

  // Serves the requests of `outboxes` (by SM; cycles >= begin) that leave before `end` and writes their
  // reply_cycle, which is at least engine::ShortestReply later. Later ones stay for the call whose window they leave
  // in: so the order of service is that of (cycle, SM, sequence) over all calls, whatever the windows. `begin` is not
  // before the last call's `end`.
  void Serve(std::span<memory::Outbox* const> outboxes, Cycle begin, Cycle end, engine::Workers* workers);

  // Requests of (sm, MemoryRequest::launch) are counted in the sums number `statistics`.
  void CountAs(uint32_t sm, uint32_t launch, uint16_t statistics);
  // Adds the sums to `counters`.
  void AddCounters(uint16_t statistics, stats::Counters* counters) const;
  // The same, and clears them.
  void TakeCounters(uint16_t statistics, stats::Counters* counters);

  // Arrival of the last acknowledgement so far of writes and reductions counted there; TakeCounters forgets
  // it.
  Cycle LastAcknowledgement(uint16_t statistics) const;

  // Calls take(context) for every multicast whose last request has been answered since the last call, in an order that
  // does not depend on threads.
  template <typename Take>
  void TakeMulticasts(Take take) {
    for (Gpc& gpc : gpcs_) {
      for (memory::BulkContext* context : gpc.multicasts) take(*context);
      gpc.multicasts.clear();
    }
  }

  void InvalidateCaches();  // L2 and TLBs; dirty lines are forgotten
  void FillWithForeignLines();
  // The lines of [address, address + bytes) are in L2, their pages in the GPU's TLB: not between Serve's stages.
  void PlaceInL2(uint64_t address, uint64_t bytes);
  uint64_t DirtyLines() const;

  const interconnect::Crossbar& crossbar() const { return crossbar_; }

 private:
  struct PendingPage {  // missed the TLB of its GPC
    uint64_t page = 0;
    Cycle cycle = 0;
    uint16_t statistics = 0;
    Cycle ready = 0;
  };
  struct PendingTranslation {  // missed the TLB of its SM, waits for a page that the GPC's waits for
    memory::Tlb* tlb = nullptr;
    uint64_t page = 0;
    uint64_t pending = 0;  // number of the page
    Cycle earliest = 0;
    Cycle ready = 0;
  };
  struct Gpc {
    explicit Gpc(const config::Gpu& gpu) : tlb(gpu.tlb.l2) {}
    uint32_t first_sm = 0;
    uint32_t sm_count = 0;
    memory::Tlb tlb;
    std::vector<memory::Tlb> sm_tlbs;
    std::vector<memory::MemoryRequest*> order;
    size_t sent = 0;  // of order; the others wait for a translation, or stand behind one that does
    std::vector<Cycle> translated;  // of what is not sent; kPendingFlag | index: see waiting
    std::vector<uint32_t> counts;   // for sorting
    std::vector<PendingPage> pending;
    std::vector<PendingTranslation> waiting;
    std::vector<std::vector<memory::SliceRequest>> to_group;
    std::vector<Cycle> acknowledged;               // the last, by number of the sums
    std::vector<memory::BulkContext*> multicasts;  // answered
  };
  struct Group {
    Group(const config::Gpu& gpu, uint32_t id) : slices(gpu, id) {}
    memory::SliceGroup slices;
    std::vector<stats::Counters> counters;  // by number of the sums
  };

  static constexpr Cycle kPendingFlag = Cycle{1} << 63;

  void Collect(Gpc* gpc, std::span<memory::Outbox* const> outboxes, Cycle begin, Cycle end);
  Cycle Translate(Gpc* gpc, const memory::MemoryRequest& request);
  Cycle MissGpc(Gpc* gpc, memory::Tlb* sm_tlb, uint64_t page, const memory::MemoryRequest& request);
  void WalkPages();
  void PatchTlbs(Gpc* gpc);
  void Send(Gpc* gpc, memory::MemoryRequest* request, Cycle translated);
  void SendTranslated(Gpc* gpc);
  void SendRest(Gpc* gpc);
  void ServeGroup(uint32_t group, Cycle begin);
  void Return(uint32_t gpc);
  void Multicast(Gpc* gpc, memory::MemoryRequest* request);
  uint16_t StatisticsOf(const memory::MemoryRequest& request) const {
    const std::vector<uint16_t>& of_sm = statistics_[request.sm];
    return request.launch < of_sm.size() ? of_sm[request.launch] : uint16_t{0};
  }

  engine::Workers alone_{1};
  interconnect::Crossbar crossbar_;
  memory::AddressMap map_;
  memory::L2Geometry geometry_;
  memory::Tlb tlb_;
  uint32_t page_shift_;
  Cycle sm_miss_cycles_;   // that hits the GPC's
  Cycle gpc_miss_cycles_;  // that hits the GPU's
  Cycle walk_cycles_;
  Cycle multicast_extra_cycles_;
  Cycle shortest_reply_;
  std::vector<Gpc> gpcs_;
  std::vector<Group> groups_;
  std::vector<std::vector<uint16_t>> statistics_;  // by SM, then handle
  std::vector<stats::Counters> walk_counters_;     // by number of the sums
  std::vector<PendingPage*> walks_;
  std::vector<uint32_t> with_pending_;
};

}  // namespace heddle::gpu
