// Effects, registers and text of instruction records.
#include <gtest/gtest.h>

#include "sim/isa/instruction.h"
#include "sim/isa/registers.h"
#include "sim/isa/special_registers.h"

namespace heddle::isa {
namespace {

Instruction Make(Op op, std::initializer_list<Operand> operands = {}) {
  Instruction instruction;
  instruction.op = op;
  for (const Operand& operand : operands) instruction.operands[instruction.operand_count++] = operand;
  return instruction;
}

Operand Of(OperandKind kind, uint8_t reg = kNoRegister, int64_t value = 0) {
  Operand operand;
  operand.kind = kind;
  operand.reg = reg;
  operand.value = value;
  return operand;
}

TEST(SpecialRegisters, NamesRoundTrip) {
  for (int i = 0; i < 256; ++i) {
    const auto reg = static_cast<SpecialRegister>(i);
    EXPECT_EQ(SpecialRegisterFromName(Name(reg)), reg);
  }
  EXPECT_EQ(SpecialRegisterFromName("SR_TID.X"), SpecialRegister::kTID_X);
  EXPECT_EQ(SpecialRegisterFromName("SR300"), std::nullopt);
  EXPECT_EQ(SpecialRegisterFromName("SR_NONSENSE"), std::nullopt);
}

TEST(EffectOf, SeparatesWhatTheTimingModelMustSee) {
  EXPECT_EQ(EffectOf(Make(Op::kFFMA)), Effect::kLocal);
  EXPECT_EQ(EffectOf(Make(Op::kHMMA)), Effect::kLocal);
  EXPECT_EQ(EffectOf(Make(Op::kSHFL)), Effect::kLocal);
  EXPECT_EQ(EffectOf(Make(Op::kBSSY)), Effect::kLocal);
  EXPECT_EQ(EffectOf(Make(Op::kLDGDEPBAR)), Effect::kLocal);
  EXPECT_EQ(EffectOf(Make(Op::kLDG)), Effect::kMemory);
  EXPECT_EQ(EffectOf(Make(Op::kHGMMA)), Effect::kMemory);
  EXPECT_EQ(EffectOf(Make(Op::kBRA)), Effect::kControl);
  EXPECT_EQ(EffectOf(Make(Op::kBSYNC)), Effect::kControl);
  EXPECT_EQ(EffectOf(Make(Op::kBAR)), Effect::kSync);
  EXPECT_EQ(EffectOf(Make(Op::kSYNCS)), Effect::kSync);
}

TEST(EffectOf, ClocksAreSyncOtherSpecialRegistersLocal) {
  const auto read = [](Op op, SpecialRegister reg) {
    return EffectOf(Make(op, {Of(OperandKind::kRegister, 4),
                              Of(OperandKind::kSpecialRegister, kNoRegister, static_cast<int64_t>(reg))}));
  };
  EXPECT_EQ(read(Op::kS2R, SpecialRegister::kTID_X), Effect::kLocal);
  EXPECT_EQ(read(Op::kCS2R, SpecialRegister::kZ), Effect::kLocal);
  EXPECT_EQ(read(Op::kCS2R, SpecialRegister::kCLOCKLO), Effect::kSync);
  EXPECT_EQ(read(Op::kS2UR, SpecialRegister::kGLOBALTIMERLO), Effect::kSync);
}

TEST(RegistersOf, GuardBaseUniformAndDescriptor) {
  Operand address = Of(OperandKind::kMemory, 2);
  address.width = 2;
  address.uniform_reg = 10;
  address.descriptor = 6;
  Operand data = Of(OperandKind::kRegister, 8);
  data.width = 4;
  Instruction store = Make(Op::kSTG, {address, data});
  store.guard = 3;
  const RegisterUse use = RegistersOf(store);
  EXPECT_EQ(use.reads.r.to_ulong(), 0b1111'0000'1100u);
  EXPECT_EQ(use.reads.ur.to_string().find('1'), 128u - 1 - 10);
  EXPECT_EQ(use.reads.ur.count(), 3u);  // UR6, UR7, UR10
  EXPECT_EQ(use.reads.p.to_ulong(), 0b1000u);
  EXPECT_TRUE(use.writes.r.none());
}

TEST(RegistersOf, WidthStopsAtTheLastRegister) {
  Operand data = Of(OperandKind::kRegister, 253);
  data.width = 4;
  EXPECT_EQ(RegistersOf(Make(Op::kSTS, {data})).reads.r.count(), 1u);
  Operand uniform = Of(OperandKind::kUniformRegister, 126);
  uniform.width = 4;
  EXPECT_EQ(RegistersOf(Make(Op::kUMOV, {uniform})).reads.ur.count(), 2u);
}

TEST(RegistersOf, BarrierIsReadAndWrittenByBreak) {
  const RegisterUse use = RegistersOf(Make(Op::kBREAK, {Of(OperandKind::kConvergenceBarrier, 3)}));
  EXPECT_TRUE(use.reads.b.test(3));
  EXPECT_TRUE(use.writes.b.test(3));
}

TEST(ToString, NegativeOffsetsFlagsAndGuards) {
  Operand address = Of(OperandKind::kMemory, 2, -16);
  address.flags = kAddress64;
  address.descriptor = 6;
  Operand data = Of(OperandKind::kRegister, 255);
  Instruction store = Make(Op::kSTG, {address, data});
  store.guard = 1;
  store.guard_negated = true;
  store.guard_uniform = true;
  EXPECT_EQ(ToString(store), "@!UP1 STG desc[UR6][R2.64+-0x10], RZ");
  Operand negated = Of(OperandKind::kRegister, 4);
  negated.flags = kNegate | kAbsolute | kReuse;
  Operand predicate = Of(OperandKind::kPredicate, kTruePredicate);
  predicate.flags = kInvert;
  EXPECT_EQ(ToString(Make(Op::kFMNMX, {negated, predicate})), "FMNMX -|R4|.reuse, !PT");
}

}  // namespace
}  // namespace heddle::isa
