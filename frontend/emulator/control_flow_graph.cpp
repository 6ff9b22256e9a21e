#include "frontend/emulator/control_flow_graph.h"

#include <algorithm>

namespace heddle::emulator {
namespace {

using isa::Op;

bool IsIndirect(const isa::Instruction& instruction) {
  for (size_t i = 0; i < instruction.operand_count; ++i) {
    const isa::OperandKind kind = instruction.operands[i].kind;
    if (kind == isa::OperandKind::kRegister || kind == isa::OperandKind::kUniformRegister ||
        (kind == isa::OperandKind::kTarget && instruction.operands[i].reg < isa::kNoRegister))
      return true;
  }
  return false;
}

class Builder {
 public:
  Builder(const isa::KernelCode& code, const sass::CubinKernel& kernel) : code_(code), kernel_(kernel) {
    const auto count = static_cast<uint32_t>(code.instructions.size());
    for (uint32_t i = 0; i + 1 < count; ++i)
      if (code.instructions[i].op == Op::kCALL) behind_calls_.push_back(i + 1);
    for (const sass::FunctionSymbol& function : kernel.functions)
      if (function.offset / isa::kInstructionBytes < count)
        entries_.push_back(function.offset / isa::kInstructionBytes);
  }

  std::optional<Successors> Build() {
    const auto count = static_cast<uint32_t>(code_.instructions.size());
    Successors successors(count);
    for (uint32_t i = 0; i < count; ++i) {
      if (!AddTargets(i, successors[i])) return std::nullopt;
      if (FallsThrough(code_.instructions[i]) && i + 1 < count) successors[i].push_back(i + 1);
    }
    return successors;
  }

 private:
  static bool FallsThrough(const isa::Instruction& instruction) {
    switch (instruction.op) {
      case Op::kBRA:
        // Lanes for which .DIV or .CONV does not hold, or a second (uniform) predicate is false, go on.
        return instruction.IsPredicated() || instruction.operand_count > 1;
      case Op::kBRX:
      case Op::kBRXU:
      case Op::kJMP:
      case Op::kJMX:
      case Op::kJMXU:
      case Op::kRET:
        return instruction.IsPredicated();
      case Op::kCALL:  // a call out of the kernel is skipped
        return instruction.IsPredicated() || IsIndirect(instruction);
      case Op::kEXIT:
      case Op::kKILL:
        return instruction.IsPredicated() || instruction.operand_count > 0;
      default:
        return true;
    }
  }

  bool AddTargets(uint32_t index, std::vector<uint32_t>& out) {
    const isa::Instruction& instruction = code_.instructions[index];
    switch (instruction.op) {
      case Op::kBRA:
      case Op::kJMP:
      case Op::kCALL:
        if (instruction.op != Op::kBRA && IsIndirect(instruction)) {
          out = entries_;
          return !entries_.empty();
        }
        if (const auto target = TargetOf(code_, instruction)) {
          out.push_back(*target);
          return true;
        }
        return false;
      case Op::kRET:
        out = behind_calls_;
        return true;
      case Op::kBRX:
      case Op::kBRXU: {
        const auto it =
            std::find_if(kernel_.indirect_branches.begin(), kernel_.indirect_branches.end(),
                         [&](const sass::IndirectBranch& b) { return b.offset == instruction.pc; });
        if (it == kernel_.indirect_branches.end()) return false;
        for (const uint32_t target : it->targets) {
          if (target / isa::kInstructionBytes >= code_.instructions.size()) return false;
          out.push_back(target / isa::kInstructionBytes);
        }
        return true;
      }
      case Op::kJMX:
      case Op::kJMXU:
        return false;
      case Op::kWARPSYNC:  // .COLLECTIVE names where its body starts
        if (const auto target = TargetOf(code_, instruction)) out.push_back(*target);
        return true;
      default:
        return true;
    }
  }

  const isa::KernelCode& code_;
  const sass::CubinKernel& kernel_;
  std::vector<uint32_t> behind_calls_;
  std::vector<uint32_t> entries_;
};

}  // namespace

std::optional<uint32_t> TargetOf(const isa::KernelCode& code, const isa::Instruction& instruction) {
  for (size_t i = 0; i < instruction.operand_count; ++i) {
    const isa::Operand& operand = instruction.operands[i];
    if (operand.kind != isa::OperandKind::kTarget || operand.value < 0) continue;
    const auto index = static_cast<uint64_t>(operand.value) / isa::kInstructionBytes;
    if (index < code.instructions.size()) return static_cast<uint32_t>(index);
  }
  return std::nullopt;
}

std::optional<Successors> BuildControlFlow(const isa::KernelCode& code, const sass::CubinKernel& kernel) {
  return Builder(code, kernel).Build();
}

}  // namespace heddle::emulator
