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
// A run never passes an instruction that waits (Control::wait_mask) for a result that PerformAtSlice or CompleteRemote
// has yet to deliver.
//
// Waiting is an event. A warp that nothing lets go on is kBlocked after its step; it is never polled, and an instruction
// that waited is not executed again. What lets it go on:
//   BAR                ReleaseBarrier, by the simulator, which counts the arrivals that steps report
//   UCGABAR_WAIT       ReleaseClusterBarrier, likewise
//   SYNCS..TRYWAIT     the completion of the mbarrier's phase, which the stream sees: after a step of kind kMbarrier and
//                      after CompleteBulk, PerformRemote and ArriveAfterCopies the simulator empties woken()
//   ACQBULK, DEPBAR, WARPGROUP.DEPBAR, wait masks: the simulator does not call Execute before the wait is over
// When nothing else can happen in the machine (or after the time that a try_wait is suspended at most), FailWait lets
// the attempt of one warp fail, as on hardware.
//
// Bulk copies and TMA. A step of kind kBulk hands out a BulkOperation: which bytes move, row by row, and between whom.
// Nothing has happened functionally. The simulator says what takes effect and when, in any order of rows:
//   global -> shared   CompleteBulk for every row and every destination CTA: bytes appear, the mbarrier counts them
//   shared -> global   ReadBulkSource (the source may be overwritten afterwards), later PerformBulkAtSlice
//   shared -> cluster  ReadBulkSource, later CompleteBulk at the destination
//   prefetch           ReadBulkSource of all rows at once: they have been asked for, and the operation is over
// The stream takes the operation back by itself when all of it has been performed. UTMACMDFLUSH closes a group of the
// warp's shared -> global operations; its read barrier counts groups that have yet to end, in order, as LDGDEPBAR's
// does. (SASS does not tell wait_group.read from wait_group: both are DEPBAR.LE.)
//
// Clusters. CTAs of a cluster name each other's shared memory by rank (LaunchShape::ClusterRank). What an instruction
// does to another CTA is a RemoteOperation: the simulator carries it to the SM of that CTA (the same one, perhaps) and
// calls PerformRemote on the stream of the launch there, in the window of its arrival, which is a later one than that
// of its issue; where values come back it carries them to the issuing SM and calls CompleteRemote there, again in a
// later window. Multicast and remote bulk copies reach their destination in the same way, by CompleteBulk. A CTA that has
// ended meanwhile is named by kEndedCta: nothing is changed there, values are zeros. So streams
// of different SMs never touch each other within a window, and the result does not depend on threads.
//
// wgmma: products take effect when WARPGROUP.DEPBAR executes, which the simulator holds back until its groups are done.
// Shapes, operand sources and groups follow from the instruction (matrix.h), so that steps have nothing to add.
//
// Threads: one WarpStream belongs to one SM and is used by one thread at a time. PerformAtSlice and PerformBulkAtSlice
// may be called for tokens of the same stream from several threads at once, for different lanes or bytes, while no SM
// runs. PerformRemote and CompleteBulk touch the stream that they are called on, and of the operation only what belongs
// to the named CTA: different destinations may do so at once.
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

inline constexpr uint32_t kMaxClusterCtas = 16;

enum class AccessKind : uint8_t {
  kLoad,
  kStore,
  kAtomic,     // returns a value
  kReduction,  // returns none
  kAsyncCopy,  // LDGSTS: global to shared without registers
  kPrefetch,
};

// What lanes of one instruction do to the shared memory of other CTAs of the cluster: loads, stores, atomics (generic
// accesses, STAS) and arrivals at mbarriers. Valid until PerformRemote has been called for every rank in `ranks` and,
// where values come back, CompleteRemote.
struct RemoteOperation {
  AccessKind kind = AccessKind::kStore;
  bool returns = false;     // CompleteRemote delivers values: loads and atomics
  bool is_arrival = false;  // at an mbarrier: 8 bytes at shared_address, no data
  uint8_t bytes_per_lane = 4;
  uint16_t ranks = 0;  // bit per CTA of the cluster that is touched
  uint32_t lanes = 0;
  uint32_t token = 0;  // dense per stream; reused
  std::array<uint8_t, kWarpLanes> rank{};
  std::array<uint32_t, kWarpLanes> shared_address{};  // offset in the window of that CTA
};

// The lanes and addresses of one memory instruction. Generic accesses have been resolved to a space; where the lanes of
// one instruction differ, `lanes` are those in `space` and `shared_lanes` those that hit the shared window.
struct MemoryAccess {
  MemorySpace space = MemorySpace::kGlobal;
  AccessKind kind = AccessKind::kLoad;
  uint8_t bytes_per_lane = 4;  // 1, 2, 4, 8, 16
  bool at_slice =
      false;  // performed by PerformAtSlice: atomics, reductions and strong loads on global memory
  bool bypass_l1 = false;     // .BYPASS, .STRONG.GPU and above
  uint32_t lanes = 0;         // lanes that access memory, guards applied; may be 0
  uint32_t shared_lanes = 0;  // generic instructions only
  uint32_t token = 0;  // handle for PerformAtSlice or CompleteAsyncCopy, valid when at_slice or kAsyncCopy
  // Byte addresses. kGlobal: virtual. kLocal: the virtual address of the interleaved backing store (lanes that use the
  // same offset are 4 bytes apart). kShared: offset in the CTA's window. kConstant: address of the bank's backing store.
  std::array<uint64_t, kWarpLanes> address{};
  std::array<uint32_t, kWarpLanes> shared_address{};  // kAsyncCopy: destination; generic: of shared_lanes
  uint32_t zero_fill_lanes = 0;                       // kAsyncCopy: lanes that write zeros and read nothing
  RemoteOperation* remote =
      nullptr;  // lanes in other CTAs' shared memory; they are in none of the masks above

  // Makes a used one new: everything but the addresses, which only count where a mask has their lane.
  void Begin(MemorySpace new_space, AccessKind new_kind, uint8_t new_bytes_per_lane) {
    space = new_space;
    kind = new_kind;
    bytes_per_lane = new_bytes_per_lane;
    at_slice = bypass_l1 = false;
    lanes = shared_lanes = zero_fill_lanes = 0;
    token = 0;
    remote = nullptr;
  }
};

// Where a lane's byte lies in the local memory of its warp: words of the same offset lie side by side.
constexpr uint64_t InterleavedLocal(uint32_t offset, uint32_t lane) {
  return uint64_t{offset / 4} * (4 * kWarpLanes) + 4 * lane + offset % 4;
}

enum class BarrierOp : uint8_t { kSync, kArrive, kReduce };

struct BarrierAccess {
  BarrierOp op = BarrierOp::kSync;
  uint8_t id = 0;
  uint32_t arriving_threads = 0;  // what this warp adds: 32 for a whole warp, whatever its live lanes
  uint32_t expected_threads = 0;  // 0: all warps of the CTA
};

enum class MbarrierOp : uint8_t {
  kInit,
  kArrive,  // any of: arrival count, expected bytes, completed bytes
  kTest,    // never blocks
  kWait,  // blocks while the phase is incomplete: WarpState kBlocked unless other lanes of the warp can go on
  kArriveAfterCopies,  // ARRIVES.LDGSTSBAR: takes effect when the warp's LDGSTS so far have arrived: ArriveAfterCopies
};

// SYNCS and ARRIVES. Arrivals at other CTAs' mbarriers are in `remote`, and nothing of the rest is set but op when
// all of them are.
struct MbarrierAccess {
  MbarrierOp op = MbarrierOp::kArrive;
  bool blocked = false;  // kWait: the phase is incomplete
  bool parity = false;   // kTest, kWait: of the phase asked for
  uint32_t lanes = 0;    // at mbarriers of the own CTA
  uint32_t shared_address =
      0;               // offset in the CTA's window of the first lane's mbarrier; of the one it waits for
  uint32_t token = 0;  // kArriveAfterCopies
  RemoteOperation* remote = nullptr;
};

enum class BulkKind : uint8_t {
  kLoad,      // global -> shared of one or more CTAs of the cluster: UTMALDG, UBLKCP.S.G
  kStore,     // shared -> global: UTMASTG, UBLKCP.G.S
  kReduce,    // shared -> global, combined there: UTMAREDG, UBLKRED.G.S
  kExchange,  // shared -> shared of a CTA of the cluster: UBLKCP.S.S, UBLKRED.S.S
  kPrefetch,  // global -> L2: UTMAPF, UBLKPF
};

// A row of the box: bytes that are contiguous in global and (but for swizzling, which permutes 16-byte units within
// eight rows) in shared memory. Elements outside the tensor are written as zeros or NaN and touch no global memory.
struct BulkPiece {
  uint64_t global_address = 0;  // virtual, of the first byte that is moved; nothing when global_bytes is 0
  uint32_t global_bytes = 0;    // that are moved
  uint32_t shared_bytes = 0;    // what the mbarrier counts: elements outside the tensor included
  uint32_t shared_address = 0;  // offset in the CTA's window of the row's first byte
};

struct BulkOperation {
  BulkKind kind = BulkKind::kLoad;
  bool is_tensor = false;  // goes through a tensor map
  bool swizzled = false;
  uint8_t dimensions = 0;           // of the tensor
  uint16_t destination_ranks = 0;   // kLoad, kExchange: bit per CTA of the cluster
  uint32_t token = 0;               // dense per stream; reused
  uint32_t warp = 0;                // that issued it
  uint32_t mbarrier = 0;            // kLoad, kExchange: offset in each destination's window
  uint64_t total_shared_bytes = 0;  // of one destination
  uint64_t tensor_map_address = 0;  // virtual; is_tensor only
  std::vector<BulkPiece> pieces;
};

enum class StepKind : uint8_t {
  kLocal,          // nothing beyond what the instruction's class says (predicated off counts as this)
  kBranch,         // taken or not, see WarpStep::next and ::taken
  kMemory,         // WarpStep::memory
  kBarrier,        // WarpStep::barrier
  kMbarrier,       // WarpStep::mbarrier
  kBulk,           // WarpStep::bulk
  kClusterArrive,  // UCGABAR_ARV by the warp
  kClusterWait,    // UCGABAR_WAIT: kBlocked unless the barrier that the warp arrived at is complete
  kTrigger,  // PREEXIT by the warp: what depends on this grid may start once all its CTAs did or have ended
  kSleep,    // NANOSLEEP: WarpStep::sleep_ns
  kExit,     // some lanes exited; state says whether any are left
};

struct WarpStep {
  StepKind kind = StepKind::kLocal;
  WarpState state = WarpState::kRunnable;  // of the warp, after the step
  bool taken = false;
  uint32_t index = 0;  // of the executed instruction
  uint32_t lanes = 0;  // that executed it, guard applied
  uint32_t sleep_ns = 0;
  BarrierAccess barrier;
  MbarrierAccess mbarrier;
  BulkOperation* bulk = nullptr;  // kBulk; valid until all of it has been performed. null: nothing to move
  MemoryAccess memory;            // valid when kind is kMemory; otherwise stale
};

struct CtaStart {
  uint32_t slot = 0;             // on this SM and of this launch: dense, reused after EndCta
  Dim3 cta;                      // blockIdx (members may be 0)
  uint32_t sm = 0;               // %smid
  uint32_t first_warp_slot = 0;  // %warpid of the CTA's first warp
  Cycle cycle = 0;
};

inline constexpr uint32_t kEndedCta = ~0u;  // instead of a slot

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

  // The warp will run soon: loads what that will look at ahead of time.
  virtual void Prefetch(uint32_t) const {}

  virtual InstructionRun NextRun(uint32_t warp) = 0;
  virtual void Execute(uint32_t warp, Cycle now, WarpStep* step) = 0;

  // Every warp that waited for barrier `id` of this CTA may go on.
  virtual void ReleaseBarrier(uint32_t slot, uint8_t id) = 0;

  // The last sector of an asynchronous copy has arrived: its bytes appear in shared memory now.
  virtual void CompleteAsyncCopy(uint32_t token, Cycle now) = 0;

  // Performs the given lanes of an atomic, a reduction or a strong load on the memory image.
  virtual void PerformAtSlice(uint32_t token, uint32_t lanes, Cycle now) = 0;

  // ---- Hopper. Streams of kernels without such instructions need none of these.

  // Lets every warp of the CTA go on that waits for the cluster barrier of this phase: all CTAs have arrived.
  virtual void ReleaseClusterBarrier(uint32_t slot);

  // Every LDGSTS that the warp had issued before the ARRIVES has arrived.
  virtual void ArriveAfterCopies(uint32_t token, Cycle now);

  // kLoad, kExchange: rows [first, first + count) are in the shared memory of CTA `slot` of this stream, which has the
  // given rank. `operation` may belong to a stream of another SM.
  virtual void CompleteBulk(BulkOperation& operation, uint32_t slot, uint32_t rank, uint32_t first,
                            uint32_t count, Cycle now);
  // kStore, kReduce, kExchange, of this stream: rows [first, first + count) are read from shared memory. kPrefetch: all
  // rows have been asked for.
  virtual void ReadBulkSource(BulkOperation& operation, uint32_t first, uint32_t count, Cycle now);
  // kStore, kReduce, of this stream: bytes [offset, offset + bytes) of what row `piece` moves reach global memory. They
  // have been read before. Offsets are such that no element is cut.
  virtual void PerformBulkAtSlice(BulkOperation& operation, uint32_t piece, uint32_t offset, uint32_t bytes,
                                  Cycle now);

  // Performs those lanes of the operation that name the CTA of the given rank, which is `slot` of this stream.
  // `operation` may belong to a stream of another SM.
  virtual void PerformRemote(RemoteOperation& operation, uint32_t slot, uint32_t rank, Cycle now);
  // Of this stream: the values are here.
  virtual void CompleteRemote(RemoteOperation& operation, Cycle now);

  // Lets the attempts of a warp that waits for mbarriers fail. False when it waits for none.
  virtual bool FailWait(uint32_t warp, Cycle now);

  // Warps that were kBlocked and may go on since the simulator last cleared the list, in the order of their waking.
  std::vector<uint32_t>& woken() { return woken_; }

 protected:
  std::vector<uint32_t> woken_;
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

  bool programmatic_start =
      false;  // may start when the launch before it in its stream has triggered (PREEXIT)

  bool IsCluster() const { return cluster.Count() > 1; }
  // Position of a CTA in its cluster, as %cluster_ctarank.
  uint32_t ClusterRank(const Dim3& cta) const {
    return cta.x % cluster.x + cluster.x * (cta.y % cluster.y + cluster.y * (cta.z % cluster.z));
  }

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
