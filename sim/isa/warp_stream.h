// The seam between what a kernel does and when it does it.
//
// `frontend` implements these classes (by executing SASS, or by replaying a recorded instruction trace), `sim` drives
// them and does not know which. The simulator owns time: it hands the cycle in, and the order of its calls is the
// order of events.
//
// Use, per warp:
//   1. NextRun() executes ahead the instructions that touch nothing but the warp's own registers and returns them as
//      an index range. The simulator issues them one by one from its own timing records, without further calls.
//   2. At the cycle at which the instruction behind the run issues, Execute() performs it and says what it did:
//      addresses, barrier, branch, exit. Back to 1.
// A run never passes an instruction that waits (Control::wait_mask) for a result that PerformAtSlice has yet to deliver.
//
// Threads: one WarpStream belongs to one SM and is used by one thread at a time. PerformAtSlice may be called for
// tokens of the same stream from several threads at once, for different lanes, while no SM runs.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/types.h"
#include "sim/isa/instruction.h"
#include "sim/isa/memory_image.h"

namespace heddle::isa {

enum class WarpState : uint8_t {
  kRunnable,
  kBlocked,   // every split waits for a barrier; ReleaseBarrier makes it runnable
  kFinished,  // every lane has exited
};

// Instructions [first, first + count) have been executed; instruction first + count is next for Execute().
// count may be 0. When state is not kRunnable, nothing follows and first, count and lanes mean nothing.
struct InstructionRun {
  uint32_t first = 0;
  uint32_t count = 0;
  uint32_t lanes = 0;  // active lanes of the run, before guards
  WarpState state = WarpState::kRunnable;
};

enum class MemorySpace : uint8_t { kGlobal, kLocal, kShared, kConstant };

enum class AccessKind : uint8_t {
  kLoad,
  kStore,
  kAtomic,     // returns a value
  kReduction,  // returns none
  kAsyncCopy,  // LDGSTS: global to shared without registers
  kPrefetch,
};

// The lanes and addresses of one memory instruction. Generic accesses have been resolved to a space; where the lanes of
// one instruction differ, `lanes` are those in `space` and `shared_lanes` those that hit the shared window.
struct MemoryAccess {
  MemorySpace space = MemorySpace::kGlobal;
  AccessKind kind = AccessKind::kLoad;
  uint8_t bytes_per_lane = 4;   // 1, 2, 4, 8, 16
  bool at_slice = false;        // performed by PerformAtSlice: atomics, reductions and strong loads on global memory
  bool bypass_l1 = false;       // .BYPASS, .STRONG.GPU and above
  uint32_t lanes = 0;           // lanes that access memory, guards applied; may be 0
  uint32_t shared_lanes = 0;    // generic instructions only
  uint32_t token = 0;           // handle for PerformAtSlice or CompleteAsyncCopy, valid when at_slice or kAsyncCopy
  // Byte addresses. kGlobal: virtual. kLocal: the virtual address of the interleaved backing store (lanes that use the
  // same offset are 4 bytes apart). kShared: offset in the CTA's window. kConstant: address of the bank's backing store.
  std::array<uint64_t, kWarpLanes> address{};
  std::array<uint32_t, kWarpLanes> shared_address{};  // kAsyncCopy: destination; generic: of shared_lanes
  uint32_t zero_fill_lanes = 0;                       // kAsyncCopy: lanes that write zeros and read nothing
};

enum class BarrierOp : uint8_t { kSync, kArrive, kReduce };

struct BarrierAccess {
  BarrierOp op = BarrierOp::kSync;
  uint8_t id = 0;
  uint32_t arriving_threads = 0;  // what this warp adds: 32 for a whole warp, whatever its live lanes
  uint32_t expected_threads = 0;  // 0: all warps of the CTA
};

enum class StepKind : uint8_t {
  kLocal,    // nothing beyond what the instruction's class says (predicated off counts as this)
  kBranch,   // taken or not, see WarpStep::next and ::taken
  kMemory,   // WarpStep::memory
  kBarrier,  // WarpStep::barrier
  kSleep,    // NANOSLEEP: WarpStep::sleep_ns
  kExit,     // some lanes exited; state says whether any are left
};

struct WarpStep {
  StepKind kind = StepKind::kLocal;
  WarpState state = WarpState::kRunnable;  // of the warp, after the step
  bool taken = false;
  uint32_t index = 0;     // of the executed instruction
  uint32_t lanes = 0;     // that executed it, guard applied
  uint32_t sleep_ns = 0;
  BarrierAccess barrier;
  MemoryAccess memory;    // valid when kind is kMemory; otherwise stale
};

struct CtaStart {
  uint32_t slot = 0;   // on this SM and of this launch: dense, reused after EndCta
  Dim3 cta;            // blockIdx (members may be 0)
  uint32_t sm = 0;     // %smid
  uint32_t first_warp_slot = 0;  // %warpid of the CTA's first warp
  Cycle cycle = 0;
};

// Something in the trace that the results must state, such as an address that came from memory of unknown contents.
struct StreamIssue {
  std::string kind;    // stable identifier: "unknown_address", "unknown_branch", "unsupported_opcode", ...
  std::string detail;  // for people: instruction, buffer, value
  uint64_t count = 0;
};

// The warps of one launch that live on one SM. A warp is named by slot * warps_per_cta + index in the CTA.
class WarpStream {
 public:
  virtual ~WarpStream() = default;

  virtual void StartCta(const CtaStart& start) = 0;
  virtual void EndCta(uint32_t slot) = 0;  // after its last warp has finished

  virtual InstructionRun NextRun(uint32_t warp) = 0;
  virtual void Execute(uint32_t warp, Cycle now, WarpStep* step) = 0;

  // Every warp that waited for barrier `id` of this CTA may go on.
  virtual void ReleaseBarrier(uint32_t slot, uint8_t id) = 0;

  // The last sector of an asynchronous copy has arrived: its bytes appear in shared memory now.
  virtual void CompleteAsyncCopy(uint32_t token, Cycle now) = 0;

  // Performs the given lanes of an atomic, a reduction or a strong load on the memory image.
  virtual void PerformAtSlice(uint32_t token, uint32_t lanes, Cycle now) = 0;
};

// What a launch needs of an SM, and where its static data lie (for instruction and constant caches and the TLB).
struct LaunchShape {
  Dim3 grid;
  Dim3 block;
  Dim3 cluster;
  uint32_t registers_per_thread = 0;
  uint32_t shared_bytes_per_cta = 0;  // static, dynamic and reserved
  uint32_t barriers_per_cta = 0;
  uint64_t code_address = 0;
  std::array<uint64_t, 5> constant_bank_address{};

  uint32_t ThreadsPerCta() const { return static_cast<uint32_t>(block.Count()); }
  uint32_t WarpsPerCta() const { return CeilDiv(ThreadsPerCta(), kWarpLanes); }
};

// One launch, ready to run. Lives as long as the streams that it opened.
class LaunchProgram {
 public:
  virtual ~LaunchProgram() = default;

  virtual const KernelCode& code() const = 0;
  virtual const LaunchShape& shape() const = 0;
  virtual MemoryImage& memory() = 0;
  virtual std::unique_ptr<WarpStream> OpenOnSm(uint32_t sm) = 0;
  // What the streams met so far, merged over SMs in a fixed order.
  virtual std::vector<StreamIssue> Issues() const = 0;
};

}  // namespace heddle::isa
