#include "frontend/emulator/index_parameters.h"

#include <algorithm>
#include <bitset>
#include <map>
#include <set>

#include "frontend/emulator/control_flow_graph.h"
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

class Tracker {
 public:
  Tracker(const isa::KernelCode& code, const sass::CubinKernel& kernel, const Slice& slice,
          const Successors& successors)
      : code_(code),
        kernel_(kernel),
        slice_(slice),
        successors_(successors),
        states_(code.instructions.size()) {}

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

  void Step(uint32_t i, State* state) {
    const isa::Instruction& instruction = code_.instructions[i];
    if (state->empty()) state->resize(kRegisters + kUniformRegisters);
    const isa::RegisterUse use = isa::RegistersOf(instruction);
    Words address, value;
    for (int o = 0; o < instruction.operand_count; ++o) {
      const Operand& operand = instruction.operands[static_cast<size_t>(o)];
      if (operand.kind == OperandKind::kConstant) value |= OfConstant(operand);
      if (operand.kind != OperandKind::kMemory) continue;
      if (operand.reg < isa::kNoRegister) address |= (*state)[operand.reg] | (*state)[operand.reg + 1u];
      if (operand.uniform_reg + 1u < kUniformRegisters)
        address |=
            (*state)[kRegisters + operand.uniform_reg] | (*state)[kRegisters + operand.uniform_reg + 1u];
    }
    const bool loads = LoadsGlobal(instruction.op);
    if (loads && (slice_.kind == SliceKind::kFull || slice_.needed[i])) found_ |= address;
    const bool reads_memory = isa::EffectOf(instruction) == isa::Effect::kMemory;
    if (!reads_memory) {
      for (size_t r = 0; r + 1 < kRegisters; ++r)
        if (use.reads.r.test(r)) value |= (*state)[r];
      for (size_t r = 0; r < kUniformRegisters; ++r)
        if (use.reads.ur.test(r)) value |= (*state)[kRegisters + r];
    }
    const bool may_keep = instruction.IsPredicated();
    for (size_t r = 0; r + 1 < kRegisters; ++r)
      if (use.writes.r.test(r)) (*state)[r] = may_keep ? (*state)[r] | value : value;
    for (size_t r = 0; r < kUniformRegisters; ++r)
      if (use.writes.ur.test(r))
        (*state)[kRegisters + r] = may_keep ? (*state)[kRegisters + r] | value : value;
  }

  const isa::KernelCode& code_;
  const sass::CubinKernel& kernel_;
  const Slice& slice_;
  const Successors& successors_;
  std::vector<State> states_;  // before each instruction
  std::map<uint32_t, uint32_t> numbers_;
  Words found_;
};

}  // namespace

std::vector<uint32_t> IndexParameters(const isa::KernelCode& code, const sass::CubinKernel& kernel,
                                      SliceKind kind) {
  std::optional<Successors> successors = BuildControlFlow(code, kernel);
  if (!successors) {  // nothing is known of what follows what: every word may matter
    std::vector<uint32_t> all;
    for (uint32_t offset = 0; offset + 8 <= kernel.param_bytes; offset += 8) all.push_back(offset);
    return all;
  }
  const Slice slice = ComputeSlice(code, kernel, kind);
  return Tracker(code, kernel, slice, *successors).Run();
}

}  // namespace heddle::emulator
