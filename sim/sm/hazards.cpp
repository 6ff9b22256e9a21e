#include "sim/sm/hazards.h"

#include <algorithm>
#include <array>

namespace heddle::sm {
namespace {

using isa::Instruction;
using isa::Op;
using isa::Operand;
using isa::OperandKind;
using isa::Pipe;

constexpr uint8_t kToAlu = 0, kToFma = 1, kToFp16 = 2, kToTensor = 3, kToMemory = 4, kToOther = 5;

uint8_t Producer(config::DependenceClass value) { return static_cast<uint8_t>(value); }

bool IsWide(const Instruction& instruction) {
  return instruction.op == Op::kIMAD && instruction.Has(isa::Mod::kWIDE);
}

void Append(uint16_t first, uint16_t reg, uint8_t width, uint16_t none, std::vector<uint16_t>* list) {
  for (uint16_t i = 0; i < width; ++i)
    if (reg + i < none) list->push_back(static_cast<uint16_t>(first + reg + i));
}

// RZ is 255 and an absent part 254: neither is a register that can be waited for.
void AppendOperand(const Operand& operand, bool destinations, std::vector<uint16_t>* list) {
  const bool wanted = operand.is_destination == destinations;
  switch (operand.kind) {
    case OperandKind::kRegister:
      if (wanted) Append(0, operand.reg, operand.width, isa::kNoRegister, list);
      break;
    case OperandKind::kUniformRegister:
      if (wanted) Append(kFirstUniformRegister, operand.reg, operand.width, 128, list);
      break;
    case OperandKind::kPredicate:
      if (wanted) Append(kFirstPredicate, operand.reg, 1, isa::kTruePredicate, list);
      break;
    case OperandKind::kUniformPredicate:
      if (wanted) Append(kFirstUniformPredicate, operand.reg, 1, isa::kTruePredicate, list);
      break;
    case OperandKind::kAllPredicates:
      if (wanted) Append(kFirstPredicate, 0, 7, isa::kTruePredicate, list);
      break;
    case OperandKind::kMemory:
      if (destinations) break;
      Append(0, operand.reg, operand.Has(isa::kAddress64) ? 2 : 1, isa::kNoRegister, list);
      Append(kFirstUniformRegister, operand.uniform_reg, operand.Has(isa::kUniform64) ? 2 : 1, 128, list);
      Append(kFirstUniformRegister, operand.descriptor, 2, 128, list);
      break;
    case OperandKind::kConstant:
      if (!destinations && !operand.Has(isa::kBindless)) Append(0, operand.reg, 1, isa::kNoRegister, list);
      break;
    default:
      break;
  }
}

void AppendRegisters(const Instruction& instruction, bool destinations, std::vector<uint16_t>* list) {
  if (!destinations && instruction.guard != isa::kTruePredicate)
    list->push_back(static_cast<uint16_t>(
        (instruction.guard_uniform ? kFirstUniformPredicate : kFirstPredicate) + instruction.guard));
  for (int i = 0; i < instruction.operand_count; ++i)
    AppendOperand(instruction.operands[static_cast<size_t>(i)], destinations, list);
}

}  // namespace

uint8_t DependenceClassOf(const Instruction& instruction) {
  using config::DependenceClass;
  uint8_t producer = 0;
  uint8_t consumer = kToOther;
  switch (isa::PipeOf(instruction.op)) {
    case Pipe::kAlu:
      producer = Producer(instruction.op == Op::kCS2R && !instruction.Has(isa::Mod::k32)
                              ? DependenceClass::kClassDispatch64
                              : DependenceClass::kClassAlu);
      consumer = kToAlu;
      break;
    case Pipe::kFma:
      producer =
          Producer(IsWide(instruction) ? DependenceClass::kClassImadWideHigh : DependenceClass::kClassFma);
      consumer = kToFma;
      break;
    case Pipe::kFp16:
      producer = Producer(DependenceClass::kClassFp16);
      consumer = kToFp16;
      break;
    case Pipe::kFp64:
      producer = Producer(DependenceClass::kClassFp64);
      break;
    case Pipe::kTensor:
      producer = Producer(instruction.op == Op::kDMMA ? DependenceClass::kClassDmma
                          : instruction.Has(isa::Mod::k1688) || instruction.Has(isa::Mod::k8832)
                              ? DependenceClass::kClassMma1x
                              : DependenceClass::kClassMma2x);
      consumer = kToTensor;
      break;
    case Pipe::kUniform:
      producer = Producer(DependenceClass::kClassUniform);
      consumer = kToOther;
      break;
    case Pipe::kLsu:
    case Pipe::kTma:
      consumer = kToMemory;
      break;
    default:
      break;
  }
  if (instruction.control.write_barrier != isa::kNoBarrier) producer = 0;
  return static_cast<uint8_t>(producer | consumer << 4);
}

DependenceTable DependencesOf(const config::Gpu& gpu) {
  DependenceTable table{};
  for (const config::DependenceLatency& entry : gpu.sm.dependences) {
    const auto narrow = [](uint32_t cycles) { return static_cast<uint8_t>(std::min(cycles, 255u)); };
    table[static_cast<size_t>(entry.producer)] = {
        narrow(entry.to_alu_cycles),    narrow(entry.to_fma_cycles),    narrow(entry.to_fp16_cycles),
        narrow(entry.to_tensor_cycles), narrow(entry.to_memory_cycles), narrow(entry.to_other_cycles),
        narrow(entry.to_same_cycles)};
  }
  return table;
}

void FindHazards(const isa::KernelCode& code, KernelTiming* timing) {
  constexpr int64_t kNotWritten = -1'000'000;
  std::array<int64_t, kTrackedRegisters> written;
  std::array<uint8_t, kTrackedRegisters> writer{};
  written.fill(kNotWritten);
  int64_t position = 0;
  timing->list_start.push_back(0);
  for (size_t i = 0; i < code.instructions.size(); ++i) {
    const Instruction& instruction = code.instructions[i];
    const uint8_t dependence_class = timing->instructions[i].dependence_class;
    const auto append = [&](bool destinations) {
      AppendRegisters(instruction, destinations, &timing->register_lists);
      timing->list_start.push_back(static_cast<uint32_t>(timing->register_lists.size()));
    };
    const size_t reads = timing->register_lists.size();
    append(false);
    const size_t writes = timing->register_lists.size();
    append(true);
    bool early = false;
    for (size_t r = reads; r < writes; ++r) {
      const uint16_t reg = timing->register_lists[r];
      early |= written[reg] + DependenceCycles(timing->dependences, writer[reg], dependence_class) > position;
    }
    timing->early_reads += early;
    for (size_t r = writes; r < timing->register_lists.size(); ++r) {
      written[timing->register_lists[r]] = (dependence_class & 15) != 0 ? position : kNotWritten;
      writer[timing->register_lists[r]] = dependence_class;
    }
    position += std::max<int64_t>(1, instruction.control.stall);
  }
}

}  // namespace heddle::sm
