// Properties of the whole GPU on synthetic kernels: the result depends on neither threads, nor the order in which parts
// are processed, nor the window; more bandwidth is never slower; nothing is faster than its bounds.
#include "sim/gpu/gpu.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/memory/address_map.h"
#include "tests/support/machines.h"
#include "tests/support/scripted_kernel.h"

namespace heddle::gpu {
namespace {

using test::ScriptedKernel;
using test::ScriptedMemory;
using test::ScriptedProgram;

constexpr uint64_t kBase = uint64_t{1} << 32;

// A quarter of an A100: 28 SMs in two GPCs, 20 slices and channels in two partitions.
std::vector<std::string> Quarter() {
  return {"sm.count=28",
          "gpc_count=2",
          "l2.slices=20",
          "l2.size_bytes=10485760",
          "dram.channels=20",
          "dram.bandwidth_gb_s=510",
          "interconnect.partition_bytes_per_cycle=640"};
}
config::Gpu Machine(std::vector<std::string> more = {}) {
  std::vector<std::string> overrides = Quarter();
  overrides.insert(overrides.end(), more.begin(), more.end());
  return test::A100(overrides);
}

ScriptedKernel Streaming(uint32_t ctas, uint32_t iterations) {
  ScriptedKernel kernel;
  kernel.grid = {ctas, 1, 1};
  kernel.iterations = iterations;
  kernel.bytes_per_lane = 16;
  kernel.stores = true;
  const uint64_t warps = uint64_t{ctas} * 4;
  kernel.load_address = [=](uint64_t warp, uint32_t i) { return kBase + (warp + i * warps) * 512; };
  kernel.store_address = [=](uint64_t warp, uint32_t i) {
    return kBase + (1 << 30) + (warp + i * warps) * 512;
  };
  return kernel;
}
ScriptedKernel Scattered(uint32_t ctas, uint32_t iterations) {
  ScriptedKernel kernel = Streaming(ctas, iterations);
  kernel.stores = false;
  kernel.load_address = [](uint64_t warp, uint32_t i) {
    return kBase + memory::MixBits(warp * 1000 + i) % (24 << 20) / 512 * 512;
  };
  return kernel;
}
ScriptedKernel Atomics(uint32_t ctas, uint32_t iterations) {
  ScriptedKernel kernel;
  kernel.grid = {ctas, 1, 1};
  kernel.iterations = iterations;
  kernel.atomics = true;
  kernel.load_address = [](uint64_t warp, uint32_t i) { return kBase + (warp * 7 + i) % 64 * 128; };
  return kernel;
}

struct Outcome {
  std::string bytes;  // of everything that was counted
  std::vector<stats::LaunchStats> stats;
};

Outcome RunAll(const config::Gpu& description, std::vector<ScriptedKernel> kernels, RunOptions options = {}) {
  ScriptedMemory memory;
  std::vector<std::unique_ptr<ScriptedProgram>> programs;
  std::vector<LaunchRequest> launches;
  for (ScriptedKernel& kernel : kernels) {
    programs.push_back(std::make_unique<ScriptedProgram>(std::move(kernel), &memory));
    launches.push_back({programs.back().get(),
                        "k" + std::to_string(launches.size()),
                        static_cast<uint32_t>(launches.size()) % 2,
                        {}});
  }
  Gpu gpu(description, options);
  auto result = gpu.Run(launches);
  Outcome outcome;
  if (!result.ok()) {
    ADD_FAILURE() << result.error().ToString();
    outcome.stats.resize(kernels.size());
    return outcome;
  }
  outcome.stats = std::move(*result);
  const auto add = [&](const auto& value) {
    outcome.bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  for (const stats::LaunchStats& stats : outcome.stats) {
    add(stats.start_cycle);
    add(stats.end_cycle);
    add(stats.counters);
    add(stats.slots);
    for (const stats::PcStats& pc : stats.per_pc) add(pc);
  }
  add(memory.order);
  return outcome;
}

std::vector<ScriptedKernel> Mixture() {
  return {Streaming(150, 3), Atomics(60, 4), Scattered(100, 4), Streaming(40, 2)};
}

TEST(Gpu, SameBytesOnAnyThreadsAndInAnyOrder) {
  const config::Gpu gpu = Machine();
  const Outcome reference = RunAll(gpu, Mixture());
  ASSERT_FALSE(reference.bytes.empty());
  for (uint32_t threads : {1U, 2U, 7U}) {
    for (uint64_t seed : {0U, 1U, 2U}) {
      RunOptions options;
      options.threads = threads;
      options.shuffle_seed = seed;
      EXPECT_TRUE(RunAll(gpu, Mixture(), options).bytes == reference.bytes)
          << threads << " threads, order " << seed;
    }
  }
}

TEST(Gpu, TheWindowDoesNotMatter) {
  const config::Gpu gpu = Machine();
  for (const ScriptedKernel& kernel : {Streaming(600, 4), Scattered(600, 4), Atomics(300, 6)}) {
    const Outcome whole = RunAll(gpu, {kernel});
    for (double fraction : {0.5, 0.25}) {
      RunOptions options;
      options.window_fraction = fraction;
      EXPECT_TRUE(RunAll(gpu, {kernel}, options).bytes == whole.bytes) << "fraction " << fraction;
    }
  }
}

TEST(Gpu, MoreBandwidthIsNeverSlower) {
  const auto cycles = [](std::vector<std::string> overrides, const ScriptedKernel& kernel) {
    return static_cast<double>(
        RunAll(Machine(std::move(overrides)), {kernel}).stats[0].counters.sm_cycles_elapsed);
  };
  const double streaming = cycles({}, Streaming(600, 4));
  EXPECT_LE(cycles({"dram.bandwidth_gb_s=1020"}, Streaming(600, 4)), streaming * 1.01);
  EXPECT_GT(cycles({"dram.bandwidth_gb_s=255"}, Streaming(600, 4)), streaming * 1.3);
  // Nearly every read opens a row. Only the end is left to chance: the last one may have to wait for a refresh of its
  // channel, 366 cycles.
  for (const uint32_t ctas : {600U, 1200U}) {
    const double scattered = cycles({}, Scattered(ctas, 4));
    EXPECT_LE(cycles({"l2.slice_bytes_per_cycle=128"}, Scattered(ctas, 4)), scattered * 1.01);
    EXPECT_LE(cycles({"interconnect.gpc_read_bytes_per_cycle=1100"}, Scattered(ctas, 4)), scattered * 1.01);
    EXPECT_LE(cycles({"dram.bandwidth_gb_s=1020"}, Scattered(ctas, 4)), scattered * 1.01);
  }
  // What fits L2 and is read again and again leans on slices and ports.
  ScriptedKernel resident = Streaming(600, 12);
  resident.stores = false;
  resident.load_address = [](uint64_t warp, uint32_t i) { return kBase + (warp * 5 + i * 977) % 4096 * 512; };
  const double in_l2 = cycles({}, resident);
  EXPECT_LE(cycles({"l2.slice_bytes_per_cycle=128"}, resident), in_l2 * 1.01);
  EXPECT_LE(cycles({"interconnect.gpc_read_bytes_per_cycle=1100"}, resident), in_l2 * 1.01);
  EXPECT_GT(cycles({"interconnect.gpc_read_bytes_per_cycle=137"}, resident), in_l2 * 1.3);
}

TEST(Gpu, NotFasterThanDramAndPortsAllow) {
  const config::Gpu gpu = Machine();
  RunOptions options;
  options.launch_overhead = false;
  const stats::LaunchStats stats = RunAll(gpu, {Streaming(2000, 4)}, options).stats[0];
  const double cycles = static_cast<double>(stats.counters.sm_cycles_elapsed);
  const double channel_bytes = 510e9 / (gpu.clocks.sm_mhz * 1e6);
  const double dram = static_cast<double>(stats.counters.dram_read_bytes + stats.counters.dram_write_bytes);
  EXPECT_GE(cycles, dram / channel_bytes);
  EXPECT_LE(cycles, dram / channel_bytes * 1.35);  // refresh, turn-around, start and end
  // Every byte is read once from DRAM; what was written and is not dirty in L2 any more has gone there.
  EXPECT_EQ(stats.counters.l1tex_m_read_bytes, 2000U * 4 * 4 * 512);
  EXPECT_GE(stats.counters.dram_read_bytes, 2000U * 4 * 4 * 512);
  EXPECT_LE(stats.counters.dram_write_bytes, 2000U * 4 * 4 * 512);
}

TEST(Gpu, AtomicsOnOneWordAreServedOneByOne) {
  ScriptedKernel kernel = Atomics(56, 4);
  kernel.same_word = true;
  kernel.load_address = [](uint64_t, uint32_t) { return kBase; };
  RunOptions options;
  options.launch_overhead = false;
  const stats::LaunchStats stats = RunAll(Machine(), {kernel}, options).stats[0];
  const uint64_t atomics = 56 * 4 * 4;
  EXPECT_EQ(stats.counters.lts_atomics, atomics);
  EXPECT_GE(stats.counters.sm_cycles_elapsed, atomics * 25);  // 1 sector and 24 lanes beyond its 8 words
  EXPECT_LE(stats.counters.sm_cycles_elapsed, atomics * 25 + 3000);
}

// Behind another launch of its graph, launch.graph_overhead_ns stand in for launch.overhead_cycles, and nothing else changes.
TEST(Gpu, ALaunchBehindAnotherOfItsGraphIsPreparedBefore) {
  ScriptedKernel arithmetic = Streaming(28, 1);
  arithmetic.loads = arithmetic.stores = false;
  const auto cycles = [&](bool behind, std::vector<std::string> more) {
    more.push_back("launch.overhead_cycles=1800");
    ScriptedMemory memory;
    ScriptedProgram first(arithmetic, &memory), second(arithmetic, &memory);
    const LaunchRequest launches[] = {{&first, "a", 0, {}}, {&second, "b", 0, {}, std::nullopt, behind}};
    const std::vector<stats::LaunchStats> stats = *Gpu(Machine(std::move(more)), {}).Run(launches);
    EXPECT_GE(stats[1].start_cycle, stats[0].end_cycle);
    return stats[1].end_cycle - stats[1].start_cycle;
  };
  const Cycle alone = cycles(false, {});
  // 1410 MHz: 500 ns are 705 cycles, 1000 ns are 1410. CTAs start in steps of 2.1 cycles and SMs agree once a window.
  EXPECT_NEAR(static_cast<double>(alone - cycles(true, {"launch.graph_overhead_ns=500"})), 1800 - 705, 3);
  EXPECT_NEAR(static_cast<double>(alone - cycles(true, {"launch.graph_overhead_ns=1000"})), 1800 - 1410, 3);
}

TEST(Gpu, LaunchesOfAStreamFollowEachOtherOthersOverlap) {
  const Outcome outcome = RunAll(Machine(), {Streaming(20, 20), Streaming(20, 20), Streaming(20, 2)});
  EXPECT_LT(outcome.stats[1].start_cycle, outcome.stats[0].end_cycle);  // stream 1 beside stream 0
  EXPECT_GE(outcome.stats[2].start_cycle, outcome.stats[0].end_cycle);  // stream 0
  for (const stats::LaunchStats& stats : outcome.stats) EXPECT_GT(stats.counters.smsp_inst_executed, 0U);
}

TEST(Gpu, WarmCachesSaveDramReads) {
  const auto second = [](CachePolicy policy, uint32_t ctas) {
    RunOptions options;
    options.cache_policy = policy;
    ScriptedKernel kernel = Streaming(ctas, 2);
    kernel.stores = false;
    ScriptedKernel other_stream = Streaming(1, 1);
    return RunAll(Machine(), {kernel, other_stream, kernel}, options).stats[2].counters;
  };
  EXPECT_EQ(second(CachePolicy::kWarm, 100).dram_read_bytes, 0U);
  EXPECT_GE(second(CachePolicy::kCold, 100).dram_read_bytes, 100U * 4 * 2 * 512);
  // 16 MB read through 10 MB of L2: another buffer's dirty lines must leave.
  EXPECT_GT(second(CachePolicy::kFlush, 4000).dram_write_bytes, 4'000'000U);
  EXPECT_EQ(second(CachePolicy::kCold, 4000).dram_write_bytes, 0U);
}

TEST(Gpu, RefusesForeignCubinsAndCtasThatFitNowhere) {
  ScriptedMemory memory;
  ScriptedKernel kernel = Streaming(1, 1);
  kernel.sm_version = 90;
  ScriptedProgram foreign(kernel, &memory);
  Gpu gpu(Machine(), {});
  LaunchRequest launch{&foreign, "k", 0, {}};
  auto refused = gpu.Run({&launch, 1});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ExitCode::kTrace);
  kernel.sm_version = 80;
  kernel.threads = 1024;
  kernel.registers = 255;
  ScriptedProgram large(kernel, &memory);
  launch.program = &large;
  refused = gpu.Run({&launch, 1});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("1024 threads, 255 registers"), std::string::npos);
}

TEST(Gpu, DependenceCyclesAreTheUsersError) {
  ScriptedMemory memory;
  ScriptedProgram program(Streaming(1, 1), &memory);
  const std::vector<LaunchRequest> launches = {{&program, "a", 0, {1}}, {&program, "b", 0, {}}};
  Gpu gpu(Machine(), {});
  const auto result = gpu.Run(launches);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ExitCode::kUsage);
}

TEST(Gpu, LimitOfCyclesEndsTheRun) {
  ScriptedMemory memory;
  ScriptedProgram program(Streaming(10, 100000), &memory);
  RunOptions options;
  options.max_cycles = 20000;
  Gpu gpu(Machine(), options);
  const LaunchRequest launch{&program, "endless", 0, {}};
  const auto result = gpu.Run({&launch, 1});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ExitCode::kDidNotFinish);
  EXPECT_EQ(result.error().place, "endless");
}

TEST(Gpu, StopLetsRunningLaunchesFinish) {
  ScriptedMemory memory;
  ScriptedProgram program(Streaming(50, 2), &memory);
  std::atomic<bool> stop = false;
  RunOptions options;
  options.stop = &stop;
  options.progress = [&](const Progress& progress) { stop = progress.ctas_done > 0; };
  Gpu gpu(Machine(), options);
  const std::vector<LaunchRequest> launches = {{&program, "first", 0, {}}, {&program, "second", 0, {}}};
  const auto result = gpu.Run(launches);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(gpu.ended(), (std::vector<bool>{true, false}));
  EXPECT_EQ((*result)[0].counters.sm_ctas_launched, 50U);
}

}  // namespace
}  // namespace heddle::gpu
