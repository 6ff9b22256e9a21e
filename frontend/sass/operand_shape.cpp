#include "frontend/sass/operand_shape.h"

#include <algorithm>
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

bool IsPredicate(const Operand& operand) {
  return operand.kind == OperandKind::kPredicate || operand.kind == OperandKind::kUniformPredicate ||
         operand.kind == OperandKind::kAllPredicates;
}

// ---- Destinations
// ------------------------------------------------------------------------------------------

enum class Destinations {
  kNone,
  kPredicatesThenRegister,  // LOP3 P0, R1, ...; SHFL PT, R1, ...; most have no predicate
  kRegisterThenPredicates,  // IADD3 R1, P0, P1, ...
  kPredicates,              // ISETP P0, PT, ...
  kVote,                    // VOTE R1, P0, P1 or VOTE P0, P1: the last is the source
  kRegisters,               // every register in front of the address
};

Destinations DestinationsOf(const Instruction& instruction) {
  switch (instruction.op) {
    case Op::kACQBULK:
    case Op::kARRIVES:
    case Op::kBAR:
    case Op::kBPT:
    case Op::kBRA:
    case Op::kBREAK:
    case Op::kBRX:
    case Op::kBRXU:
    case Op::kBSYNC:
    case Op::kCALL:
    case Op::kCCTL:
    case Op::kCCTLL:
    case Op::kCCTLT:
    case Op::kDEPBAR:
    case Op::kEXIT:
    case Op::kJMP:
    case Op::kJMX:
    case Op::kJMXU:
    case Op::kKILL:
    case Op::kLDGDEPBAR:
    case Op::kLDGSTS:
    case Op::kMEMBAR:
    case Op::kNANOSLEEP:
    case Op::kPMTRIG:
    case Op::kR2B:
    case Op::kRED:
    case Op::kREDG:
    case Op::kREDS:
    case Op::kRET:
    case Op::kSETCTAID:
    case Op::kSETLMEMBASE:
    case Op::kST:
    case Op::kSTAS:
    case Op::kSTG:
    case Op::kSTL:
    case Op::kSTS:
    case Op::kSTSM:
    case Op::kSTTM:
    case Op::kSURED:
    case Op::kSUST:
    case Op::kUBLKCP:
    case Op::kUBLKPF:
    case Op::kUBLKRED:
    case Op::kUGETNEXTWORKID:
    case Op::kUTCBAR:
    case Op::kUTCCP:
    case Op::kUTCHMMA:
    case Op::kUTCIMMA:
    case Op::kUTCOMMA:
    case Op::kUTCQMMA:
    case Op::kUTMACCTL:
    case Op::kUTMALDG:
    case Op::kUTMAPF:
    case Op::kUTMAREDG:
    case Op::kUTMASTG:
    case Op::kUVIRTCOUNT:
    case Op::kWARPGROUP:
    case Op::kWARPSYNC:
      return Destinations::kNone;

    case Op::kCSETP:
    case Op::kDSETP:
    case Op::kFCHK:
    case Op::kFSETP:
    case Op::kHSETP2:
    case Op::kISETP:
    case Op::kPLOP3:
    case Op::kPSETP:
    case Op::kR2P:
    case Op::kUFSETP:
    case Op::kUISETP:
    case Op::kUPLOP3:
    case Op::kUPSETP:
    case Op::kUR2UP:
      return Destinations::kPredicates;

    case Op::kB2R:
    case Op::kIADD:
    case Op::kIADD3:
    case Op::kIMAD:
    case Op::kLEA:
    case Op::kSGXT:
    case Op::kUIADD:
    case Op::kUIADD3:
    case Op::kUIMAD:
    case Op::kULEA:
    case Op::kUVIMNMX:
    case Op::kVIMNMX:
      return Destinations::kRegisterThenPredicates;

    case Op::kVOTE:
    case Op::kVOTEU:
      return Destinations::kVote;

    case Op::kLD:
    case Op::kLDG:
      return Destinations::kRegisters;

    default:
      return Destinations::kPredicatesThenRegister;
  }
}

size_t CountLeading(std::span<const Operand> operands, size_t from, size_t limit,
                    bool (*matches)(const Operand&)) {
  size_t count = 0;
  while (count < limit && from + count < operands.size() && matches(operands[from + count])) ++count;
  return count;
}

size_t DestinationCount(const Instruction& instruction) {
  const std::span<const Operand> operands(instruction.operands.data(), instruction.operand_count);
  switch (DestinationsOf(instruction)) {
    case Destinations::kNone:
      return 0;
    case Destinations::kPredicates: {
      // FCHK has one, PLOP3 and the comparisons two in front of their sources.
      const bool single =
          instruction.op == Op::kFCHK || instruction.op == Op::kR2P || instruction.op == Op::kUR2UP;
      return CountLeading(operands, 0, single ? 1 : 2, IsPredicate);
    }
    case Destinations::kRegisterThenPredicates: {
      const size_t registers = CountLeading(operands, 0, 1, IsRegister);
      return registers == 0 ? 0 : 1 + CountLeading(operands, 1, 2, IsPredicate);
    }
    case Destinations::kVote:
      return operands.empty() ? 0 : operands.size() - 1;
    case Destinations::kRegisters: {
      const size_t predicates = CountLeading(operands, 0, 1, IsPredicate);
      return predicates + CountLeading(operands, predicates, 2, IsRegister);
    }
    case Destinations::kPredicatesThenRegister:
      break;
  }
  size_t count = CountLeading(operands, 0, 2, IsPredicate);
  if (count < operands.size() &&
      (IsRegister(operands[count]) || (count == 0 && (operands[0].kind == OperandKind::kConvergenceBarrier ||
                                                      operands[0].kind == OperandKind::kProgramCounter))))
    ++count;
  return count;
}

// ---- Widths
// ------------------------------------------------------------------------------------------------

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
  if (instruction.Has(Mod::k256)) return 4;  // in two operands
  if (instruction.Has(Mod::k128)) return 4;
  return instruction.Has(Mod::k64) || instruction.Has(Mod::kF64) ? 2 : 1;
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

void SetAtomicWidths(Instruction& instruction) { SetRegisterWidths(instruction, AccessWidth(instruction)); }

// Registers of an address: pairs where .E stands for 64 bits, and the uniform lists of TMA.
void SetAddressWidths(Instruction& instruction) {
  const bool extended = instruction.Has(Mod::kE) && instruction.op != Op::kQSPC;
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
  switch (instruction.op) {
    case Op::kUTMALDG:
      first.width = static_cast<uint8_t>(2 + TmaDimensions(instruction));
      break;
    case Op::kUTMAPF:
      first.width = static_cast<uint8_t>(2 + TmaDimensions(instruction));
      break;
    case Op::kUTMASTG:
    case Op::kUTMAREDG:
      first.width = static_cast<uint8_t>(1 + TmaDimensions(instruction));
      break;
    case Op::kUBLKCP:
      first.width = 2;
      break;
    default:
      first.width = 2;
      return;
  }
  second.width = 2;
}

void SetWidths(uint32_t sm_version, Instruction& instruction) {
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
      break;
    case Op::kATOM:
    case Op::kATOMG:
    case Op::kATOMS:
    case Op::kRED:
    case Op::kREDG:
    case Op::kREDS:
      SetAtomicWidths(instruction);
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
  static_cast<void>(sm_version);
}

}  // namespace

void CompleteOperands(uint32_t sm_version, Instruction& instruction) {
  const size_t destinations = DestinationCount(instruction);
  for (size_t i = 0; i < destinations; ++i) instruction.operands[i].is_destination = true;
  SetAddressWidths(instruction);
  SetWidths(sm_version, instruction);
}

}  // namespace heddle::sass
