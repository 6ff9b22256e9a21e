// A kernel without an emulator: every warp goes round a small loop of loads, stores or atomics whose addresses a
// function gives. For tests of the whole GPU.
//
//   0  LDG or ATOMG or RED      write barrier 0 (RED: none)
//   1  IADD3                    waits for it
//   2  STG                      if the kernel stores
//   3  BRA 0                    `iterations` times
//   4  EXIT
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "sim/isa/warp_stream.h"

namespace heddle::test {

struct ScriptedKernel {
  Dim3 grid;
  uint32_t threads = 128;
  uint32_t registers = 32;
  uint32_t iterations = 1;
  bool loads = true;
  bool stores = false;
  bool atomics = false;  // instead of loads
  bool strong = false;   // the loads or atomics say so
  uint8_t bytes_per_lane = 4;
  // First byte of what warp `warp` (of the grid) touches in iteration `i`; lanes are consecutive, or all on one word.
  std::function<uint64_t(uint64_t warp, uint32_t i)> load_address;
  std::function<uint64_t(uint64_t warp, uint32_t i)> store_address;
  bool same_word = false;
  uint32_t sm_version = 80;
};

class ScriptedMemory : public isa::MemoryImage {
 public:
  void PublishStores() override { ++published; }
  uint64_t published = 0;
  // Atomics in the order in which they were performed, by line: a line belongs to one thread at a time.
  std::array<uint64_t, 4096> order{};
};

class ScriptedProgram : public isa::LaunchProgram {
 public:
  explicit ScriptedProgram(ScriptedKernel kernel, ScriptedMemory* memory)
      : kernel_(std::move(kernel)), memory_(memory) {
    code_.name = "scripted";
    code_.sm_version = kernel_.sm_version;
    const auto add = [&](isa::Op op, uint8_t stall, uint8_t wait, uint8_t write, uint8_t read) {
      isa::Instruction instruction;
      instruction.pc = static_cast<uint32_t>(code_.instructions.size()) * isa::kInstructionBytes;
      instruction.op = op;
      instruction.control = {stall, true, write, read, wait, 0};
      if (op == isa::Op::kLDG || op == isa::Op::kATOMG || op == isa::Op::kSTG) {
        isa::Operand address;
        address.kind = isa::OperandKind::kMemory;
        address.reg = 2;
        address.flags = isa::kAddress64;
        instruction.operands[instruction.operand_count++] = address;
      }
      if (kernel_.strong && code_.instructions.empty()) {
        instruction.modifiers[0] = isa::Mod::kSTRONG;
        instruction.modifiers[1] = isa::Mod::kGPU;
        instruction.modifier_count = 2;
      }
      code_.instructions.push_back(instruction);
    };
    const uint8_t none = isa::kNoBarrier;
    add(kernel_.atomics ? isa::Op::kATOMG : isa::Op::kLDG, 2, 0, 0, none);
    add(isa::Op::kIADD3, 5, 1, none, none);
    add(isa::Op::kSTG, 2, 2, none, 1);
    add(isa::Op::kBRA, 5, 0, none, none);
    add(isa::Op::kEXIT, 5, 0, none, none);
    shape_.grid = kernel_.grid;
    shape_.block = {kernel_.threads, 1, 1};
    shape_.registers_per_thread = kernel_.registers;
    shape_.code_address = uint64_t{1} << 40;
    for (uint64_t& bank : shape_.constant_bank_address) bank = (uint64_t{1} << 40) + (1 << 20);
  }

  const isa::KernelCode& code() const override { return code_; }
  const isa::LaunchShape& shape() const override { return shape_; }
  isa::MemoryImage& memory() override { return *memory_; }
  std::unique_ptr<isa::WarpStream> OpenOnSm(uint32_t) override { return std::make_unique<Stream>(this); }
  std::vector<isa::StreamIssue> Issues() const override { return {}; }

 private:
  class Stream : public isa::WarpStream {
   public:
    explicit Stream(ScriptedProgram* program)
        : program_(program), warps_per_cta_(program->shape_.WarpsPerCta()) {}

    void StartCta(const isa::CtaStart& start) override {
      warps_.resize(std::max<size_t>(warps_.size(), size_t{start.slot + 1} * warps_per_cta_));
      const Dim3& grid = program_->shape_.grid;
      const uint64_t cta = start.cta.x + uint64_t{grid.x} * (start.cta.y + uint64_t{grid.y} * start.cta.z);
      for (uint32_t i = 0; i < warps_per_cta_; ++i)
        warps_[start.slot * warps_per_cta_ + i] = {First(), 0, cta * warps_per_cta_ + i, false};
    }
    void EndCta(uint32_t) override {}
    isa::InstructionRun NextRun(uint32_t warp) override {
      return {warps_[warp].next, 0, ~0U,
              warps_[warp].done ? isa::WarpState::kFinished : isa::WarpState::kRunnable};
    }
    void Execute(uint32_t id, Cycle, isa::WarpStep* step) override {
      Warp& warp = warps_[id];
      const ScriptedKernel& kernel = program_->kernel_;
      step->state = isa::WarpState::kRunnable;
      step->kind = isa::StepKind::kLocal;
      step->index = warp.next;
      step->lanes = ~0U;
      switch (warp.next++) {
        case 0:
          Access(kernel.load_address(warp.number, warp.iteration), kernel.atomics, step);
          step->memory.kind = kernel.atomics ? isa::AccessKind::kAtomic : isa::AccessKind::kLoad;
          break;
        case 1:
          if (!kernel.stores) warp.next = 3;
          break;
        case 2:
          Access(kernel.store_address(warp.number, warp.iteration), false, step);
          step->memory.kind = isa::AccessKind::kStore;
          break;
        case 3:
          step->kind = isa::StepKind::kBranch;
          step->taken = ++warp.iteration < kernel.iterations;
          if (step->taken) warp.next = First();
          break;
        default:
          step->kind = isa::StepKind::kExit;
          step->state = isa::WarpState::kFinished;
          warp.done = true;
      }
    }
    void ReleaseBarrier(uint32_t, uint8_t) override {}
    void CompleteAsyncCopy(uint32_t, Cycle) override {}
    void PerformAtSlice(uint32_t token, uint32_t lanes, Cycle) override {
      uint64_t& cell = program_->memory_->order[token & 4095];
      cell = cell * 6364136223846793005ULL + (token >> 12) * 64 + static_cast<uint64_t>(lanes);
    }

   private:
    struct Warp {
      uint32_t next = 0;
      uint32_t iteration = 0;
      uint64_t number = 0;
      bool done = false;
    };
    uint32_t First() const { return program_->kernel_.loads || program_->kernel_.atomics ? 0 : 2; }
    void Access(uint64_t address, bool at_slice, isa::WarpStep* step) const {
      const ScriptedKernel& kernel = program_->kernel_;
      step->kind = isa::StepKind::kMemory;
      isa::MemoryAccess& access = step->memory;
      access = {};
      access.space = isa::MemorySpace::kGlobal;
      access.bytes_per_lane = kernel.bytes_per_lane;
      access.lanes = ~0U;
      access.at_slice = access.bypass_l1 = at_slice;
      access.token = static_cast<uint32_t>(address >> 7 & 4095);
      for (uint32_t lane = 0; lane < kWarpLanes; ++lane)
        access.address[lane] = address + (kernel.same_word ? 0 : lane * kernel.bytes_per_lane);
    }
    ScriptedProgram* program_;
    uint32_t warps_per_cta_;
    std::vector<Warp> warps_;
  };

  ScriptedKernel kernel_;
  ScriptedMemory* memory_;
  isa::KernelCode code_;
  isa::LaunchShape shape_;
};

}  // namespace heddle::test
