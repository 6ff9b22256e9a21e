#include "frontend/emulator/index_parameters.h"

#include <algorithm>
#include <bitset>
#include <map>
#include <set>

#include "frontend/emulator/expanded_slice.h"
#include "sim/isa/registers.h"

namespace heddle::emulator {
namespace {

using isa::Op;
using isa::Operand;
using isa::OperandKind;

// Parameter words that code reads, numbered; what is beyond the last number shares it.
constexpr size_t kMostWords = 128;
using Words = std::bitset<kMostWords>;

constexpr size_t kRegisters = 256, kUniformRegisters = 128;

bool LoadsGlobal(Op op) {
  return op == Op::kLDG || op == Op::kLD || op == Op::kLDGSTS || op == Op::kATOMG || op == Op::kATOM;
}

// May operand `o` of a computation be an address that its result is one too? An address is moved, selected and added to; what is
// multiplied, shifted or converted is an index. Addresses pass through the addends of IMAD and LEA, and not through factors.
bool PassesAddress(const isa::Instruction& instruction, int o) {
  const auto is_one = [&](int at) {
    const Operand& operand = instruction.operands[static_cast<size_t>(at)];
    return operand.kind == OperandKind::kImmediate && operand.value == 1;
  };
  int sources[3] = {-1, -1, -1};
  int count = 0;
  for (int i = 0; i < instruction.operand_count && count < 3; ++i) {
    const Operand& operand = instruction.operands[static_cast<size_t>(i)];
    if (!operand.is_destination && operand.kind != OperandKind::kPredicate &&
        operand.kind != OperandKind::kUniformPredicate)
      sources[count++] = i;
  }
  switch (instruction.op) {
    case Op::kIMAD:
    case Op::kUIMAD:
      return o == sources[2] || (o == sources[0] && is_one(sources[1])) ||
             (o == sources[1] && is_one(sources[0]));
    case Op::kLEA:
    case Op::kULEA:
      return o == sources[1];
    case Op::kSHF:
    case Op::kUSHF:
    case Op::kSHL:
    case Op::kIMUL:
    case Op::kI2F:
    case Op::kI2FP:
    case Op::kF2I:
      return false;
    default:
      return true;
  }
}

class Tracker {
 public:
  Tracker(const ExpandedSlice& slice, const sass::CubinKernel& kernel)
      : code_(slice.expanded.code),
        kernel_(kernel),
        needed_(slice.needed),
        successors_(slice.expanded.successors),
        states_(code_.instructions.size()) {}

  std::vector<uint32_t> Run() {
    std::vector<uint32_t> work;
    std::vector<bool> seen(code_.instructions.size(), false);
    if (!code_.instructions.empty())
      Enter(kernel_.entry_offset / isa::kInstructionBytes, State(), &work, &seen);
    while (!work.empty()) {
      const uint32_t i = work.back();
      work.pop_back();
      State state = states_[i];
      Step(i, &state);
      for (const uint32_t next : successors_[i]) Enter(next, state, &work, &seen);
    }
    std::set<uint32_t> offsets;
    for (const auto& [offset, number] : numbers_)
      if (found_.test(number)) offsets.insert(offset);
    return {offsets.begin(), offsets.end()};
  }

 private:
  // Which parameter words the value of each register was made from.
  using State = std::vector<Words>;

  void Enter(uint32_t i, const State& state, std::vector<uint32_t>* work, std::vector<bool>* seen) {
    if (i >= states_.size()) return;
    bool grown = !(*seen)[i];
    (*seen)[i] = true;
    State& here = states_[i];
    if (here.empty()) here.resize(kRegisters + kUniformRegisters);
    for (size_t r = 0; r < state.size(); ++r) {
      const Words joined = here[r] | state[r];
      grown |= joined != here[r];
      here[r] = joined;
    }
    if (grown) work->push_back(i);
  }

  Words OfConstant(const Operand& operand) {
    Words words;
    if (operand.bank != 0 || operand.value < kernel_.param_base) return words;
    const auto offset = static_cast<uint32_t>(operand.value - kernel_.param_base) & ~7u;
    if (offset + 8 > kernel_.param_bytes) return words;
    const auto next = static_cast<uint32_t>(std::min(numbers_.size(), kMostWords - 1));
    words.set(numbers_.try_emplace(offset, next).first->second);
    return words;
  }

  // What an operand brings. Registers of an instruction that reads memory are data or descriptors.
  Words OfOperand(const Operand& operand, const State& state, bool reads_memory) {
    Words words;
    if (operand.kind == OperandKind::kConstant) return OfConstant(operand);
    const bool uniform = operand.kind == OperandKind::kUniformRegister;
    if (reads_memory || (operand.kind != OperandKind::kRegister && !uniform)) return words;
    const size_t first = uniform ? kRegisters : 0, limit = uniform ? kUniformRegisters : isa::kNoRegister;
    for (size_t r = operand.reg; r < size_t{operand.reg} + operand.width && r < limit; ++r)
      words |= state[first + r];
    return words;
  }

  void Step(uint32_t i, State* state) {
    const isa::Instruction& instruction = code_.instructions[i];
    if (state->empty()) state->resize(kRegisters + kUniformRegisters);
    const isa::RegisterUse use = isa::RegistersOf(instruction);
    const bool reads_memory = isa::EffectOf(instruction) == isa::Effect::kMemory;
    Words address, value;
    for (int o = 0; o < instruction.operand_count; ++o) {
      const Operand& operand = instruction.operands[static_cast<size_t>(o)];
      if (operand.kind != OperandKind::kMemory) {
        if (!operand.is_destination && PassesAddress(instruction, o))
          value |= OfOperand(operand, *state, reads_memory);
        continue;
      }
      if (operand.reg < isa::kNoRegister) address |= (*state)[operand.reg] | (*state)[operand.reg + 1u];
      if (operand.uniform_reg + 1u < kUniformRegisters)
        address |=
            (*state)[kRegisters + operand.uniform_reg] | (*state)[kRegisters + operand.uniform_reg + 1u];
    }
    const bool loads = LoadsGlobal(instruction.op);
    if (loads && (needed_.empty() || needed_[i])) found_ |= address;
    const bool may_keep = instruction.IsPredicated();
    for (size_t r = 0; r + 1 < kRegisters; ++r)
      if (use.writes.r.test(r)) (*state)[r] = may_keep ? (*state)[r] | value : value;
    for (size_t r = 0; r < kUniformRegisters; ++r)
      if (use.writes.ur.test(r))
        (*state)[kRegisters + r] = may_keep ? (*state)[kRegisters + r] | value : value;
  }

  const isa::KernelCode& code_;
  const sass::CubinKernel& kernel_;
  const std::vector<bool>& needed_;  // empty: all
  const Successors& successors_;
  std::vector<State> states_;  // before each instruction
  std::map<uint32_t, uint32_t> numbers_;
  Words found_;
};

}  // namespace

std::vector<uint32_t> IndexParameters(const isa::KernelCode& code, const sass::CubinKernel& kernel,
                                      SliceKind kind) {
  const std::optional<ExpandedSlice> slice = ComputeExpandedSlice(code, kernel, kind);
  if (!slice) {  // nothing is known of what follows what: every word may matter
    std::vector<uint32_t> all;
    for (uint32_t offset = 0; offset + 8 <= kernel.param_bytes; offset += 8) all.push_back(offset);
    return all;
  }
  return Tracker(*slice, kernel).Run();
}

}  // namespace heddle::emulator
