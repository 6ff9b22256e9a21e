// The slices that serve the same lines in every partition, the links between them, and the DRAM channels
// behind.
//
// A read first asks the slice of the requester's own partition. If the line's home is another partition and
// the data are not there, the home is asked over the link, and the line is cached near as well
// (replicate_far). Writes, atomics and strong loads go to the home and drop the replicas. The home fetches
// missing sectors from its channel, writes back what must leave, and keeps no more lines dirty than the
// limit.
//
// Requests are served one after the other in the order (cycle, SM, sequence), each to its end: what a request
// waits for is known when it is served, and nothing is queued. A group is used by one thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/types.h"
#include "sim/config/gpu_description.h"
#include "sim/engine/calendar.h"
#include "sim/memory/address_map.h"
#include "sim/memory/dram_channel.h"
#include "sim/memory/l2_slice.h"
#include "sim/memory/memory_request.h"
#include "sim/stats/launch_stats.h"

namespace heddle::memory {

struct SliceRequest {
  MemoryRequest* request = nullptr;
  Location location;
  Place place;              // of the line in its slice
  uint16_t partition = 0;   // of the SM
  uint16_t statistics = 0;  // which of the caller's counters it goes to
  Cycle arrival = 0;        // at the slice of that partition
};

class SliceGroup {
 public:
  SliceGroup(const config::Gpu& gpu, uint32_t id);

  // Returns the cycle at which the reply can leave the slice of the requester's partition; performs what the
  // slice must perform. Not before arrival + l2.hit_latency_cycles.
  Cycle Serve(const SliceRequest& request, stats::Counters* counters);

  // Loads what Serve will look at.
  void Prefetch(const SliceRequest& request) const {
    slices_[request.partition * slices_per_partition_ + request.location.slice].lines.Prefetch(request.place);
    if (request.location.home != request.partition)
      slices_[request.location.home * slices_per_partition_ + request.location.slice].lines.Prefetch(
          request.place);
  }

  // No later request arrives before `cycle`.
  void AdvanceTo(Cycle cycle) { horizon_ = cycle; }

  void InvalidateCaches();  // dirty lines are forgotten
  void FillWithForeignLines();
  // The line is clean and whole in its home slice.
  void PlaceLine(const Location& location, const Place& place);
  void Reset();

  uint64_t DirtyLines() const;

 private:
  struct Slice {
    Slice(const config::Gpu& gpu, uint64_t seed);
    L2Slice lines;
    engine::Calendar data;     // bytes of the array
    engine::Calendar atomics;  // sector operations
    engine::Calendar inbound;  // bytes over the link into this slice's partition
  };
  Slice& At(uint32_t partition, uint32_t slice) { return slices_[partition * slices_per_partition_ + slice]; }
  Cycle ReadNear(const SliceRequest& request, stats::Counters* counters);
  // These return the cycle in which the last byte moves in the home slice; the hit latency is not in it.
  Cycle ReadHome(const SliceRequest& request, uint8_t sectors, Cycle arrival, stats::Counters* counters);
  Cycle WriteHome(const SliceRequest& request, Cycle arrival, stats::Counters* counters);
  Cycle AtomicHome(const SliceRequest& request, Cycle arrival, stats::Counters* counters);
  Way FindOrAllocateHome(Slice* home, const SliceRequest& request, Cycle at, stats::Counters* counters);
  // Makes the sectors of a home line valid; returns when they are.
  Cycle Fetch(const Location& where, const Way& way, uint8_t sectors, Cycle at, stats::Counters* counters);
  Cycle ReadFromDram(const Location& where, const Way& way, uint8_t missing, Cycle at,
                     stats::Counters* counters);
  // The cycle in which the last of `amount` moves: latencies count from there. A calendar that is not used is
  // not advanced either.
  Cycle Move(engine::Calendar* calendar, Cycle from, uint32_t amount) const {
    if (amount == 0) return from;
    calendar->AdvanceTo(horizon_);
    return calendar->Reserve(from, amount) - 1;
  }
  void DropReplicas(const SliceRequest& request);
  void LimitDirty(Slice* slice, uint32_t slice_number, Cycle at, stats::Counters* counters);
  void WriteBack(const Dirt& dirt, uint32_t slice_number, Cycle at, stats::Counters* counters);
  DramChannel& ChannelOf(uint32_t home, uint32_t slice, uint64_t index, uint64_t* line);

  uint32_t partitions_;
  uint32_t slices_per_partition_;
  FastDivider channels_per_partition_;
  uint32_t hit_latency_;
  uint32_t atomic_latency_;
  uint32_t link_there_;  // one way, and
  uint32_t link_back_;   // the other
  bool replicate_far_;
  Cycle horizon_ = 0;
  std::vector<Slice> slices_;
  std::vector<DramChannel> channels_;
};

}  // namespace heddle::memory
