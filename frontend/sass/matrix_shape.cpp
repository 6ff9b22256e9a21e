#include "frontend/sass/matrix_shape.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace heddle::sass {
namespace {

using isa::Instruction;
using isa::Mod;
using isa::Op;
using isa::Operand;
using isa::OperandKind;

struct Shape {
  uint32_t m = 0;
  uint32_t n = 0;
  uint32_t k = 0;
};

// The shape's digits stand without separators in front of the first modifier that is none: m n k. The
// warp-group forms have an x between.
std::optional<Shape> ShapeOf(Mod mod) {
  switch (mod) {
    case Mod::k884:
      return Shape{8, 8, 4};
    case Mod::k8832:
      return Shape{8, 8, 32};
    case Mod::k88128:
      return Shape{8, 8, 128};
    case Mod::k1684:
      return Shape{16, 8, 4};
    case Mod::k1688:
      return Shape{16, 8, 8};
    case Mod::k8816:
      return Shape{8, 8, 16};
    case Mod::k16816:
      return Shape{16, 8, 16};
    case Mod::k16832:
      return Shape{16, 8, 32};
    case Mod::k16864:
      return Shape{16, 8, 64};
    case Mod::k168128:
      return Shape{16, 8, 128};
    case Mod::k168256:
      return Shape{16, 8, 256};
    default:
      break;
  }
  std::string_view text = isa::Name(mod);
  Shape shape;
  uint32_t* const parts[] = {&shape.m, &shape.n, &shape.k};
  for (uint32_t* part : parts) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *part);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (part != parts[2] && !text.starts_with('x')) return std::nullopt;
    if (part != parts[2]) text.remove_prefix(1);
  }
  return text.empty() ? std::optional(shape) : std::nullopt;
}

// Bits of one element of A and B.
uint32_t InputBits(const Instruction& instruction) {
  switch (instruction.op) {
    case Op::kDMMA:
      return 64;
    case Op::kBMMA:
    case Op::kBGMMA:
      return 1;
    case Op::kIMMA:
    case Op::kIGMMA:
      return instruction.Has(Mod::kS4) || instruction.Has(Mod::kU4) ? 4 : 8;
    case Op::kQMMA:
    case Op::kQGMMA:
      return 8;
    case Op::kOMMA:
      return 4;
    default:
      return instruction.Has(Mod::kTF32) ? 32 : 16;
  }
}

// Bits of one element of the accumulator.
uint32_t OutputBits(const Instruction& instruction) {
  switch (instruction.op) {
    case Op::kDMMA:
      return 64;
    case Op::kHMMA:
    case Op::kQMMA:
    case Op::kHGMMA:
    case Op::kQGMMA: {
      // The accumulator's type is the first one printed.
      for (size_t i = 0; i < instruction.modifier_count; ++i) {
        if (instruction.modifiers[i] == Mod::kF32) return 32;
        if (instruction.modifiers[i] == Mod::kF16) return 16;
      }
      return 32;
    }
    default:
      return 32;
  }
}

uint8_t Registers(uint32_t rows, uint32_t columns, uint32_t bits, uint32_t lanes) {
  const uint32_t count = rows * columns * bits / 32 / lanes;
  return static_cast<uint8_t>(std::clamp<uint32_t>(count, 1, 255));
}

}  // namespace

void SetMatrixWidths(Instruction& instruction) {
  std::optional<Shape> shape;
  for (size_t i = 0; i < instruction.modifier_count && !shape; ++i) shape = ShapeOf(instruction.modifiers[i]);
  if (!shape) return;
  const bool warp_group = instruction.op == Op::kHGMMA || instruction.op == Op::kQGMMA ||
                          instruction.op == Op::kIGMMA || instruction.op == Op::kBGMMA;
  const uint32_t lanes = warp_group ? 128 : 32;
  const bool sparse = instruction.Has(Mod::kSP);
  const uint32_t a_k = sparse ? shape->k / 2 : shape->k;
  const uint8_t a = Registers(shape->m, a_k, InputBits(instruction), lanes);
  const uint8_t b = Registers(shape->k, shape->n, InputBits(instruction), lanes);
  const uint8_t c = Registers(shape->m, shape->n, OutputBits(instruction), lanes);

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
