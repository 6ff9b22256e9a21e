// Small kernels on an A100 against published counters: an element-wise ReLU in place under Nsight Compute, caches flushed,
// at the clock of each run (public set leleucas_ncu_a100, relu_fp32). What the model needs for a kernel of two elements
// is launch overhead; how time grows from there is not an input.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "frontend/trace/htrace.h"
#include "sim/config/load.h"
#include "sim/gpu/gpu.h"
#include "tools/replay/replay.h"

namespace heddle {
namespace {

struct Row {
  int64_t elements;
  int sm_mhz;
  double cycles;
  uint64_t dram_read_bytes;
};

stats::LaunchStats Simulate(const Row& row) {
  const auto trace = trace::ReadTrace(HEDDLE_SOURCE_DIR "/traces/tests/relu.sm_80.htrace");
  EXPECT_TRUE(trace.ok()) << trace.error().ToString();
  const std::vector<std::string> clock = {"clocks.sm_mhz=" + std::to_string(row.sm_mhz)};
  const auto machine = config::LoadGpu("a100_sxm4_80gb", clock);
  EXPECT_TRUE(machine.ok()) << machine.error().ToString();
  auto replay = replay::Replay::Open(*trace, *machine, {replay::Mode::kSkeleton, {{"n", row.elements}}});
  EXPECT_TRUE(replay.ok()) << replay.error().ToString();
  const auto program = (*replay)->Prepare(0);
  EXPECT_TRUE(program.ok()) << program.error().ToString();
  gpu::Gpu gpu(*machine, {});
  const gpu::LaunchRequest request{*program, "relu", 0, {}};
  const auto stats = gpu.Run({&request, 1});
  EXPECT_TRUE(stats.ok()) << stats.error().ToString();
  return stats->front();
}

// Largest error of a row and the mean of their sizes, in percent.
void ExpectCycles(const std::vector<Row>& rows, double largest_percent, double mean_percent) {
  double sum = 0;
  for (const Row& row : rows) {
    const stats::LaunchStats stats = Simulate(row);
    const double error = 100 * (static_cast<double>(stats.counters.sm_cycles_elapsed) / row.cycles - 1);
    EXPECT_LE(std::fabs(error), largest_percent)
        << row.elements << " elements: " << stats.counters.sm_cycles_elapsed << " cycles, " << row.cycles
        << " measured";
    // Reads only: what is written stays in L2. Data 120 TiB above the code shares its place in L2 (AddressMap), so the
    // 6 KiB that code and parameters have there are not read again.
    const auto measured = static_cast<double>(row.dram_read_bytes);
    EXPECT_NEAR(static_cast<double>(stats.counters.dram_read_bytes), measured,
                std::max(6200.0, 0.01 * measured))
        << row.elements << " elements";
    sum += std::fabs(error);
  }
  EXPECT_LE(sum / static_cast<double>(rows.size()), mean_percent);
}

TEST(LaunchA100, UpToSeventyThousandElements) {
  ExpectCycles({{2, 800, 3507, 256},
                {576, 834, 3631, 2432},
                {4480, 872, 3878, 18048},
                {12544, 877, 4067, 50304},
                {19968, 797, 3802, 80000},
                {32768, 871, 4095, 131200},
                {50176, 998, 4153, 200832},
                {69120, 969, 4339, 276608}},
               14, 9);
}

TEST(LaunchA100, UpToAMillionElements) {
  ExpectCycles({{131072, 909, 4623, 524416},
                {262144, 917, 5253, 1048704},
                {501760, 799, 6262, 2007168},
                {1075200, 1077, 8510, 4300928}},
               12, 8);
}

// launch.l2_bytes is fitted to two elements; the others say whether it is a launch's and not a kernel's.
TEST(LaunchA100, BytesInL2) {
  const std::vector<std::pair<int64_t, double>> measured = {
      {2, 122944}, {576, 132928}, {7992, 240416}, {19968, 414496}, {49152, 850016}, {250880, 3683648}};
  for (const auto& [elements, bytes] : measured) {
    const stats::LaunchStats stats = Simulate({elements, 900, 0, 0});
    EXPECT_NEAR(static_cast<double>(stats.counters.lts_t_bytes), bytes, 0.03 * bytes)
        << elements << " elements";
  }
}

}  // namespace
}  // namespace heddle
