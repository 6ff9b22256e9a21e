// Matrix multiply-accumulate of a warp: HMMA, IMMA, DMMA, QMMA. All lanes take part, whatever the mask says.
#include "frontend/emulator/lowering.h"
#include "frontend/emulator/matrix.h"

namespace heddle::emulator {
namespace {

using isa::Mod;
using isa::OperandKind;

// Shapes travel in flags: four bits each.
constexpr uint32_t kTypeA = 0, kTypeB = 4, kTilesM = 8, kTilesK = 12, kOption = 16, kNoAccumulator = 20;

uint32_t Field(const Lowered& l, uint32_t shift) { return l.flags >> shift & 15; }
void SetField(Lowered& l, uint32_t shift, uint32_t value) { l.flags |= value << shift; }

const FragmentRow* Rows(const Context& c, const Lowered& l, size_t source) {
  return &c.Source(l, source).lane;
}
const FragmentRow* Accumulator(const Context& c, const Lowered& l) {
  return Field(l, kNoAccumulator) != 0 ? nullptr : Rows(c, l, 2);
}

void RunFloat(Context& c, const Lowered& l) {
  const FloatMatrixShape shape{static_cast<MatrixFloat>(Field(l, kTypeA)),
                               static_cast<MatrixFloat>(Field(l, kTypeB)),
                               static_cast<uint8_t>(Field(l, kTilesK)), Field(l, kOption) != 0};
  MultiplyFloat(shape, Rows(c, l, 0), Rows(c, l, 1), Accumulator(c, l), &c.Destination(l).lane);
}

void RunInteger(Context& c, const Lowered& l) {
  const IntegerMatrixShape shape{static_cast<MatrixInteger>(Field(l, kTypeA)),
                                 static_cast<MatrixInteger>(Field(l, kTypeB)),
                                 static_cast<uint8_t>(Field(l, kTilesM)),
                                 static_cast<uint8_t>(Field(l, kTilesK)), Field(l, kOption) != 0};
  MultiplyInteger(shape, Rows(c, l, 0), Rows(c, l, 1), Accumulator(c, l), &c.Destination(l).lane);
}

void RunDouble(Context& c, const Lowered& l) {
  const DoubleMatrixShape shape{static_cast<uint8_t>(Field(l, kTilesM)),
                                static_cast<uint8_t>(Field(l, kTilesK))};
  MultiplyDouble(shape, Rows(c, l, 0), Rows(c, l, 1), Accumulator(c, l), &c.Destination(l).lane);
}

// A fragment register block: R without arithmetic modifiers; .ROW and .COL say what is always the case. RZ
// stands for as many zero rows as the zero block has; only accumulators may be RZ beyond that.
void Fragment(Lowering& w, size_t slot, uint32_t rows) {
  const isa::Operand& operand = w.Next();
  constexpr uint32_t kIgnored = isa::kReuse | isa::kRow | isa::kColumn;
  if (operand.kind != OperandKind::kRegister || (operand.flags & ~kIgnored) != 0)
    return w.Fail("a matrix operand is no plain register");
  if (operand.reg == isa::kZeroRegister && slot == 2) {
    SetField(w.out, kNoAccumulator, 1);
    return;
  }
  if (operand.reg == isa::kZeroRegister && rows > kDiscardRow) return w.Fail("a wide matrix operand is RZ");
  w.out.source[slot].row = w.layout.ReadRow(operand.reg);
}

void Operands(Lowering& w, uint32_t d_rows, uint32_t a_rows, uint32_t b_rows) {
  const isa::Operand* d = w.Peek();
  if (d != nullptr && d->reg == isa::kZeroRegister && d_rows > 4) return w.Fail("a wide matrix result is RZ");
  w.Destination(0);
  Fragment(w, 0, a_rows);
  Fragment(w, 1, b_rows);
  Fragment(w, 2, d_rows);
}

}  // namespace

void LowerHmma(Lowering& w) {
  const bool f32 = w.Take(Mod::kF32);
  const int type = w.TakeOneOf({Mod::kBF16, Mod::kTF32});
  if (!f32) w.Take(Mod::kF16);
  const int shape = w.TakeOneOf({Mod::k1684, Mod::k1688, Mod::k16816});
  if (shape < 0) return w.Fail("an unknown matrix shape");
  const bool tf32 = type == 1;
  if (tf32 ? shape == 2 : shape == 0) return w.Fail("an unknown matrix shape for this type");
  const auto k_tiles = static_cast<uint32_t>(tf32 ? shape + 1 : shape);
  const MatrixFloat element = type < 0 ? MatrixFloat::kF16 : tf32 ? MatrixFloat::kTF32 : MatrixFloat::kBF16;
  SetField(w.out, kTypeA, static_cast<uint32_t>(element));
  SetField(w.out, kTypeB, static_cast<uint32_t>(element));
  SetField(w.out, kTilesK, k_tiles);
  SetField(w.out, kOption, f32 ? 0 : 1);
  Operands(w, f32 ? 4 : 2, 2 * k_tiles, k_tiles);
  w.out.run = &RunFloat;
}

void LowerQmma(Lowering& w) {
  // The types are in the order of the text: A, then B.
  int types[2] = {-1, -1};
  int found = 0;
  for (uint32_t i = 0; i < w.instruction.modifier_count && found < 2; ++i) {
    if (w.instruction.modifiers[i] == Mod::kE4M3) types[found++] = static_cast<int>(MatrixFloat::kE4M3);
    if (w.instruction.modifiers[i] == Mod::kE5M2) types[found++] = static_cast<int>(MatrixFloat::kE5M2);
  }
  if (found != 2) return w.Fail("unknown element types");
  w.Take(Mod::kE4M3);
  w.Take(Mod::kE5M2);
  const bool f32 = w.Take(Mod::kF32);
  if (!f32) w.Take(Mod::kF16);
  const int shape = w.TakeOneOf({Mod::k16816, Mod::k16832});
  if (shape < 0) return w.Fail("an unknown matrix shape");
  const auto k_tiles = static_cast<uint32_t>(shape + 1);
  SetField(w.out, kTypeA, static_cast<uint32_t>(types[0]));
  SetField(w.out, kTypeB, static_cast<uint32_t>(types[1]));
  SetField(w.out, kTilesK, k_tiles);
  SetField(w.out, kOption, f32 ? 0 : 1);
  Operands(w, f32 ? 4 : 2, 2 * k_tiles, k_tiles);
  w.out.run = &RunFloat;
}

void LowerImma(Lowering& w) {
  MatrixInteger types[2] = {};
  int found = 0;
  for (uint32_t i = 0; i < w.instruction.modifier_count && found < 2; ++i) {
    switch (w.instruction.modifiers[i]) {
      case Mod::kS8:
        types[found++] = MatrixInteger::kS8;
        break;
      case Mod::kU8:
        types[found++] = MatrixInteger::kU8;
        break;
      case Mod::kS4:
        types[found++] = MatrixInteger::kS4;
        break;
      case Mod::kU4:
        types[found++] = MatrixInteger::kU4;
        break;
      default:
        break;
    }
  }
  for (const Mod mod : {Mod::kS8, Mod::kU8, Mod::kS4, Mod::kU4}) w.Take(mod);
  if (found != 2) return w.Fail("unknown element types");
  const bool saturates = w.Take(Mod::kSAT);
  const bool nibbles = types[0] == MatrixInteger::kS4 || types[0] == MatrixInteger::kU4;
  const int shape = w.TakeOneOf({Mod::k8816, Mod::k8832, Mod::k16816, Mod::k16832, Mod::k16864});
  uint32_t m_tiles = shape <= 1 ? 1 : 2, k_tiles = 0;
  if (nibbles)
    k_tiles = shape == 1 || shape == 3 ? 1 : shape == 4 ? 2 : 0;
  else
    k_tiles = shape == 0 || shape == 2 ? 1 : shape == 3 ? 2 : 0;
  if (shape < 0 || k_tiles == 0) return w.Fail("an unknown matrix shape for this type");
  SetField(w.out, kTypeA, static_cast<uint32_t>(types[0]));
  SetField(w.out, kTypeB, static_cast<uint32_t>(types[1]));
  SetField(w.out, kTilesM, m_tiles);
  SetField(w.out, kTilesK, k_tiles);
  SetField(w.out, kOption, saturates ? 1 : 0);
  Operands(w, 2 * m_tiles, m_tiles * k_tiles, k_tiles);
  w.out.run = &RunInteger;
}

void LowerDmma(Lowering& w) {
  const int shape = w.TakeOneOf({Mod::k884, Mod::k8x8x4, Mod::k16x8x4, Mod::k16x8x8, Mod::k16x8x16});
  if (shape < 0) return w.Fail("an unknown matrix shape");
  const uint32_t m_tiles = shape <= 1 ? 1 : 2;
  const uint32_t k_tiles = shape <= 2 ? 1 : shape == 3 ? 2 : 4;
  SetField(w.out, kTilesM, m_tiles);
  SetField(w.out, kTilesK, k_tiles);
  Operands(w, 4 * m_tiles, 2 * m_tiles * k_tiles, 2 * k_tiles);
  w.out.run = &RunDouble;
}

}  // namespace heddle::emulator
