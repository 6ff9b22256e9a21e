// What must hold of every replay of recorded instructions: the same result on any number of threads, in any order and with
// any window length; every recorded instruction issues once; the machine's speed matters, the recording's text does not.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <numeric>
#include <string>
#include <vector>

#include "sim/config/load.h"
#include "sim/gpu/gpu.h"
#include "tests/support/traceg_writer.h"
#include "tools/replay/replay.h"

namespace heddle {
namespace {

using importer::AddressMode;
using importer::Strided;
using importer::TestBlock;
using importer::TestInstruction;
using importer::TracegHeader;

constexpr uint32_t kWarps = 4;
constexpr Dim3 kGrid{24, 10, 1};

TestInstruction Plain(uint32_t pc, const char* opcode, std::optional<int> to = {},
                      std::vector<int> from = {}) {
  return {.pc = pc, .opcode = opcode, .destination = to, .sources = std::move(from)};
}

TestInstruction Access(uint32_t pc, const char* opcode, std::optional<int> to, std::vector<int> from,
                       uint32_t width, std::vector<uint64_t> addresses) {
  TestInstruction out = Plain(pc, opcode, to, std::move(from));
  out.width_bytes = width;
  out.mode = AddressMode::kDelta;
  out.addresses = std::move(addresses);
  return out;
}

// A pipelined matrix multiplication in small: copies in two groups, matrices, a reduction with atomics, and a partial warp
// that scatters.
std::vector<TestInstruction> Warp(uint32_t block, uint32_t warp) {
  std::vector<TestInstruction> out{Plain(0x00, "S2R", 0), Plain(0x10, "IMAD.WIDE", 4, {0, 2})};
  const uint64_t a = 0x7f0000000000 + 0x8000 * (block % kGrid.x),
                 b = 0x7f1000000000 + 0x8000 * (block / kGrid.x);
  const auto copy = [&](uint32_t i) {
    out.push_back(
        Access(0x20, "LDGSTS.E.BYPASS.LTC128B.128", {}, {10, 4}, 16, Strided(a + 2048 * i + 512 * warp, 16)));
    out.push_back(
        Access(0x30, "LDGSTS.E.BYPASS.LTC128B.128", {}, {12, 6}, 16, Strided(b + 2048 * i + 512 * warp, 16)));
    out.push_back(Plain(0x40, "LDGDEPBAR"));
  };
  copy(0);
  for (uint32_t i = 0; i < 6; ++i) {
    copy(i + 1);
    TestInstruction depbar = Plain(0x50, "DEPBAR.LE");
    depbar.immediate = 1;
    out.push_back(depbar);
    out.push_back(Plain(0x60, "BAR.SYNC.DEFER_BLOCKING"));
    out.push_back(Access(0x70, "LDSM.16.M88.4", 16, {8}, 2, Strided(512 * warp, 16)));
    out.push_back(Access(0x80, "LDSM.16.MT88.4", 20, {8}, 2, Strided(2048, 144)));
    for (int k = 0; k < 4; ++k)
      out.push_back(
          Plain(0x90 + 16 * static_cast<uint32_t>(k), "HMMA.16816.F32", 32 + 4 * k, {16, 20, 32 + 4 * k}));
    out.push_back(Plain(0xd0, "BAR.SYNC.DEFER_BLOCKING"));
    out.push_back(Plain(0xe0, "MUFU.EX2", 50, {32}));
    out.push_back(Plain(0xf0, "BRA"));
  }
  out.push_back(
      Access(0x100, "STG.E.128", {}, {4, 32}, 16, Strided(0x7f2000000000 + 0x2000 * block + 512 * warp, 16)));
  out.push_back(Access(0x110, "RED.E.ADD.STRONG.GPU", {}, {4, 50}, 4,
                       std::vector<uint64_t>(32, 0x7f3000000000 + 4 * warp)));
  std::vector<uint64_t> scattered;
  for (uint64_t i = 0; i < 5; ++i)
    scattered.push_back(0x7f4000000000 + (block * 7919 + warp * 104729 + i * 15485863) % 0x800000 * 4);
  TestInstruction gather = Access(0x120, "LDG.E", 60, {4}, 4, scattered);
  gather.mask = 0x00842111;
  out.push_back(gather);
  out.push_back(Plain(0x130, "FADD", 61, {60, 60}));
  out.push_back(Plain(0x140, "EXIT"));
  return out;
}

const trace::Trace& SmallTrace() {
  static const trace::Trace trace = [] {
    TracegHeader header = importer::TestHeader(kGrid, {32 * kWarps, 1, 1});
    header.registers = 96;
    header.shared_bytes = 8192;
    std::vector<TestBlock> blocks;
    for (uint32_t b = 0; b < kGrid.x * kGrid.y; ++b) {
      TestBlock& block = blocks.emplace_back(TestBlock{{b % kGrid.x, b / kGrid.x, 0}, {}});
      for (uint32_t w = 0; w < kWarps; ++w) block.warps.push_back(Warp(b, w));
    }
    auto imported = importer::ImportText(importer::TracegText(header, blocks));
    EXPECT_TRUE(imported.ok()) << imported.error().ToString();
    return std::move(imported->trace);
  }();
  return trace;
}

stats::LaunchStats Simulate(const gpu::RunOptions& options, const std::vector<std::string>& overrides = {}) {
  const auto machine = config::LoadGpu("a100_sxm4_80gb", overrides);
  EXPECT_TRUE(machine.ok()) << machine.error().ToString();
  auto replay = replay::Replay::Open(SmallTrace(), *machine, {});
  EXPECT_TRUE(replay.ok()) << replay.error().ToString();
  const auto program = (*replay)->Prepare(0);
  EXPECT_TRUE(program.ok()) << program.error().ToString();
  EXPECT_EQ((*replay)->execution(0), "recorded");
  gpu::Gpu gpu(*machine, options);
  const gpu::LaunchRequest request{*program, "recorded", 0, {}};
  const auto stats = gpu.Run({&request, 1});
  EXPECT_TRUE(stats.ok()) << stats.error().ToString();
  EXPECT_TRUE((*program)->Issues().empty());
  EXPECT_FALSE((*replay)->notes(0).empty()) << "the results must say that it was recorded";
  return stats->front();
}

std::string Everything(const stats::LaunchStats& stats) {
  std::string text = fmt::format("{} {}\n", stats.start_cycle, stats.end_cycle);
  for (const stats::CounterDef& def : stats::CounterDefs())
    text += fmt::format("{} {}\n", def.name, stats.counters.*def.member);
  for (const stats::PcStats& pc : stats.per_pc) {
    text += fmt::format("{}", pc.issued);
    for (const uint64_t slots : pc.slots) text += fmt::format(" {}", slots);
    text += '\n';
  }
  return text;
}

Cycle CyclesOf(const stats::LaunchStats& stats) { return stats.end_cycle - stats.start_cycle; }

TEST(RecordedReplay, ThreadsAndOrderDoNotMatter) {
  gpu::RunOptions options;
  const std::string one = Everything(Simulate(options));
  for (const uint32_t threads : {2u, 7u}) {
    options.threads = threads;
    options.shuffle_seed = 1000 + threads;
    EXPECT_EQ(Everything(Simulate(options)), one) << threads << " threads";
  }
}

TEST(RecordedReplay, TheWindowsLengthDoesNotMatter) {
  gpu::RunOptions options;
  const Cycle whole = CyclesOf(Simulate(options));
  options.window_fraction = 0.5;
  EXPECT_NEAR(static_cast<double>(CyclesOf(Simulate(options))), static_cast<double>(whole),
              0.01 * static_cast<double>(whole));
}

TEST(RecordedReplay, EveryInstructionIssuesOnce) {
  const stats::LaunchStats stats = Simulate({});
  uint64_t instructions = 0, threads = 0;
  for (uint32_t b = 0; b < kGrid.x * kGrid.y; ++b) {
    for (uint32_t w = 0; w < kWarps; ++w) {
      for (const TestInstruction& each : Warp(b, w)) {
        ++instructions;
        threads += static_cast<uint64_t>(std::popcount(each.mask));
      }
    }
  }
  EXPECT_EQ(stats.counters.smsp_inst_executed, instructions);
  EXPECT_EQ(stats.counters.smsp_thread_inst_executed, threads);
}

// The machine's dependence mode says nothing about code without control bits.
TEST(RecordedReplay, ScoreboardWhateverTheDescriptionSays) {
  EXPECT_EQ(Everything(Simulate({}, {"dependence=control_bits"})),
            Everything(Simulate({}, {"dependence=interlocked"})));
}

// Groups of copies, barriers and results are waited for: with a slower memory the kernel is slower.
TEST(RecordedReplay, WaitsForWhatIsSlow) {
  const Cycle normal = CyclesOf(Simulate({}));
  EXPECT_GT(CyclesOf(Simulate({}, {"dram.latency_ns=2000"})), normal + 500);
}

}  // namespace
}  // namespace heddle
