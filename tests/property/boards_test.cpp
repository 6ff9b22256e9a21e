// Does every board that is described stream from DRAM at what its pins give, less what its description takes off?
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/config/load.h"
#include "sim/gpu/gpu.h"
#include "tests/support/scripted_kernel.h"

namespace heddle::gpu {
namespace {

constexpr uint64_t kBase = uint64_t{1} << 32;
constexpr uint32_t kWarpsPerCta = 4, kBytesPerWarp = 512, kIterations = 2;

std::vector<std::string> Boards() {
  std::vector<std::string> names;
  for (const config::ArchFile& arch : config::ListArchs()) {
    if (arch.path.parent_path().filename() != "future") names.push_back(arch.name);
  }
  return names;
}

class Board : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto gpu = config::LoadGpu(GetParam());
    ASSERT_TRUE(gpu.ok()) << gpu.error().ToString();
    gpu_ = std::move(gpu).value();
  }

  // Every warp reads 512 bytes in each of its iterations, all of them cold.
  stats::LaunchStats Read(uint32_t ctas) const {
    test::ScriptedKernel kernel;
    kernel.grid = {ctas, 1, 1};
    kernel.iterations = kIterations;
    kernel.bytes_per_lane = kBytesPerWarp / kWarpLanes;
    kernel.sm_version = gpu_.sm_version;
    const uint64_t warps = uint64_t{ctas} * kWarpsPerCta;
    kernel.load_address = [=](uint64_t warp, uint32_t i) {
      return kBase + (warp + i * warps) * kBytesPerWarp;
    };
    test::ScriptedMemory memory;
    test::ScriptedProgram program(kernel, &memory);
    Gpu gpu(gpu_, {});
    const auto stats = gpu.Run(std::vector<LaunchRequest>{{&program, "read", 0, {}}});
    EXPECT_TRUE(stats.ok()) << stats.error().ToString();
    return stats.ok() ? (*stats)[0] : stats::LaunchStats{};
  }

  // Between a launch and one of twice the CTAs, so that beginning and end cancel.
  double BytesPerCycle() const {
    const uint32_t ctas = gpu_.sm.count * gpu_.sm.max_warps / kWarpsPerCta;
    const uint64_t cycles = Read(2 * ctas).counters.sm_cycles_elapsed - Read(ctas).counters.sm_cycles_elapsed;
    return static_cast<double>(ctas) * kWarpsPerCta * kIterations * kBytesPerWarp /
           static_cast<double>(cycles);
  }

  config::Gpu gpu_;
};

TEST_P(Board, StreamsFromDramAtWhatItsPinsGive) {
  const double peak = gpu_.dram.bandwidth_gb_s * gpu_.dram.efficiency * 1e3 / gpu_.clocks.sm_mhz;
  const double reached = BytesPerCycle();
  EXPECT_LE(reached, peak);
  EXPECT_GE(reached, 0.8 * peak);  // refresh takes up to 7 %; what is left of beginning and end the rest
}

INSTANTIATE_TEST_SUITE_P(All, Board, testing::ValuesIn(Boards()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace heddle::gpu
