// One launch from its start to its end: its streams on SMs, its timing records, and the statistics as they
// grow.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/base/types.h"
#include "sim/config/gpu_description.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/sampling.h"
#include "sim/gpu/timeline_recorder.h"
#include "sim/isa/warp_stream.h"
#include "sim/sm/kernel_timing.h"
#include "sim/sm/sm.h"
#include "sim/stats/launch_stats.h"

namespace heddle::gpu {

// What can be told before a launch starts: kTrace when this GPU cannot run it.
Status CheckLaunch(const config::Gpu& gpu, const LaunchRequest& request, bool allow_foreign_cubins);

// SMs are dealt to threads in chunks of neighbours. The first of chunk number `chunk`; that of `chunks` is the end.
inline uint32_t FirstOfChunk(uint32_t chunk, uint32_t chunks, uint32_t sms) {
  return CeilDiv(chunk * sms, chunks);
}

// From the start of a launch to its first CTA.
Cycle LaunchOverheadCycles(const config::Gpu& gpu, const LaunchRequest& request);

class Dispatcher;
class MemorySystem;

struct RunningLaunch {
  // SMs of a chunk share their sums, so that SMs that run at the same time have sums of their own.
  RunningLaunch(const config::Gpu& gpu, const LaunchRequest& launch, uint32_t launch_index, uint16_t sums,
                uint32_t chunks, bool per_pc);

  struct OnSm {
    std::unique_ptr<isa::WarpStream> stream;
    sm::LaunchHandle handle = 0;
    bool open = false;
  };

  // A launch finds what an earlier run of the same kernel has left of code, parameters and translations; caches are cold of
  // data alone. Under Nsight Compute's cache control a kernel of two elements reads 256 bytes from DRAM, and its time
  // leaves no room for more.
  void PlaceStaticData(MemorySystem* memory) const;

  // Opens the launch on an SM that has not run it yet.
  OnSm& Open(sm::Sm* sm, Cycle at);
  // Closes it everywhere; `sms` by number. Charges issue slots up to `at`.
  void Close(std::vector<sm::Sm>* sms, Cycle at);
  // Adds up what the SMs counted; the sum over stall reasons is the number of issue slots.
  stats::LaunchStats Assemble() const;

  bool AllFinished() const { return finished == ctas; }

  // Where sampled mode asks for it. `machine_ctas` of it fit the whole GPU.
  void StartSampling(const config::Gpu& gpu, uint64_t machine_ctas);
  // Of the next CTAs, how many sampled mode leaves out now. `alone`: nothing else runs.
  uint64_t CtasToLeaveOut(bool alone, const std::vector<sm::Sm>& sms, const MemorySystem& memory,
                          const Dispatcher& dispatcher);
  // What has been counted of it so far.
  stats::Counters CountersSoFar(const std::vector<sm::Sm>& sms, const MemorySystem& memory) const;
  Error OverLimit(Cycle max_cycles) const;

  const LaunchRequest* request;
  uint32_t index;
  uint16_t statistics;  // number of the memory system's sums
  sm::KernelTiming timing;
  std::vector<OnSm> on_sm;
  // What two threads write does not share a cache line.
  struct alignas(128) ChunkStats : stats::LaunchStats {};
  std::vector<ChunkStats> chunk_stats;
  uint64_t ctas;  // those left out no longer count
  uint64_t finished = 0;
  uint64_t triggered = 0;  // CTAs that executed PREEXIT, or ended without
  Cycle last_trigger = 0;
  bool trigger_heard = false;
  Cycle grid_ready = 0;  // what ACQBULK waits for has ended then; kNever: not yet
  Cycle start = 0;
  Cycle last_finish = 0;
  Cycle last_acknowledged = 0;                 // of its writes
  std::unique_ptr<TimelineRecorder> timeline;  // where one is wanted
  std::optional<Sampler> sampler;              // of sampled mode
};

}  // namespace heddle::gpu
