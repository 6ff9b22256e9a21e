// Do the lanes of a warp part and meet as convergence barriers, exits and warp barriers say?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/warp_fixture.h"

namespace heddle::emulator::test {
namespace {

using isa::Mod;
using isa::Op;
using isa::StepKind;
using isa::WarpState;

isa::Instruction Exit() { return Make(Op::kEXIT, {}, {}, 0); }
isa::Instruction Bra(uint32_t to) { return Make(Op::kBRA, {}, {To(to)}, 0); }
isa::Instruction Bssy(uint8_t b, uint32_t to) { return Make(Op::kBSSY, {}, {B(b), To(to)}, 1); }
isa::Instruction Bsync(uint8_t b) { return Make(Op::kBSYNC, {}, {B(b)}, 0); }
isa::Instruction MovImm(uint8_t reg, int64_t value) { return Make(Op::kMOV, {}, {R(reg), Imm(value)}); }
isa::Instruction AddImm(uint8_t reg, int64_t value) {
  return Make(Op::kIADD3, {}, {R(reg), R(reg), Imm(value), R(kRz)});
}
isa::Instruction Ballot(uint8_t reg) { return Make(Op::kVOTE, {Mod::kANY}, {R(reg), P(kPt), P(kPt)}, 2); }

constexpr uint32_t kLow16 = 0x0000ffff;

TEST(Control, ConvergedLanesContinueTogether) {
  WarpFixture warp({
      Bssy(0, 4),              // 0
      When(0, false, Bra(3)),  // 1
      MovImm(1, 7),            // 2
      Bsync(0),                // 3
      Ballot(2),               // 4
      Exit(),                  // 5
  });
  warp.Pred(0) = kLow16;
  const auto steps = warp.RunAll();
  for (uint32_t i = 0; i < kWarpLanes; ++i) EXPECT_EQ(warp.Reg(2).lane[i], kAllLanes);
  EXPECT_EQ(steps.back().kind, StepKind::kExit);
  EXPECT_EQ(steps.back().lanes, kAllLanes);
  EXPECT_EQ(steps.back().state, WarpState::kFinished);
}

TEST(Control, AnExitReleasesThoseThatWaitForTheLane) {
  WarpFixture warp({
      Bssy(0, 3),              // 0
      When(0, false, Exit()),  // 1: the low lanes leave
      Bsync(0),                // 2: must not wait for them
      Ballot(1),               // 3
      Exit(),                  // 4
  });
  warp.Pred(0) = kLow16;
  warp.RunAll();
  EXPECT_EQ(warp.warp().live, 0u);
  EXPECT_EQ(warp.Reg(1).lane[31], ~kLow16);
}

TEST(Control, BreakTakesLanesOutOfTheInstance) {
  WarpFixture warp({
      Bssy(0, 4),                                       // 0
      When(0, false, Make(Op::kBREAK, {}, {B(0)}, 0)),  // 1
      When(0, false, Bra(5)),                           // 2
      Bsync(0),                                         // 3: only the high lanes are left in it
      Ballot(1),                                        // 4
      Exit(),                                           // 5
  });
  warp.Pred(0) = 0xff;
  warp.RunAll();
  EXPECT_EQ(warp.Reg(1).lane[31], ~0xffu);
  EXPECT_EQ(warp.warp().live, 0u);
}

TEST(Control, EqualInstancesOfOneRegisterAreKeptApartByTheirMask) {
  // The low lanes open an inner instance of B0 around a nested branch while the high ones wait in the outer one.
  WarpFixture warp({
      Bssy(0, 9),                                              // 0: outer
      When(0, true, Bra(8)),                                   // 1: high lanes go to the outer BSYNC
      Make(Op::kBMOV, {Mod::k32, Mod::kCLEAR}, {R(4), B(0)}),  // 2: saved as around a call
      Bssy(0, 6),                                              // 3: inner
      When(1, false, Bra(5)),                                  // 4
      Bsync(0),                                                // 5: meets among the low lanes
      Ballot(1),                                               // 6
      Make(Op::kBMOV, {Mod::k32}, {B(0), R(4)}),               // 7
      Bsync(0),                                                // 8: outer
      Ballot(2),                                               // 9
      Exit(),                                                  // 10
  });
  warp.Pred(0) = kLow16;
  warp.Pred(1) = 0xff;
  warp.RunAll();
  EXPECT_EQ(warp.Reg(1).lane[0], kLow16);
  EXPECT_EQ(warp.Reg(2).lane[0], kAllLanes);
  EXPECT_EQ(warp.Reg(2).lane[31], kAllLanes);
}

TEST(Control, SplitsNeverJoinBecauseTheyMeetAtOnePc) {
  WarpFixture warp({When(0, false, Bra(1)), Ballot(1), Exit()});
  warp.Pred(0) = kLow16;
  warp.RunAll();
  EXPECT_EQ(warp.Reg(1).lane[0], kLow16);
  EXPECT_EQ(warp.Reg(1).lane[31], ~kLow16);
}

TEST(Control, WarpSyncJoinsTheNamedLanes) {
  WarpFixture warp({
      When(0, false, Bra(2)),                         // 0
      AddImm(1, 1),                                   // 1
      Make(Op::kWARPSYNC, {}, {Imm(0xffffffff)}, 0),  // 2
      Ballot(2),                                      // 3
      Exit(),                                         // 4
  });
  warp.Pred(0) = kLow16;
  warp.RunAll();
  EXPECT_EQ(warp.Reg(2).lane[0], kAllLanes);
  EXPECT_EQ(warp.Reg(1).lane[0], 0u);
  EXPECT_EQ(warp.Reg(1).lane[16], 1u);
}

TEST(Control, LanesThatSpinGiveWayToTheOthers) {
  // The high lanes go round a loop 3000 times; as the ones furthest behind in the code they would keep the warp.
  WarpFixture warp({
      When(0, false, Bra(4)),  // 0: low lanes go to 4
      AddImm(2, 1),            // 1: spin
      Make(Op::kISETP, {Mod::kLT, Mod::kAND}, {P(1), P(kPt), R(2), Imm(3000), P(kPt)}, 2),  // 2
      When(1, false, Bra(1)),                                                               // 3
      AddImm(3, 1),                                                                         // 4
      Exit(),                                                                               // 5
  });
  warp.Pred(0) = kLow16;
  std::vector<uint32_t> order;
  for (const auto& step : warp.RunAll()) order.push_back(step.lanes);
  // The low lanes leave long before that ends: in the first time slice or the second.
  const auto low_exit = std::find(order.begin(), order.end(), kLow16);
  ASSERT_NE(low_exit, order.end());
  EXPECT_LT(low_exit - order.begin(), 2000);
  EXPECT_EQ(warp.warp().live, 0u);
}

TEST(Control, TheWarpArrivesOnceAtACtaBarrier) {
  WarpFixture warp({
      When(0, false, Bra(2)),                                           // 0
      AddImm(1, 1),                                                     // 1
      Make(Op::kBAR, {Mod::kSYNC, Mod::kDEFER_BLOCKING}, {Imm(3)}, 0),  // 2
      AddImm(2, 1),                                                     // 3
      Exit(),                                                           // 4
  });
  warp.Pred(0) = kLow16;
  auto steps = warp.RunAll();
  int arrivals = 0;
  for (const auto& step : steps) arrivals += step.kind == StepKind::kBarrier ? 1 : 0;
  EXPECT_EQ(arrivals, 1);
  EXPECT_EQ(steps.back().kind, StepKind::kBarrier);
  EXPECT_EQ(steps.back().barrier.id, 3);
  EXPECT_EQ(steps.back().barrier.arriving_threads, 32u);
  EXPECT_EQ(steps.back().state, WarpState::kBlocked);
  ReleaseBarrier(warp.warp(), 3);
  warp.RunAll();
  EXPECT_EQ(warp.Reg(2).lane[0] + warp.Reg(2).lane[31], 2u);
  EXPECT_EQ(StateOf(warp.warp()), WarpState::kFinished);
}

TEST(Control, BarReductionCountsThreads) {
  WarpFixture warp({
      Make(Op::kBAR, {Mod::kRED, Mod::kPOPC}, {Imm(0), P(0)}, 0),  // 0
      Make(Op::kB2R, {Mod::kRESULT}, {R(1), P(1)}, 2),             // 1
      Exit(),
  });
  warp.Pred(0) = 0x70f;
  warp.RunAll();
  CompleteBarrier(warp.cta(), 0);
  ReleaseBarrier(warp.warp(), 0);
  warp.RunAll();
  EXPECT_EQ(warp.Reg(1).lane[9], 7u);
  EXPECT_EQ(warp.Pred(1), kAllLanes);
}

TEST(Control, AnIndirectBranchSendsEachLaneWhereItsRegisterSays) {
  WarpFixture warp({
      Make(Op::kRET, {Mod::kREL, Mod::kNODEC}, {R(2, 2), To(0)}, 0),  // 0
      Ballot(5),                                                      // 1
      Exit(),                                                         // 2
      Ballot(6),                                                      // 3
      Exit(),                                                         // 4
  });
  for (uint32_t i = 0; i < kWarpLanes; ++i) warp.Reg(2).lane[i] = i % 2 == 0 ? 0x10 : 0x30;
  warp.RunAll();
  EXPECT_EQ(warp.Reg(5).lane[0], 0x55555555u);
  EXPECT_EQ(warp.Reg(6).lane[1], 0xaaaaaaaau);
}

TEST(Control, BranchesOutOfTheCodeAreReportedAndEndTheWarp) {
  WarpFixture warp({Bra(77), Exit()});
  warp.RunAll(10);
  EXPECT_EQ(StateOf(warp.warp()), WarpState::kFinished);
  EXPECT_FALSE(warp.issues().empty());
}

TEST(Control, ARunStopsBeforeAWaitForAPendingResult) {
  isa::Instruction waits = AddImm(1, 1);
  waits.control.wait_mask = 1 << 2;
  WarpFixture warp({AddImm(1, 1), waits, AddImm(1, 1), Exit()});
  warp.warp().pending_scoreboards = 1 << 2;
  isa::InstructionRun run = warp.Ahead();
  EXPECT_EQ(run.first, 0u);
  EXPECT_EQ(run.count, 1u);
  warp.warp().pending_scoreboards = 0;
  EXPECT_EQ(warp.Step().index, 1u);  // the waiting instruction, executed alone
  EXPECT_EQ(warp.Reg(1).lane[0], 2u);
  run = warp.Ahead();
  EXPECT_EQ(run.first, 2u);
  EXPECT_EQ(run.count, 1u);
}

TEST(Control, OnlyLiveLanesRun) {
  WarpFixture warp({Ballot(1), Exit()}, 0x7);
  const auto steps = warp.RunAll();
  EXPECT_EQ(warp.Reg(1).lane[0], 0x7u);
  EXPECT_EQ(steps.back().lanes, 0x7u);
}

TEST(Unknown, ReachesBranchesThroughArithmeticAndIsReported) {
  WarpFixture warp({
      Make(Op::kIADD3, {}, {R(2), R(1), Imm(1), R(kRz)}),                                // 0
      Make(Op::kISETP, {Mod::kEQ, Mod::kAND}, {P(0), P(kPt), R(2), Imm(0), P(kPt)}, 2),  // 1
      When(0, false, Bra(3)),                                                            // 2
      Exit(),                                                                            // 3
  });
  warp.TrackUnknown();
  warp.RunAll();
  EXPECT_TRUE(warp.issues().empty());  // everything is known

  WarpFixture other({
      Make(Op::kIADD3, {}, {R(2), R(1), Imm(1), R(kRz)}),
      MovImm(1, 4),
      Make(Op::kISETP, {Mod::kEQ, Mod::kAND}, {P(0), P(kPt), R(2), Imm(0), P(kPt)}, 2),
      When(0, false, Bra(4)),
      Exit(),
  });
  other.TrackUnknown();
  other.Unknown(1) = 0x10;  // lane 4
  other.RunAll();
  const auto issues = other.issues().Issues(other.program().code());
  ASSERT_EQ(issues.size(), 1u);
  EXPECT_EQ(issues[0].kind, "unknown_branch");
  EXPECT_EQ(other.Unknown(1), 0u);  // overwritten by a constant
  EXPECT_EQ(other.Unknown(2), 0x10u);
}

}  // namespace
}  // namespace heddle::emulator::test
