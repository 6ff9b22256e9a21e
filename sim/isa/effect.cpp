#include "sim/isa/instruction.h"
#include "sim/isa/special_registers.h"

namespace heddle::isa {
namespace {

bool HasIndexedConstant(const Instruction& instruction) {
  for (size_t i = 0; i < instruction.operand_count; ++i) {
    const Operand& operand = instruction.operands[i];
    if (operand.kind == OperandKind::kConstant &&
        (operand.uniform_reg < kNoRegister || operand.Has(kBindless)))
      return true;
  }
  return false;
}

bool HasAddress(const Instruction& instruction) {
  for (size_t i = 0; i < instruction.operand_count; ++i)
    if (instruction.operands[i].kind == OperandKind::kMemory) return true;
  return false;
}

bool ReadsVolatile(const Instruction& instruction) {
  for (size_t i = 0; i < instruction.operand_count; ++i) {
    const Operand& operand = instruction.operands[i];
    if (operand.kind == OperandKind::kSpecialRegister &&
        IsVolatile(static_cast<SpecialRegister>(operand.value)))
      return true;
  }
  return false;
}

}  // namespace

Effect EffectOf(const Instruction& instruction) {
  switch (instruction.op) {
    // Constants at a fixed address never change while the kernel runs.
    case Op::kLDC:
    case Op::kULDC:
    case Op::kLDCU:
      return HasIndexedConstant(instruction) ? Effect::kMemory : Effect::kLocal;

    case Op::kLD:
    case Op::kLDG:
    case Op::kLDGMC:
    case Op::kLDGSTS:
    case Op::kLDL:
    case Op::kLDS:
    case Op::kLDSM:
    case Op::kST:
    case Op::kSTAS:
    case Op::kSTG:
    case Op::kSTL:
    case Op::kSTS:
    case Op::kSTSM:
    case Op::kATOM:
    case Op::kATOMG:
    case Op::kATOMS:
    case Op::kRED:
    case Op::kREDAS:
    case Op::kREDG:
    case Op::kREDS:
    case Op::kSUATOM:
    case Op::kSULD:
    case Op::kSURED:
    case Op::kSUST:
    case Op::kTEX:
    case Op::kTLD:
    case Op::kUBLKCP:
    case Op::kUBLKPF:
    case Op::kUBLKRED:
    case Op::kUMEMSETS:
    case Op::kUTMALDG:
    case Op::kUTMAPF:
    case Op::kUTMAREDG:
    case Op::kUTMASTG:
    // Matrix operands in shared or tensor memory, read and written asynchronously.
    case Op::kBGMMA:
    case Op::kHGMMA:
    case Op::kIGMMA:
    case Op::kQGMMA:
    case Op::kLDTM:
    case Op::kSTTM:
    case Op::kUTCCP:
    case Op::kUTCHMMA:
    case Op::kUTCIMMA:
    case Op::kUTCOMMA:
    case Op::kUTCQMMA:
      return Effect::kMemory;

    // Without an address they invalidate whole caches.
    case Op::kCCTL:
    case Op::kCCTLL:
    case Op::kCCTLT:
      return HasAddress(instruction) ? Effect::kMemory : Effect::kSync;

    case Op::kBPT:
    case Op::kBRA:
    case Op::kBREAK:  // may complete the set that other lanes wait for
    case Op::kBRX:
    case Op::kBRXU:
    case Op::kBSYNC:
    case Op::kCALL:
    case Op::kENDCOLLECTIVE:
    case Op::kEXIT:
    case Op::kJMP:
    case Op::kJMX:
    case Op::kJMXU:
    case Op::kKILL:
    case Op::kRET:
    case Op::kWARPSYNC:
    case Op::kYIELD:
      return Effect::kControl;

    case Op::kACQBULK:
    case Op::kARRIVES:
    case Op::kB2R:
    case Op::kBAR:
    case Op::kCGAERRBAR:
    case Op::kDEPBAR:  // loads that are performed at the L2 slice may be among those it waits for
    case Op::kERRBAR:
    case Op::kFENCE:
    case Op::kMEMBAR:
    case Op::kNANOSLEEP:
    case Op::kPMTRIG:
    case Op::kPREEXIT:
    case Op::kR2B:
    case Op::kSETCTAID:
    case Op::kSETLMEMBASE:
    case Op::kSYNCS:
    case Op::kUCGABAR_ARV:
    case Op::kUCGABAR_WAIT:
    case Op::kUGETNEXTWORKID:
    case Op::kUSETMAXREG:
    case Op::kUSETSHMSZ:
    case Op::kUSETSMEMSZ:
    case Op::kUTCATOMSWS:
    case Op::kUTCBAR:
    case Op::kUTMACCTL:
    case Op::kUTMACMDFLUSH:
    case Op::kUVIRTCOUNT:
    case Op::kWARPGROUP:
      return Effect::kSync;

    case Op::kCS2R:
    case Op::kCS2UR:
    case Op::kS2R:
    case Op::kS2UR:
      return ReadsVolatile(instruction) ? Effect::kSync : Effect::kLocal;

    default:
      return Effect::kLocal;
  }
}

}  // namespace heddle::isa
