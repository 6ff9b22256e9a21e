// How many registers each operand of an instruction takes.
#pragma once

#include "sim/isa/instruction.h"

namespace heddle::sass {

// Sets Operand::width of every operand, and kAddress64 where only the opcode says that an address is a pair.
// Destinations must be marked.
void SetWidths(isa::Instruction& instruction);

}  // namespace heddle::sass
