// What the host writes between launches is what each launch sees, whether launches follow one another or overlap: on a kernel whose way
// depends on it.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "frontend/capture/merge.h"
#include "frontend/trace/build.h"
#include "frontend/trace/htrace.h"
#include "sim/config/load.h"
#include "tools/replay/trace_run.h"

namespace heddle {
namespace {

// Sequences are `length` tokens long: the kernel's loop runs as often.
trace::ResolvedContent const* LengthsOf(const trace::ResolvedTrace& resolved) {
  for (const trace::ResolvedContent& content : resolved.contents)
    if (resolved.buffers[content.buffer].name == "lengths") return &content;
  return nullptr;
}

std::vector<std::byte> Lengths(size_t bytes, int32_t length) {
  std::vector<std::byte> data(bytes);
  for (size_t at = 0; at + 4 <= bytes; at += 4) std::memcpy(&data[at], &length, 4);
  return data;
}

// The committed decode as a captured process would have it: plain numbers, addresses, one launch for each of `lengths`, which the host writes
// into the same buffer before each. Launches of different streams; `chained`: each waits for the one before.
trace::Trace Decode(const std::vector<int32_t>& lengths, bool chained) {
  auto original = trace::ReadTrace(HEDDLE_SOURCE_DIR "/traces/paged_decode.sm_80.htrace");
  EXPECT_TRUE(original.ok()) << original.error().ToString();
  const auto resolved = trace::Resolve(*original, trace::TypicalDevice(),
                                       {{"sequences", 2}, {"max_length", 256}, {"min_length", 64}});
  EXPECT_TRUE(resolved.ok()) << resolved.error().ToString();
  trace::Trace trace = std::move(*original);
  const trace::ResolvedContent& steering = *LengthsOf(*resolved);
  trace.defines.clear();
  trace.check.clear();
  trace.contents.clear();
  for (size_t b = 0; b < trace.buffers.size(); ++b) {
    trace.buffers[b].type = trace::DType::kU8;
    trace.buffers[b].shape.assign(1, trace::Expr(static_cast<int64_t>(resolved->buffers[b].size_bytes)));
    trace.buffers[b].address = resolved->buffers[b].address;
  }
  const auto add = [&](uint32_t buffer, uint32_t before, std::vector<std::byte> bytes) {
    trace::Content content;
    content.buffer = buffer;
    content.before_launch = before;
    content.rule.kind = trace::RuleKind::kBytes;
    content.rule.bytes = std::move(bytes);
    trace.contents.push_back(std::move(content));
  };
  for (const trace::ResolvedContent& content : resolved->contents) {
    if (content.before_launch != 0 || &content == &steering) continue;
    std::vector<std::byte> bytes(content.size_bytes);
    content.source->Fill(0, bytes);
    add(content.buffer, 0, std::move(bytes));
  }
  trace::Launch launch = trace.launches[0];
  const trace::ResolvedLaunch& plain = resolved->launches[0];
  launch.grid = {trace::Expr(plain.grid.x), trace::Expr(plain.grid.y), trace::Expr(plain.grid.z)};
  launch.block = {trace::Expr(plain.block.x), trace::Expr(plain.block.y), trace::Expr(plain.block.z)};
  launch.dynamic_shared_bytes = trace::Expr(plain.dynamic_shared_bytes);
  launch.parameters = plain.parameters;
  launch.patches.clear();
  trace.launches.clear();
  trace.edges.clear();
  for (uint32_t i = 0; i < lengths.size(); ++i) {
    add(steering.buffer, i, Lengths(steering.size_bytes, lengths[i]));
    launch.stream = i;
    trace.launches.push_back(launch);
    if (chained && i != 0) trace.edges.push_back({i - 1, i});
  }
  return trace;
}

struct Counted {
  std::vector<uint64_t> instructions;  // by selected launch
  bool sequential = false;
};

Counted CountInstructions(const trace::Trace& trace, replay::Mode mode,
                          const std::function<bool(uint32_t)>& wanted = nullptr) {
  const auto gpu = config::LoadGpu("a100_sxm4_80gb");
  EXPECT_TRUE(gpu.ok());
  replay::MachineRecord machine;
  machine.gpu = *gpu;
  const replay::NamedTrace named{trace, "digest", "decode.htrace"};
  replay::TraceRunOptions options;
  options.mode = mode;
  auto run = replay::TraceRun::Open(named, machine, options);
  EXPECT_TRUE(run.ok()) << run.error().ToString();
  (*run)->Select({.wanted = wanted});
  Counted counted;
  counted.sequential = (*run)->sequential();
  const Status status =
      (*run)->Run([](uint32_t) { return Result<bool>(false); },
                  [&](const replay::LaunchResult& result) -> Status {
                    counted.instructions.push_back(result.stats->counters.smsp_inst_executed);
                    return Ok();
                  });
  EXPECT_TRUE(status.ok()) << status.error().ToString();
  return counted;
}

uint64_t Alone(int32_t length) {
  return CountInstructions(Decode({length}, false), replay::Mode::kFull).instructions.at(0);
}

class Contents : public testing::TestWithParam<replay::Mode> {};
INSTANTIATE_TEST_SUITE_P(Replay, Contents, testing::Values(replay::Mode::kSkeleton, replay::Mode::kFull),
                         [](const auto& info) { return std::string(replay::Name(info.param)); });

TEST_P(Contents, LaunchesOfOverlappingStreamsSeeWhatWasWrittenForThem) {
  const std::vector<int32_t> lengths = {64, 200, 128};
  const std::vector<uint64_t> alone = {Alone(64), Alone(200), Alone(128)};
  ASSERT_LT(alone[0], alone[2]);
  ASSERT_LT(alone[2], alone[1]);
  const Counted together = CountInstructions(Decode(lengths, true), GetParam());
  EXPECT_FALSE(together.sequential);
  EXPECT_EQ(together.instructions, alone);
}

// A launch that is simulated alone finds what was written for the launches in front of it.
TEST_P(Contents, ASelectedLaunchSeesWhatWasWrittenBeforeIt) {
  trace::Trace trace = Decode({64, 200, 128}, true);
  std::erase_if(trace.contents, [](const trace::Content& content) { return content.before_launch == 2; });
  for (trace::Launch& launch : trace.launches) launch.stream = 0;  // one after the other
  const Counted last = CountInstructions(trace, GetParam(), [](uint32_t i) { return i == 2; });
  EXPECT_EQ(last.instructions, std::vector<uint64_t>{Alone(200)});
  trace = Decode({64, 200, 128, 100}, true);
  trace.edges.push_back({1, 3});
  const Counted two = CountInstructions(trace, GetParam(), [](uint32_t i) { return i == 1 || i == 3; });
  EXPECT_FALSE(two.sequential);
  EXPECT_EQ(two.instructions, (std::vector<uint64_t>{Alone(200), Alone(100)}));
}

// Two processes on the same addresses, one trace: each launch sees its own process's lengths.
TEST_P(Contents, LaunchesOfMergedProcessesSeeTheirOwn) {
  trace::Trace a = Decode({64, 200}, false), b = Decode({128, 100}, false);
  for (trace::Trace* each : {&a, &b})
    for (size_t i = 0; i < 2; ++i) {
      each->launches[i].stream = 0;
      each->launches[i].measured_start_ns = static_cast<int64_t>(1000 * i + (each == &b ? 500 : 0));
      each->launches[i].measured_end_ns = each->launches[i].measured_start_ns + 10;
    }
  const Result<capture::MergedTraces> merged = capture::MergeTraces({{"a", a}, {"b", b}});
  ASSERT_TRUE(merged.ok()) << merged.error().ToString();
  EXPECT_EQ(merged->relocated.size(), 1u);
  const Counted together = CountInstructions(merged->trace, GetParam());
  EXPECT_FALSE(together.sequential);
  EXPECT_EQ(together.instructions, (std::vector<uint64_t>{Alone(64), Alone(128), Alone(200), Alone(100)}));
}

}  // namespace
}  // namespace heddle
