// Is a trace put together from others what those say, and is what a profile shows found among them?
#include "tools/compare/from_profile.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "frontend/trace/htrace.h"
#include "sim/config/load.h"
#include "tests/support/shell.h"
#include "tests/unit/fake_toolchain.h"
#include "tools/compare/built_kernels.h"
#include "tools/compare/trace_sequence.h"
#include "tools/replay/replay.h"

namespace heddle::compare {
namespace {

using testing::HasSubstr;

const std::string kTraces = std::string(HEDDLE_SOURCE_DIR) + "/traces/";

TEST(RenameInExpression, WholeNamesOnly) {
  const std::map<std::string, std::string> names = {{"m", "l0_m"}, {"a", "l0_a"}};
  EXPECT_EQ(RenameInExpression("ceil_div(m, 128) * min(mm, 2Mi) + dim(a, 0) - 0x1a", names),
            "ceil_div(l0_m, 128) * min(mm, 2Mi) + dim(l0_a, 0) - 0x1a");
}

class FromProfileTest : public testing::Test {
 protected:
  static std::string Kernel(const std::string& name, const Dim3& grid, const Dim3& block, int start, int us) {
    return fmt::format(
        R"({{"ph":"X","cat":"kernel","name":"{}","pid":0,"ts":{},"dur":{},"args":{{"device":0,"stream":7,"grid":[{},{},{}],"block":[{},{},{}]}}}})",
        name, start, us, grid.x, grid.y, grid.z, block.x, block.y, block.z);
  }

  Result<FromProfile> Build(const std::vector<std::string>& events, bool every_launch) {
    std::ofstream(folder_ / "p.json")
        << fmt::format(R"({{"deviceProperties":[{{"id":0,"name":"NVIDIA A100"}}],"traceEvents":[{}]}})",
                       fmt::join(events, ","));
    FromProfileOptions options;
    options.traces = {kTraces + "gemm.sm_80.htrace", kTraces + "softmax.sm_80.htrace"};
    options.every_launch = every_launch;
    return TraceFromProfile(folder_ / "p.json", *config::LoadGpu("a100_sxm4_80gb"), options);
  }

  testing_support::TemporaryFolder folder_;
};

TEST_F(FromProfileTest, FindsByNameAndGridAndSaysHowMuch) {
  const trace::Symbols symbols = replay::DeviceSymbols(*config::LoadGpu("a100_sxm4_80gb"));
  const trace::Trace gemm = *trace::ReadTrace(kTraces + "gemm.sm_80.htrace"),
                     softmax = *trace::ReadTrace(kTraces + "softmax.sm_80.htrace");
  const trace::ResolvedLaunch rows = trace::Resolve(softmax, symbols)->launches[0];
  const std::vector<std::string> events = {Kernel("matmul", {32, 1, 1}, {128, 1, 1}, 100, 30),
                                           Kernel(softmax.functions[0].name, rows.grid, rows.block, 200, 10),
                                           Kernel("matmul", {32, 1, 1}, {128, 1, 1}, 300, 50),
                                           Kernel("matmul", {64, 1, 1}, {128, 1, 1}, 400, 60),
                                           Kernel("matmul", {32, 1, 1}, {64, 1, 1}, 450, 5),
                                           Kernel("nobody_knows", {1, 1, 1}, {32, 1, 1}, 500, 45)};
  const Result<FromProfile> result = Build(events, true);
  ASSERT_TRUE(result.ok()) << result.error().ToString();
  EXPECT_EQ(result->matched_launches, 4u);
  EXPECT_DOUBLE_EQ(result->CoveredPercent(), 100.0 * 150 / 200);
  EXPECT_EQ(result->kernels[0].launches, 2u);
  EXPECT_EQ(result->kernels[1].reason, "m=1024 to fit the grid");
  EXPECT_EQ(result->kernels[2].reason, "no trace has a kernel of this name");
  EXPECT_EQ(result->kernels.back().reason, "traces have it with other grids only");

  // In the profile's order, each with the parameters of its own trace, at its own addresses.
  ASSERT_TRUE(trace::WriteTrace(result->trace, folder_ / "x.htrace").ok());
  const Result<trace::ResolvedTrace> resolved =
      trace::Resolve(*trace::ReadTrace(folder_ / "x.htrace"), symbols);
  ASSERT_TRUE(resolved.ok()) << resolved.error().ToString();
  ASSERT_EQ(resolved->launches.size(), 4u);
  EXPECT_EQ(resolved->launches[1].grid, rows.grid);
  EXPECT_EQ(resolved->launches[0].parameters, resolved->launches[2].parameters);
  EXPECT_NE(resolved->launches[0].parameters, resolved->launches[3].parameters);
  const trace::ResolvedTrace wide = *trace::Resolve(gemm, symbols, {{"m", 1024}});
  EXPECT_EQ(resolved->launches[3].grid, wide.launches[0].grid);
  const auto tail = [](const trace::ResolvedLaunch& launch) {  // behind the three addresses
    return std::vector<std::byte>(launch.parameters.begin() + 24, launch.parameters.end());
  };
  EXPECT_EQ(tail(resolved->launches[3]), tail(wide.launches[0]));
  EXPECT_EQ(result->trace.launches[2].measured_start_ns, 300'000);
  EXPECT_EQ(result->trace.launches[2].measured_end_ns, 350'000);
  EXPECT_EQ(result->trace.device.name, "NVIDIA A100") << "what its times were measured on";
  EXPECT_EQ(result->trace.modules.size(), 2u);
  EXPECT_EQ(result->trace.functions.size(), 2u);

  // Each kernel and shape once, with the mean of its times.
  const Result<FromProfile> once = Build(events, false);
  ASSERT_EQ(once->trace.launches.size(), 3u);
  EXPECT_EQ(once->trace.launches[0].measured_end_ns - once->trace.launches[0].measured_start_ns, 40'000);
}

TEST_F(FromProfileTest, NothingFoundIsAnError) {
  const Result<FromProfile> result = Build({Kernel("nobody_knows", {1, 1, 1}, {32, 1, 1}, 1, 1)}, true);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ExitCode::kTrace);
  EXPECT_THAT(result.error().message, HasSubstr("nobody_knows: no trace has a kernel of this name"));
}

TEST(KernelOfDescription, IsNamedByTheLaunchOrByTritonsFile) {
  EXPECT_EQ(KernelOfDescription("module { cuda { file: \"a.cu\" } }\nlaunch {\n  kernel: \"f\"\n}\n"), "f");
  EXPECT_EQ(KernelOfDescription("module { triton { path: \"../b/{target}/g.json\" } }\nlaunch {\n}\n"), "g");
  EXPECT_EQ(KernelOfDescription("launch {\n}\n"), "");
}

// No trace has the kernel: it is built from its description, once.
TEST_F(FromProfileTest, KernelsThatCanBeBuiltAreBuiltAndKept) {
  std::filesystem::create_directories(folder_ / "kernels/cuda");
  std::ofstream(folder_ / "kernels/cuda/x.launch.textproto") << trace::kScaleDescription;
  std::ofstream(folder_ / "kernels/cuda/x.cu") << "code";
  std::ofstream(folder_ / "p.json") << fmt::format("{{\"traceEvents\":[{},{}]}}",
                                                   Kernel("scale", {8, 1, 1}, {128, 1, 1}, 100, 30),
                                                   Kernel("unknown", {8, 1, 1}, {128, 1, 1}, 200, 10));
  FromProfileOptions options;
  options.kernels = folder_ / "kernels";
  options.cache = folder_ / "cache";
  options.toolchain = trace::FakeToolchain();
  const config::Gpu gpu = *config::LoadGpu("a100_sxm4_80gb");
  const Result<FromProfile> first = TraceFromProfile(folder_ / "p.json", gpu, options);
  ASSERT_TRUE(first.ok()) << first.error().ToString();
  EXPECT_EQ(first->matched_launches, 1u);
  EXPECT_DOUBLE_EQ(first->CoveredPercent(), 75);
  EXPECT_THAT(first->kernels[0].trace, HasSubstr("cache/x.sm_80."));
  EXPECT_THAT(first->notes, testing::IsEmpty());
  options.toolchain.compile_cuda = [](const trace::CudaCompilation&,
                                      const std::string& place) -> Result<std::vector<std::byte>> {
    return Error{ExitCode::kTrace, place, "nvcc is not there", ""};
  };
  EXPECT_TRUE(TraceFromProfile(folder_ / "p.json", gpu, options).ok());
  // Another source is another kernel.
  std::ofstream(folder_ / "kernels/cuda/x.cu") << "other code";
  const Result<FromProfile> other = TraceFromProfile(folder_ / "p.json", gpu, options);
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().ToString(), HasSubstr("none of its 2 launches"));
}

}  // namespace
}  // namespace heddle::compare
