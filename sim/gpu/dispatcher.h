// The CTA dispatcher: hands the CTAs of running launches to SMs, one every so many cycles.
//
// CTAs go out in the order of blockIdx (x first). A CTA goes to the SM with the fewest resident warps; of
// equals, breadth first: one SM of each TPC before the second, GPCs in turn. Launches that run together go
// one after the other, in the order in which they became ready. The CTAs of a cluster go out together, to SMs of one GPC:
// the one that has room for most such clusters, of equals the first. The dispatcher hears of a finished CTA
// `hearing_cycles` after its end, which is the length of a whole window: so what it does depends neither on
// the window nor on threads.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "sim/base/types.h"
#include "sim/config/gpu_description.h"
#include "sim/interconnect/crossbar.h"
#include "sim/isa/warp_stream.h"

namespace heddle::gpu {

// SMs in the order in which a wave of CTAs fills them.
std::vector<uint32_t> PlacementOrder(const interconnect::Crossbar& crossbar);
std::vector<uint32_t> GpcsOf(const interconnect::Crossbar& crossbar);  // by SM

class Dispatcher {
 public:
  // The SMs, as the dispatcher needs them.
  struct Hooks {
    std::function<bool(uint32_t sm, uint32_t launch)> can_host;  // one more, beside what has started
    std::function<void(uint32_t sm, uint32_t launch, Dim3 cta, Cycle at)> start;
  };

  // `gpc_of_sm`: by SM.
  Dispatcher(const config::Gpu& gpu, std::vector<uint32_t> placement_order, std::vector<uint32_t> gpc_of_sm,
             Cycle hearing_cycles, Hooks hooks);

  // `launch`: the caller's number. CTAs go out from `at` on. `max_per_sm` of them fit an empty SM.
  void Add(uint32_t launch, const isa::LaunchShape& shape, uint32_t max_per_sm, Cycle at);
  void Finished(uint32_t sm, uint32_t launch, Cycle at);
  void Remove(uint32_t launch);                   // all of its CTAs have gone out
  uint64_t Dispatched(uint32_t launch) const;     // CTAs that have gone out, those left out included
  void LeaveOut(uint32_t launch, uint64_t ctas);  // the next ones; whole clusters, no more than there are

  // Dispatches what can be in [begin, end), and starts what was dispatched launch.cta_launch_latency_cycles before.
  void Run(Cycle begin, Cycle end);

  // The next cycle, at or after `now`, at which a CTA could go out or starts; ~0 when only a CTA's end can change that.
  Cycle NextEvent(Cycle now) const;

  // Launches with CTAs that wait for room, for the deadlock report.
  std::vector<uint32_t> Waiting() const;

 private:
  struct Launch {
    uint32_t id = 0;
    Dim3 grid;
    uint64_t next = 0;
    uint64_t count = 0;
    uint32_t warps = 0;
    uint32_t max_per_sm = 0;
    Cycle from = 0;
    Dim3 cluster;  // CTAs
    uint32_t cluster_ctas = 1;
    std::vector<uint32_t> resident;  // CTAs by SM, those that ended unheard included
    Dim3 At(uint64_t index)
        const;  // the CTA that goes out as number `index`: cluster by cluster, in a cluster by rank
  };
  struct Ended {
    Cycle heard = 0;
    uint32_t sm = 0;
    uint32_t launch = 0;
    uint32_t warps = 0;
    bool operator>(const Ended& other) const { return heard > other.heard; }
  };

  struct Starting {
    Cycle start = 0;
    uint32_t sm = 0;
    uint32_t launch = 0;
    Dim3 cta;
  };

  bool HasRoom(const Launch& launch, uint32_t sm) const;
  Cycle NextDispatch(Cycle now) const;
  Launch* Find(uint32_t launch);
  const Launch* Find(uint32_t launch) const;
  const Launch* HeadAt(Cycle at) const;  // the first in the queue that may go out at `at`
  Cycle EarliestFrom(Cycle after) const;
  void Hear(Cycle until);
  bool TryPlace(Launch* launch, Cycle at);        // the next CTA or cluster
  uint32_t ChooseSm(const Launch& launch) const;  // or kNone
  bool ChooseForCluster(Launch* launch, std::vector<uint32_t>* sms);
  uint32_t FitInGpc(Launch* launch, uint32_t gpc, uint32_t most, std::vector<uint32_t>* sms);
  void Place(Launch* launch, uint32_t sm, Cycle start);

  static constexpr uint32_t kNone = ~0U;
  static constexpr uint64_t kCycleScale = 256;  // dispatch slots in 1/256 cycles

  Hooks hooks_;
  Cycle hearing_cycles_;
  Cycle launch_latency_;
  uint64_t interval_;         // scaled
  uint64_t next_slot_ = 0;    // scaled
  uint32_t blocked_ = kNone;  // a launch that found no SM, and no CTA's end has been heard since
  std::vector<uint32_t> order_;
  std::vector<std::vector<uint32_t>> order_in_gpc_;
  std::vector<uint32_t> chosen_;       // scratch
  std::vector<uint32_t> warps_;        // resident, by SM
  std::vector<Launch> launches_;       // in order
  std::deque<Starting> starting_;      // dispatched, not yet on their SM; in order
  std::vector<uint32_t> starting_on_;  // how many, by SM
  std::vector<Ended> ended_;           // a heap, earliest heard first
};

}  // namespace heddle::gpu
