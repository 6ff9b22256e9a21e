// The operands of one instruction as nvdisasm prints them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "frontend/sass/cubin.h"
#include "sim/isa/instruction.h"

namespace heddle::sass {

// Fills instruction.operands in the order of the text, with width 1 and no destinations: CompleteOperands
// (operand_shape.h) adds both. instruction.op, pc and encoding must be set; float immediates come from the
// encoding, functions are looked up in `kernel`. Returns the part of the text that is not understood, or
// nothing.
std::optional<std::string> ParseOperands(std::string_view text, const CubinKernel& kernel,
                                         isa::Instruction& instruction);

}  // namespace heddle::sass
