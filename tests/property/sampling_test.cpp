// Sampled simulation beside exact simulation of the same synthetic launches: what is left out, what is said of it, and when
// nothing may be left out.
#include "sim/gpu/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <optional>
#include <string>

#include "tests/support/machines.h"
#include "tests/support/scripted_kernel.h"

namespace heddle::gpu {
namespace {

using test::ScriptedKernel;
using test::ScriptedMemory;
using test::ScriptedProgram;

constexpr uint64_t kBase = uint64_t{1} << 32;
constexpr uint64_t kWave = 28 * 16;  // CTAs: 28 SMs of 64 warps

config::Gpu Machine(const std::string& change = "gpc_count=2") {
  return test::A100({"sm.count=28", "gpc_count=2", "l2.slices=20", "l2.size_bytes=1310720",
                     "dram.channels=20", "dram.bandwidth_gb_s=510",
                     "interconnect.partition_bytes_per_cycle=640", change});
}

// Every warp reads and writes 512 bytes of its own.
ScriptedKernel Streaming(uint32_t waves) {
  ScriptedKernel kernel;
  kernel.grid = {static_cast<uint32_t>(kWave) * waves + 100, 1, 1};
  kernel.bytes_per_lane = 16;
  kernel.stores = true;
  kernel.load_address = [](uint64_t warp, uint32_t) { return kBase + warp * 512; };
  kernel.store_address = [](uint64_t warp, uint32_t) { return kBase + (uint64_t{1} << 30) + warp * 512; };
  return kernel;
}

struct Outcome {
  stats::LaunchStats stats;
  std::optional<stats::Sampling> sampling;
  double Cycles() const { return static_cast<double>(stats.end_cycle - stats.start_cycle); }
};

Outcome Simulate(ScriptedKernel kernel, std::optional<SamplingRequest> request, RunOptions options = {},
                 const config::Gpu& machine = Machine()) {
  ScriptedMemory memory;
  ScriptedProgram program(std::move(kernel), &memory);
  const LaunchRequest launch{&program, "k", 0, {}, std::move(request)};
  Gpu gpu(machine, options);
  const auto stats = gpu.Run({&launch, 1});
  EXPECT_TRUE(stats.ok()) << stats.error().ToString();
  return {stats->front(), gpu.samplings().front()};
}

bool SameCounts(const stats::LaunchStats& a, const stats::LaunchStats& b) {
  for (const stats::CounterDef& def : stats::CounterDefs())
    if (a.counters.*def.member != b.counters.*def.member) return false;
  return a.end_cycle == b.end_cycle && a.slots == b.slots;
}

void ExpectClosedAccounting(const stats::LaunchStats& stats) {
  EXPECT_EQ(std::accumulate(stats.slots.begin(), stats.slots.end(), uint64_t{0}),
            stats.counters.smsp_issue_slots);
  EXPECT_EQ(stats.slots[static_cast<size_t>(stats::Stall::k_selected)], stats.counters.smsp_inst_executed);
  uint64_t issued = 0;
  for (const stats::PcStats& pc : stats.per_pc) issued += pc.issued;
  EXPECT_EQ(issued, stats.counters.smsp_inst_executed);
  EXPECT_EQ(stats.counters.sm_cycles_elapsed, stats.end_cycle - stats.start_cycle);
}

TEST(Sampling, TimeAndCountersOfALongLaunchAreThoseOfExactSimulation) {
  const Outcome exact = Simulate(Streaming(60), std::nullopt);
  const Outcome sampled = Simulate(Streaming(60), SamplingRequest{});
  EXPECT_FALSE(exact.sampling);
  ASSERT_TRUE(sampled.sampling);
  EXPECT_EQ(sampled.sampling->whole_because, "");
  const uint64_t ctas = 60 * kWave + 100;
  EXPECT_GT(sampled.sampling->ctas_left_out, ctas / 2);
  const double error = sampled.Cycles() - exact.Cycles();
  EXPECT_LE(std::fabs(error), 0.02 * exact.Cycles());
  EXPECT_LE(std::fabs(error), static_cast<double>(sampled.sampling->interval_cycles));
  EXPECT_LE(static_cast<double>(sampled.sampling->interval_cycles), 0.15 * exact.Cycles());

  const stats::Counters& counted = exact.stats.counters;
  const stats::Counters& found = sampled.stats.counters;
  EXPECT_EQ(found.sm_ctas_launched, ctas);
  EXPECT_EQ(found.smsp_inst_executed, counted.smsp_inst_executed);
  EXPECT_EQ(found.l1tex_lookups_sector, counted.l1tex_lookups_sector);
  const auto ratio = [](uint64_t a, uint64_t b) { return static_cast<double>(a) / static_cast<double>(b); };
  EXPECT_NEAR(ratio(found.dram_read_bytes, counted.dram_read_bytes), 1, 0.02);
  EXPECT_NEAR(ratio(found.dram_write_bytes, counted.dram_write_bytes), 1, 0.05);
  EXPECT_NEAR(ratio(found.smsp_issue_slots, counted.smsp_issue_slots), 1, 0.03);
  ExpectClosedAccounting(sampled.stats);

  const auto requests = [](const Outcome& outcome) {
    stats::MemorySums sum;
    for (const stats::PcStats& pc : outcome.stats.per_pc) sum += pc.memory;
    return sum;
  };
  EXPECT_NEAR(ratio(requests(sampled).requests, requests(exact).requests), 1, 0.001);
  EXPECT_NEAR(ratio(requests(sampled).sectors, requests(exact).sectors), 1, 0.001);
}

// The pace changes within what is left out: no extrapolation can know where, and the interval must say so.
TEST(Sampling, TheIntervalHoldsAChangeOfPaceInTheMiddle) {
  for (const uint64_t change : {uint64_t{30}, uint64_t{44}}) {
    ScriptedKernel kernel = Streaming(60);
    kernel.stores = false;
    kernel.load_address = [change](uint64_t warp, uint32_t) {
      return kBase + (warp / 4 < change * kWave ? warp * 512 : warp % 64 * 512);
    };
    const Outcome exact = Simulate(kernel, std::nullopt);
    const Outcome sampled = Simulate(kernel, SamplingRequest{});
    ASSERT_GT(sampled.sampling->ctas_left_out, 0u);
    EXPECT_LE(std::fabs(sampled.Cycles() - exact.Cycles()),
              static_cast<double>(sampled.sampling->interval_cycles))
        << "after " << change << " waves";
    ExpectClosedAccounting(sampled.stats);
  }
}

TEST(Sampling, LaunchesThatMustBeWholeAreExactAndSayWhy) {
  ScriptedKernel few = Streaming(5);
  ScriptedKernel waiting = Streaming(10);
  waiting.atomics = true;
  waiting.strong = true;
  const struct {
    ScriptedKernel kernel;
    SamplingRequest request;
    const char* why;
  } cases[] = {{few, {}, "2340 CTAs are less than 8 waves of 448"},
               {waiting, {}, "its CTAs may wait for each other"},
               {Streaming(10), {1, "because"}, "because"},
               {Streaming(10), {kWave * 4, ""}, "4580 CTAs are less than 8 waves of 1792"}};
  for (const auto& each : cases) {
    const Outcome sampled = Simulate(each.kernel, each.request);
    EXPECT_EQ(sampled.sampling->whole_because, each.why);
    EXPECT_EQ(sampled.sampling->ctas_left_out, 0u);
    EXPECT_TRUE(SameCounts(sampled.stats, Simulate(each.kernel, std::nullopt).stats)) << each.why;
  }
}

// CTAs end when their stores have been sent, at a pace that the way to L2 cannot keep: when the last one ends, most of the
// launch's time is still to come.
TEST(Sampling, StoresThatPileUpAreNoSteadyPace) {
  ScriptedKernel kernel = Streaming(40);
  kernel.load_address = [](uint64_t warp, uint32_t) { return kBase + warp % 64 * 512; };
  const config::Gpu narrow = Machine("interconnect.sm_write_bytes_per_cycle=4");
  const Outcome exact = Simulate(kernel, std::nullopt, {}, narrow);
  const Outcome sampled = Simulate(kernel, SamplingRequest{}, {}, narrow);
  EXPECT_EQ(sampled.sampling->whole_because, "its time per wave did not become steady");
  EXPECT_TRUE(SameCounts(sampled.stats, exact.stats));
}

TEST(Sampling, TheSameOnAnyThreadsAndInAnyOrder) {
  const Outcome one = Simulate(Streaming(30), SamplingRequest{});
  RunOptions options;
  options.threads = 2;
  options.shuffle_seed = 7;
  const Outcome other = Simulate(Streaming(30), SamplingRequest{}, options);
  EXPECT_GT(one.sampling->ctas_left_out, 0u);
  EXPECT_EQ(one.sampling->ctas_left_out, other.sampling->ctas_left_out);
  EXPECT_EQ(one.sampling->interval_cycles, other.sampling->interval_cycles);
  EXPECT_TRUE(SameCounts(one.stats, other.stats));
}

// A launch that follows in the stream starts later by what was left out, and its own counts are its own.
TEST(Sampling, LaterLaunchesStartWhereTheWholeLaunchWouldHaveEnded) {
  ScriptedMemory memory;
  ScriptedProgram first(Streaming(30), &memory);
  ScriptedProgram second(Streaming(2), &memory);
  const LaunchRequest launches[] = {{&first, "first", 0, {}, SamplingRequest{}}, {&second, "second", 0, {}}};
  Gpu gpu(Machine(), {});
  const auto stats = gpu.Run(launches);
  ASSERT_TRUE(stats.ok());
  EXPECT_GT(gpu.samplings()[0]->ctas_left_out, 0u);
  EXPECT_FALSE(gpu.samplings()[1]);
  EXPECT_GE((*stats)[1].start_cycle, (*stats)[0].end_cycle);
  EXPECT_LT((*stats)[1].start_cycle, (*stats)[0].end_cycle + 10000);
  EXPECT_EQ((*stats)[1].counters.sm_ctas_launched, 2 * kWave + 100);
}

}  // namespace
}  // namespace heddle::gpu
