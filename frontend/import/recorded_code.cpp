#include "frontend/import/recorded_code.h"

#include <algorithm>

#include "frontend/import/recorded_barrier.h"

namespace heddle::importer {
namespace {

using isa::AccessKind;
using isa::Instruction;
using isa::MemorySpace;
using isa::Mod;
using isa::Op;

constexpr uint64_t kMostSleepNs = 1'000'000;  // what NANOSLEEP may be asked for

uint8_t BytesOf(const Instruction& instruction) {
  if (instruction.op == Op::kLDSM || instruction.op == Op::kSTSM) return 16;
  if (instruction.Has(Mod::k128)) return 16;
  if (instruction.Has(Mod::k64) || instruction.Has(Mod::kF64) || instruction.Has(Mod::kS64) ||
      instruction.Has(Mod::kU64))
    return 8;
  if (instruction.Has(Mod::kU8) || instruction.Has(Mod::kS8)) return 1;
  if (instruction.Has(Mod::kU16) || instruction.Has(Mod::kS16)) return 2;
  return 4;
}

// A matrix has its eight rows' addresses in eight lanes.
uint32_t MatrixLanes(const Instruction& instruction) {
  if (instruction.op != Op::kLDSM && instruction.op != Op::kSTSM) return ~0u;
  return instruction.Has(Mod::k4) ? ~0u : instruction.Has(Mod::k2) ? 0xffffu : 0xffu;
}

MemorySpace SpaceOf(Op op) {
  switch (op) {
    case Op::kLDS:
    case Op::kLDSM:
    case Op::kSTS:
    case Op::kSTSM:
    case Op::kATOMS:
    case Op::kREDS:
      return MemorySpace::kShared;
    case Op::kLDL:
    case Op::kSTL:
      return MemorySpace::kLocal;
    default:
      return MemorySpace::kGlobal;
  }
}

AccessKind KindOf(Op op) {
  switch (op) {
    case Op::kST:
    case Op::kSTG:
    case Op::kSTL:
    case Op::kSTS:
    case Op::kSTSM:
      return AccessKind::kStore;
    case Op::kATOM:
    case Op::kATOMG:
    case Op::kATOMS:
      return AccessKind::kAtomic;
    case Op::kRED:
    case Op::kREDG:
    case Op::kREDS:
      return AccessKind::kReduction;
    case Op::kLDGSTS:
      return AccessKind::kAsyncCopy;
    default:
      return AccessKind::kLoad;
  }
}

void SetAccess(const Instruction& instruction, ReplayedInstruction* out) {
  out->space = SpaceOf(instruction.op);
  out->kind = KindOf(instruction.op);
  out->bytes_per_lane = BytesOf(instruction);
  out->matrix_lanes = MatrixLanes(instruction);
  out->is_generic = instruction.op == Op::kLD || instruction.op == Op::kST || instruction.op == Op::kATOM;
  if (out->space != MemorySpace::kGlobal) return;
  const bool atomic = out->kind == AccessKind::kAtomic || out->kind == AccessKind::kReduction;
  const bool strong = instruction.IsStrong();
  out->at_slice = atomic || (strong && out->kind == AccessKind::kLoad);
  out->bypass_l1 = strong || instruction.Has(Mod::kBYPASS);
}

}  // namespace

Result<RecordedCode> RecordedCode::Make(const isa::KernelCode& code, uint32_t stride,
                                        const std::string& place) {
  const size_t size = code.instructions.size();
  if (code.has_control_bits || stride == 0 || stride > kMostPlaces || size < 2 ||
      size > kMostInstructions + 1 || (size - 1) % stride != 0 || code.instructions.back().op != Op::kEXIT)
    return Error{ExitCode::kTrace, place, "its code is not that of a recording", "import the trace again"};
  RecordedCode out;
  out.stride_ = stride;
  out.variants_ = static_cast<uint32_t>((size - 1) / stride);
  out.instructions_.resize(size);
  for (size_t i = 0; i < size; ++i) {
    const Instruction& instruction = code.instructions[i];
    ReplayedInstruction& each = out.instructions_[i];
    each.record = RecordOf(instruction);
    each.is_exit = instruction.op == Op::kEXIT || instruction.op == Op::kKILL;
    each.is_branch = instruction.op == Op::kBRA || instruction.op == Op::kBRX || instruction.op == Op::kJMP ||
                     instruction.op == Op::kCALL || instruction.op == Op::kRET;
    if (each.record == RecordKind::kAccess) {
      each.access = out.accesses_++;
      SetAccess(instruction, &each);
    }
    if (each.record == RecordKind::kBarrier) each.barrier = BarrierOf(instruction);
    const bool sleeps = instruction.op == Op::kNANOSLEEP && instruction.operand_count > 0;
    if (sleeps) {
      const auto asked =
          static_cast<uint64_t>(instruction.operands[instruction.operand_count - size_t{1}].value);
      each.sleep_ns = asked <= kMostSleepNs ? static_cast<uint32_t>(asked) : 0;
    }
    each.stops = each.record != RecordKind::kNone || each.is_exit || each.sleep_ns != 0;
  }
  out.next_stop_.resize(size);
  for (size_t i = size; i-- > 0;) {
    const bool stops = out.instructions_[i].stops || i + 1 == size;
    out.next_stop_[i] = stops ? static_cast<uint32_t>(i) : out.next_stop_[i + 1];
  }
  return out;
}

}  // namespace heddle::importer
