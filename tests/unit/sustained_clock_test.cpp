// From cycles to time: which clock does a board hold at which activity, and can it be switched off?
#include "tools/replay/sustained_clock.h"

#include <gtest/gtest.h>

#include "tests/support/machines.h"

namespace heddle::replay {
namespace {

// 1410 MHz up to an activity of 0.8, 1236 from 0.94 on: 1323 half way between.
TEST(SustainedClock, FollowsTheTableOfTheBoard) {
  const config::Gpu gpu = test::A100();
  EXPECT_EQ(SustainedMhz(gpu, {.tensor_cores = 0}), 1410);
  EXPECT_EQ(SustainedMhz(gpu, {.tensor_cores = 0.8}), 1410);
  EXPECT_NEAR(SustainedMhz(gpu, {.tensor_cores = 0.87}), 1323, 1e-9);
  EXPECT_EQ(SustainedMhz(gpu, {.tensor_cores = 0.94}), 1236);
  EXPECT_EQ(SustainedMhz(gpu, {.tensor_cores = 1}), 1236);
  EXPECT_EQ(SustainedMhz(gpu, {.fma_lanes = 1}), 1410);  // the board has no entry for it
}

TEST(SustainedClock, IsNeverAboveTheClockOfTheRunAndCanBeSwitchedOff) {
  EXPECT_EQ(SustainedMhz(test::A100({"clocks.sm_mhz=1100"}), {.tensor_cores = 1}), 1100);
  EXPECT_EQ(SustainedMhz(test::A100({"board.sustained_clock=off"}), {.tensor_cores = 1}), 1410);
}

// The lowest of the pipes' clocks counts. T4: 1590 MHz at 0.3 and 920 at 0.88, for both.
TEST(SustainedClock, TakesTheLowestOfThePipes) {
  const auto gpu = config::LoadGpu("t4");
  ASSERT_TRUE(gpu.ok()) << gpu.error().ToString();
  EXPECT_NEAR(SustainedMhz(*gpu, {.tensor_cores = 0.3, .fma_lanes = 0.59}), 1255, 1e-9);
  EXPECT_NEAR(SustainedMhz(*gpu, {.tensor_cores = 0.59, .fma_lanes = 0.3}), 1255, 1e-9);
  EXPECT_EQ(SustainedMhz(*gpu, {.tensor_cores = 0.5, .fma_lanes = 0.9}), 920);
}

// 108 SMs of 4 sub-cores for 1000 cycles are 432000 pipe cycles. 216000 of them are half; 108000 FFMA and 54000 FADD of two
// cycles each are three quarters; the IMAD and what has no code are not FP32.
TEST(SustainedClock, ActivityIsTheShareOfAllSubCoresCycles) {
  isa::KernelCode code;
  for (isa::Op op : {isa::Op::kFFMA, isa::Op::kIMAD, isa::Op::kFADD})
    code.instructions.emplace_back().op = op;
  stats::LaunchStats stats;
  stats.start_cycle = 500;
  stats.end_cycle = 1500;
  stats.counters.sm_pipe_tensor_cycles_active = 216000;
  for (const uint64_t issued : std::initializer_list<uint64_t>{108000, 77777, 54000, 99999})
    stats.per_pc.emplace_back().issued = issued;
  const config::Gpu gpu = test::A100();
  const PipeActivity activity = ActivityOf(gpu, code, stats);
  EXPECT_DOUBLE_EQ(activity.tensor_cores, 0.5);
  EXPECT_DOUBLE_EQ(activity.fma_lanes, 0.75);
  EXPECT_EQ(ActivityOf(gpu, code, {}).tensor_cores, 0);  // a launch of no cycles has no activity
}

TEST(SustainedClock, CyclesBecomeTimeAtThatClock) {
  stats::LaunchStats stats;
  stats.end_cycle = 1236;
  stats.counters.sm_pipe_tensor_cycles_active = 1236 * 432;
  EXPECT_EQ(SustainedPicoseconds(test::A100(), {}, stats), 1'000'000u);
  EXPECT_EQ(SustainedPicoseconds(test::A100({"board.sustained_clock=off"}), {}, stats), 876'596u);
}

}  // namespace
}  // namespace heddle::replay
