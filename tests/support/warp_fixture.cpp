#include "tests/support/warp_fixture.h"

namespace heddle::emulator::test {
namespace {

isa::Operand Make(isa::OperandKind kind, uint8_t reg, uint32_t flags = 0, int64_t value = 0) {
  isa::Operand operand;
  operand.kind = kind;
  operand.reg = reg;
  operand.flags = flags;
  operand.value = value;
  return operand;
}

}  // namespace

isa::Operand R(uint8_t reg, uint8_t width, uint32_t flags) {
  isa::Operand operand = Make(isa::OperandKind::kRegister, reg, flags);
  operand.width = width;
  return operand;
}
isa::Operand Ur(uint8_t reg, uint32_t flags) { return Make(isa::OperandKind::kUniformRegister, reg, flags); }
isa::Operand P(uint8_t predicate, uint32_t flags) {
  return Make(isa::OperandKind::kPredicate, predicate, flags);
}
isa::Operand Up(uint8_t predicate, uint32_t flags) {
  return Make(isa::OperandKind::kUniformPredicate, predicate, flags);
}
isa::Operand Imm(int64_t value) { return Make(isa::OperandKind::kImmediate, isa::kNoRegister, 0, value); }
isa::Operand B(uint8_t barrier) { return Make(isa::OperandKind::kConvergenceBarrier, barrier); }
isa::Operand To(uint32_t index) {
  return Make(isa::OperandKind::kTarget, isa::kNoRegister, 0, int64_t{index} * isa::kInstructionBytes);
}
isa::Operand Sr(int64_t special_register) {
  return Make(isa::OperandKind::kSpecialRegister, isa::kNoRegister, 0, special_register);
}

isa::Instruction Make(isa::Op op, std::initializer_list<isa::Mod> mods,
                      std::initializer_list<isa::Operand> operands, int destinations) {
  isa::Instruction instruction;
  instruction.op = op;
  for (const isa::Mod mod : mods) instruction.modifiers[instruction.modifier_count++] = mod;
  for (isa::Operand operand : operands) {
    operand.is_destination = instruction.operand_count < destinations;
    instruction.operands[instruction.operand_count++] = operand;
  }
  return instruction;
}

isa::Instruction When(uint8_t guard, bool negated, isa::Instruction instruction) {
  instruction.guard = guard;
  instruction.guard_negated = negated;
  return instruction;
}

WarpFixture::WarpFixture(std::vector<isa::Instruction> instructions, uint32_t lanes) {
  code_.name = "test";
  code_.sm_version = 80;
  code_.instructions = std::move(instructions);
  for (uint32_t i = 0; i < code_.instructions.size(); ++i)
    code_.instructions[i].pc = i * isa::kInstructionBytes;
  program_ = std::make_unique<Program>(code_);
  pool_ = std::make_unique<ConstantPool>(program_->pool(), launch_.banks);
  rows_.resize(program_->layout().count);
  unknown_.resize(program_->layout().count);
  warp_.rows = rows_.data();
  warp_.cta = &cta_;
  ResetWarp(warp_, program_->layout(), lanes, 0);
  context_.bases[static_cast<size_t>(RowBase::kPool)] = pool_->rows();
  context_.launch = &launch_;
  context_.program = program_.get();
  context_.issues = &issues_;
}

void WarpFixture::TrackUnknown() { warp_.unknown = unknown_.data(); }

isa::WarpStep WarpFixture::Step(Cycle now) {
  isa::WarpStep step;
  StepOne(context_, warp_, now, &step);
  return step;
}

std::vector<isa::WarpStep> WarpFixture::RunAll(uint32_t limit) {
  std::vector<isa::WarpStep> steps;
  while (steps.size() < limit && Ahead().state == isa::WarpState::kRunnable) steps.push_back(Step());
  return steps;
}

}  // namespace heddle::emulator::test
