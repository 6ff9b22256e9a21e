#include "sim/sm/hazards.h"

#include <algorithm>
#include <array>
#include <bitset>

#include "sim/isa/registers.h"

namespace heddle::sm {
namespace {

using isa::Instruction;
using isa::Op;
using isa::Pipe;

constexpr uint8_t kToAlu = 0, kToFma = 1, kToFp16 = 2, kToTensor = 3, kToMemory = 4, kToOther = 5;

uint8_t Producer(config::DependenceClass value) { return static_cast<uint8_t>(value); }

bool IsWarpMatrix(Op op) {
  return op == Op::kHMMA || op == Op::kIMMA || op == Op::kDMMA || op == Op::kBMMA || op == Op::kQMMA;
}

bool IsWide(const Instruction& instruction) {
  return instruction.op == Op::kIMAD && instruction.Has(isa::Mod::kWIDE);
}

template <size_t kSize>
void Append(const std::bitset<kSize>& registers, uint16_t first, std::vector<uint16_t>* list) {
  for (size_t i = 0; i < kSize; ++i)
    if (registers[i]) list->push_back(static_cast<uint16_t>(first + i));
}

void Append(const isa::RegisterSet& set, std::vector<uint16_t>* list) {
  Append(set.r, 0, list);
  Append(set.ur, kFirstUniformRegister, list);
  Append(set.p, kFirstPredicate, list);
  Append(set.up, kFirstUniformPredicate, list);
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
      consumer = kToTensor;
      if (!IsWarpMatrix(instruction.op)) break;  // asynchronous: waited for in groups
      producer = Producer(instruction.op == Op::kDMMA ? DependenceClass::kClassDmma
                          : instruction.Has(isa::Mod::k1688) || instruction.Has(isa::Mod::k8832)
                              ? DependenceClass::kClassMma1x
                              : DependenceClass::kClassMma2x);
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

DependenceTable AssumedDependences() {
  struct Assumed {
    config::DependenceClass producer;
    std::array<uint8_t, kConsumerClasses> cycles;
  };
  static constexpr Assumed kAssumed[] = {
#define HEDDLE_ASSUMED(producer, ...) {config::DependenceClass::producer, {__VA_ARGS__}},
#include "sim/sm/assumed_dependences.def"
#undef HEDDLE_ASSUMED
  };
  DependenceTable table{};
  for (const Assumed& row : kAssumed) table[static_cast<size_t>(row.producer)] = row.cycles;
  return table;
}

bool SlowerThanAssumed(const DependenceTable& machine) {
  const DependenceTable assumed = AssumedDependences();
  for (size_t row = 0; row < machine.size(); ++row)
    for (size_t i = 0; i < machine[row].size(); ++i)
      if (machine[row][i] > assumed[row][i]) return true;
  return false;
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
    const isa::RegisterUse use = isa::RegistersOf(instruction);
    const size_t reads = timing->register_lists.size();
    Append(use.reads, &timing->register_lists);
    const size_t writes = timing->register_lists.size();
    timing->list_start.push_back(static_cast<uint32_t>(writes));
    Append(use.writes, &timing->register_lists);
    timing->list_start.push_back(static_cast<uint32_t>(timing->register_lists.size()));
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

void Reschedule(const isa::KernelCode& code, KernelTiming* timing) {
  struct Write {
    int64_t cubin = -1'000'000;    // where the cubin's stall counts place it
    int64_t machine = -1'000'000;  // where the new ones do
    uint8_t writer = 0;
  };
  const DependenceTable assumed = AssumedDependences();
  std::array<Write, kTrackedRegisters> written{};
  int64_t cubin = 0;
  int64_t machine = 0;
  for (size_t i = 0; i < code.instructions.size(); ++i) {
    const uint8_t consumer = timing->instructions[i].dependence_class;
    const uint32_t* lists = &timing->list_start[2 * i];
    int64_t needed_cubin = 0;
    int64_t needed_machine = 0;
    for (uint32_t r = lists[0]; r < lists[1]; ++r) {
      const Write& write = written[timing->register_lists[r]];
      needed_cubin =
          std::max<int64_t>(needed_cubin, write.cubin + DependenceCycles(assumed, write.writer, consumer));
      needed_machine = std::max<int64_t>(
          needed_machine, write.machine + DependenceCycles(timing->dependences, write.writer, consumer));
    }
    if (i > 0) {
      uint8_t& stall = timing->instructions[i - 1].stall_cycles;
      const int64_t before = cubin;
      cubin += stall;
      // A distance that a dependence explains follows the machine; any other stays.
      const bool explained = cubin > before + 1 && cubin <= needed_cubin;
      const int64_t earliest = std::max(machine + (explained ? 1 : int64_t{stall}), needed_machine);
      stall = static_cast<uint8_t>(std::min<int64_t>(255, earliest - machine));
      machine += stall;
    }
    for (uint32_t r = lists[1]; r < lists[2]; ++r)
      written[timing->register_lists[r]] = (consumer & 15) != 0 ? Write{cubin, machine, consumer} : Write{};
  }
}

}  // namespace heddle::sm
