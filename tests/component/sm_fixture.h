// One SM with a scripted warp stream and a memory of fixed latency: component tests write a kernel by hand, with its
// control bits, and ask at which cycle each instruction issues.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/config/load.h"
#include "sim/isa/instruction.h"
#include "sim/isa/warp_stream.h"
#include "sim/sm/sm.h"

namespace heddle::sm {

using isa::Op;

inline isa::Operand Register(uint8_t reg, uint8_t width = 1) {
  isa::Operand operand;
  operand.kind = isa::OperandKind::kRegister;
  operand.reg = reg;
  operand.width = width;
  return operand;
}
inline isa::Operand Destination(uint8_t reg, uint8_t width = 1) {
  isa::Operand operand = Register(reg, width);
  operand.is_destination = true;
  return operand;
}
inline isa::Operand Reused(uint8_t reg) {
  isa::Operand operand = Register(reg);
  operand.flags = isa::kReuse;
  return operand;
}
inline isa::Operand Memory(uint8_t base) {
  isa::Operand operand;
  operand.kind = isa::OperandKind::kMemory;
  operand.reg = base;
  return operand;
}
inline isa::Operand Constant(int64_t offset) {
  isa::Operand operand;
  operand.kind = isa::OperandKind::kConstant;
  operand.bank = 0;
  operand.value = offset;
  return operand;
}
inline isa::Operand Scoreboard(uint8_t barrier) {
  isa::Operand operand;
  operand.kind = isa::OperandKind::kScoreboard;
  operand.reg = barrier;
  return operand;
}
inline isa::Operand Immediate(int64_t value) {
  isa::Operand operand;
  operand.kind = isa::OperandKind::kImmediate;
  operand.value = value;
  return operand;
}

// Control bits in the order in which tests need them: stall, wait mask, write barrier, read barrier.
inline isa::Control Bits(uint8_t stall, uint8_t wait = 0, uint8_t write = isa::kNoBarrier,
                         uint8_t read = isa::kNoBarrier) {
  isa::Control control;
  control.stall = stall;
  control.yield = true;  // the raw bit: no yield
  control.wait_mask = wait;
  control.write_barrier = write;
  control.read_barrier = read;
  return control;
}

inline isa::Instruction Make(Op op, isa::Control control, std::vector<isa::Operand> operands = {},
                             std::vector<isa::Mod> modifiers = {}) {
  isa::Instruction instruction;
  instruction.op = op;
  instruction.control = control;
  for (const isa::Operand& operand : operands) instruction.operands[instruction.operand_count++] = operand;
  for (const isa::Mod modifier : modifiers) instruction.modifiers[instruction.modifier_count++] = modifier;
  return instruction;
}

// Lane i accesses base + i * stride.
inline isa::MemoryAccess Access(isa::MemorySpace space, isa::AccessKind kind, uint8_t bytes, uint64_t base,
                                uint64_t stride, uint32_t lanes = ~0u) {
  isa::MemoryAccess access;
  access.space = space;
  access.kind = kind;
  access.bytes_per_lane = bytes;
  access.lanes = lanes;
  for (uint32_t lane = 0; lane < kWarpLanes; ++lane) access.address[lane] = base + lane * stride;
  return access;
}

// Every warp runs the instructions in order, from the first to EXIT; jumps[i] lists where the i-th instruction jumps
// each time that a warp executes it (empty: falls through).
class ScriptedStream : public isa::WarpStream {
 public:
  struct Event {
    Cycle cycle;
    uint32_t warp;
    uint32_t index;
    bool operator==(const Event&) const = default;
  };

  const isa::KernelCode* code = nullptr;
  uint32_t warps_per_cta = 1;
  bool runs = false;  // give local instructions as runs, not one by one through Execute
  std::map<uint32_t, std::function<isa::MemoryAccess(uint32_t warp)>> accesses;
  std::map<uint32_t, isa::BarrierAccess> barriers;
  std::map<uint32_t, uint32_t> sleeps_ns;
  std::set<uint32_t> triggers;
  std::map<uint32_t, std::vector<uint32_t>> jumps;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> jumps_of_warp;  // {warp, index}: target, always taken

  // Bulk instructions, waits for an mbarrier, and arrivals that complete its phase, by instruction: an mbarrier of this
  // stream has one phase, complete after `bulks_awaited` bulk loads or one arrival.
  std::map<uint32_t, std::function<isa::BulkOperation(uint32_t warp)>> bulks;
  std::map<uint32_t, uint32_t> waits;     // address
  std::map<uint32_t, uint32_t> arrivals;  // likewise
  uint32_t bulks_awaited = 1;
  std::vector<std::pair<Cycle, uint32_t>> loaded;  // CompleteBulk: cycle, rows
  std::vector<std::pair<Cycle, uint32_t>> read;    // ReadBulkSource: likewise
  uint32_t bulks_outstanding = 0;  // handed out and not yet performed: stores for ever, there is no slice

  std::vector<Event> executed;
  std::vector<std::pair<Cycle, uint32_t>> copies;  // CompleteAsyncCopy: cycle, token
  std::vector<uint32_t> ended;                     // CTA slots

  void StartCta(const isa::CtaStart& start) override {
    states_.resize(std::max<size_t>(states_.size(), size_t{start.slot + 1} * warps_per_cta));
    for (uint32_t i = 0; i < warps_per_cta; ++i) states_[start.slot * warps_per_cta + i] = {};
  }
  void EndCta(uint32_t slot) override { ended.push_back(slot); }

  isa::InstructionRun NextRun(uint32_t warp) override {
    free_.insert(free_.end(), performed_.begin(), performed_.end());
    performed_.clear();
    const State& state = states_[warp];
    isa::InstructionRun run{state.next, 0, ~0u, isa::WarpState::kRunnable};
    if (state.finished) run.state = isa::WarpState::kFinished;
    if (state.waits_for >= 0 || state.blocked) run.state = isa::WarpState::kBlocked;
    while (runs && isa::EffectOf(code->instructions[run.first + run.count]) == isa::Effect::kLocal)
      ++run.count;
    return run;
  }

  void Execute(uint32_t warp, Cycle now, isa::WarpStep* step) override {
    State& state = states_[warp];
    const isa::InstructionRun run = NextRun(warp);
    const uint32_t index = run.first + run.count;
    const isa::Instruction& instruction = code->instructions[index];
    executed.push_back({now, warp, index});
    step->kind = isa::StepKind::kLocal;
    step->state = isa::WarpState::kRunnable;
    step->index = index;
    step->lanes = ~0u;
    state.next = index + 1;
    if (const auto access = accesses.find(index); access != accesses.end()) {
      step->kind = isa::StepKind::kMemory;
      step->memory = access->second(warp);
    }
    if (const auto sleep = sleeps_ns.find(index); sleep != sleeps_ns.end()) {
      step->kind = isa::StepKind::kSleep;
      step->sleep_ns = sleep->second;
    }
    if (triggers.contains(index)) step->kind = isa::StepKind::kTrigger;
    if (const auto barrier = barriers.find(index); barrier != barriers.end()) {
      step->kind = isa::StepKind::kBarrier;
      step->barrier = barrier->second;
      if (barrier->second.op == isa::BarrierOp::kSync) {
        state.waits_for = barrier->second.id;
        step->state = isa::WarpState::kBlocked;
      }
    }
    if (const auto bulk = bulks.find(index); bulk != bulks.end()) {
      step->kind = isa::StepKind::kBulk;
      step->bulk = &HandOut(bulk->second(warp));
    }
    if (const auto arrival = arrivals.find(index); arrival != arrivals.end()) {
      step->kind = isa::StepKind::kMbarrier;
      step->mbarrier = {.op = isa::MbarrierOp::kArrive, .lanes = 1, .shared_address = arrival->second};
      Complete(arrival->second);
    }
    if (const auto wait = waits.find(index); wait != waits.end()) {
      step->kind = isa::StepKind::kMbarrier;
      step->mbarrier = {.op = isa::MbarrierOp::kWait, .lanes = 1, .shared_address = wait->second};
      if (!complete_.contains(wait->second)) {
        step->mbarrier.blocked = true;
        step->state = isa::WarpState::kBlocked;
        state.mbarrier = wait->second;
        state.blocked = true;
      }
    }
    if (const auto jump = jumps.find(index); jump != jumps.end()) {
      step->kind = isa::StepKind::kBranch;
      const uint32_t time = state.times[index]++;
      if (time < jump->second.size()) state.next = jump->second[time];
    }
    if (const auto jump = jumps_of_warp.find({warp, index}); jump != jumps_of_warp.end())
      state.next = jump->second;
    if (instruction.op == Op::kEXIT) {
      step->kind = isa::StepKind::kExit;
      step->state = isa::WarpState::kFinished;
      state.finished = true;
    }
  }

  void ReleaseBarrier(uint32_t slot, uint8_t id) override {
    for (uint32_t i = 0; i < warps_per_cta; ++i) {
      State& state = states_[slot * warps_per_cta + i];
      if (state.waits_for == id) state.waits_for = -1;
    }
  }
  void CompleteAsyncCopy(uint32_t token, Cycle now) override { copies.emplace_back(now, token); }
  void PerformAtSlice(uint32_t, uint32_t, Cycle) override {}
  void CompleteBulk(isa::BulkOperation& bulk, uint32_t, uint32_t, uint32_t, uint32_t count,
                    Cycle now) override {
    loaded.emplace_back(now, count);
    if (++completed_[bulk.mbarrier] >= bulks_awaited) Complete(bulk.mbarrier);
    TakeBack(bulk);
  }
  void ReadBulkSource(isa::BulkOperation& bulk, uint32_t, uint32_t count, Cycle now) override {
    read.emplace_back(now, count);
    if (bulk.kind == isa::BulkKind::kPrefetch) TakeBack(bulk);
  }
  void PerformBulkAtSlice(isa::BulkOperation&, uint32_t, uint32_t, uint32_t, Cycle) override {}

 private:
  // What has been performed is reused from the next call on, the last first, as the emulator does.
  isa::BulkOperation& HandOut(isa::BulkOperation bulk) {
    if (free_.empty()) free_.push_back(&operations_.emplace_back());
    isa::BulkOperation& operation = *free_.back();
    free_.pop_back();
    ++bulks_outstanding;
    for (const isa::BulkPiece& piece : bulk.pieces) bulk.total_shared_bytes += piece.shared_bytes;
    return operation = std::move(bulk);
  }
  void TakeBack(isa::BulkOperation& bulk) {
    performed_.push_back(&bulk);
    --bulks_outstanding;
  }

  void Complete(uint32_t mbarrier) {
    complete_.insert(mbarrier);
    for (uint32_t warp = 0; warp < states_.size(); ++warp) {
      if (!states_[warp].blocked || states_[warp].mbarrier != mbarrier) continue;
      states_[warp].blocked = false;
      woken_.push_back(warp);
    }
  }

  struct State {
    uint32_t next = 0;
    int waits_for = -1;
    uint32_t mbarrier = 0;
    bool blocked = false;
    bool finished = false;
    std::map<uint32_t, uint32_t> times;
  };
  std::vector<State> states_;
  std::deque<isa::BulkOperation> operations_;
  std::vector<isa::BulkOperation*> free_, performed_;
  std::map<uint32_t, uint32_t> completed_;
  std::set<uint32_t> complete_;
};

class SmTest : public ::testing::Test {
 protected:
  static constexpr Cycle kWindow = 100;
  static constexpr Cycle kMemoryLatency = 200;  // from a request's cycle to its reply

  std::string machine = "a100_sxm4_80gb";
  std::vector<std::string> overrides;
  isa::KernelCode code;
  ScriptedStream stream;
  stats::LaunchStats stats;
  isa::LaunchShape shape;
  std::vector<memory::MemoryRequest> requests;  // all that were sent, with their replies
  std::vector<FinishedCta> finished;
  std::unique_ptr<config::Gpu> gpu;
  std::unique_ptr<KernelTiming> timing;
  std::unique_ptr<Sm> sm;
  LaunchHandle launch = 0;
  Cycle now = 0;

  void Append(isa::Instruction instruction) {
    instruction.pc = static_cast<uint32_t>(code.instructions.size()) * isa::kInstructionBytes;
    code.instructions.push_back(instruction);
  }
  void Exit() { Append(Make(Op::kEXIT, Bits(5))); }

  void Build(uint32_t warps) {
    Result<config::Gpu> loaded = config::LoadGpu(machine, overrides);
    ASSERT_TRUE(loaded.ok()) << loaded.error().ToString();
    gpu = std::make_unique<config::Gpu>(loaded.value());
    code.sm_version = 80;
    shape.block = {kWarpLanes * warps, 1, 1};
    if (shape.registers_per_thread == 0) shape.registers_per_thread = 32;
    shape.code_address = 0x7000'0000;
    shape.constant_bank_address = {0x6000'0000, 0, 0, 0, 0};
    stream.code = &code;
    stream.warps_per_cta = warps;
    stats.per_pc.resize(code.instructions.size());
    timing = std::make_unique<KernelTiming>(BuildKernelTiming(*gpu, code, shape));
    sm = std::make_unique<Sm>(*gpu, 0);
    launch = sm->OpenLaunch(*timing, shape, &stream, &stats, 0);
  }

  // Windows until nothing is resident and no request is out.
  void RunToEnd(Cycle window = kWindow) {
    for (int i = 0; i < 100'000; ++i) {
      for (memory::MemoryRequest& request : sm->outbox()) {
        request.reply_cycle = std::max(now, request.cycle + kMemoryLatency);
        requests.push_back(request);
      }
      const bool idle = sm->outbox().empty();
      sm->TakeReplies(now);
      if (idle && sm->Idle()) break;
      sm->RunWindow(now, now + window);
      now += window;
    }
    ASSERT_TRUE(sm->Idle()) << "did not finish";
    finished = sm->finished();
    sm->CloseLaunch(launch, now);
  }

  // One CTA of `warps` warps.
  void Run(uint32_t warps = 1, Cycle window = kWindow) {
    Build(warps);
    sm->StartCta(launch, {0, 0, 0}, 0);
    RunToEnd(window);
  }

  // The cycle at which `warp` issued instruction `index` (the `time`-th time), from the first issue of the test.
  Cycle IssuedAt(uint32_t index, uint32_t warp = 0, uint32_t time = 0) const {
    for (const ScriptedStream::Event& event : stream.executed)
      if (event.index == index && event.warp == warp && time-- == 0)
        return event.cycle - stream.executed[0].cycle;
    ADD_FAILURE() << "instruction " << index << " of warp " << warp << " never issued";
    return 0;
  }
  uint64_t Slots(stats::Stall reason) const { return stats.slots[static_cast<size_t>(reason)]; }
  uint64_t SlotsAt(uint32_t index, stats::Stall reason) const {
    return stats.per_pc[index].slots[static_cast<size_t>(reason)];
  }
};

}  // namespace heddle::sm
