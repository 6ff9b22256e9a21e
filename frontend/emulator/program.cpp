#include "frontend/emulator/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/emulator/lowering.h"
#include "sim/isa/registers.h"

namespace heddle::emulator {
namespace {

// Handlers may touch this many rows from a named register on without asking for its width.
constexpr uint32_t kWidestHandlerAccess = 4;

Lowered LowerOne(const isa::Instruction& instruction, uint32_t index, uint32_t sm_version,
                 const RowLayout& layout, PoolLayout& pool, std::vector<std::string>& unsupported) {
  Lowered out;
  const LoweringFunction lower = LoweringOf(instruction.op);
  Lowering lowering(instruction, sm_version, layout, pool, out);
  if (lower != nullptr) lower(lowering);
  if (const auto reason = lower == nullptr ? std::optional<std::string>("no handler") : lowering.Finish()) {
    out = Lowered{};
    out.run = &RunUnsupported;
    out.imm = unsupported.size();
    unsupported.push_back(fmt::format("{:#06x} {}: {}", instruction.pc, ToString(instruction), *reason));
  }
  out.index = index;
  out.write_barrier = instruction.control.write_barrier;
  out.guard = static_cast<uint8_t>(std::min(instruction.guard, isa::kTruePredicate) +
                                   (instruction.guard_uniform ? kFirstUniformPredicate : 0));
  out.guard_flip = instruction.guard_negated ? kAllLanes : 0;
  return out;
}

bool CrossesLanes(isa::Op op) {
  switch (op) {
    case isa::Op::kSHFL:
    case isa::Op::kVOTE:
    case isa::Op::kVOTEU:
    case isa::Op::kMATCH:
    case isa::Op::kREDUX:
    case isa::Op::kR2UR:
    case isa::Op::kMOVM:
    case isa::Op::kBGMMA:
    case isa::Op::kHGMMA:
    case isa::Op::kIGMMA:
    case isa::Op::kQGMMA:
    case isa::Op::kHMMA:
    case isa::Op::kIMMA:
    case isa::Op::kDMMA:
    case isa::Op::kQMMA:
    case isa::Op::kFSWZADD:
      return true;
    default:
      return false;
  }
}

}  // namespace

Program::Program(const isa::KernelCode& code, const std::vector<bool>& needed) : code_(&code) {
  ComputeLayout();
  LowerAll(needed);
  ComputeFlows();
}

void Program::ComputeLayout() {
  uint32_t r = 0;
  uint32_t ur = 0;
  const auto note = [](uint32_t& limit, uint8_t reg, uint32_t width) {
    if (reg < isa::kNoRegister) limit = std::max(limit, reg + std::max(width, kWidestHandlerAccess));
  };
  for (const isa::Instruction& instruction : code_->instructions) {
    for (uint32_t i = 0; i < instruction.operand_count; ++i) {
      const isa::Operand& operand = instruction.operands[i];
      switch (operand.kind) {
        case isa::OperandKind::kRegister:
        case isa::OperandKind::kMemory:
        case isa::OperandKind::kConstant:
        case isa::OperandKind::kTarget:
          note(r, operand.reg, operand.width);
          break;
        case isa::OperandKind::kUniformRegister:
        case isa::OperandKind::kDescriptor:
        case isa::OperandKind::kMatrixDescriptor:
        case isa::OperandKind::kInstructionDescriptor:
        case isa::OperandKind::kTensorMemory:
          note(ur, operand.reg, operand.width);
          break;
        default:
          break;
      }
      note(ur, operand.uniform_reg, operand.kind == isa::OperandKind::kMatrixDescriptor ? operand.width : 1);
      note(r, operand.uniform_reg, 1);  // the index register of a constant may be of either file
      note(ur, operand.descriptor, 2);
    }
  }
  layout_.first_ur = static_cast<uint16_t>(layout_.first_r + r);
  layout_.first_b = static_cast<uint16_t>(layout_.first_ur + ur);
  layout_.count = static_cast<uint16_t>(layout_.first_b + kConvergenceBarriers);
}

void Program::LowerAll(const std::vector<bool>& needed) {
  const auto& instructions = code_->instructions;
  const auto count = static_cast<uint32_t>(instructions.size());
  steps.reserve(count);
  effects.reserve(count);
  wait_masks.reserve(count);
  ahead_begin.reserve(count + 1);
  for (uint32_t i = 0; i < count; ++i) {
    const isa::Instruction& instruction = instructions[i];
    Lowered lowered = LowerOne(instruction, i, code_->sm_version, layout_, pool_, unsupported_);
    const isa::Effect effect = EffectOf(instruction);
    ahead_begin.push_back(static_cast<uint32_t>(ahead.size()));
    if (effect == isa::Effect::kLocal) {
      if (!needed.empty() && !needed[i]) lowered.run = &RunNothing;
      if (lowered.run != &RunNothing) ahead.push_back(lowered);
    }
    steps.push_back(lowered);
    effects.push_back(effect);
    wait_masks.push_back(instruction.control.wait_mask);
  }
  ahead_begin.push_back(static_cast<uint32_t>(ahead.size()));

  run_end.resize(count);
  uint32_t end = count;
  for (uint32_t i = count; i-- > 0;) {
    if (effects[i] != isa::Effect::kLocal) end = i;
    run_end[i] = end;
  }
}

void Program::ComputeFlows() {
  flows.reserve(steps.size());
  const auto append = [this](const isa::RegisterSet& set) {
    for (uint32_t r = 0; r < isa::kNoRegister; ++r)
      if (set.r[r] && layout_.first_r + r < layout_.first_ur)
        flow_rows.push_back(static_cast<uint16_t>(layout_.first_r + r));
    for (uint32_t ur = 0; ur < set.ur.size(); ++ur)
      if (set.ur[ur] && layout_.first_ur + ur < layout_.first_b)
        flow_rows.push_back(static_cast<uint16_t>(layout_.first_ur + ur));
    return static_cast<uint32_t>(set.p.to_ulong() | set.up.to_ulong() << kFirstUniformPredicate);
  };
  for (const isa::Instruction& instruction : code_->instructions) {
    const isa::RegisterUse use = RegistersOf(instruction);
    UnknownFlow flow;
    flow.crosses_lanes = CrossesLanes(instruction.op);
    flow.first_read = static_cast<uint32_t>(flow_rows.size());
    flow.predicate_reads = append(use.reads);
    flow.first_write = static_cast<uint32_t>(flow_rows.size());
    flow.read_count = flow.first_write - flow.first_read;
    flow.predicate_writes = append(use.writes);
    flow.write_count = static_cast<uint32_t>(flow_rows.size()) - flow.first_write;
    flows.push_back(flow);
  }
}

}  // namespace heddle::emulator
