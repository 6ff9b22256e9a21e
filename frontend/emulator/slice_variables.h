// The variables of the slice's liveness analysis, and what each instruction reads and writes of them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/isa/instruction.h"

namespace heddle::emulator {

// Registers, predicates, convergence barriers and, where the stack is used in the plain way, its words.
class SliceVariables {
 public:
  explicit SliceVariables(const isa::KernelCode& code);

  struct Use {
    std::vector<uint16_t> address;  // read whenever the instruction executes: they decide lanes and addresses
    std::vector<uint16_t> data;     // read only when the result is wanted
    std::vector<uint16_t> defined;
    bool partial = false;        // the definition leaves part of the old value
    bool crosses_lanes = false;  // lane i may read what lane j holds
    int guard = 0;               // 0: none; else 1 + 2 * predicate variable - kFirstPredicate + negated
  };
  const Use& at(uint32_t index) const { return uses_[index]; }
  uint32_t count() const { return count_; }

  // Predicates as guards: 1 ... kGuards - 1, see Use::guard.
  static constexpr uint16_t kFirstUniform = 255;
  static constexpr uint16_t kFirstPredicate = kFirstUniform + 128;  // P0..P6, UP0..UP6
  static constexpr uint16_t kPredicates = 14;
  static constexpr uint16_t kFirstBarrier = kFirstPredicate + kPredicates;
  static constexpr uint16_t kFirstStackWord = kFirstBarrier + 16;

  // Words of the stack are variables; otherwise local memory is one thing (see LocalDependence).
  bool stack_is_tracked() const { return stack_is_tracked_; }
  // The stack's address leaves R1: generic loads and stores may touch local memory.
  bool stack_escapes() const { return stack_escapes_; }

 private:
  void InspectStack(const isa::KernelCode& code);
  Use UseOf(const isa::Instruction& instruction);
  void AddStackWords(const isa::Instruction& instruction, Use& use);

  std::vector<Use> uses_;
  uint32_t count_ = kFirstStackWord;
  bool stack_is_tracked_ = true;
  bool stack_escapes_ = false;
};

}  // namespace heddle::emulator
