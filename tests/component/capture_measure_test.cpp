// `heddle capture` with --counters, --sass-metrics and --pc-sampling: further runs of the same process, whose numbers land at the right
// launches of the first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "frontend/capture/pc_counter.h"
#include "tests/support/capture_run.h"

namespace heddle {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing_support::CaptureFolder;
using testing_support::Outcome;

// What stands of a launch: (metric, pc or -1) -> value.
std::map<std::pair<std::string, int64_t>, double> CountersOf(const trace::Trace& trace, uint32_t launch) {
  std::map<std::pair<std::string, int64_t>, double> found;
  for (const trace::Counter& counter : trace.counters)
    if (counter.launch == launch) {
      const auto of_instruction = capture::SplitPcCounter(counter.name);
      found[of_instruction ? std::pair(of_instruction->name, static_cast<int64_t>(of_instruction->pc))
                           : std::pair(counter.name, int64_t{-1})] = counter.value;
    }
  return found;
}

constexpr const char* kLaunches =
    "launch f 2,1,1 32,1,1 0 0 b:a i:1\nlaunch f 5,1,1 32,1,1 0 0 b:a i:2\nlaunch f 2,1,1 32,1,1 0 1 b:a "
    "i:3\n";

TEST(CaptureMeasure, EachKindOfRunAddsItsNumbersToTheLaunchesOfTheFirst) {
  const CaptureFolder folder;
  const Outcome run =
      folder.Capture(kLaunches, "--counters cycles,dram__bytes_read.sum --sass-metrics --pc-sampling");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (const char* kind : {"counters: 3 of 3", "sass: 3 of 3", "pc: 3 of 3"})
    EXPECT_THAT(run.err, HasSubstr(kind));
  const trace::Trace trace = folder.Read();
  ASSERT_EQ(trace.launches.size(), 3u);
  const uint32_t ctas[] = {2, 5, 2};
  for (uint32_t launch = 0; launch < 3; ++launch) {
    EXPECT_EQ(trace.launches[launch].measured_end_ns - trace.launches[launch].measured_start_ns, 2500);
    auto found = CountersOf(trace, launch);
    const double n = ctas[launch];
    EXPECT_EQ((found[{"sm__cycles_elapsed.max", -1}]), n);
    EXPECT_EQ((found[{"dram__bytes_read.sum", -1}]), 3000 + n);
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ((found[{"smsp__sass_inst_executed", 16 * i}]), n * static_cast<double>(i + 1));
      EXPECT_EQ((found[{"smsp__pcsamp_warps_issue_stalled_long_scoreboard", 16 * i}]),
                static_cast<double>(i + 1));
    }
    EXPECT_EQ((found[{"smsp__sass_inst_executed", -1}]), 6 * n);
    EXPECT_EQ((found[{"smsp__pcsamp_warps_issue_stalled_long_scoreboard", -1}]), 6);
    EXPECT_FALSE(found.contains({"smsp__sass_inst_executed", 48}));  // it did not run
    EXPECT_FALSE(found.contains({"smsp__pcsamp_warps_issue_stalled_barrier", 0}));
  }
}

TEST(CaptureMeasure, OnlyLaunchesThatAreAskedForAreMeasured) {
  const CaptureFolder folder;
  ASSERT_EQ(folder.Capture(kLaunches, "--counters instructions --skip 1 --count 1").exit_code, 0);
  const trace::Trace trace = folder.Read();
  ASSERT_EQ(trace.launches.size(), 1u);
  EXPECT_EQ((CountersOf(trace, 0)[{"smsp__inst_executed.sum", -1}]), 5);
}

// Each thread's launches wait for each other's: no range holds two.
TEST(CaptureMeasure, ThreadsThatLaunchAtOnceAreMeasuredOneByOne) {
  const CaptureFolder folder;
  const Outcome run = folder.Capture("parallel 4 50 f 3,1,1 32,1,1 0 1 b:a i:6\n", "--counters instructions");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const trace::Trace trace = folder.Read();
  ASSERT_EQ(trace.launches.size(), 200u);
  for (uint32_t launch = 0; launch < 200; ++launch)
    EXPECT_EQ((CountersOf(trace, launch)[{"smsp__inst_executed.sum", -1}]), 3);
  EXPECT_THAT(run.err, Not(HasSubstr("ranges were measured")));
}

TEST(CaptureMeasure, RefusalsSayWhatToChangeAndLeaveTheFirstRunsTrace) {
  const std::pair<const char*, const char*> refusals[] = {
      {"DOUBLE_COUNTERS=35", "NVreg_RestrictProfilingToAdminUsers=0"},
      {"DOUBLE_COUNTERS=26", "dcgmi profiling --pause"},
      {"DOUBLE_SASS=14", "executed counts of instructions are not measured"},
      {"DOUBLE_PC=43", "MIG"}};
  for (const auto& [environment, text] : refusals) {
    const CaptureFolder folder;
    const Outcome run =
        folder.Capture(kLaunches, "--counters instructions --sass-metrics --pc-sampling", environment);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.err, HasSubstr(text)) << environment;
    EXPECT_THAT(run.err, HasSubstr(": 0 of 3 launches")) << environment;
    const trace::Trace trace = folder.Read();
    EXPECT_EQ(trace.launches.size(), 3u);
    EXPECT_GE(trace.launches[0].measured_start_ns, 0);
    EXPECT_FALSE(trace.counters.empty());  // of the kinds that were not refused
  }
}

TEST(CaptureMeasure, AMetricThatTheGpuLacksLeavesTheOthers) {
  const CaptureFolder folder;
  const Outcome run = folder.Capture(kLaunches, "--counters memory", "DOUBLE_NO_METRIC=dram__bytes_read.sum");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("dram__bytes_read.sum are not measured"));
  auto found = CountersOf(folder.Read(), 1);
  EXPECT_FALSE(found.contains({"dram__bytes_read.sum", -1}));
  EXPECT_EQ((found[{"dram__bytes_write.sum", -1}]), 5);
}

TEST(CaptureMeasure, GraphsAreSaidNotToBeMeasured) {
  const CaptureFolder folder;
  const Outcome run = folder.Capture(
      "begin 1\nlaunch f 2,1,1 32,1,1 0 1 b:a i:10\nend 1 g\ninstantiate e g\ngraph e 1\n"
      "launch f 9,1,1 32,1,1 0 1 b:a i:1\n",
      "--counters instructions");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("--enforce-eager"));
  const trace::Trace trace = folder.Read();
  ASSERT_EQ(trace.launches.size(), 2u);
  EXPECT_TRUE(CountersOf(trace, 0).empty());
  EXPECT_EQ((CountersOf(trace, 1)[{"smsp__inst_executed.sum", -1}]), 9);
}

TEST(CaptureMeasure, AWordThatIsNoSetIsRefusedBeforeAnythingRuns) {
  const CaptureFolder folder;
  const Outcome run = folder.Capture("address a\n", "--counters memry");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("'memry' is no set of counters"));
  EXPECT_EQ(run.out, "");
}

}  // namespace
}  // namespace heddle
