#include "frontend/emulator/slice_variables.h"

#include <algorithm>

#include "sim/isa/registers.h"

namespace heddle::emulator {
namespace {

using isa::Mod;
using isa::Op;
using isa::OperandKind;

constexpr uint8_t kStackPointer = 1;  // R1
constexpr int64_t kMaxStackBytes = 4096;

bool IsLocalAccess(Op op) { return op == Op::kLDL || op == Op::kSTL; }

bool CrossesLanes(Op op) {
  switch (op) {
    case Op::kSHFL:
    case Op::kVOTE:
    case Op::kVOTEU:
    case Op::kMATCH:
    case Op::kREDUX:
    case Op::kCREDUX:
    case Op::kR2UR:
    case Op::kELECT:
    case Op::kMOVM:
    case Op::kLDSM:
    case Op::kSTSM:
    case Op::kBGMMA:
    case Op::kHGMMA:
    case Op::kIGMMA:
    case Op::kQGMMA:
    case Op::kHMMA:
    case Op::kIMMA:
    case Op::kDMMA:
    case Op::kQMMA:
    case Op::kFSWZADD:
      return true;
    default:
      return false;
  }
}

// Every variable of a register set.
template <typename Add>
void ForVariables(const isa::RegisterSet& set, Add add) {
  for (size_t r = set.r._Find_first(); r < isa::kNoRegister; r = set.r._Find_next(r))
    add(static_cast<uint16_t>(r));
  for (size_t u = set.ur._Find_first(); u < set.ur.size(); u = set.ur._Find_next(u))
    add(static_cast<uint16_t>(SliceVariables::kFirstUniform + u));
  for (uint16_t p = 0; p < 7; ++p) {
    if (set.p[p]) add(static_cast<uint16_t>(SliceVariables::kFirstPredicate + p));
    if (set.up[p]) add(static_cast<uint16_t>(SliceVariables::kFirstPredicate + 7 + p));
  }
  for (uint16_t b = 0; b < 16; ++b)
    if (set.b[b]) add(static_cast<uint16_t>(SliceVariables::kFirstBarrier + b));
}

// The registers that form addresses and decide lanes. Descriptors of global memory are cache policies: not needed.
isa::RegisterSet AddressRegisters(const isa::Instruction& instruction) {
  isa::Instruction part = instruction;
  part.guard = isa::kTruePredicate;
  part.operand_count = 0;
  for (size_t i = 0; i < instruction.operand_count; ++i) {
    isa::Operand operand = instruction.operands[i];
    const bool is_address = operand.kind == OperandKind::kMemory || operand.kind == OperandKind::kConstant;
    const bool decides_lanes = instruction.op == Op::kLDGSTS && operand.kind == OperandKind::kPredicate;
    // Sizes and CTA masks of bulk copies.
    const bool decides_bytes =
        PipeOf(instruction.op) == isa::Pipe::kTma && operand.kind == OperandKind::kUniformRegister;
    if (!is_address && !decides_lanes && !decides_bytes) continue;
    if (operand.kind == OperandKind::kMemory) operand.descriptor = isa::kNoRegister;
    operand.is_destination = false;
    part.operands[part.operand_count++] = operand;
  }
  return RegistersOf(part).reads;
}

isa::RegisterSet ReadsWithoutDescriptors(const isa::Instruction& instruction) {
  isa::Instruction part = instruction;
  part.guard = isa::kTruePredicate;
  for (size_t i = 0; i < part.operand_count; ++i)
    if (part.operands[i].kind == OperandKind::kMemory) part.operands[i].descriptor = isa::kNoRegister;
  return RegistersOf(part).reads;
}

uint32_t AccessBytes(const isa::Instruction& instruction) {
  if (instruction.Has(Mod::k128)) return 16;
  if (instruction.Has(Mod::k64)) return 8;
  if (instruction.Has(Mod::kU8) || instruction.Has(Mod::kS8)) return 1;
  if (instruction.Has(Mod::kU16) || instruction.Has(Mod::kS16)) return 2;
  return 4;
}

const isa::Operand* AddressOperand(const isa::Instruction& instruction) {
  for (size_t i = 0; i < instruction.operand_count; ++i)
    if (instruction.operands[i].kind == OperandKind::kMemory) return &instruction.operands[i];
  return nullptr;
}

}  // namespace

SliceVariables::SliceVariables(const isa::KernelCode& code) {
  InspectStack(code);
  uses_.reserve(code.instructions.size());
  for (const isa::Instruction& instruction : code.instructions) uses_.push_back(UseOf(instruction));
}

// The stack's words are variables when R1 is set once, in front of every use of the stack, and every access is
// [R1 + constant].
void SliceVariables::InspectStack(const isa::KernelCode& code) {
  bool used = false;
  int64_t past = 0;
  for (const isa::Instruction& instruction : code.instructions) {
    const isa::RegisterUse use = RegistersOf(instruction);
    if (IsLocalAccess(instruction.op)) {
      used = true;
      const isa::Operand* address = AddressOperand(instruction);
      if (address == nullptr || address->reg != kStackPointer || address->uniform_reg != isa::kNoRegister ||
          address->value < 0 || address->value + 16 > kMaxStackBytes) {
        stack_is_tracked_ = false;
      } else {
        past = std::max(past, address->value + 16);
      }
    } else if (use.writes.r[kStackPointer]) {
      if (used) stack_is_tracked_ = false;
    } else if (use.reads.r[kStackPointer]) {
      stack_escapes_ = true;
    }
  }
  if (stack_escapes_) stack_is_tracked_ = false;
  if (stack_is_tracked_) count_ = kFirstStackWord + static_cast<uint32_t>(past / 4);
}

void SliceVariables::AddStackWords(const isa::Instruction& instruction, Use& use) {
  const isa::Operand* address = AddressOperand(instruction);
  const uint32_t bytes = AccessBytes(instruction);
  const auto first = static_cast<uint32_t>(address->value / 4);
  for (uint32_t word = first; word < first + std::max(bytes / 4, 1u); ++word) {
    const auto variable = static_cast<uint16_t>(kFirstStackWord + word);
    (instruction.op == Op::kLDL ? use.data : use.defined).push_back(variable);
  }
  if (instruction.op == Op::kSTL && bytes < 4) use.partial = true;
}

SliceVariables::Use SliceVariables::UseOf(const isa::Instruction& instruction) {
  Use use;
  const isa::RegisterSet address = AddressRegisters(instruction);
  ForVariables(address, [&](uint16_t v) { use.address.push_back(v); });
  ForVariables(ReadsWithoutDescriptors(instruction), [&](uint16_t v) {
    if (std::find(use.address.begin(), use.address.end(), v) == use.address.end()) use.data.push_back(v);
  });
  // A register that is both address and data is in the address list, where it is live anyway.
  ForVariables(RegistersOf(instruction).writes, [&](uint16_t v) { use.defined.push_back(v); });
  // The address that QSPC asks about is a pair, of which nvdisasm names the first register only.
  if (instruction.op == Op::kQSPC)
    if (const isa::Operand* asked = AddressOperand(instruction);
        asked != nullptr && asked->reg < isa::kNoRegister - 1)
      use.address.push_back(static_cast<uint16_t>(asked->reg + 1));
  use.crosses_lanes = CrossesLanes(instruction.op);
  if (instruction.guard < isa::kTruePredicate)
    use.guard = 1 + 2 * (instruction.guard + (instruction.guard_uniform ? 7 : 0)) +
                (instruction.guard_negated ? 1 : 0);
  if (stack_is_tracked_ && IsLocalAccess(instruction.op)) AddStackWords(instruction, use);
  return use;
}

}  // namespace heddle::emulator
