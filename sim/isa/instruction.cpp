#include "sim/isa/instruction.h"

#include <fmt/format.h>

#include "sim/isa/special_registers.h"

namespace heddle::isa {
namespace {

std::string RegisterName(std::string_view prefix, uint8_t reg) {
  if (reg == kZeroRegister) return fmt::format("{}Z", prefix);
  return fmt::format("{}{}", prefix, reg);
}

std::string PredicateName(std::string_view prefix, uint8_t reg) {
  return reg == kTruePredicate ? fmt::format("{}T", prefix) : fmt::format("{}{}", prefix, reg);
}

// "+0x10", "+-0x8", or nothing for 0 behind a register.
void AppendOffset(std::string& text, int64_t value, bool alone) {
  if (alone)
    text += value < 0 ? fmt::format("-{:#x}", -value) : fmt::format("{:#x}", value);
  else if (value != 0)
    text += value < 0 ? fmt::format("+-{:#x}", -value) : fmt::format("+{:#x}", value);
}

std::string AddressText(const Operand& operand) {
  std::string text;
  if (operand.descriptor != kNoRegister)
    text += fmt::format("desc[{}]", RegisterName("UR", operand.descriptor));
  text += '[';
  const bool has_base = operand.reg != kNoRegister;
  if (has_base) {
    text += RegisterName("R", operand.reg);
    if (operand.scale != 1) text += fmt::format(".X{}", operand.scale);
    if (operand.Has(kUnsigned32)) text += ".U32";
    if (operand.Has(kAddress64)) text += ".64";
  }
  if (operand.uniform_reg != kNoRegister) {
    if (has_base) text += '+';
    text += RegisterName("UR", operand.uniform_reg);
    if (operand.Has(kUniform64)) text += ".64";
  }
  AppendOffset(text, operand.value, !has_base && operand.uniform_reg == kNoRegister);
  return text + ']';
}

std::string ConstantText(const Operand& operand) {
  std::string text = operand.Has(kBindless) ? fmt::format("cx[{}][", RegisterName("UR", operand.descriptor))
                                            : fmt::format("c[{:#x}][", operand.bank);
  const bool indexed = operand.uniform_reg != kNoRegister;
  if (indexed) text += RegisterName(operand.Has(kIsUniform) ? "UR" : "R", operand.uniform_reg);
  AppendOffset(text, operand.value, !indexed);
  return text + ']';
}

std::string TensorMemoryText(const Operand& operand) {
  std::string text = "tmem[";
  if (operand.uniform_reg != kNoRegister) text += RegisterName("UR", operand.uniform_reg);
  AppendOffset(text, operand.value, operand.uniform_reg == kNoRegister);
  return text + ']';
}

std::string ScoreboardSetText(int64_t mask) {
  std::string text = "{";
  for (int i = 5; i >= 0; --i)
    if ((mask >> i & 1) != 0) text += text.size() > 1 ? fmt::format(",{}", i) : fmt::format("{}", i);
  return text + "}";
}

std::string BodyText(const Operand& operand) {
  switch (operand.kind) {
    case OperandKind::kNone:
      return "";
    case OperandKind::kRegister:
      return RegisterName("R", operand.reg);
    case OperandKind::kUniformRegister:
      return RegisterName("UR", operand.reg);
    case OperandKind::kPredicate:
      return PredicateName("P", operand.reg);
    case OperandKind::kUniformPredicate:
      return PredicateName("UP", operand.reg);
    case OperandKind::kAllPredicates:
      return operand.Has(kIsUniform) ? "UPR" : "PR";
    case OperandKind::kImmediate: {
      std::string text;
      AppendOffset(text, operand.value, true);
      return text;
    }
    case OperandKind::kConstant:
      return ConstantText(operand);
    case OperandKind::kMemory:
      return AddressText(operand);
    case OperandKind::kDescriptor:
      return fmt::format("desc[{}]", RegisterName("UR", operand.uniform_reg));
    case OperandKind::kMatrixDescriptor:
      return fmt::format("gdesc[{}]", RegisterName("UR", operand.uniform_reg));
    case OperandKind::kInstructionDescriptor:
      return fmt::format("idesc[{}]", RegisterName("UR", operand.uniform_reg));
    case OperandKind::kTensorMemory:
      return TensorMemoryText(operand);
    case OperandKind::kSpecialRegister:
      return Name(static_cast<SpecialRegister>(operand.value));
    case OperandKind::kConvergenceBarrier:
      return fmt::format("B{}", operand.reg);
    case OperandKind::kScoreboard:
      return operand.reg >= 8 ? "gsb0" : fmt::format("SB{}", operand.reg);
    case OperandKind::kScoreboardSet:
      return ScoreboardSetText(operand.value);
    case OperandKind::kTarget:
      return fmt::format("{:#x}", operand.value);
    case OperandKind::kProgramCounter:
      return operand.Has(kSelectsHigh) ? "Rpc.HI" : "Rpc.LO";
  }
  return "";
}

std::string SuffixText(const Operand& operand) {
  std::string text;
  if (operand.Has(kReuse)) text += ".reuse";
  if (operand.kind == OperandKind::kProgramCounter) return text;
  if (operand.Has(kAsF32)) text += ".F32";
  if (operand.Has(kPackedF32)) text += ".F32x2.HI_LO";
  if (operand.Has(kSelectsHigh)) text += ".H1_H1";
  if (operand.Has(kSelectsLow)) text += ".H0_H0";
  if (operand.Has(kByteSelect)) text += fmt::format(".B{}", operand.scale);
  if (operand.Has(kRow)) text += ".ROW";
  if (operand.Has(kColumn)) text += ".COL";
  if (operand.Has(kNegatedA)) text += ".negA";
  if (operand.Has(kNegatedB)) text += ".negB";
  if (operand.Has(kTransposedA)) text += ".tnspA";
  if (operand.Has(kTransposedB)) text += ".tnspB";
  return text;
}

std::string OperandText(const Operand& operand) {
  const bool is_predicate =
      operand.kind == OperandKind::kPredicate || operand.kind == OperandKind::kUniformPredicate;
  std::string text;
  if (operand.Has(kNegate)) text += '-';
  if (operand.Has(kInvert)) text += is_predicate ? '!' : '~';
  if (operand.Has(kAbsolute)) text += '|';
  text += BodyText(operand);
  if (operand.Has(kAbsolute)) text += '|';
  return text + SuffixText(operand);
}

}  // namespace

std::string ToString(const Instruction& instruction) {
  std::string text;
  if (instruction.IsPredicated()) {
    text += fmt::format("@{}{} ", instruction.guard_negated ? "!" : "",
                        PredicateName(instruction.guard_uniform ? "UP" : "P", instruction.guard));
  }
  text += Name(instruction.op);
  for (size_t i = 0; i < instruction.modifier_count; ++i)
    text += fmt::format(".{}", Name(instruction.modifiers[i]));
  for (size_t i = 0; i < instruction.operand_count; ++i)
    text += (i == 0 ? " " : ", ") + OperandText(instruction.operands[i]);
  return text;
}

}  // namespace heddle::isa
