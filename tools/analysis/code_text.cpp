#include "tools/analysis/code_text.h"

#include <optional>

namespace heddle::analysis {
namespace {

// The text up to `separator`, which is taken off too; all of it where there is none.
std::string_view TakeUntil(std::string_view* text, char separator) {
  const size_t end = std::min(text->find(separator), text->size());
  const std::string_view taken = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return taken;
}

void AddOperand(isa::Instruction* instruction, isa::OperandKind kind, uint8_t reg = 0) {
  if (instruction->operand_count >= isa::kMaxOperands) return;
  isa::Operand& operand = instruction->operands[instruction->operand_count++];
  operand.kind = kind;
  operand.reg = reg;
}

// Of a matrix instruction: which operands are registers and which lie in shared memory, in their order.
void ReadMatrixOperands(std::string_view text, isa::Instruction* instruction) {
  while (!text.empty()) {
    std::string_view word = TakeUntil(&text, ',');
    while (word.starts_with(' ')) word.remove_prefix(1);
    if (word.starts_with("gdesc[")) {
      AddOperand(instruction, isa::OperandKind::kMatrixDescriptor);
    } else if (word.starts_with("gsb")) {
      AddOperand(instruction, isa::OperandKind::kScoreboard, 8);
    } else if (word.starts_with('R')) {
      AddOperand(instruction, isa::OperandKind::kRegister);
    }
  }
}

}  // namespace

isa::Instruction ReadInstructionText(std::string_view text) {
  isa::Instruction instruction;
  if (text.starts_with('@')) {
    const std::string_view guard = TakeUntil(&text, ' ');
    instruction.guard_negated = guard.find('!') != std::string_view::npos;
    instruction.guard = 0;  // some predicate
  }
  std::string_view mnemonic = TakeUntil(&text, ' ');
  const std::optional<isa::Op> op = isa::OpFromName(TakeUntil(&mnemonic, '.'));
  if (!op) return {};
  instruction.op = *op;
  while (!mnemonic.empty()) {
    const std::optional<isa::Mod> mod = isa::ModFromName(TakeUntil(&mnemonic, '.'));
    if (mod && instruction.modifier_count < isa::kMaxModifiers)
      instruction.modifiers[instruction.modifier_count++] = *mod;
  }
  if (isa::PipeOf(instruction.op) == isa::Pipe::kTensor) ReadMatrixOperands(text, &instruction);
  return instruction;
}

}  // namespace heddle::analysis
