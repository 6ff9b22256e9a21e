// Traces that lack something, and launches that steer later ones: on real kernels, told or handled, never guessed.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "frontend/trace/htrace.h"
#include "sim/config/load.h"
#include "sim/gpu/gpu.h"
#include "tools/replay/replay.h"

namespace heddle {
namespace {

const trace::Symbols kSmall = {{"sequences", 2}, {"max_length", 256}, {"min_length", 64}, {"rows", 64}};

trace::Trace Read(const std::string& name) {
  auto trace = trace::ReadTrace(HEDDLE_SOURCE_DIR "/traces/" + name);
  EXPECT_TRUE(trace.ok()) << trace.error().ToString();
  return *trace;
}

trace::Symbols DefinesOf(const trace::Trace& trace) {
  trace::Symbols defines;
  for (const auto& [name, value] : trace.defines)
    if (const auto small = kSmall.find(name); small != kSmall.end()) defines.insert(*small);
  return defines;
}

void Withhold(trace::Trace* trace, const std::string& buffer) {
  size_t found = 0;
  for (trace::Content& content : trace->contents) {
    if (trace->buffers[content.buffer].name != buffer) continue;
    content.rule = {};  // RuleKind::kUnknown
    ++found;
  }
  ASSERT_GT(found, 0u) << buffer;
}

std::vector<isa::StreamIssue> IssuesOf(const trace::Trace& trace, replay::Mode mode) {
  const auto machine = config::LoadGpu("a100_sxm4_80gb");
  auto replay = replay::Replay::Open(trace, *machine, {mode, DefinesOf(trace)});
  EXPECT_TRUE(replay.ok()) << replay.error().ToString();
  const auto program = (*replay)->Prepare(0);
  EXPECT_TRUE(program.ok()) << program.error().ToString();
  gpu::Gpu gpu(*machine, {});
  const gpu::LaunchRequest request{*program, "k", 0, {}};
  const auto stats = gpu.Run({&request, 1});
  EXPECT_TRUE(stats.ok()) << stats.error().ToString();
  return (*program)->Issues();
}

bool Has(const std::vector<isa::StreamIssue>& issues, const std::string& kind, const std::string& words) {
  return std::any_of(issues.begin(), issues.end(), [&](const isa::StreamIssue& issue) {
    return issue.kind == kind && issue.count > 0 && issue.detail.find(words) != std::string::npos;
  });
}

class Withheld : public testing::TestWithParam<replay::Mode> {};
INSTANTIATE_TEST_SUITE_P(Replay, Withheld, testing::Values(replay::Mode::kSkeleton, replay::Mode::kFull),
                         [](const auto& info) {
                           return info.param == replay::Mode::kFull ? "full" : "skeleton";
                         });

// Which page of the cache a paged kernel reads stands in the block table.
TEST_P(Withheld, BlockTableReachesAddresses) {
  trace::Trace trace = Read("paged_decode.sm_80.htrace");
  EXPECT_TRUE(IssuesOf(trace, GetParam()).empty());
  Withhold(&trace, "block_table");
  const auto issues = IssuesOf(trace, GetParam());
  EXPECT_TRUE(Has(issues, "unknown_address", "LDG")) << issues.size();
  EXPECT_FALSE(Has(issues, "unknown_branch", ""));
}

// How far it goes stands in the lengths.
TEST_P(Withheld, LengthsReachBranches) {
  trace::Trace trace = Read("paged_decode.sm_80.htrace");
  Withhold(&trace, "lengths");
  EXPECT_TRUE(Has(IssuesOf(trace, GetParam()), "unknown_branch", ""));
}

// Keys and values decide nothing: without them the trace is as complete as before.
TEST_P(Withheld, DataThatSteersNothingIsNotMissed) {
  trace::Trace trace = Read("paged_decode.sm_80.htrace");
  Withhold(&trace, "key_cache");
  Withhold(&trace, "value_cache");
  EXPECT_TRUE(IssuesOf(trace, GetParam()).empty());
}

// Both traces' launches in one trace, `first` before `second`.
trace::Trace Joined(trace::Trace first, const trace::Trace& second) {
  const auto modules = static_cast<uint32_t>(first.modules.size());
  const auto functions = static_cast<uint32_t>(first.functions.size());
  const auto buffers = static_cast<uint32_t>(first.buffers.size());
  first.defines.insert(first.defines.end(), second.defines.begin(), second.defines.end());
  first.modules.insert(first.modules.end(), second.modules.begin(), second.modules.end());
  for (trace::Function function : second.functions) {
    function.module += modules;
    first.functions.push_back(std::move(function));
  }
  for (trace::Sass sass : second.sass) {
    sass.function += functions;
    first.sass.push_back(std::move(sass));
  }
  for (trace::Buffer buffer : second.buffers) {
    buffer.name = "second_" + buffer.name;
    first.buffers.push_back(std::move(buffer));
  }
  for (trace::Content content : second.contents) {
    content.buffer += buffers;
    first.contents.push_back(std::move(content));
  }
  for (trace::Launch launch : second.launches) {
    launch.function += functions;
    for (trace::ParameterPatch& patch : launch.patches)
      if (patch.buffer != trace::kNone) patch.buffer += buffers;
    first.launches.push_back(std::move(launch));
  }
  return first;
}

std::vector<std::string> ExecutionsOf(const trace::Trace& trace) {
  const auto machine = config::LoadGpu("a100_sxm4_80gb");
  auto replay = replay::Replay::Open(trace, *machine, {replay::Mode::kSkeleton, DefinesOf(trace)});
  EXPECT_TRUE(replay.ok()) << replay.error().ToString();
  std::vector<std::string> executions;
  for (uint32_t i = 0; i < (*replay)->launch_count(); ++i) {
    EXPECT_TRUE((*replay)->Prepare(i).ok());
    executions.push_back((*replay)->execution(i));
  }
  return executions;
}

// Softmax alone is replayed by its slice. Before a kernel that memory steers it must store real values, for these might
// be that kernel's block table; behind it, or before a kernel that nothing steers, it need not.
TEST(Skeleton, ALaunchBeforeOneThatMemorySteersRunsInFull) {
  const trace::Trace softmax = Read("softmax.sm_80.htrace");
  const trace::Trace decode = Read("paged_decode.sm_80.htrace");
  const trace::Trace norm = Read("rms_norm.sm_80.htrace");
  const std::string alone = ExecutionsOf(softmax).front();
  EXPECT_NE(alone, "full");
  EXPECT_EQ(ExecutionsOf(Joined(softmax, decode)).front(), "full");
  EXPECT_EQ(ExecutionsOf(Joined(decode, softmax)).back(), alone);
  trace::Trace two = norm;
  two.defines.erase(std::remove_if(two.defines.begin(), two.defines.end(),
                                   [&](const auto& define) {
                                     return std::any_of(
                                         softmax.defines.begin(), softmax.defines.end(),
                                         [&](const auto& each) { return each.first == define.first; });
                                   }),
                    two.defines.end());
  EXPECT_EQ(ExecutionsOf(Joined(softmax, two)).front(), alone);
}

}  // namespace
}  // namespace heddle
