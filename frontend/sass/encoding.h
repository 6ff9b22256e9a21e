// Fields of the 128-bit instruction word, the same from sm_80 to sm_120 where nothing else is said.
//
// Not documented by NVIDIA; the positions were checked against the text of nvdisasm over a corpus of real
// kernels.
#pragma once

#include <cstdint>

#include "sim/isa/instruction.h"

namespace heddle::sass {

// The control bits: 105 to 125.
inline isa::Control ControlOf(uint64_t high) {
  const uint64_t bits = high >> 41;
  isa::Control control;
  control.stall = bits & 15;
  control.yield = (bits >> 4 & 1) != 0;
  control.write_barrier = bits >> 5 & 7;
  control.read_barrier = bits >> 8 & 7;
  control.wait_mask = bits >> 11 & 63;
  control.reuse = bits >> 17 & 15;
  return control;
}

inline uint8_t GuardOf(uint64_t low) { return low >> 12 & 7; }
inline bool GuardIsNegated(uint64_t low) { return (low >> 15 & 1) != 0; }
inline uint32_t ImmediateOf(uint64_t low) { return static_cast<uint32_t>(low >> 32); }

// The target of CALL.REL, RET.REL and BSSY (all architectures) and of BRA before sm_90: a signed displacement
// in bytes from the next instruction, bits 32 to 81.
inline int64_t RelativeTarget(const isa::Instruction& instruction) {
  const uint64_t raw = instruction.encoding[0] >> 32 | (instruction.encoding[1] & 0x3ffff) << 32;
  const int64_t displacement = static_cast<int64_t>(raw << 14) >> 14;
  return int64_t{instruction.pc} + isa::kInstructionBytes + displacement;
}

// The target of BRA from sm_90 on: a quarter of the displacement, low 8 bits at 16, the rest at 34 to 81.
inline int64_t SplitTarget(const isa::Instruction& instruction) {
  const uint64_t upper = instruction.encoding[0] >> 34 | (instruction.encoding[1] & 0x3ffff) << 30;
  const uint64_t raw = upper << 8 | (instruction.encoding[0] >> 16 & 0xff);
  const int64_t quarter = static_cast<int64_t>(raw << 8) >> 8;
  return int64_t{instruction.pc} + isa::kInstructionBytes + quarter * 4;
}

}  // namespace heddle::sass
