// Do handlers compute what SASS means, on values derived by hand? (The opcode suite compares far more against the host,
// where nvcc is there.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/isa/special_registers.h"
#include "tests/support/warp_fixture.h"

namespace heddle::emulator::test {
namespace {

using isa::Mod;
using isa::Op;

// Runs one instruction with R1, R2, R3 (and R5 above R3 as R4... pairs) set in lane 0.
struct One {
  explicit One(isa::Instruction instruction) : warp({std::move(instruction), Make(Op::kEXIT, {}, {}, 0)}) {}
  One& Set(uint8_t reg, uint32_t value) {
    warp.Reg(reg).lane[0] = value;
    return *this;
  }
  uint32_t Get(uint8_t reg) {
    warp.Ahead();
    return warp.Reg(reg).lane[0];
  }
  WarpFixture warp;
};

TEST(Integer, Iadd3CountsBothCarries) {
  // 3 * 0xffffffff = 0x2fffffffd: two carries.
  One one(Make(Op::kIADD3, {}, {R(9), P(0), P(1), R(1), R(2), R(3)}, 3));
  EXPECT_EQ(one.Set(1, ~0u).Set(2, ~0u).Set(3, ~0u).Get(9), 0xfffffffdu);
  EXPECT_EQ(one.warp.Pred(0) & 1, 1u);
  EXPECT_EQ(one.warp.Pred(1) & 1, 1u);
}

TEST(Integer, NegatedZeroGivesACarry) {
  // 5 - 0 = 5 + ~0 + 1 = 0x100000005: no borrow.
  One one(Make(Op::kIADD3, {}, {R(9), P(0), R(1), R(2, 1, isa::kNegate), R(kRz)}, 2));
  EXPECT_EQ(one.Set(1, 5).Get(9), 5u);
  EXPECT_EQ(one.warp.Pred(0) & 1, 1u);
}

TEST(Integer, ExtendedNegationIsComplement) {
  // .X with carry: 7 + ~2 + 1 = 5.
  One one(
      Make(Op::kIADD3, {Mod::kX}, {R(9), R(1), R(2, 1, isa::kInvert), R(kRz), P(0), P(kPt, isa::kInvert)}));
  one.warp.Pred(0) = 1;
  EXPECT_EQ(one.Set(1, 7).Set(2, 2).Get(9), 5u);
}

TEST(Integer, ImadHighWritesTheCarryOfThe64BitSum) {
  // 0xffffffff^2 = 0xfffffffe00000001; adding 0x1ffffffff = 0x1_00000000_00000000: high word 0, carry 1.
  One one(Make(Op::kIMAD, {Mod::kHI, Mod::kU32}, {R(9), P(0), R(1), R(2), R(4, 2)}, 2));
  EXPECT_EQ(one.Set(1, ~0u).Set(2, ~0u).Set(4, ~0u).Set(5, 1).Get(9), 0u);
  EXPECT_EQ(one.warp.Pred(0) & 1, 1u);
}

TEST(Integer, ImadWideIsSignedUnlessU32) {
  One is_signed(Make(Op::kIMAD, {Mod::kWIDE}, {R(8, 2), R(1), R(2), R(kRz, 2)}));
  EXPECT_EQ(is_signed.Set(1, ~0u).Set(2, 2).Get(9), ~0u);  // -2
  One is_unsigned(Make(Op::kIMAD, {Mod::kWIDE, Mod::kU32}, {R(8, 2), R(1), R(2), R(kRz, 2)}));
  EXPECT_EQ(is_unsigned.Set(1, ~0u).Set(2, 2).Get(9), 1u);  // 0x1fffffffe
}

TEST(Integer, LeaHighTakesTheUpperWordOfThePair) {
  // (0x00000001:0x80000000) << 4 = 0x18_00000000; + 5.
  One one(Make(Op::kLEA, {Mod::kHI}, {R(9), R(1), R(2), R(3), Imm(4)}));
  EXPECT_EQ(one.Set(1, 0x80000000).Set(2, 5).Set(3, 1).Get(9), 0x1du);
}

TEST(Logic, Lop3IndexesItsTableByABC) {
  // a & ~b | c for a = 1100, b = 1010, c = 0001: 0100 | 0001. Table: bits 1, 3, 4, 5, 7 = 0xba.
  One one(Make(Op::kLOP3, {Mod::kLUT}, {R(9), R(1), R(2), R(3), Imm(0xba), P(kPt, isa::kInvert)}));
  EXPECT_EQ(one.Set(1, 0xc).Set(2, 0xa).Set(3, 0x1).Get(9), 0x5u);
}

TEST(Logic, ShiftsClampUnlessTheyWrap) {
  One clamped(Make(Op::kSHF, {Mod::kL, Mod::kU32}, {R(9), R(1), R(2), R(kRz)}));
  EXPECT_EQ(clamped.Set(1, 1).Set(2, 33).Get(9), 0u);
  One wrapped(Make(Op::kSHF, {Mod::kL, Mod::kW, Mod::kU32}, {R(9), R(1), R(2), R(kRz)}));
  EXPECT_EQ(wrapped.Set(1, 1).Set(2, 33).Get(9), 2u);
}

TEST(Logic, PrmtReplicatesSigns) {
  One one(Make(Op::kPRMT, {}, {R(9), R(1), Imm(0x9910), R(kRz)}));
  EXPECT_EQ(one.Set(1, 0x1234f678).Get(9), 0xfffff678u);
}

TEST(Predicate, ExtendedComparisonFallsBackToTheLowWords) {
  One one(Make(Op::kISETP, {Mod::kGE, Mod::kAND, Mod::kEX}, {P(0), P(1), R(1), R(2), P(kPt), P(2)}, 2));
  one.warp.Pred(2) = 0;  // low words: less
  one.Set(1, 5).Set(2, 5).Get(9);
  EXPECT_EQ(one.warp.Pred(0) & 1, 0u);
  EXPECT_EQ(one.warp.Pred(1) & 1, 1u);
}

TEST(Predicate, P2rAndR2pMoveChosenBits) {
  isa::Operand all;
  all.kind = isa::OperandKind::kAllPredicates;
  One one(Make(Op::kP2R, {}, {R(9), all, R(1), Imm(0x7)}));
  one.warp.Pred(0) = 1;
  one.warp.Pred(2) = 1;
  one.warp.Pred(3) = 1;  // not chosen
  EXPECT_EQ(one.Set(1, 0xf0).Get(9), 0xf5u);
  One back(Make(Op::kR2P, {}, {all, R(1), Imm(0x3)}, 1));
  back.warp.Pred(2) = 1;
  back.Set(1, 0x2).Get(9);
  EXPECT_EQ(back.warp.Pred(0) & 1, 0u);
  EXPECT_EQ(back.warp.Pred(1) & 1, 1u);
  EXPECT_EQ(back.warp.Pred(2) & 1, 1u);
}

TEST(Float, DirectedRoundingIsExact) {
  // 1 + 2^-30 lies between 1 and the next float.
  One up(Make(Op::kFADD, {Mod::kRP}, {R(9), R(1), R(2)}));
  EXPECT_EQ(up.Set(1, 0x3f800000).Set(2, 0x30800000).Get(9), 0x3f800001u);
  One down(Make(Op::kFADD, {Mod::kRM}, {R(9), R(1), R(2)}));
  EXPECT_EQ(down.Set(1, 0x3f800000).Set(2, 0x30800000).Get(9), 0x3f800000u);
}

TEST(Float, NansAreCanonicalAndDenormalsFlushOnlyWhenAsked) {
  One nan(Make(Op::kFMUL, {}, {R(9), R(1), R(2)}));
  EXPECT_EQ(nan.Set(1, 0xffc12345).Set(2, 0x3f800000).Get(9), 0x7fffffffu);
  One kept(Make(Op::kFMUL, {}, {R(9), R(1), R(2)}));
  EXPECT_EQ(kept.Set(1, 0x80000005).Set(2, 0x3f800000).Get(9), 0x80000005u);
  One flushed(Make(Op::kFMUL, {Mod::kFTZ}, {R(9), R(1), R(2)}));
  EXPECT_EQ(flushed.Set(1, 0x80000005).Set(2, 0x3f800000).Get(9), 0x80000000u);
}

TEST(Float, MinimumPrefersNumbersAndNegativeZero) {
  One one(Make(Op::kFMNMX, {}, {R(9), R(1), R(2), P(kPt)}));
  EXPECT_EQ(one.Set(1, 0).Set(2, 0x80000000).Get(9), 0x80000000u);
  One nan(Make(Op::kFMNMX, {}, {R(9), R(1), R(2), P(kPt)}));
  EXPECT_EQ(nan.Set(1, 0x7fc00000).Set(2, 0x40000000).Get(9), 0x40000000u);
}

// min.xorsign.abs.f32: the smaller magnitude with the product's sign. ptxas prints the magnitudes' bars on the operands.
TEST(Float, MinimumWithTheProductsSignSeesTheSignsUnderTheBars) {
  const auto minimum = [](uint32_t a, uint32_t b) {
    One one(Make(Op::kFMNMX, {Mod::kXORSIGN}, {R(9), R(1, 1, isa::kAbsolute), R(2), P(kPt)}));
    return one.Set(1, a).Set(2, b).Get(9);
  };
  EXPECT_EQ(minimum(0xc0000000, 0x43e00000), 0xc0000000u);  // -2, 448: -2
  EXPECT_EQ(minimum(0xc4000000, 0x43e00000), 0xc3e00000u);  // -512, 448: -448
  EXPECT_EQ(minimum(0xc4000000, 0xc3e00000), 0x43e00000u);
  One half(
      Make(Op::kHMNMX2, {Mod::kXORSIGN}, {R(9), R(1, 1, isa::kAbsolute), R(2, 1, isa::kAbsolute), P(kPt)}));
  EXPECT_EQ(half.Set(1, 0xc0003c00).Set(2, 0x3c00c400).Get(9), 0xbc00bc00u);  // {1, -2}, {-4, 1}: {-1, -1}
}

TEST(Half, FusedMultiplyAddRoundsOnce) {
  // (1 + 2^-10)(1 + 2^-10) = 1 + 2^-9 + 2^-20; the half below is 1 + 2^-9, and adding 2^-11 makes a tie but for 2^-20.
  One one(Make(Op::kHFMA2, {}, {R(9), R(1), R(2), R(3)}));
  // c = 2^-11 = 0x1000; the exact sum is above the tie between 0x3c02 and 0x3c03.
  EXPECT_EQ(one.Set(1, 0x3c01).Set(2, 0x3c01).Set(3, 0x1000).Get(9), 0x3c03u);
}

TEST(Half, SelectionsChooseHalves) {
  One one(Make(Op::kHADD2, {}, {R(9), R(1, 1, isa::kSelectsHigh), R(2, 1, isa::kNegate)}));
  // Both halves of a are 2.0; b = {1.0, 0.5} negated: 2 - 0.5 = 1.5 low, 2 - 1 = 1 high.
  EXPECT_EQ(one.Set(1, 0x40000000).Set(2, 0x3c003800).Get(9), 0x3c003e00u);
}

TEST(Double, ArithmeticUsesPairs) {
  One one(Make(Op::kDFMA, {}, {R(8, 2), R(2, 2), R(4, 2), R(6, 2)}));
  // 3 * 2 + 1 = 7 = 0x401c0000:0
  EXPECT_EQ(one.Set(3, 0x40080000).Set(5, 0x40000000).Set(7, 0x3ff00000).Get(9), 0x401c0000u);
}

TEST(Convert, FloatToIntegerSaturatesAndNanIsZeroOnlyWithNtz) {
  One big(Make(Op::kF2I, {Mod::kTRUNC, Mod::kNTZ}, {R(9), R(1)}));
  EXPECT_EQ(big.Set(1, 0x7f000000).Get(9), 0x7fffffffu);
  One nan(Make(Op::kF2I, {Mod::kTRUNC, Mod::kNTZ}, {R(9), R(1)}));
  EXPECT_EQ(nan.Set(1, 0x7fc00000).Get(9), 0u);
  One nan64(Make(Op::kF2I, {Mod::kS64, Mod::kTRUNC}, {R(8, 2), R(1)}));
  EXPECT_EQ(nan64.Set(1, 0x7fc00000).Get(9), 0x80000000u);
}

TEST(Convert, EightBitFloatsSaturateAndMerge) {
  // 1000 > 448 = 0x7e; 1.0 = 0x38; the low half of c moves up.
  One one(Make(Op::kF2FP, {Mod::kSATFINITE, Mod::kE4M3, Mod::kF32, Mod::kPACK_AB_MERGE_C},
               {R(9), R(1), R(2), R(3)}));
  EXPECT_EQ(one.Set(1, 0x447a0000).Set(2, 0x3f800000).Set(3, 0xaaaabbbb).Get(9), 0xbbbb7e38u);
}

TEST(Warp, ShuffleReadsTheLaneAndSaysWhetherItWasInRange) {
  WarpFixture warp(
      {Make(Op::kSHFL, {Mod::kUP}, {P(0), R(2), R(1), Imm(1), R(kRz)}, 2), Make(Op::kEXIT, {}, {}, 0)});
  for (uint32_t i = 0; i < kWarpLanes; ++i) warp.Reg(1).lane[i] = 100 + i;
  warp.Ahead();
  EXPECT_EQ(warp.Reg(2).lane[0], 100u);
  EXPECT_EQ(warp.Reg(2).lane[31], 130u);
  EXPECT_EQ(warp.Pred(0), ~1u);
}

TEST(Warp, R2urTakesTheFirstExecutingLaneAndMarksTheOthers) {
  WarpFixture warp({When(1, false, Make(Op::kR2UR, {}, {P(0), Ur(4), R(1)}, 2)), Make(Op::kEXIT, {}, {}, 0)});
  for (uint32_t i = 0; i < kWarpLanes; ++i) warp.Reg(1).lane[i] = i / 8;
  warp.Pred(1) = 0xffffff00;
  warp.Ahead();
  EXPECT_EQ(warp.UReg(4).lane[0], 1u);
  EXPECT_EQ(warp.UReg(4).lane[31], 1u);
  EXPECT_EQ(warp.Pred(0), 0xffff0000u);
}

TEST(Uniform, AUniformResultIsTheSameInEveryLane) {
  WarpFixture warp({When(0, false, Make(Op::kVOTEU, {Mod::kANY}, {Ur(4), Up(1), P(2)}, 2)),
                    Make(Op::kUIADD3, {}, {Ur(5), Ur(4), Imm(1), Ur(isa::kZeroUniformRegister)}),
                    Make(Op::kEXIT, {}, {}, 0)});
  warp.Pred(0) = 0xff;
  warp.Pred(2) = 0xf0f0;
  warp.Ahead();
  EXPECT_EQ(warp.UReg(5).lane[0], 0xf1u);
  EXPECT_EQ(warp.UReg(5).lane[31], 0xf1u);
  EXPECT_EQ(warp.Pred(kFirstUniformPredicate + 1), kAllLanes);
}

TEST(Special, ThreadIndicesFollowTheBlockShape) {
  WarpFixture warp({Make(Op::kS2R, {}, {R(1), Sr(static_cast<int64_t>(isa::SpecialRegister::kTID_Y))}),
                    Make(Op::kEXIT, {}, {}, 0)});
  warp.launch().block = {12, 10, 1};
  warp.warp().id_in_cta = 1;
  warp.Ahead();
  EXPECT_EQ(warp.Reg(1).lane[0], 2u);   // thread 32 = 2 * 12 + 8
  EXPECT_EQ(warp.Reg(1).lane[31], 5u);  // thread 63 = 5 * 12 + 3
}

TEST(Guard, LanesWithAFalseGuardKeepTheirValues) {
  WarpFixture warp({When(0, true, Make(Op::kMOV, {}, {R(1), Imm(5)})), Make(Op::kEXIT, {}, {}, 0)});
  warp.Pred(0) = 0x3;
  warp.Ahead();
  EXPECT_EQ(warp.Reg(1).lane[1], 0u);
  EXPECT_EQ(warp.Reg(1).lane[2], 5u);
}

TEST(Lowering, AnUnknownModifierIsReportedWhenExecutedAndNeverIgnored) {
  WarpFixture warp({Make(Op::kIADD3, {Mod::kTANH}, {R(1), R(2), R(3), R(4)}), Make(Op::kEXIT, {}, {}, 0)});
  ASSERT_EQ(warp.program().unsupported().size(), 1u);
  EXPECT_THAT(warp.program().unsupported()[0], testing::HasSubstr("modifier .TANH"));
  warp.Ahead();
  const auto issues = warp.issues().Issues(warp.program().code());
  ASSERT_EQ(issues.size(), 1u);
  EXPECT_EQ(issues[0].kind, "unsupported_opcode");
  // Name, reason, kernel and place, and what to do.
  for (const char* part : {"IADD3", "modifier .TANH", "in kernel", "at pc 0x0", "lowerings.def"})
    EXPECT_THAT(issues[0].detail, testing::HasSubstr(part));
}

TEST(Lowering, LeftOverOperandsAreReported) {
  WarpFixture warp({Make(Op::kMOV, {}, {R(1), R(2), R(3)}), Make(Op::kEXIT, {}, {}, 0)});
  EXPECT_THAT(warp.program().unsupported(), testing::SizeIs(1));
}

}  // namespace
}  // namespace heddle::emulator::test
