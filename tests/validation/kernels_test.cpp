// Does every kernel under kernels/ compute the right answer in the emulator, and does skeleton mode give its stream?

#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/emulator/device_memory.h"
#include "frontend/emulator/functional_runner.h"
#include "frontend/emulator/launch_program.h"
#include "frontend/trace/check.h"
#include "sim/config/load.h"
#include "tests/support/kernel_traces.h"
#include "tools/replay/replay.h"

namespace heddle {
namespace {

struct Executed {
  std::vector<uint64_t> stream_hashes;  // by launch
  trace::CheckReport check;             // full mode only
};

void ExpectNoIssues(const emulator::EmulatedLaunch& launch) {
  for (const isa::StreamIssue& issue : launch.Issues()) {
    ADD_FAILURE() << issue.kind << ": " << issue.detail << " (" << issue.count << " times)";
  }
}

Executed Execute(const trace::Trace& trace, const config::Gpu& gpu, replay::Mode mode) {
  Executed out;
  replay::Options options;
  options.mode = mode;
  auto replay = replay::Replay::Open(trace, gpu, options);
  EXPECT_TRUE(replay.ok()) << replay.error().ToString();
  if (!replay.ok()) return out;
  for (uint32_t i = 0; i < (*replay)->launch_count(); ++i) {
    auto launch = (*replay)->PrepareEmulated(i);
    EXPECT_TRUE(launch.ok()) << launch.error().ToString();
    if (!launch.ok()) return out;
    emulator::RunnerOptions runner;
    runner.sms = gpu.sm.count;
    runner.hash_stream = true;
    runner.max_warp_instructions = 20'000'000;
    const auto summary = emulator::RunFunctionally(**launch, runner);
    EXPECT_TRUE(summary.ok()) << summary.error().ToString();
    if (!summary.ok()) return out;
    ExpectNoIssues(**launch);
    out.stream_hashes.push_back(summary->stream_hash);
    (*replay)->Close(i);
  }
  if (mode == replay::Mode::kFull) {
    const auto read = [&](uint64_t address, std::span<std::byte> bytes) {
      return (*replay)->memory().Read(address, bytes);
    };
    auto check = trace::RunCheck(trace, (*replay)->resolved(), read);
    EXPECT_TRUE(check.ok()) << check.error().ToString();
    if (check.ok()) out.check = std::move(check).value();
  }
  return out;
}

const char* BoardOf(const std::string& target) {
  if (target == "sm_75") return "t4";
  if (target == "sm_80") return "a100_sxm4_80gb";
  if (target == "sm_86") return "a40";
  return target == "sm_89" ? "l40s" : "h100_sxm5";
}

class Kernel : public testing::TestWithParam<test::KernelCase> {};

TEST_P(Kernel, ComputesTheReferenceAndSkeletonModeGivesItsStream) {
  if (const auto missing = test::MissingTool(GetParam())) GTEST_SKIP() << *missing;
  const auto trace = test::BuildKernel(GetParam());
  ASSERT_TRUE(trace.has_value());
  const auto gpu = config::LoadGpu(BoardOf(GetParam().target));
  ASSERT_TRUE(gpu.ok()) << gpu.error().ToString();

  const Executed full = Execute(*trace, *gpu, replay::Mode::kFull);
  EXPECT_TRUE(full.check.passed() || !full.check.none.empty());
  for (const trace::Comparison& c : full.check.comparisons) {
    EXPECT_TRUE(c.passed) << c.buffer << ": " << c.outside << " of " << c.elements
                          << " elements are wrong; element " << c.worst_index << " is " << c.worst_got
                          << " and should be " << c.worst_want;
  }
  const Executed skeleton = Execute(*trace, *gpu, replay::Mode::kSkeleton);
  EXPECT_EQ(full.stream_hashes, skeleton.stream_hashes);
}

std::string Name(const testing::TestParamInfo<test::KernelCase>& info) {
  std::string name = info.param.description + "_" + info.param.target;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, Kernel, testing::ValuesIn(test::AllKernelCases()), Name);

}  // namespace
}  // namespace heddle
