#include "frontend/sass/operand_width.h"

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <span>

#include "frontend/sass/matrix_shape.h"

namespace heddle::sass {
namespace {

using isa::Instruction;
using isa::Mod;
using isa::Op;
using isa::Operand;
using isa::OperandKind;

std::span<Operand> OperandsOf(Instruction& instruction) {
  return {instruction.operands.data(), instruction.operand_count};
}

bool IsRegister(const Operand& operand) {
  return operand.kind == OperandKind::kRegister || operand.kind == OperandKind::kUniformRegister;
}

void SetRegisterWidths(Instruction& instruction, uint8_t width) {
  for (Operand& operand : OperandsOf(instruction))
    if (IsRegister(operand)) operand.width = width;
}

void SetDestinationWidth(Instruction& instruction, uint8_t width) {
  for (Operand& operand : OperandsOf(instruction))
    if (IsRegister(operand) && operand.is_destination) operand.width = width;
}

void SetSourceWidth(Instruction& instruction, uint8_t width) {
  for (Operand& operand : OperandsOf(instruction))
    if (IsRegister(operand) && !operand.is_destination) operand.width = width;
}

// The addend of a multiply-add: the third source, where it is a register.
void SetAddendWidth(Instruction& instruction, uint8_t width) {
  size_t sources = 0;
  for (Operand& operand : OperandsOf(instruction)) {
    if (operand.is_destination || ++sources < 3) continue;
    if (IsRegister(operand)) operand.width = width;
    return;
  }
}

// Registers of one access of a load or a store.
uint8_t AccessWidth(const Instruction& instruction) {
  const auto has_any = [&instruction](std::initializer_list<Mod> mods) {
    return std::any_of(mods.begin(), mods.end(), [&](Mod mod) { return instruction.Has(mod); });
  };
  // 256 bits lie in two operands.
  if (has_any({Mod::k256, Mod::k128, Mod::kF32x4, Mod::kF16x8, Mod::kBF16x8})) return 4;
  return has_any({Mod::k64, Mod::kS64, Mod::kU64, Mod::kF64, Mod::kF32x2, Mod::kF16x4, Mod::kBF16x4}) ? 2 : 1;
}

// Matrices of LDSM and STSM.
uint8_t MatrixCount(const Instruction& instruction) {
  if (instruction.Has(Mod::k4)) return 4;
  return instruction.Has(Mod::k2) ? 2 : 1;
}

bool Is64BitInteger(const Instruction& instruction) {
  return instruction.Has(Mod::kS64) || instruction.Has(Mod::kU64) || instruction.Has(Mod::k64);
}

// F2F.F64.F32, I2F.F64.S32, F2I.U64.F64.TRUNC: the type of the result comes first, each only where it is not
// the default.
void SetConversionWidths(Instruction& instruction) {
  const bool wide_integer = instruction.Has(Mod::kS64) || instruction.Has(Mod::kU64);
  const bool has_double = instruction.Has(Mod::kF64);
  switch (instruction.op) {
    case Op::kF2F: {
      const bool to_double = instruction.modifier_count > 0 && instruction.modifiers[0] == Mod::kF64;
      const bool from_double = has_double && (!to_double || instruction.modifiers[1] == Mod::kF64);
      if (to_double) SetDestinationWidth(instruction, 2);
      if (from_double) SetSourceWidth(instruction, 2);
      break;
    }
    case Op::kFRND:
      if (has_double) SetRegisterWidths(instruction, 2);
      break;
    case Op::kF2I:
      if (wide_integer) SetDestinationWidth(instruction, 2);
      if (has_double) SetSourceWidth(instruction, 2);
      break;
    default:  // I2F
      if (has_double) SetDestinationWidth(instruction, 2);
      if (wide_integer) SetSourceWidth(instruction, 2);
  }
}

void SetPackedFloatWidths(Instruction& instruction) {
  for (Operand& operand : OperandsOf(instruction))
    if (IsRegister(operand) && (operand.is_destination || operand.Has(isa::kPackedF32))) operand.width = 2;
}

// Behind LDTM and STTM: rows x columns of 32 bits, .x1 to .x128 times the shape's own registers.
uint8_t TensorMemoryWidth(const Instruction& instruction) {
  if (instruction.Has(Mod::kx128)) return 128;
  if (instruction.Has(Mod::kx64)) return 64;
  if (instruction.Has(Mod::kx32)) return 32;
  if (instruction.Has(Mod::kx16)) return 16;
  if (instruction.Has(Mod::kx8)) return 8;
  if (instruction.Has(Mod::kx4)) return 4;
  return instruction.Has(Mod::kx2) ? 2 : 1;
}

// Registers of an address: pairs where .E stands for 64 bits, and the uniform lists of TMA.
void SetAddressWidths(Instruction& instruction) {
  const bool extended = instruction.Has(Mod::kE);
  bool first = true;
  for (Operand& operand : OperandsOf(instruction)) {
    if (operand.kind == OperandKind::kConstant) {
      operand.width = 1;
    } else if (operand.kind == OperandKind::kMemory) {
      // LDGSTS: shared address, then global address.
      const bool is_global = extended && !(instruction.op == Op::kLDGSTS && first);
      if (is_global && !operand.Has(isa::kUnsigned32) && operand.reg != isa::kNoRegister)
        operand.flags |= isa::kAddress64;
      if (is_global && operand.uniform_reg != isa::kNoRegister) operand.flags |= isa::kUniform64;
      if (operand.reg != isa::kNoRegister)
        operand.width = operand.Has(isa::kAddress64) ? 2 : 1;
      else
        operand.width = operand.Has(isa::kUniform64) ? 2 : 1;
      first = false;
    } else if (operand.kind == OperandKind::kDescriptor || operand.kind == OperandKind::kMatrixDescriptor) {
      operand.width = 2;
    }
  }
}

uint8_t TmaDimensions(const Instruction& instruction) {
  if (instruction.Has(Mod::kGATHER4)) return 5;  // a column and four rows
  if (instruction.Has(Mod::k5D)) return 5;
  if (instruction.Has(Mod::k4D)) return 4;
  if (instruction.Has(Mod::k3D)) return 3;
  return instruction.Has(Mod::k2D) ? 2 : 1;
}

// Lists of uniform registers behind the brackets of the asynchronous copies.
void SetBulkCopyWidths(Instruction& instruction) {
  Operand& first = instruction.operands[0];
  Operand& second = instruction.operands[1];
  const uint8_t dimensions = TmaDimensions(instruction);
  first.width = 2;
  second.width = 2;  // the address of a tensor map, or a global address
  switch (instruction.op) {
    case Op::kUTMALDG:
      first.width = static_cast<uint8_t>(2 + dimensions);
      break;  // shared address, mbarrier
    case Op::kUTMASTG:
    case Op::kUTMAREDG:
      first.width = static_cast<uint8_t>(1 + dimensions);
      break;  // shared address
    case Op::kUTMAPF:
      first.width = dimensions;
      break;
    case Op::kUBLKRED:
    case Op::kUBLKCP:
      // .G.S: from shared to global memory. .S.G: shared address and mbarrier, then the global address.
      if (instruction.modifiers[0] == Mod::kG) second.width = 1;
      break;
    default:
      break;
  }
}

// Loads of 256 bits have two destinations of four registers; a mask of words, the last operand, thins them out.
void SetSplitLoadWidths(Instruction& instruction) {
  if (instruction.operand_count == 0) return;
  const Operand& last = instruction.operands[instruction.operand_count - size_t{1}];
  if (!instruction.Has(Mod::k256) || last.kind != OperandKind::kImmediate) return;
  const auto words = static_cast<uint8_t>(std::popcount(static_cast<uint64_t>(last.value)));
  SetDestinationWidth(instruction, std::clamp<uint8_t>(words, 1, 4));
}

// Behind the instruction descriptor: a mask of output lanes in four or eight registers, or the addresses of the scales.
void SetTensorCoreWidths(Instruction& instruction) {
  bool behind_descriptor = false;
  for (Operand& operand : OperandsOf(instruction)) {
    if (operand.kind == OperandKind::kInstructionDescriptor) behind_descriptor = true;
    if (!behind_descriptor) continue;
    if (operand.kind == OperandKind::kUniformRegister) operand.width = instruction.Has(Mod::k2CTA) ? 8 : 4;
    if (operand.kind == OperandKind::kTensorMemory) operand.width = 2;
  }
}

void SetOpcodeWidths(Instruction& instruction) {
  switch (instruction.op) {
    case Op::kLD:
    case Op::kLDG:
    case Op::kLDL:
    case Op::kLDS:
    case Op::kLDC:
    case Op::kLDCU:
    case Op::kULDC:
    case Op::kST:
    case Op::kSTG:
    case Op::kSTL:
    case Op::kSTS:
    case Op::kLDGMC:
      SetRegisterWidths(instruction, AccessWidth(instruction));
      SetSplitLoadWidths(instruction);
      break;
    case Op::kATOM:
    case Op::kATOMG:
    case Op::kATOMS:
    case Op::kRED:
    case Op::kREDAS:
    case Op::kREDG:
    case Op::kREDS:
      SetRegisterWidths(instruction, AccessWidth(instruction));
      break;
    case Op::kLDSM:
    case Op::kSTSM:
      SetRegisterWidths(instruction, MatrixCount(instruction));
      break;
    case Op::kLDTM:
    case Op::kSTTM:
      SetRegisterWidths(instruction, TensorMemoryWidth(instruction));
      break;

    case Op::kDADD:
    case Op::kDFMA:
    case Op::kDMNMX:
    case Op::kDMUL:
    case Op::kDSETP:
      SetRegisterWidths(instruction, 2);
      break;
    case Op::kF2F:
    case Op::kF2I:
    case Op::kFRND:
    case Op::kI2F:
      SetConversionWidths(instruction);
      break;
    case Op::kFADD2:
    case Op::kFFMA2:
    case Op::kFMUL2:
      SetPackedFloatWidths(instruction);
      break;

    case Op::kIMAD:
    case Op::kUIMAD:
      if (instruction.Has(Mod::kWIDE)) SetDestinationWidth(instruction, 2);
      if (instruction.Has(Mod::kWIDE) || instruction.Has(Mod::kHI)) SetAddendWidth(instruction, 2);
      break;
    case Op::kIADD:
    case Op::kIADD3:
    case Op::kIMNMX:
    case Op::kISETP:
    case Op::kMOV:
    case Op::kSEL:
    case Op::kUIADD3:
    case Op::kUISETP:
    case Op::kUMOV:
    case Op::kUSEL:
      if (Is64BitInteger(instruction)) SetRegisterWidths(instruction, 2);
      break;
    case Op::kMATCH:
      if (instruction.Has(Mod::kU64)) SetSourceWidth(instruction, 2);
      break;
    case Op::kCS2R:
    case Op::kCS2UR:
      if (!instruction.Has(Mod::k32)) SetDestinationWidth(instruction, 2);
      break;

    case Op::kBRX:
    case Op::kBRXU:
    case Op::kCALL:
    case Op::kJMX:
    case Op::kJMXU:
    case Op::kLEPC:
    case Op::kRET:
      SetRegisterWidths(instruction, 2);
      break;
    case Op::kBMOV:
      if (instruction.Has(Mod::k64)) SetRegisterWidths(instruction, 2);
      break;
    case Op::kSYNCS:
      if (instruction.Has(Mod::kEXCH))
        SetRegisterWidths(instruction, 2);
      else
        SetDestinationWidth(instruction, 2);
      break;

    case Op::kBGMMA:
    case Op::kBMMA:
    case Op::kDMMA:
    case Op::kHGMMA:
    case Op::kHMMA:
    case Op::kIGMMA:
    case Op::kIMMA:
    case Op::kOMMA:
    case Op::kQGMMA:
    case Op::kQMMA:
      SetMatrixWidths(instruction);
      break;
    case Op::kUTCHMMA:
    case Op::kUTCIMMA:
    case Op::kUTCOMMA:
    case Op::kUTCQMMA:
      SetTensorCoreWidths(instruction);
      break;

    case Op::kUBLKCP:
    case Op::kUBLKPF:
    case Op::kUBLKRED:
    case Op::kUTMACCTL:
    case Op::kUTMALDG:
    case Op::kUTMAPF:
    case Op::kUTMAREDG:
    case Op::kUTMASTG:
      SetBulkCopyWidths(instruction);
      break;
    default:
      break;
  }
}

}  // namespace

void SetWidths(Instruction& instruction) {
  SetAddressWidths(instruction);
  SetOpcodeWidths(instruction);
}

}  // namespace heddle::sass
