// Register counts of the operands of matrix multiply-accumulate instructions.
#pragma once

#include "sim/isa/instruction.h"

namespace heddle::sass {

// HMMA, IMMA, BMMA, DMMA, QMMA, OMMA and the warp-group forms HGMMA, QGMMA, IGMMA, BGMMA: sets the width of
// every register operand from the shape (m, n, k) and the element types: rows * columns * bits / 32 bits / 32
// lanes.
void SetMatrixWidths(isa::Instruction& instruction);

}  // namespace heddle::sass
