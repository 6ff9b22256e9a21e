// The state of one SM and the stages that change it; private to sim/sm. Units (sim/sm/units) own state and
// answer questions, stages (sim/sm/stages, members of Machine) own order and policy.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "sim/config/gpu_description.h"
#include "sim/engine/calendar.h"
#include "sim/sm/async_units.h"
#include "sim/sm/hazards.h"
#include "sim/sm/kernel_timing.h"
#include "sim/sm/sm.h"
#include "sim/sm/units/barrier_unit.h"
#include "sim/sm/units/coalescer.h"
#include "sim/sm/units/constant_cache.h"
#include "sim/sm/units/cycle_port.h"
#include "sim/sm/units/dependence_counters.h"
#include "sim/sm/units/instruction_fetch.h"
#include "sim/sm/units/l1_cache.h"
#include "sim/sm/units/mio_queue.h"
#include "sim/sm/units/ready_list.h"
#include "sim/sm/units/register_file.h"
#include "sim/sm/units/request_port.h"
#include "sim/sm/units/shared_memory.h"

namespace heddle::sm {

inline constexpr uint32_t kMaxWarps = 256;
inline constexpr uint32_t kMaxSubCores = 8;
inline constexpr uint64_t kNoLine = ~uint64_t{0};

// One resident warp. Why it does not issue now is told by the `until` cycles, in the order of the ladder
// (sm.h). What every issue looks at comes first.
struct alignas(64) Warp {
  uint32_t next = 0;     // index of the instruction that it wants to issue
  uint32_t run_end = 0;  // first index that needs Execute
  uint32_t launch = 0;
  uint32_t stream_warp = 0;  // its name in the WarpStream
  bool live = false;
  bool blocked = false;         // the stream says that it waits for a barrier
  bool waits_for_acks = false;  // a fence whose block_until follows from the acknowledgements
  stats::Stall block_reason{};

  Cycle branch_until = 0;  // target known
  Cycle fetch_until = 0;   // instruction in the buffer; kNever while L2 has not answered
  Cycle stall_until = 0;   // stall count of the previous instruction
  Cycle block_until = 0;   // anything else that holds it: block_reason
  DependenceCounters counters;

  uint64_t fetch_line = 0;        // line of `next`
  uint64_t ahead_line = kNoLine;  // line behind it, asked for when the buffer had room
  Cycle ahead_until = 0;

  uint32_t cta = 0;
  uint32_t in_cta = 0;
  uint8_t barrier_id = 0;
  uint8_t fence_barriers = 0;  // dependence barriers that end with the fence
  uint32_t fence_cycles = 0;
  uint64_t block_line = 0;  // memory line of the constant that it waits for

  uint32_t loads_unanswered =
      0;  // loads and copies in flight: a warp that exits keeps its resources for them
  Cycle loads_done = 0;
  uint32_t stores_unanswered = 0;  // for fences
  Cycle stores_acked = 0;
  uint32_t open_group = kNoIndex;  // of asynchronous copies since the last LDGDEPBAR
  uint32_t groups_unanswered = 0;  // closed, with copies whose arrival is not known
  Cycle copies_done = 0;           // the other closed ones
  Cycle started = 0;
};

struct Cta {
  bool resident = false;
  uint32_t launch = 0;
  uint32_t slot = 0;  // in the WarpStream
  Dim3 id;
  uint32_t live_warps = 0;
  uint32_t undrained_warps = 0;
  Cycle last_cycle = 0;
  std::vector<uint32_t> warps;  // warp slots
  BarrierUnit barriers;
};

// One load, copy or atomic of which at least one answer is outstanding.
struct Transaction {
  Cycle arrived = 0;  // latest answer so far
  Cycle floor = 0;    // result of the part that did not leave the SM
  uint32_t unanswered = 0;
  uint32_t warp = 0;
  uint32_t token = 0;
  uint32_t group = kNoIndex;
  uint32_t ticket = 0;  // of its CountedBarrier
  uint16_t bytes = 0;
  uint32_t scoreboard = kNoIndex;  // the instruction whose registers it writes, where these are waited for
  uint8_t barrier = isa::kNoBarrier;
  bool is_copy = false;
  bool is_constant = false;
  bool is_remote = false;  // of another CTA's shared memory
};

// The asynchronous copies of a warp between two LDGDEPBAR.
struct CopyGroup {
  Cycle done = 0;
  uint32_t unanswered = 0;
  uint32_t warp = 0;
  uint32_t ticket = 0;
  uint32_t token = 0;  // of ARRIVES.LDGSTSBAR
  uint8_t barrier = isa::kNoBarrier;
  bool closed = false;
  bool arrives = false;
};

// What happens at a known cycle without an issue.
struct Arrival {
  enum class Kind : uint8_t {
    kCopy,   // the bytes of an asynchronous copy appear in shared memory: launch, index is its token
    kDrain,  // the last load or copy of an exited warp: index
    kCta,    // the first of `announced` starts
    kArriveAfterCopies,  // the copies before an ARRIVES.LDGSTSBAR have arrived: launch, index is its token
    kBulkLoaded,         // a bulk load is complete: index of its work
    kBulkRead,           // a bulk store has been read from shared memory: likewise
    kMessage,            // from another CTA of the cluster: index in the inbox
    kClusterRelease,     // the barrier of a cluster of one: index of the CTA
  };
  Cycle cycle = 0;
  uint64_t order = 0;  // ties of a kind in the order in which they became known
  Kind kind = Kind::kCopy;
  uint32_t launch = 0;
  uint32_t index = 0;
  bool operator>(const Arrival& other) const {
    if (cycle != other.cycle) return cycle > other.cycle;
    return kind != other.kind ? kind > other.kind : order > other.order;
  }
};

// A CTA that is on its way: its resources are counted, its slots are chosen when it starts.
struct AnnouncedCta {
  uint32_t launch = 0;
  Dim3 id;
  Cluster* cluster = nullptr;
  uint32_t rank = 0;
};

// What the memory system has answered, until the cycle at which it is here.
struct PendingAnswer {
  Cycle cycle = 0;
  Cycle departed = 0;  // of the request; answers of one cycle come in this order, then in that of their issue
  uint64_t line_address = 0;
  uint32_t tag = 0;
  uint32_t sequence = 0;
  bool operator<(const PendingAnswer& other) const {
    if (cycle != other.cycle) return cycle < other.cycle;
    return departed != other.departed ? departed < other.departed : sequence < other.sequence;
  }
};

struct Launch {
  bool open = false;
  bool tracks_registers = false;
  const InstructionTiming* instructions = nullptr;  // of `timing`
  stats::PcStats* per_pc = nullptr;
  isa::WarpStream* stream = nullptr;
  const KernelTiming* timing = nullptr;
  stats::LaunchStats* stats = nullptr;
  isa::LaunchShape shape;
  Cycle opened = 0;
  uint64_t order = 0;
  uint64_t slots_in_use = 0;  // CTA slots of the stream
  uint32_t resident = 0;
  Cycle grid_ready = 0;  // ACQBULK: from when what this launch depends on has ended; kNever: not known
  std::array<uint8_t, 64> cta_of_slot{};
  stats::WaitSums waits;
  stats::StallSlots slots{};
  stats::Counters counters;
};

struct SubCore {
  SubCore(const config::Gpu& gpu)
      : registers(gpu.sm.sub_core), mio(gpu.sm.mio), returns(gpu.sm.mio.return_bytes_per_cycle, 4) {}

  uint32_t next_warp = kNoIndex;  // local index: who issues at Machine::next_issue, as far as is known
  Cycle free_at = 0;              // the issue port
  Cycle charged_until = 0;
  uint32_t greedy = kNoIndex;
  uint32_t draining = 0;  // exited, loads or copies still in flight
  bool stale = false;     // Select again
  ReadyList ready;        // live warps by local index
  std::array<uint64_t, kIssuePortCount> port_free_quarters{};
  RegisterFile registers;
  MioQueue mio;
  engine::Calendar returns;  // load data into the register file, bytes
};

struct RegisterState {  // of a tracked register
  Cycle written = 0;
  uint8_t writer = 0;  // InstructionTiming::dependence_class
};

// Until when the scoreboard holds a warp back, by what it waits for.
struct ScoreboardWaits {
  Cycle fixed = 0;      // a result of fixed latency
  Cycle for_short = 0;  // shared memory, special functions, and sources that are still to be read
  Cycle for_long = 0;   // L1 or beyond
};

struct ConstantWaiter {
  uint64_t line_address = 0;
  uint32_t transaction = 0;
};

struct Sm::Machine {
  Machine(const config::Gpu& gpu, uint32_t id);

  // ---- sm.cpp: life of launches and CTAs, the window loop
  LaunchHandle OpenLaunch(const KernelTiming& timing, const isa::LaunchShape& shape, isa::WarpStream* stream,
                          stats::LaunchStats* stats, Cycle at);
  void CloseLaunch(LaunchHandle handle, Cycle at);
  void StartCta(LaunchHandle handle, Dim3 cta, Cycle at, Cluster* cluster, uint32_t rank);
  void StartWarps(Cycle at);
  void StartWarp(uint32_t cta, uint32_t in_cta, uint32_t warp, Cycle at);
  void RunWindow(Cycle begin, Cycle end);
  void Prefetch() const;
  void PrefetchWarps() const;
  void TakeEvent();
  void FindNextEvent();
  void AdvanceCalendars(Cycle begin);
  Cycle NextEventCycle() const;

  // ---- residency.cpp
  bool CanHost(const isa::LaunchShape& shape) const;
  void TakeResources(const isa::LaunchShape& shape);
  void ChooseSlots(Cta* cta, const isa::LaunchShape& shape);
  void FreeResources(Cta* cta, const isa::LaunchShape& shape);
  void ChooseCarveOut(const isa::LaunchShape& shape);

  // ---- stages/fetch.cpp
  void StartFetch(uint32_t warp, Cycle at);  // at the start of a CTA and after a jump
  void AdvanceFetch(uint32_t warp, uint32_t issued,
                    Cycle at);  // `issued` has left the buffer, the next one follows
  void FetchAhead(uint32_t warp, uint64_t address, Cycle at);
  void AnswerFetch(uint64_t line_address, Cycle arrival);
  void AnswerConstant(uint64_t line_address, Cycle arrival);

  // ---- stages/issue.cpp
  void Refresh(uint32_t warp);     // when it can issue, ports apart
  void Select(uint32_t sub_core);  // who issues next
  void Select(uint32_t sub_core_id, SubCore& sub_core);
  template <uint32_t kSubCores>
  uint32_t FirstToIssue() const;
  void Issue(uint32_t sub_core);  // what Select found
  bool MayIssue(uint32_t sub_core, uint32_t warp, const InstructionTiming& timing, Cycle at);
  bool HasConstant(uint32_t sub_core, uint32_t warp, const InstructionTiming& timing, Cycle at);
  void BlockForConstant(uint32_t warp, uint64_t address, Cycle arrival);
  void OccupyPort(SubCore& sub_core, uint32_t local, const InstructionTiming& timing, Cycle at);
  void StartRun(Warp* warp, const isa::InstructionRun& run);
  void Perform(uint32_t warp, SubCore& sub_core, const InstructionTiming& timing, Cycle at);
  void Follow(uint32_t warp, uint32_t issued, Cycle at);
  void NextRun(uint32_t warp, uint32_t issued, Cycle at);
  Cycle SpecialUntil(uint32_t warp, const InstructionTiming& timing) const;
  Cycle DepbarUntil(uint32_t warp, const InstructionTiming& timing) const;

  // ---- stages/scoreboard.cpp
  Cycle HazardUntil(uint32_t warp) const;
  Cycle ScoreboardUntil(uint32_t warp);
  void NoteWrites(uint32_t warp, uint32_t issued, Cycle at);
  void NoteResult(uint32_t warp, uint32_t instruction, Cycle at, bool later);
  void NoteRelease(uint32_t warp, uint32_t instruction, Cycle at);

  // ---- stages/memory.cpp
  void IssueMemory(uint32_t warp, SubCore& sub_core, const InstructionTiming& timing, Cycle at);
  template <typename Address>
  void IssueShared(uint32_t warp, SubCore& sub_core, const InstructionTiming& timing, const Address* address,
                   uint32_t lanes, Cycle at);
  void IssueGlobal(uint32_t warp, SubCore& sub_core, const InstructionTiming& timing, Cycle at);
  void IssueConstant(uint32_t warp, SubCore& sub_core, const InstructionTiming& timing, Cycle at);
  void LoadConstant(uint32_t warp, const InstructionTiming& timing, uint64_t address, Cycle issued);
  void LoadUniform(uint32_t warp, Cycle at);
  Cycle PushMio(SubCore& sub_core, Cycle at, uint32_t lsu_cycles);
  uint32_t SendLoads(uint32_t warp, uint32_t transaction, Cycle sent);
  void SendStores(uint32_t warp, Cycle sent);
  void Prefetch(Cycle sent);

  // ---- stages/write_back.cpp
  void ReleaseSources(uint32_t warp, const InstructionTiming& timing, Cycle at);
  void Result(uint32_t warp, const InstructionTiming& timing, Cycle at);
  void ResultLater(uint32_t transaction, const InstructionTiming& timing);
  Cycle ReturnData(SubCore& sub_core, Cycle done, uint32_t bytes);
  uint32_t NewTransaction(uint32_t warp);
  void AnswerTransaction(uint32_t transaction, Cycle arrival);
  void FinishTransaction(uint32_t transaction);
  uint32_t OpenGroup(uint32_t warp);
  void CloseGroup(uint32_t warp, const InstructionTiming& timing, Cycle at);
  void AnswerGroup(uint32_t group, Cycle done);
  void SettleGroup(uint32_t group);
  void PushArrival(Arrival arrival);
  void Arrive();  // the first of the heap
  void Acknowledge(uint32_t warp, Cycle at);
  void Answer(const PendingAnswer& answer);
  void FreeGlobalPorts(Cycle at);
  void TakeAnswers();
  void RefreshTouched();
  void PrefetchAnswers() const;
  void TakeReplies(Cycle begin);

  // ---- stages/control.cpp
  void Synchronise(uint32_t warp, Cycle at);
  void ReleaseIfComplete(uint32_t cta, uint32_t barrier, Cycle at);
  void Fence(uint32_t warp, const InstructionTiming& timing, Cycle at);
  void SettleFence(uint32_t warp, Cycle acknowledged);
  void Exit(uint32_t warp, Cycle at);
  void Drained(uint32_t warp, Cycle at);

  // ---- stages/warpgroup.cpp
  Warpgroup& WarpgroupOf(uint32_t warp) {
    return async->ctas[warps[warp].cta].warpgroups[warps[warp].in_cta / kWarpgroupWarps];
  }
  void IssueMatrixGroup(uint32_t warp, const InstructionTiming& timing, Cycle at);
  void BeginMatrixGroup(uint32_t warp, const Warpgroup::Entry& entry, const InstructionTiming& timing);
  Cycle ReadOperands(Cycle start, const InstructionTiming& timing);
  int64_t RegistersWanted(uint32_t warp, const InstructionTiming& timing) const;
  void MoveRegisters(uint32_t warp, const InstructionTiming& timing);

  // ---- stages/mbarrier.cpp
  void IssueMbarrier(uint32_t warp, SubCore& sub_core, const InstructionTiming& timing, Cycle at);
  void NoteWait(uint32_t warp, Cycle at);
  void Wake(uint32_t launch, uint32_t cause, Cycle at);
  void WakeWarp(uint32_t warp, uint32_t cause, Cycle until);
  void ArriveAfterCopies(uint32_t warp, uint32_t token, Cycle at);
  void SettleArrivalsAfterCopies(uint32_t warp);
  bool FailWaits(Cycle at);

  // ---- stages/bulk.cpp
  void IssueBulk(uint32_t warp, const InstructionTiming& timing, Cycle at);
  void PrepareContext(uint32_t work);
  void ScheduleLoads();
  void FinishEmptyLoad(uint32_t work);
  void DecideStore(uint32_t work);
  uint32_t OpenBulkGroup(uint32_t warp);
  void CloseBulkGroup(uint32_t warp, const InstructionTiming& timing, Cycle at);
  void DecideBulkGroup(uint32_t group, Cycle done);
  void SendBulkRequests(Cycle end);
  void ReadSource(BulkWork* work, uint32_t pieces, Cycle at);
  void BulkSourceRead(uint32_t work, Cycle at);
  void AnswerBulk(uint32_t work, Cycle at);
  void AnswerTensorMap(uint64_t address, Cycle at);
  void FinishLoad(uint32_t work);
  void BulkLoaded(uint32_t work, Cycle at);
  void ReleaseHold(uint32_t warp, Cycle at);
  void FreeBulkPorts();

  // ---- stages/cluster.cpp
  void SendRemote(uint32_t warp, isa::RemoteOperation& operation, uint32_t instruction, Cycle at,
                  uint32_t transaction);
  ClusterMessage& NewMessage(ClusterMessage::Kind kind, Cluster& cluster, Cycle at);
  void IssueRemote(uint32_t warp, SubCore& sub_core, const InstructionTiming& timing, Cycle at);
  void SendBulk(const BulkWork& work, uint32_t rank, Cycle at);
  void Deliver(const ClusterMessage& message);
  void Arrived(uint32_t slot, Cycle at);
  void RemoteReply(const ClusterMessage& message, Cycle at);
  void TakeDataPath(uint32_t bytes, Cycle at);
  void TakeAcknowledgements();
  void SetGridReady(LaunchHandle launch, Cycle at);
  void ArriveAtCluster(uint32_t warp, Cycle at);
  void ReportClusterArrival(uint32_t cta, Cycle at);
  void ReleaseCluster(uint32_t cta, Cycle at);
  void Trigger(uint32_t warp, Cycle at);
  void ReportTrigger(uint32_t cta, Cycle at);
  void LeaveCluster(uint32_t cta, Cycle at);
  void AsyncExit(uint32_t warp, Cycle at);

  // ---- accounting.cpp
  static void Charge(Launch* launch, uint32_t index, stats::Stall reason, uint64_t slots) {
    launch->slots[static_cast<size_t>(reason)] += slots;
    if (launch->per_pc != nullptr) launch->per_pc[index].slots[static_cast<size_t>(reason)] += slots;
  }
  void ChargeBubble(uint32_t sub_core, uint32_t warp,
                    Cycle to);               // [charged_until, to), along this warp's ladder
  void Settle(uint32_t sub_core, Cycle to);  // likewise, to the warp that would issue next
  void CheckClosed(const Launch& launch, Cycle at) const;
  std::string DescribeWait(uint32_t warp) const;
  std::vector<WarpWait> DescribeWaits() const;

  // ---- names
  uint32_t SubCoreOf(uint32_t warp) const { return warp & (sub_core_count - 1); }
  uint32_t LocalOf(uint32_t warp) const { return warp >> sub_core_shift; }
  uint32_t WarpAt(uint32_t sub_core, uint32_t local) const { return local << sub_core_shift | sub_core; }
  const InstructionTiming& TimingOf(const Warp& warp) const {
    return launches[warp.launch].instructions[warp.next];
  }
  uint64_t ConstantAddress(const Warp& warp, const InstructionTiming& timing) const {
    return launches[warp.launch].timing->constant_bank_address[timing.constant_bank] + timing.constant_offset;
  }
  bool IsCounted(uint32_t warp, uint32_t barrier) const {
    return (launches[warps[warp].launch].timing->counted_barriers >> barrier & 1) != 0;
  }
  void Touch(uint32_t warp) { touched[warp / 64] |= uint64_t{1} << warp % 64; }
  std::string Path() const;

  const config::Sm config;
  const config::SchedulerPolicy policy;
  const double sm_mhz;
  const uint32_t id;
  const uint32_t sub_core_count;
  const uint32_t sub_core_shift;
  const uint32_t fetch_line_bytes;
  const uint32_t fma_quarters;  // interval of the FMA pipe
  const uint32_t lsu_interval_cycles;
  const double tag_cycles_per_line;
  const uint32_t shared_bytes_per_cycle;
  const uint32_t copy_extra_cycles;
  const uint32_t gmma_issue_quarters;

  std::array<Cycle, kMaxSubCores> next_issue;  // by sub-core: of its next issue, as far as is known
  Cycle next_event = kNever;                   // of the next answer or arrival
  std::vector<SubCore> sub_cores;
  std::vector<Warp> warps;  // by warp slot; warp slot w runs on sub-core w mod sub_core_count
  std::vector<Cta> ctas;
  std::vector<Launch> launches;
  std::vector<FinishedCta> finished;

  InstructionFetch fetch;
  ConstantCache constants;
  L1Cache l1;
  SharedMemory shared;
  CyclePort lsu;  // cycles of the LSU and the data array behind it
  RequestPort port;

  std::unique_ptr<AsyncUnits> async;  // from sm_90 on
  std::vector<TriggeredCta> triggered;

  std::vector<CountedBarrier> counted;        // by warp and barrier; empty until a launch needs it
  std::vector<RegisterState> register_state;  // by warp and register; likewise
  std::vector<Cycle> sources_released;        // by warp and register; of launches with a scoreboard
  std::vector<ScoreboardWaits>
      scoreboard_waits;  // by warp: for what it wants to issue, as ScoreboardUntil found them
  std::vector<Transaction> transactions;
  std::vector<uint32_t> free_transactions;
  std::vector<ConstantWaiter> constant_waiters;
  std::vector<CopyGroup> groups;
  std::vector<uint32_t> free_groups;
  std::vector<Arrival> arrivals;  // heap, earliest first
  uint64_t arrival_order = 0;
  std::vector<PendingAnswer> answers;  // from next_answer on, rising
  size_t next_answer = 0;
  Cycle next_departure = kNever;       // of a request that waits for its window
  std::deque<AnnouncedCta> announced;  // in the order of their start

  // Residency
  uint32_t warps_used = 0;
  uint32_t ctas_used = 0;
  uint64_t registers_used = 0;
  uint64_t shared_used = 0;
  uint64_t shared_capacity = 0;  // the carve-out
  bool l1_sized = false;
  std::vector<uint8_t> warp_in_use;  // by warp slot

  uint32_t open_launches = 0;
  uint64_t launch_order = 0;
  Cycle epoch_begin = 0;            // since when a launch has been open without a break
  stats::StallSlots epoch_slots{};  // of launches of this epoch that have closed
  uint64_t reported_fetch_requests = 0;
  uint64_t reported_fetch_misses = 0;
  uint64_t reported_constant_misses = 0;
  Cycle active_since = 0;
  bool between_windows = true;  // TakeReplies has been called, RunWindow not yet
  Cycle now = 0;

  // Scratch of one step.
  isa::WarpStep step;
  LineAccesses lines;
  std::array<uint64_t, 4> touched{};  // warps whose waits have been answered
};

}  // namespace heddle::sm
