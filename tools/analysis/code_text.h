// Instructions as the results database has them: text. What analysis needs of it, opcode, modifiers and the operands that
// tell what a matrix instruction reads from shared memory, is read back; other operands are not.
#pragma once

#include <string_view>

#include "sim/isa/instruction.h"

namespace heddle::analysis {

// Of isa::ToString's text. Text that is not understood becomes a NOP.
isa::Instruction ReadInstructionText(std::string_view text);

}  // namespace heddle::analysis
