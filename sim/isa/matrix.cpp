#include "sim/isa/matrix.h"

#include <charconv>

namespace heddle::isa {
namespace {

struct Shape {
  uint16_t m = 0;
  uint16_t n = 0;
  uint16_t k = 0;
};

// "64x128x16".
std::optional<Shape> ParseShape(std::string_view text) {
  Shape shape;
  uint16_t* const parts[] = {&shape.m, &shape.n, &shape.k};
  for (uint16_t* part : parts) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *part);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (part == parts[2]) break;
    if (!text.starts_with('x')) return std::nullopt;
    text.remove_prefix(1);
  }
  return text.empty() ? std::optional(shape) : std::nullopt;
}

// The forms of one warp print m, n and k without separators.
std::optional<Shape> ShapeOf(Mod mod) {
  switch (mod) {
    case Mod::k884:
      return Shape{8, 8, 4};
    case Mod::k8816:
      return Shape{8, 8, 16};
    case Mod::k8832:
      return Shape{8, 8, 32};
    case Mod::k88128:
      return Shape{8, 8, 128};
    case Mod::k1684:
      return Shape{16, 8, 4};
    case Mod::k1688:
      return Shape{16, 8, 8};
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
      return ParseShape(Name(mod));
  }
}

std::optional<MatrixType> InputType(Mod mod) {
  switch (mod) {
    case Mod::kBF16:
      return MatrixType::kBF16;
    case Mod::kTF32:
      return MatrixType::kTF32;
    case Mod::kE4M3:
      return MatrixType::kE4M3;
    case Mod::kE5M2:
      return MatrixType::kE5M2;
    case Mod::kE2M3:
      return MatrixType::kE2M3;
    case Mod::kE3M2:
      return MatrixType::kE3M2;
    case Mod::kE2M1:
      return MatrixType::kE2M1;
    case Mod::kS4:
      return MatrixType::kS4;
    case Mod::kU4:
      return MatrixType::kU4;
    case Mod::kS8:
      return MatrixType::kS8;
    case Mod::kU8:
      return MatrixType::kU8;
    default:
      return std::nullopt;
  }
}

// The types of A, B and the accumulator where the text does not say.
void SetDefaultTypes(Op op, Matrix& matrix) {
  switch (op) {
    case Op::kDMMA:
      matrix.a = matrix.b = matrix.accumulator = MatrixType::kF64;
      break;
    case Op::kBMMA:
    case Op::kBGMMA:
      matrix.a = matrix.b = MatrixType::kB1;
      matrix.accumulator = MatrixType::kS32;
      break;
    case Op::kIMMA:
    case Op::kIGMMA:
      matrix.a = matrix.b = MatrixType::kS8;
      matrix.accumulator = MatrixType::kS32;
      break;
    case Op::kQMMA:
    case Op::kQGMMA:
      matrix.a = matrix.b = MatrixType::kE4M3;
      break;
    case Op::kOMMA:
      matrix.a = matrix.b = MatrixType::kE2M1;
      break;
    default:
      break;
  }
}

// A, then B; one that is printed once stands for both.
void SetTypes(const Instruction& instruction, Matrix& matrix) {
  SetDefaultTypes(instruction.op, matrix);
  const bool has_float_accumulator = matrix.accumulator == MatrixType::kF32;
  bool accumulator_known = false;
  int inputs = 0;
  for (size_t i = 0; i < instruction.modifier_count; ++i) {
    const Mod mod = instruction.modifiers[i];
    if (has_float_accumulator && !accumulator_known && (mod == Mod::kF32 || mod == Mod::kF16)) {
      matrix.accumulator = mod == Mod::kF32 ? MatrixType::kF32 : MatrixType::kF16;
      accumulator_known = true;
    } else if (const auto type = InputType(mod); type && inputs < 2) {
      if (inputs++ == 0) matrix.a = *type;
      matrix.b = *type;
    }
  }
}

void SetOperands(const Instruction& instruction, Matrix& matrix) {
  bool behind_destination = false;
  bool behind_inputs = false;
  for (size_t i = 0; i < instruction.operand_count; ++i) {
    const Operand& operand = instruction.operands[i];
    if (operand.kind == OperandKind::kMatrixDescriptor) {
      matrix.b_in_shared = true;
      matrix.a_in_shared = !behind_destination || i == 1;
      matrix.transposed_a = operand.Has(kTransposedA);
      matrix.transposed_b = operand.Has(kTransposedB);
      matrix.negated_a |= operand.Has(kNegatedA);
      matrix.negated_b = operand.Has(kNegatedB);
      behind_inputs = true;
    } else if (operand.kind == OperandKind::kRegister) {
      if (behind_destination && !behind_inputs && matrix.warp_group) matrix.negated_a |= operand.Has(kNegate);
      behind_destination = true;
    } else if (operand.kind == OperandKind::kScoreboard) {
      matrix.closes_group = true;
    }
  }
}

}  // namespace

uint32_t BitsOf(MatrixType type) {
  switch (type) {
    case MatrixType::kF64:
      return 64;
    case MatrixType::kTF32:
    case MatrixType::kF32:
    case MatrixType::kS32:
      return 32;
    case MatrixType::kF16:
    case MatrixType::kBF16:
      return 16;
    case MatrixType::kE4M3:
    case MatrixType::kE5M2:
    case MatrixType::kS8:
    case MatrixType::kU8:
      return 8;
    case MatrixType::kE2M3:
    case MatrixType::kE3M2:
      return 6;
    case MatrixType::kE2M1:
    case MatrixType::kS4:
    case MatrixType::kU4:
      return 4;
    case MatrixType::kB1:
      return 1;
  }
  return 0;
}

std::string_view Name(MatrixType type) {
  switch (type) {
    case MatrixType::kF16:
      return "f16";
    case MatrixType::kBF16:
      return "bf16";
    case MatrixType::kTF32:
      return "tf32";
    case MatrixType::kF32:
      return "f32";
    case MatrixType::kF64:
      return "f64";
    case MatrixType::kE4M3:
      return "e4m3";
    case MatrixType::kE5M2:
      return "e5m2";
    case MatrixType::kE2M3:
      return "e2m3";
    case MatrixType::kE3M2:
      return "e3m2";
    case MatrixType::kE2M1:
      return "e2m1";
    case MatrixType::kS4:
      return "s4";
    case MatrixType::kU4:
      return "u4";
    case MatrixType::kS8:
      return "s8";
    case MatrixType::kU8:
      return "u8";
    case MatrixType::kS32:
      return "s32";
    case MatrixType::kB1:
      return "b1";
  }
  return "";
}

bool IsWarpGroupMatrix(Op op) {
  return op == Op::kHGMMA || op == Op::kQGMMA || op == Op::kIGMMA || op == Op::kBGMMA;
}

bool IsMatrix(Op op) {
  switch (op) {
    case Op::kHMMA:
    case Op::kIMMA:
    case Op::kBMMA:
    case Op::kDMMA:
    case Op::kQMMA:
    case Op::kOMMA:
      return true;
    default:
      return IsWarpGroupMatrix(op);
  }
}

std::optional<Matrix> MatrixOf(const Instruction& instruction) {
  if (!IsMatrix(instruction.op)) return std::nullopt;
  std::optional<Shape> shape;
  for (size_t i = 0; i < instruction.modifier_count && !shape; ++i) shape = ShapeOf(instruction.modifiers[i]);
  if (!shape) return std::nullopt;
  Matrix matrix;
  matrix.m = shape->m;
  matrix.n = shape->n;
  matrix.k = shape->k;
  matrix.warp_group = IsWarpGroupMatrix(instruction.op);
  matrix.sparse = instruction.Has(Mod::kSP);
  SetTypes(instruction, matrix);
  const bool in_bytes = instruction.op == Op::kQMMA;
  matrix.a_bits = static_cast<uint8_t>(in_bytes ? 8 : BitsOf(matrix.a));
  matrix.b_bits = static_cast<uint8_t>(in_bytes ? 8 : BitsOf(matrix.b));
  SetOperands(instruction, matrix);
  return matrix;
}

}  // namespace heddle::isa
