#include "sim/sm/kernel_timing.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/base/check.h"
#include "sim/sm/hazards.h"
#include "sim/sm/issue_flags.h"
#include "sim/sm/tensor_timing.h"

namespace heddle::sm {
namespace {

using isa::Instruction;
using isa::Mod;
using isa::Op;
using isa::Operand;
using isa::OperandKind;
using isa::Pipe;

TimingClass ClassOf(const Instruction& instruction) {
  switch (instruction.op) {
    case Op::kLDGSTS:
      return TimingClass::kAsyncCopy;
    case Op::kDEPBAR:
      return TimingClass::kDepbar;
    case Op::kLDGDEPBAR:
      return TimingClass::kGroup;
    case Op::kMEMBAR:
      return TimingClass::kFence;
    case Op::kCCTL:
      return instruction.Has(Mod::kIVALL) ? TimingClass::kInvalidate : TimingClass::kVariable;
    case Op::kSHFL:
    case Op::kMOVM:
      return TimingClass::kMioOnly;
    case Op::kLDC:
      return TimingClass::kConstant;
    case Op::kBAR:
    case Op::kUCGABAR_ARV:
    case Op::kUCGABAR_WAIT:
      return TimingClass::kControl;
    case Op::kSYNCS:
    case Op::kARRIVES:
      return TimingClass::kMbarrier;
    case Op::kHGMMA:
    case Op::kQGMMA:
    case Op::kIGMMA:
    case Op::kBGMMA:
      return TimingClass::kMatrixGroup;
    case Op::kWARPGROUP:
      return instruction.Has(Mod::kDEPBAR) ? TimingClass::kMatrixWait : TimingClass::kFixed;
    case Op::kUTMACMDFLUSH:
      return TimingClass::kBulkGroup;
    case Op::kUSETMAXREG:
      return TimingClass::kRegisterPool;
    case Op::kACQBULK:
      return TimingClass::kGridWait;
    default:
      break;
  }
  switch (isa::PipeOf(instruction.op)) {
    case Pipe::kCbu:
      return TimingClass::kControl;
    case Pipe::kXu:
    case Pipe::kAdu:
      return TimingClass::kVariable;
    case Pipe::kLsu:
      return TimingClass::kMemory;
    case Pipe::kTma:
      return TimingClass::kBulk;
    default:
      return TimingClass::kFixed;
  }
}

bool IsIntegerMultiply(const Instruction& instruction) {
  return instruction.op == Op::kIMAD || instruction.op == Op::kIMUL || instruction.op == Op::kIDP;
}

IssuePort PortOf(const Instruction& instruction, TimingClass timing_class) {
  switch (timing_class) {
    case TimingClass::kMioOnly:
    case TimingClass::kConstant:
    case TimingClass::kMbarrier:
      return IssuePort::kMio;
    case TimingClass::kMatrixGroup:
      return IssuePort::kGmma;
    case TimingClass::kBulk:
      return IssuePort::kTma;
    case TimingClass::kBulkGroup:
    case TimingClass::kAsyncCopy:
      return IssuePort::kGlobal;
    case TimingClass::kMemory:
      switch (instruction.op) {
        case Op::kLD:
        case Op::kLDG:
        case Op::kLDL:
        case Op::kATOM:
        case Op::kATOMG:
          return IssuePort::kGlobal;
        default:
          return IssuePort::kMio;
      }
    case TimingClass::kDepbar:
    case TimingClass::kGroup:
    case TimingClass::kFence:
    case TimingClass::kInvalidate:
      return IssuePort::kAdu;
    default:
      break;
  }
  switch (isa::PipeOf(instruction.op)) {
    case Pipe::kAlu:
      return IssuePort::kAlu;
    case Pipe::kFma:
      return IsIntegerMultiply(instruction) ? IssuePort::kFmaHeavy : IssuePort::kFma;
    case Pipe::kFp16:
      return IssuePort::kFp16;
    case Pipe::kFp64:
      return IssuePort::kFp64;
    case Pipe::kXu:
      return IssuePort::kXu;
    case Pipe::kTensor:
      return IssuePort::kTensor;
    case Pipe::kUniform:
      return IssuePort::kUniform;
    case Pipe::kCbu:
      return IssuePort::kCbu;
    case Pipe::kAdu:
      return IssuePort::kAdu;
    case Pipe::kLsu:
    case Pipe::kTma:
      return IssuePort::kMio;
    case Pipe::kNone:
      break;
  }
  return IssuePort::kNone;
}

const config::PipeTiming* PipeTimingOf(const config::Pipes& pipes, const Instruction& instruction,
                                       IssuePort port) {
  switch (port) {
    case IssuePort::kAlu:
      return &pipes.alu;
    case IssuePort::kFma:
      return &pipes.fma;
    case IssuePort::kFmaHeavy:
      return instruction.Has(Mod::kWIDE) || instruction.Has(Mod::kHI) ? &pipes.imad_wide : &pipes.fma_heavy;
    case IssuePort::kFp16:
      return &pipes.fp16;
    case IssuePort::kFp64:
      return &pipes.fp64;
    case IssuePort::kXu:
      return &pipes.xu;
    case IssuePort::kUniform:
      return &pipes.uniform;
    case IssuePort::kCbu:
      return &pipes.cbu;
    case IssuePort::kAdu:
      return &pipes.adu;
    default:
      return nullptr;
  }
}

uint32_t WidthBits(const Instruction& instruction) {
  if (instruction.op == Op::kLDSM || instruction.op == Op::kSTSM)
    return instruction.Has(Mod::k4) ? 128 : instruction.Has(Mod::k2) ? 64 : 32;
  return instruction.Has(Mod::k128) ? 128 : instruction.Has(Mod::k64) ? 64 : 32;
}

config::Addressing AddressingOf(const Instruction& instruction) {
  for (int i = 0; i < instruction.operand_count; ++i) {
    const Operand& operand = instruction.operands[static_cast<size_t>(i)];
    if (operand.kind != OperandKind::kMemory && operand.kind != OperandKind::kConstant) continue;
    if (operand.reg != isa::kNoRegister && operand.reg != isa::kZeroRegister)
      return config::Addressing::kRegular;
    if (operand.kind == OperandKind::kConstant && operand.uniform_reg == isa::kNoRegister)
      return config::Addressing::kImmediate;
    return config::Addressing::kUniform;
  }
  return config::Addressing::kRegular;
}

// The mnemonic under which sm.operations may list an instruction that has no entry of its own.
Op RelativeOf(Op op) {
  switch (op) {
    case Op::kLD:
    case Op::kLDL:
    case Op::kATOM:
    case Op::kATOMG:
    case Op::kLDGMC:
      return Op::kLDG;
    case Op::kST:
    case Op::kSTL:
    case Op::kRED:
    case Op::kREDG:
      return Op::kSTG;
    case Op::kLDSM:
    case Op::kATOMS:
      return Op::kLDS;
    case Op::kSTSM:
    case Op::kREDS:
      return Op::kSTS;
    case Op::kMOVM:
      return Op::kSHFL;
    case Op::kS2UR:
    case Op::kB2R:
      return Op::kS2R;
    default:
      return op;
  }
}

const config::OperationTiming* FindOperation(const config::Gpu& gpu, Op op, const Instruction& instruction) {
  const uint32_t width = WidthBits(instruction);
  const config::Addressing addressing = AddressingOf(instruction);
  const config::OperationTiming* best = nullptr;
  int best_score = -1;
  for (const config::OperationTiming& entry : gpu.sm.operations) {
    if (entry.op != isa::Name(op)) continue;
    int score = 0;
    if (entry.width_bits == width) score += 4;
    if (entry.width_bits == 0) score += 2;
    if (entry.addressing == addressing) score += 2;
    if (entry.addressing == config::Addressing::kAny) score += 1;
    if (score > best_score) best = &entry, best_score = score;
  }
  return best;
}

uint16_t Narrow(double value) { return static_cast<uint16_t>(std::clamp(value, 0.0, 65535.0)); }

void SetLatencies(const config::Gpu& gpu, const Instruction& instruction, InstructionTiming* timing) {
  const config::PipeTiming* pipe = PipeTimingOf(gpu.sm.pipes, instruction, timing->port);
  const config::OperationTiming* operation = FindOperation(gpu, instruction.op, instruction);
  if (operation == nullptr) operation = FindOperation(gpu, RelativeOf(instruction.op), instruction);
  if (timing->port == IssuePort::kGmma) {
    const TensorTiming tensor = TensorTimingOf(gpu, instruction);
    const double least = gpu.sm.gmma->min_interval_cycles;
    timing->interval_quarters = Narrow(std::max(4 * least, std::ceil(4 * tensor.interval_cycles)));
    timing->result_cycles =
        Narrow(tensor.latency_cycles - std::min<double>(tensor.latency_cycles, tensor.interval_cycles));
    timing->constant_offset = Narrow(tensor.shared_bytes);
    if (tensor.closes_group) timing->flags |= kClosesGroup;
    return;
  }
  if (timing->port == IssuePort::kTensor) {
    const TensorTiming tensor = TensorTimingOf(gpu, instruction);
    timing->interval_quarters = Narrow(std::max(1.0, 4 * tensor.interval_cycles));
    timing->result_cycles = Narrow(tensor.latency_cycles);
    timing->source_release_cycles = Narrow(std::ceil(tensor.interval_cycles));
  } else if (pipe != nullptr) {
    timing->interval_quarters = Narrow(std::max(1.0, 4 * pipe->initiation_interval_cycles));
    timing->result_cycles = Narrow(pipe->latency_cycles + (timing->timing_class == TimingClass::kVariable
                                                               ? gpu.sm.sub_core.variable_latency_extra_cycles
                                                               : 0));
    timing->source_release_cycles = Narrow(gpu.sm.sub_core.operand_read_cycles);
    if (pipe->shared_by_sub_cores) timing->flags |= kSharedPipe;
  }
  if (operation != nullptr) {
    timing->result_cycles = Narrow(operation->result_cycles);
    timing->source_release_cycles = Narrow(operation->source_release_cycles);
  } else if (pipe == nullptr && timing->port != IssuePort::kTensor && timing->port != IssuePort::kNone) {
    timing->result_cycles = Narrow(gpu.sm.mio.issue_to_lsu_cycles + gpu.sm.pipes.adu.latency_cycles);
    timing->source_release_cycles = Narrow(gpu.sm.mio.issue_to_lsu_cycles);
  }
}

// Nibble b of the result: registers of [reg, reg + width) in bank b.
uint16_t ReadsOf(uint8_t reg, uint8_t width, uint32_t banks) {
  uint32_t reads = 0;
  if (reg == isa::kZeroRegister || reg == isa::kNoRegister) return 0;
  for (uint32_t i = 0; i < width; ++i) reads += 1u << 4 * ((reg + i) % banks);
  return static_cast<uint16_t>(reads);
}

void SetReads(const config::Gpu& gpu, const Instruction& instruction, InstructionTiming* timing) {
  const uint32_t banks = gpu.sm.sub_core.register_banks;
  const auto add = [&](uint16_t reads) { timing->reads = static_cast<uint16_t>(timing->reads + reads); };
  size_t slot = 0;
  for (int i = 0; i < instruction.operand_count; ++i) {
    const Operand& operand = instruction.operands[static_cast<size_t>(i)];
    if (operand.is_destination) continue;
    if (operand.kind == OperandKind::kMemory) {
      add(ReadsOf(operand.reg, operand.Has(isa::kAddress64) ? 2 : 1, banks));
      continue;
    }
    const bool is_slot = operand.kind == OperandKind::kRegister || operand.kind == OperandKind::kConstant ||
                         operand.kind == OperandKind::kImmediate ||
                         operand.kind == OperandKind::kUniformRegister;
    if (!is_slot) continue;
    if (operand.kind == OperandKind::kRegister) {
      const uint16_t reads = ReadsOf(operand.reg, operand.width, banks);
      add(reads);
      if (slot < kOperandSlots) {
        timing->slot_reads[slot] = reads;
        if (reads != 0) timing->slot_register[slot] = operand.reg;
        if (operand.Has(isa::kReuse)) timing->reuse = static_cast<uint8_t>(timing->reuse | 1u << slot);
      }
    }
    ++slot;
  }
}

void SetConstant(const Instruction& instruction, InstructionTiming* timing) {
  for (int i = 0; i < instruction.operand_count; ++i) {
    const Operand& operand = instruction.operands[static_cast<size_t>(i)];
    const bool immediate =
        operand.kind == OperandKind::kConstant && !operand.Has(isa::kBindless) &&
        (operand.reg == isa::kNoRegister || operand.reg == isa::kZeroRegister) &&
        (operand.uniform_reg == isa::kNoRegister || operand.uniform_reg == isa::kZeroUniformRegister);
    if (!immediate || operand.bank >= 5 || operand.value < 0 || operand.value > 0xffff) continue;
    timing->flags |= timing->timing_class == TimingClass::kConstant ? kConstantAddress : kReadsConstant;
    timing->constant_bank = operand.bank;
    timing->constant_offset = static_cast<uint16_t>(operand.value);
  }
}

void SetDepbar(const Instruction& instruction, InstructionTiming* timing) {
  for (int i = 0; i < instruction.operand_count; ++i) {
    const Operand& operand = instruction.operands[static_cast<size_t>(i)];
    if (operand.kind == OperandKind::kScoreboard && operand.reg < 6) timing->depbar_barrier = operand.reg;
    if (operand.kind == OperandKind::kImmediate)
      timing->depbar_count = static_cast<uint8_t>(operand.value & 63);
    if (operand.kind == OperandKind::kScoreboardSet)
      timing->wait_mask = static_cast<uint8_t>(timing->wait_mask | (operand.value & 63));
  }
  if (timing->depbar_barrier != isa::kNoBarrier && timing->depbar_count == 0)
    timing->wait_mask = static_cast<uint8_t>(timing->wait_mask | 1u << timing->depbar_barrier);
}

int64_t ImmediateOf(const Instruction& instruction) {
  for (int i = 0; i < instruction.operand_count; ++i)
    if (instruction.operands[static_cast<size_t>(i)].kind == OperandKind::kImmediate)
      return instruction.operands[static_cast<size_t>(i)].value;
  return 0;
}

// Whether it touches what Machine::async holds.
bool IsHopperUnit(const Instruction& instruction) {
  switch (instruction.op) {
    case Op::kUCGABAR_ARV:
    case Op::kUCGABAR_WAIT:
    case Op::kSTAS:
    case Op::kREDAS:
      return true;
    default:
      break;
  }
  const TimingClass timing_class = ClassOf(instruction);
  return (timing_class >= TimingClass::kMbarrier && timing_class <= TimingClass::kBulkGroup) ||
         timing_class == TimingClass::kMatrixGroup || timing_class == TimingClass::kMatrixWait ||
         timing_class == TimingClass::kRegisterPool;
}

bool WaitsForL1(const Instruction& instruction) {
  switch (instruction.op) {
    case Op::kLD:
    case Op::kLDG:
    case Op::kLDL:
    case Op::kATOM:
    case Op::kATOMG:
    case Op::kLDGSTS:
    case Op::kLDGDEPBAR:
    case Op::kST:
    case Op::kSTG:
    case Op::kSTL:
    case Op::kRED:
    case Op::kREDG:
      return true;
    default:
      return false;
  }
}

uint8_t StallCycles(const config::Gpu& gpu, const isa::Control& control) {
  // The raw bit 109 is set where the warp may go on, clear where the compiler would rather see another one.
  const bool yields = !control.yield;
  if (control.stall == 0) return static_cast<uint8_t>(yields ? gpu.sm.sub_core.stall_zero_yield_cycles : 1);
  return std::max<uint8_t>(control.stall, yields ? 2 : 1);
}

InstructionTiming TimingOf(const config::Gpu& gpu, const Instruction& instruction) {
  InstructionTiming timing;
  timing.timing_class = ClassOf(instruction);
  timing.port = PortOf(instruction, timing.timing_class);
  timing.stall_cycles = StallCycles(gpu, instruction.control);
  timing.wait_mask = instruction.control.wait_mask;
  timing.write_barrier =
      instruction.control.write_barrier < 6 ? instruction.control.write_barrier : isa::kNoBarrier;
  timing.read_barrier =
      instruction.control.read_barrier < 6 ? instruction.control.read_barrier : isa::kNoBarrier;
  timing.dependence_class = DependenceClassOf(instruction);
  if (!instruction.control.yield) timing.flags |= kYield;
  if (WaitsForL1(instruction)) timing.flags |= kLongScoreboard;
  if (timing.timing_class == TimingClass::kFence) {
    if (instruction.Has(Mod::kCTA)) timing.flags |= kCtaScope;
    if (instruction.Has(Mod::kSYS)) timing.flags |= kSystemScope;
  }
  SetLatencies(gpu, instruction, &timing);
  SetReads(gpu, instruction, &timing);
  SetConstant(instruction, &timing);
  if (instruction.op == Op::kDEPBAR) SetDepbar(instruction, &timing);
  if (timing.timing_class == TimingClass::kMatrixWait)
    timing.depbar_count = static_cast<uint8_t>(ImmediateOf(instruction) & 63);
  if (timing.timing_class == TimingClass::kRegisterPool) {
    timing.constant_offset = static_cast<uint16_t>(ImmediateOf(instruction) & 511);
    if (instruction.Has(Mod::kTRY_ALLOC)) timing.flags |= kAllocates;
  }
  return timing;
}

}  // namespace

PortUse PortUseOf(const config::Gpu& gpu, const isa::Instruction& instruction) {
  InstructionTiming timing;
  timing.timing_class = ClassOf(instruction);
  timing.port = PortOf(instruction, timing.timing_class);
  if (timing.port == IssuePort::kGmma && !gpu.sm.gmma) return {IssuePort::kTensor, 0, false};
  timing.interval_quarters = 0;  // what only the memory queue or nothing limits
  SetLatencies(gpu, instruction, &timing);
  return {timing.port == IssuePort::kGmma ? IssuePort::kTensor : timing.port, timing.interval_quarters / 4.0,
          (timing.flags & kSharedPipe) != 0};
}

KernelTiming BuildKernelTiming(const config::Gpu& gpu, const isa::KernelCode& code,
                               const isa::LaunchShape& shape) {
  KernelTiming timing;
  timing.code_address = shape.code_address;
  timing.constant_bank_address = shape.constant_bank_address;
  timing.instructions.reserve(code.instructions.size());
  for (const Instruction& instruction : code.instructions) {
    timing.instructions.push_back(TimingOf(gpu, instruction));
    const InstructionTiming& last = timing.instructions.back();
    const bool is_matrix = last.port == IssuePort::kTensor || last.port == IssuePort::kGmma;
    timing.tensor_ops.push_back(is_matrix ? TensorTimingOf(gpu, instruction).ops : 0);
    if (last.depbar_barrier != isa::kNoBarrier && last.depbar_count > 0)
      timing.counted_barriers = static_cast<uint8_t>(timing.counted_barriers | 1u << last.depbar_barrier);
    timing.has_async_copies |= last.timing_class == TimingClass::kAsyncCopy;
    timing.has_hopper_units |= IsHopperUnit(instruction);
  }
  timing.dependences = DependencesOf(gpu);
  FindHazards(code, &timing);
  timing.scoreboard = !code.has_control_bits;
  if (timing.scoreboard)
    for (InstructionTiming& each : timing.instructions)
      if (WaitsOnScoreboard(each)) each.flags |= kOnScoreboard;
  timing.ignores_stall_counts = timing.scoreboard || gpu.dependence == config::DependenceMode::kInterlocked;
  const bool rescheduled = gpu.dependence == config::DependenceMode::kRescheduled && !timing.scoreboard;
  if (rescheduled) Reschedule(code, &timing);
  for (size_t i = 0; i < timing.instructions.size(); ++i) {
    InstructionTiming& each = timing.instructions[i];
    if (timing.ignores_stall_counts) each.stall_cycles = 1;
    each.flags =
        static_cast<uint16_t>(each.flags | IssueFlagsOf(each) | FetchFlagsOf(gpu, timing.code_address, i));
  }
  // New stall counts are right along straight-line code; what jumps there is held back like any early read.
  timing.tracks_registers = timing.ignores_stall_counts || (SlowerThanAssumed(timing.dependences) &&
                                                            (rescheduled || timing.early_reads > 0));
  if (!timing.tracks_registers) {
    timing.register_lists.clear();
    timing.list_start.clear();
  }
  return timing;
}

bool NeedsHopperUnits(const isa::KernelCode& code) {
  return std::any_of(code.instructions.begin(), code.instructions.end(), IsHopperUnit);
}

}  // namespace heddle::sm
