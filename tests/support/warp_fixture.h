// One warp that executes hand-built instructions.
#pragma once

#include <initializer_list>
#include <memory>
#include <vector>

#include "frontend/emulator/issue_log.h"
#include "frontend/emulator/program.h"
#include "frontend/emulator/step.h"
#include "frontend/emulator/warp.h"

namespace heddle::emulator::test {

isa::Operand R(uint8_t reg, uint8_t width = 1, uint32_t flags = 0);
isa::Operand Ur(uint8_t reg, uint32_t flags = 0);
isa::Operand P(uint8_t predicate, uint32_t flags = 0);
isa::Operand Up(uint8_t predicate, uint32_t flags = 0);
isa::Operand Imm(int64_t value);
isa::Operand B(uint8_t barrier);
isa::Operand To(uint32_t index);  // a branch target
isa::Operand Sr(int64_t special_register);

inline constexpr uint8_t kRz = isa::kZeroRegister;
inline constexpr uint8_t kPt = isa::kTruePredicate;

// The first `destinations` operands are destinations.
isa::Instruction Make(isa::Op op, std::initializer_list<isa::Mod> mods,
                      std::initializer_list<isa::Operand> operands, int destinations = 1);
isa::Instruction When(uint8_t guard, bool negated, isa::Instruction instruction);

class WarpFixture {
 public:
  // `lanes` live from instruction 0 on.
  explicit WarpFixture(std::vector<isa::Instruction> instructions, uint32_t lanes = kAllLanes);

  Row& Reg(uint8_t reg) { return rows_[program_->layout().ReadRow(reg)]; }
  Row& UReg(uint8_t reg) { return rows_[program_->layout().UniformReadRow(reg)]; }
  uint32_t& Pred(uint8_t index) { return warp_.predicates[index]; }
  Warp& warp() { return warp_; }
  const Program& program() const { return *program_; }
  CtaState& cta() { return cta_; }
  IssueLog& issues() { return issues_; }
  LaunchContext& launch() { return launch_; }
  void TrackUnknown();  // from now on, everything known
  uint32_t& Unknown(uint8_t reg) { return unknown_[program_->layout().ReadRow(reg)]; }

  isa::InstructionRun Ahead() { return RunAhead(context_, warp_); }
  isa::WarpStep Step(Cycle now = 0);
  // Until the warp has finished or blocked; the steps in order. Gives up after `limit`.
  std::vector<isa::WarpStep> RunAll(uint32_t limit = 100000);

 private:
  isa::KernelCode code_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<ConstantPool> pool_;
  std::vector<Row> rows_;
  std::vector<uint32_t> unknown_;
  LaunchContext launch_;
  CtaState cta_;
  IssueLog issues_;
  Warp warp_;
  Context context_;
};

}  // namespace heddle::emulator::test
