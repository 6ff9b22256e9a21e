#include "frontend/sass/matrix_shape.h"

#include <algorithm>
#include <optional>

#include "sim/isa/matrix.h"

namespace heddle::sass {
namespace {

using isa::Instruction;
using isa::Operand;
using isa::OperandKind;

uint8_t Registers(uint32_t bytes, uint32_t lanes) {
  return static_cast<uint8_t>(std::clamp<uint32_t>(bytes / 4 / lanes, 1, 255));
}

}  // namespace

void SetMatrixWidths(Instruction& instruction) {
  const std::optional<isa::Matrix> matrix = isa::MatrixOf(instruction);
  if (!matrix) return;
  const uint32_t lanes = matrix->warp_group ? 128 : 32;
  const uint32_t accumulator_bits = isa::BitsOf(matrix->accumulator);
  const uint8_t a = Registers(matrix->BytesOfA(), lanes);
  const uint8_t b = Registers(matrix->BytesOfB(), lanes);
  const uint8_t c = Registers(matrix->m * matrix->n * accumulator_bits / 8, lanes);

  // Order of the operands: D, A, B, C, then metadata or scales of one register each. The warp-group forms
  // have A and B, or B alone, in a descriptor.
  int position = 0;
  for (size_t i = 0; i < instruction.operand_count; ++i) {
    Operand& operand = instruction.operands[i];
    if (operand.kind == OperandKind::kMatrixDescriptor) {
      operand.width = 4;
      position = 3;
      continue;
    }
    if (operand.kind != OperandKind::kRegister) continue;
    switch (position++) {
      case 0:
        operand.width = c;
        break;
      case 1:
        operand.width = a;
        break;
      case 2:
        operand.width = b;
        break;
      case 3:
        operand.width = c;
        break;
      default:
        operand.width = 1;
    }
  }
}

}  // namespace heddle::sass
