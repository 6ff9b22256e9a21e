// One streaming multiprocessor, event-driven: within a window it jumps from issue to issue and never visits
// an idle cycle. It owns its sub-cores, caches, shared memory and resident CTAs; everything beyond L1 is
// reached through the outbox (sim/memory/memory_request.h).
//
// A window, driven by the engine, in this order:
//   TakeReplies(begin)           requests that left in the previous window have their reply_cycle and leave the outbox;
//                                what leaves later (reply_cycle 0) stays
//   OpenLaunch / StartCta / CloseLaunch   at cycles >= begin; the CTAs of an SM in the order of their start
//   RunWindow(begin, end)        takes answers and issues what can issue before `end`; fills outbox() and finished()
// The result depends on the inputs only: an SM touches nothing that another SM touches, so SMs may run on any
// thread.
//
// Accounting. Every issue slot (sub-core x cycle) between OpenLaunch and CloseLaunch is charged to exactly
// one stall reason of exactly one open launch: an empty slot to the warp that issues next on that sub-core,
// that is the one the scheduling policy is waiting for, and there to the first condition, in the order of the
// ladder (instruction fetch, stall count, dependence barriers and other waits, pipe or queue), that it did
// not meet at that cycle. While a sub-core has no warp, its slots are `no_warp` of the launch that opened
// first among those still open. CloseLaunch checks the sum.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/types.h"
#include "sim/config/gpu_description.h"
#include "sim/isa/warp_stream.h"
#include "sim/memory/memory_request.h"
#include "sim/sm/cluster.h"
#include "sim/sm/kernel_timing.h"
#include "sim/stats/launch_stats.h"

namespace heddle::sm {

inline constexpr Cycle kNever = ~Cycle{0};

// The driver's words and at most 4 KiB of parameters.
inline constexpr uint32_t kConstantBank0Bytes = 4608;

using LaunchHandle = uint32_t;  // of a launch on one SM; reused after CloseLaunch

struct FinishedCta {
  LaunchHandle launch = 0;
  Dim3 cta;
  Cycle cycle = 0;  // its last warp has exited and its loads and copies have arrived; resources are free
  bool triggered = false;  // it had been reported as TriggeredCta before
};

// Every warp of the CTA has executed PREEXIT or has exited.
struct TriggeredCta {
  LaunchHandle launch = 0;
  Cycle cycle = 0;
};

// Why a warp does not issue: one line of the deadlock report.
struct WarpWait {
  LaunchHandle launch = 0;
  Dim3 cta;
  uint32_t warp = 0;  // in the CTA
  uint32_t pc = 0;    // of the instruction that it wants to issue
  stats::Stall reason{};
  std::string
      detail;  // "barrier 1: 96 of 128 threads have arrived", "scoreboard 0: 2 requests in flight", ...
};

// CTAs of this shape that an empty SM holds at a time: the least of what registers, shared memory, warps, CTA
// slots and barriers allow. 0: it never fits.
uint32_t MaxResidentCtas(const config::Gpu& gpu, const isa::LaunchShape& shape);

class Sm {
 public:
  Sm(const config::Gpu& gpu, uint32_t id);  // keeps no reference to `gpu`
  ~Sm();
  Sm(Sm&&) noexcept;
  Sm& operator=(Sm&&) noexcept;

  // `timing`, `stream` and `stats` outlive the launch on this SM; `shape` is copied. `stats` (per_pc sized to
  // the code, or empty: then no per-PC sums are kept) may be shared by SMs that never run at the same time.
  LaunchHandle OpenLaunch(const KernelTiming& timing, const isa::LaunchShape& shape, isa::WarpStream* stream,
                          stats::LaunchStats* stats, Cycle at);
  // All of its CTAs have finished. Charges the slots up to `at` and checks that the accounting is closed.
  void CloseLaunch(LaunchHandle launch, Cycle at);

  bool CanHost(const isa::LaunchShape& shape) const;  // one more CTA, beside what is resident now
  // `cluster`: of which the CTA is the one of that rank; null where clusters have one CTA. It outlives what its CTAs send.
  void StartCta(LaunchHandle launch, Dim3 cta, Cycle at, Cluster* cluster = nullptr, uint32_t rank = 0);
  // ACQBULK of this launch: what it depends on has ended at `at`; until then kNever.
  void SetGridReady(LaunchHandle launch, Cycle at);

  void TakeReplies(Cycle begin);
  // Returns the next event as far as it is known without the replies, which can only bring it forward.
  Cycle RunWindow(Cycle begin, Cycle end);
  // Load what the two look at, ahead of their call, in two steps: the state of the SM, and what its warps name.
  void Prefetch() const;
  void PrefetchWarps() const;

  memory::Outbox& outbox();
  std::vector<FinishedCta>& finished();    // in order of cycle; the engine clears it
  std::vector<TriggeredCta>& triggered();  // likewise

  // Messages to SMs of a cluster. At the window's edge, before TakeReplies, the engine carries those that left before it:
  // it writes their `arrival` and delivers them; the others stay. An empty outbox where the machine has no clusters.
  ClusterOutbox& cluster_outbox();
  void Deliver(const ClusterMessage& message);
  // A bulk load that this SM asked for and others receive: the instruction behind it, for messages that the engine makes.
  uint32_t InstructionOf(uint32_t bulk_work) const;
  Cluster* ClusterOf(uint32_t bulk_work) const;
  // The SM is idle: forgets messages that nobody is left to receive.
  void ForgetMessages();

  // When nothing else can happen in the machine: attempts of warps that wait for mbarriers fail. False: there are none.
  bool FailWaits(Cycle at);

  // The next cycle at which something happens here without a reply or a StartCta; kNever if nothing will. A
  // window that ends at or before it may be skipped.
  Cycle NextEventCycle() const;
  bool Idle() const;  // no resident CTA
  uint32_t id() const;

  // What an earlier run of the same kernel has left here: its code in the SM's instruction cache, its parameters in L1.5.
  void WarmCaches(LaunchHandle launch);

  // Between launches: forget L1, and with `everything` also the instruction and constant caches.
  void InvalidateCaches(bool everything);

  std::vector<WarpWait> DescribeWaits() const;

  // What an open launch has counted here so far.
  const stats::Counters& CountersOf(LaunchHandle launch) const;

  struct Machine;  // private to sim/sm

 private:
  std::unique_ptr<Machine> machine_;
};

}  // namespace heddle::sm
