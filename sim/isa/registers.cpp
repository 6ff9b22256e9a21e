#include "sim/isa/registers.h"

namespace heddle::isa {
namespace {

void AddRegisters(RegisterSet& set, uint32_t first, uint32_t count) {
  if (first >= kNoRegister) return;
  for (uint32_t i = first; i < first + count && i < kNoRegister; ++i) set.r.set(i);
}

void AddUniform(RegisterSet& set, uint32_t first, uint32_t count) {
  for (uint32_t i = first; i < first + count && i < set.ur.size(); ++i) set.ur.set(i);
}

// The predicates that a whole-file access touches: P2R, R2P and UP2UR carry a mask as their last operand.
void AddPredicateMask(const Instruction& instruction, std::bitset<8>& predicates) {
  const Operand& last = instruction.operands[instruction.operand_count - size_t{1}];
  const uint64_t mask = last.kind == OperandKind::kImmediate ? static_cast<uint64_t>(last.value) : 0x7f;
  predicates |= std::bitset<8>(mask & 0x7f);
}

void AddAddress(const Operand& operand, RegisterSet& reads) {
  const bool has_base = operand.reg != kNoRegister;
  if (has_base) AddRegisters(reads, operand.reg, operand.width);
  AddUniform(reads, operand.uniform_reg, has_base ? (operand.Has(kUniform64) ? 2u : 1u) : operand.width);
  AddUniform(reads, operand.descriptor, 2);
}

void AddConstant(const Operand& operand, RegisterSet& reads) {
  if (operand.Has(kIsUniform))
    AddUniform(reads, operand.uniform_reg, operand.width);
  else
    AddRegisters(reads, operand.uniform_reg, operand.width);
  AddUniform(reads, operand.descriptor, 2);
}

void AddOperand(const Instruction& instruction, const Operand& operand, RegisterUse& use) {
  RegisterSet& set = operand.is_destination ? use.writes : use.reads;
  switch (operand.kind) {
    case OperandKind::kRegister:
      AddRegisters(set, operand.reg, operand.width);
      break;
    case OperandKind::kUniformRegister:
      AddUniform(set, operand.reg, operand.width);
      break;
    case OperandKind::kPredicate:
      if (operand.reg < kTruePredicate) set.p.set(operand.reg);
      break;
    case OperandKind::kUniformPredicate:
      if (operand.reg < kTruePredicate) set.up.set(operand.reg);
      break;
    case OperandKind::kAllPredicates:
      AddPredicateMask(instruction, operand.Has(kIsUniform) ? set.up : set.p);
      break;
    case OperandKind::kConvergenceBarrier:
      if (operand.reg < set.b.size()) set.b.set(operand.reg);
      break;
    case OperandKind::kMemory:
      AddAddress(operand, use.reads);
      break;
    case OperandKind::kConstant:
      AddConstant(operand, use.reads);
      break;
    case OperandKind::kDescriptor:
    case OperandKind::kMatrixDescriptor:
    case OperandKind::kInstructionDescriptor:
    case OperandKind::kTensorMemory:
      AddUniform(use.reads, operand.uniform_reg, operand.width);
      break;
    default:
      break;
  }
}

}  // namespace

RegisterUse RegistersOf(const Instruction& instruction) {
  RegisterUse use;
  if (instruction.guard < kTruePredicate) {
    (instruction.guard_uniform ? use.reads.up : use.reads.p).set(instruction.guard);
  }
  for (size_t i = 0; i < instruction.operand_count; ++i)
    AddOperand(instruction, instruction.operands[i], use);
  if (instruction.op == Op::kBREAK) use.writes.b |= use.reads.b;
  return use;
}

}  // namespace heddle::isa
