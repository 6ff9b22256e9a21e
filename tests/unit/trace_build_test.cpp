// Launch descriptions: what they become, and what is said about each mistake and where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "frontend/trace/build.h"
#include "frontend/trace/htrace.h"
#include "tests/unit/fake_toolchain.h"

namespace heddle::trace {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Result<Trace> Build(const std::string& text, const BuildOptions& options = {}) {
  return BuildTraceFromText(text, "dir/d.launch.textproto", options, FakeToolchain());
}

std::string Replaced(const std::string& from, const std::string& to) {
  std::string text = kScaleDescription;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// The error of the description with one change, as the user sees it.
std::string ErrorWith(const std::string& from, const std::string& to) {
  const Result<Trace> trace = Build(Replaced(from, to));
  EXPECT_FALSE(trace.ok()) << from << " -> " << to;
  if (trace.ok()) return "";
  EXPECT_EQ(trace.error().code, ExitCode::kTrace);
  EXPECT_FALSE(trace.error().next_step.empty()) << trace.error().message;
  return trace.error().ToString();
}

template <typename T>
T At(const std::vector<std::byte>& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// proto3 takes any number for an enum; none of them may index a table.
TEST(TraceBuild, NumbersWithoutANameAreNoTypes) {
  EXPECT_THAT(ErrorWith("name: \"x\" type: f32", "name: \"x\" type: 32"),
              HasSubstr("buffer.type is a number"));
  EXPECT_THAT(ErrorWith("function: identity", "function: 99"), HasSubstr("function is a number"));
}

TEST(TraceBuild, DescribedLaunchResolvesForAMachine) {
  const Result<Trace> trace = Build(kScaleDescription);
  ASSERT_TRUE(trace.ok()) << trace.error().ToString();
  EXPECT_EQ(trace->name, "d");
  ASSERT_EQ(trace->functions.size(), 1u);
  EXPECT_EQ(trace->functions[0].name, "_Z5scalePfS_fi");
  ASSERT_EQ(trace->sass.size(), 1u);
  EXPECT_EQ(trace->sass[0].decoder_version, 7u);

  const auto small = Resolve(*trace, {{"sm_count", 3}});
  ASSERT_TRUE(small.ok()) << small.error().ToString();
  EXPECT_EQ(small->launches[0].grid, (Dim3{6, 1, 1}));  // 2 * 3 < 8
  const auto large = Resolve(*trace, {{"sm_count", 108}});
  EXPECT_EQ(large->launches[0].grid, (Dim3{8, 1, 1}));
  const ResolvedBuffer& x = large->buffers[0];
  EXPECT_EQ(x.address, kFirstBufferAddress);
  EXPECT_EQ(x.size_bytes, 4000u);
  const ResolvedBuffer& y = large->buffers[1];
  EXPECT_GE(y.address, x.address + x.size_bytes + 4096);
  EXPECT_EQ(y.address % 256, 0u);
  const std::vector<std::byte>& parameters = large->launches[0].parameters;
  EXPECT_EQ(At<uint64_t>(parameters, 0), y.address);
  EXPECT_EQ(At<uint64_t>(parameters, 8), x.address + 16);
  EXPECT_EQ(At<float>(parameters, 16), 1.0f);
  EXPECT_EQ(At<int32_t>(parameters, 20), 996);

  const auto other = Resolve(*trace, {{"sm_count", 108}}, {{"n", 2000}});
  EXPECT_EQ(other->launches[0].grid, (Dim3{16, 1, 1}));
  EXPECT_EQ(other->buffers[0].size_bytes, 8000u);
  EXPECT_THAT(Resolve(*trace, {{"sm_count", 108}}, {{"m", 1}}).error().ToString(), HasSubstr("no such name"));
  EXPECT_THAT(Resolve(*trace, {}).error().ToString(), HasSubstr("'sm_count' is not defined"));
}

TEST(TraceBuild, DefinesAreReplacedWhenBuilding) {
  BuildOptions options;
  options.defines = {{"n", "4 * 1024"}};
  const Result<Trace> trace = Build(kScaleDescription, options);
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(Resolve(*trace, TypicalDevice())->launches[0].grid.x, 32u);
  options.defines = {{"nn", "1"}};
  const Result<Trace> unknown = Build(kScaleDescription, options);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ExitCode::kUsage);
}

TEST(TraceBuild, StructsAreFieldsAtOffsets) {
  const std::string text = R"(module { cubin: "/dev/null" }
buffer { name: "b" type: u8 shape: ["64"] content { uniform { low: "0" high: "9" } } }
launch { kernel: "by_struct" grid: ["2", "3"]
  parameter { struct {
    field { at: "0" buffer: "b" offset: "8" }
    field { at: "8" int: "-5" }
    field { at: "12" real: "0.5" type: f16 }
    field { at: "16" struct { field { at: "8" int: "7" type: i64 } } } } } }
check { none: "test" })";
  const Result<Trace> none = Build(text);
  ASSERT_FALSE(none.ok());  // /dev/null is no regular file
  std::string with_cuda = text;
  with_cuda.replace(0, with_cuda.find('\n'),
                    "target: \"sm_80\" module { cuda { file: \"x.cu\" flag: \"-O3\" } }");
  const Result<Trace> trace = Build(with_cuda);
  ASSERT_TRUE(trace.ok()) << trace.error().ToString();
  const auto resolved = Resolve(*trace, TypicalDevice());
  EXPECT_EQ(resolved->launches[0].block, (Dim3{64, 2, 1}));  // the cubin's
  EXPECT_EQ(resolved->launches[0].grid, (Dim3{2, 3, 1}));
  const std::vector<std::byte>& p = resolved->launches[0].parameters;
  EXPECT_EQ(At<uint64_t>(p, 0), resolved->buffers[0].address + 8);
  EXPECT_EQ(At<int32_t>(p, 8), -5);
  EXPECT_EQ(At<uint16_t>(p, 12), 0x3800);
  EXPECT_EQ(At<int64_t>(p, 24), 7);
  EXPECT_EQ(At<uint64_t>(p, 16), 0u);
}

// The kernels of one operation take one struct: it is written once, and what differs replaces its fields.
TEST(TraceBuild, LaunchesShareTheParametersOfAnEarlierOne) {
  const auto text = [](const std::string& second) {
    return R"(target: "sm_80" module { cuda { file: "x.cu" flag: "-O3" } }
buffer { name: "b" type: u8 shape: ["64"] content { uniform { low: "0" high: "9" } } }
launch { name: "first" kernel: "by_struct" grid: ["1"]
  parameter { struct { field { at: "0" buffer: "b" } field { at: "8" int: "-5" } field { at: "12" raw: "abcd" } } } }
launch { )" +
           second + R"( grid: ["1"] }
check { none: "test" })";
  };
  const Result<Trace> trace = Build(text(
      R"(kernel: "by_struct" parameters_of: "first" parameter { struct { field { at: "0" buffer: "b" offset: "16" } } })"));
  ASSERT_TRUE(trace.ok()) << trace.error().ToString();
  const auto resolved = Resolve(*trace, TypicalDevice());
  ASSERT_TRUE(resolved.ok()) << resolved.error().ToString();
  const uint64_t b = resolved->buffers[0].address;
  EXPECT_EQ(At<uint64_t>(resolved->launches[0].parameters, 0), b);
  EXPECT_EQ(At<uint64_t>(resolved->launches[1].parameters, 0), b + 16);
  EXPECT_EQ(At<int32_t>(resolved->launches[1].parameters, 8), -5);
  EXPECT_EQ(At<char>(resolved->launches[1].parameters, 12), 'a');

  EXPECT_THAT(Build(text(R"(kernel: "by_struct" parameters_of: "frist")")).error().ToString(),
              HasSubstr("there is no earlier launch 'frist'"));
  EXPECT_THAT(Build(text(R"(kernel: "by_map" block: "32" parameters_of: "first")")).error().ToString(),
              HasSubstr("only kernels that take the same parameters can share them"));
}

TEST(TraceBuild, TensorMapsAreFields) {
  const auto text = [](const std::string& map) {
    return R"(target: "sm_80" define: "rows = 40" module { cuda { file: "x.cu" flag: "-O3" } }
buffer { name: "b" type: bf16 shape: ["rows", "96"] content { uniform { low: "0" high: "9" } } }
launch { kernel: "by_map" grid: ["1"] block: ["32"] repeat: "2"
  parameter { tensor_map { )" +
           map + R"( } } }
check { none: "test" })";
  };
  const Result<Trace> trace = Build(text(
      R"(buffer: "b" offset: "32" size: ["96", "rows - 1"] box: ["64", "8"] swizzle: swizzle_128b fill: fill_nan)"));
  ASSERT_TRUE(trace.ok()) << trace.error().ToString();
  ASSERT_EQ(trace->tensor_maps.size(), 2u);  // one for each launch
  const auto resolved = Resolve(*trace, TypicalDevice(), {{"rows", 50}});
  ASSERT_TRUE(resolved.ok()) << resolved.error().ToString();
  isa::TensorMap want;
  want.element = isa::TensorElement::kBF16;
  want.rank = 2;
  want.swizzle = isa::TensorSwizzle::k128B;
  want.fill = isa::TensorFill::kNan;
  want.address = resolved->buffers[0].address + 32;
  want.size = {96, 49, 1, 1, 1};
  want.stride_bytes[1] = 192;
  want.box = {64, 8, 1, 1, 1};
  for (const ResolvedLaunch& launch : resolved->launches) {
    ASSERT_EQ(launch.parameters.size(), isa::kTensorMapBytes);
    EXPECT_EQ(isa::DecodeTensorMap(std::span<const std::byte, 128>(launch.parameters.data(), 128)), want);
  }

  const auto fault = [&](const std::string& map) {
    const Result<Trace> built = Build(text(map));
    if (!built.ok()) return built.error().message;
    const auto bad = Resolve(*built, TypicalDevice());
    return bad.ok() ? std::string("none") : bad.error().message;
  };
  EXPECT_EQ(fault(R"(buffer: "c" size: ["8"] box: ["8"])"), "there is no buffer 'c'");
  EXPECT_EQ(fault(R"(buffer: "b" size: ["8", "8"] box: ["8"])"), "box has 1 entries for 2 dimensions");
  EXPECT_EQ(fault(R"(buffer: "b" element: "f17" size: ["8"] box: ["8"])"), "there is no element type 'f17'");
  EXPECT_EQ(fault(R"(buffer: "b" size: ["8"] box: ["4"])"),
            "rows of the box have 8 bytes, no multiple of 16");
  EXPECT_EQ(fault(R"(buffer: "b" size: ["96", "9"] box: ["96", "8"] swizzle: swizzle_128b)"),
            "rows of the box have 192 bytes, more than the swizzle's span of 128");
  EXPECT_EQ(fault(R"(buffer: "b" offset: "8" size: ["96"] box: ["64"])").find("address 0x"), 0u);
}

TEST(TraceBuild, RepeatsStreamsAndEdges) {
  const Result<Trace> trace = Build(
      Replaced("  kernel: \"scale\"\n", "  kernel: \"scale\" name: \"a\" stream: 3 repeat: \"2 + 1\"\n") +
      R"(launch { kernel: "scale" name: "b" after: "a" grid: ["1"] block: ["32"]
  parameter { ordinal: 1 buffer: "x" } parameter { int: "0" type: u32 } parameter { int: "n" } parameter { ordinal: 0 buffer: "y" } })");
  ASSERT_TRUE(trace.ok()) << trace.error().ToString();
  ASSERT_EQ(trace->launches.size(), 4u);
  EXPECT_EQ(trace->launches[2].stream, 3u);
  EXPECT_EQ(trace->edges, (std::vector<Edge>{{2, 3}}));
  EXPECT_EQ(trace->functions.size(), 1u);
}

TEST(TraceBuild, MistakesHaveAPlace) {
  EXPECT_THAT(ErrorWith("shape: [\"n\"] content { normal", "shpae: [\"n\"] content { normal"),
              StartsWith("dir/d.launch.textproto:6:35: Message type"));
  EXPECT_THAT(ErrorWith("shape: [\"n\"] content { normal", "shpae: [\"n\"] content { normal"),
              HasSubstr("did you mean 'shape'"));
  EXPECT_THAT(ErrorWith("\"ctas\"]", "\"ctsa\"]"),
              AllOf(StartsWith("dir/d.launch.textproto:10:3: \"ctsa\", column 1: 'ctsa' is not defined"),
                    HasSubstr("did you mean 'ctas'")));
  EXPECT_THAT(ErrorWith("define: \"n = 1000\"", "define: \"n 1000\""),
              StartsWith("dir/d.launch.textproto:3:1: \"n 1000\" is no definition"));
  EXPECT_THAT(ErrorWith("define: \"n = 1000\"", "define: \"sm_count = 4\""),
              HasSubstr("property of the device"));
  EXPECT_THAT(ErrorWith("kernel: \"scale\"", "kernel: \"scael\""),
              AllOf(StartsWith("dir/d.launch.textproto:9:3:"), HasSubstr("no kernel 'scael'"),
                    HasSubstr("_Z5scalePfS_fi")));
  EXPECT_THAT(ErrorWith("kernel: \"scale\"", "kernel: \"_Z\""), HasSubstr("part of 3 kernels' names"));
  EXPECT_THAT(ErrorWith("  kernel: \"scale\"\n", ""), HasSubstr("the module has 3 kernels"));
  EXPECT_THAT(ErrorWith("buffer: \"y\" }\n  parameter", "buffer: \"z\" }\n  parameter"),
              HasSubstr("no buffer 'z'"));
  EXPECT_THAT(ErrorWith("  parameter { name: \"n\" int: \"n - 4\" }\n", ""),
              HasSubstr("not given: 3 (4 bytes)"));
  EXPECT_THAT(ErrorWith("int: \"n - 4\"", "int: \"1 / 0\""), HasSubstr("division by zero"));
  EXPECT_THAT(ErrorWith("int: \"n - 4\"", "int: \"8589934592\""), HasSubstr("does not fit into 32 bits"));
  EXPECT_THAT(ErrorWith("int: \"n - 4\"", "int: \"n\" type: i64"), HasSubstr("the parameter has 4 bytes"));
  EXPECT_THAT(ErrorWith("int: \"n - 4\"", "raw: \"abc\""), HasSubstr("3 bytes are given"));
  EXPECT_THAT(ErrorWith("int: \"n - 4\" }", "int: \"n\" } parameter { int: \"1\" }"),
              HasSubstr("parameter 4 of a kernel that takes 4"));
  EXPECT_THAT(ErrorWith("  grid: [\"ctas\"]\n", ""), HasSubstr("the grid is not stated"));
  EXPECT_THAT(ErrorWith("  block: [\"128\"]\n", ""), HasSubstr("the block is not stated"));
  EXPECT_THAT(ErrorWith("block: [\"128\"]", "block: [\"2048\"]"), HasSubstr("between 1 and 1024"));
  EXPECT_THAT(ErrorWith("grid: [\"ctas\"]", "grid: [\"ctas\", \"1\", \"1\", \"1\"]"),
              HasSubstr("4 dimensions"));
  EXPECT_THAT(
      ErrorWith("type: f32 shape: [\"n\"] content { zeros {} }", "shape: [\"n\"] content { zeros {} }"),
      HasSubstr("no element type"));
  EXPECT_THAT(ErrorWith("shape: [\"n\"] content { zeros {} }", "shape: [\"n - n\"] content { zeros {} }"),
              HasSubstr("no possible extent"));
  EXPECT_THAT(ErrorWith("content { zeros {} }", ""), HasSubstr("contents of 'y' are not stated"));
  EXPECT_THAT(ErrorWith("content { zeros {} }", "content { list { value: \"x\" } }"),
              HasSubstr("'x' is not defined"));
  EXPECT_THAT(ErrorWith("content { zeros {} }", "content { file { path: \"no\" } }"),
              HasSubstr("there is no file 'dir/no'"));
  EXPECT_THAT(ErrorWith("name: \"y\" type", "name: \"x\" type"), HasSubstr("two buffers 'x'"));
  EXPECT_THAT(ErrorWith("target: \"sm_80\"\n", ""), HasSubstr("which architecture"));
  EXPECT_THAT(ErrorWith("sm_80", "sm_90"), HasSubstr("the cubin is for sm_80, the target is 'sm_90'"));
  EXPECT_THAT(ErrorWith("unary { x: \"x\"", "unary { x: \"q\""), HasSubstr("'q' is neither a buffer nor"));
  EXPECT_THAT(ErrorWith("reference: \"want\"", "reference: \"x\""), HasSubstr("is a buffer, not a result"));
  EXPECT_THAT(ErrorWith("compare { buffer: \"y\" reference: \"want\" }", ""), HasSubstr("compares nothing"));
  EXPECT_THAT(ErrorWith("doc:", "doc"), StartsWith("dir/d.launch.textproto:1:5:"));
}

TEST(TraceBuild, RefusesChecksThatAnyKernelPasses) {
  EXPECT_THAT(ErrorWith("normal { seed: 1 }", "zeros {}"),
              HasSubstr("every input of the check is constant: x"));
  EXPECT_THAT(ErrorWith("normal { seed: 1 }", "uniform { low: \"1\" high: \"1\" }"), HasSubstr("constant"));
  EXPECT_THAT(ErrorWith("normal { seed: 1 }", "list { value: \"3\" }"), HasSubstr("constant"));
  EXPECT_THAT(ErrorWith("normal { seed: 1 }", "unknown {}"), HasSubstr("contents of 'x' are unknown"));
}

// vLLM's moe_align_block_size by hand: pairs 0..5 go to experts 1 0 1 2 1 1, blocks of 2.
TEST(TraceBuild, MoeTablesByHand) {
  const auto table = [](const char* output, int size) {
    const std::string text = Replaced(
        "launch {\n  kernel",
        std::string("buffer { name: \"ids\" type: i32 shape: [\"6\"] content { list { value: [\"1\", \"0\", "
                    "\"1\", \"2\", \"1\", \"1\"] } } }\n"
                    "buffer { name: \"t\" type: i32 shape: [\"") +
            std::to_string(size) +
            "\"] content { moe_align { expert_ids: \"ids\" experts: \"3\" block: \"2\" output: " + output +
            " } } }\nlaunch {\n  kernel");
    const Result<Trace> trace = Build(text);
    EXPECT_TRUE(trace.ok()) << trace.error().ToString();
    std::vector<int32_t> values(static_cast<size_t>(size));
    std::memcpy(values.data(), trace->contents[3].rule.bytes.data(), values.size() * 4);
    return values;
  };
  EXPECT_EQ(table("sorted_token_ids", 10), (std::vector<int32_t>{1, 6, 0, 2, 4, 5, 3, 6, 6, 6}));
  EXPECT_EQ(table("block_expert_ids", 5), (std::vector<int32_t>{0, 1, 1, 2, -1}));
  EXPECT_EQ(table("padded_token_count", 1), (std::vector<int32_t>{8}));
  EXPECT_EQ(table("sorted_pairs", 6), (std::vector<int32_t>{1, 0, 2, 4, 5, 3}));
  EXPECT_EQ(table("expert_offsets", 4), (std::vector<int32_t>{0, 1, 5, 6}));
}

}  // namespace
}  // namespace heddle::trace
