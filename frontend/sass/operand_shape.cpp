#include "frontend/sass/operand_shape.h"

#include <span>

#include "frontend/sass/operand_width.h"

namespace heddle::sass {
namespace {

using isa::Instruction;
using isa::Op;
using isa::Operand;
using isa::OperandKind;

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
    case Op::kREDAS:
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

}  // namespace

void CompleteOperands(Instruction& instruction) {
  const size_t destinations = DestinationCount(instruction);
  for (size_t i = 0; i < destinations; ++i) instruction.operands[i].is_destination = true;
  SetWidths(instruction);
}

}  // namespace heddle::sass
