// Which operands of an instruction are destinations, and how many registers each takes.
#pragma once

#include "sim/isa/instruction.h"

namespace heddle::sass {

// Sets is_destination and width of every operand, and kAddress64 where only the opcode says that an address
// is a pair. instruction must be complete but for these. Agrees with the live ranges that nvdisasm prints
// (tests/validation/sass_corpus_test.cpp).
void CompleteOperands(isa::Instruction& instruction);

}  // namespace heddle::sass
