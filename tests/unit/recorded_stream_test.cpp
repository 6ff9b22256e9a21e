// Recorded warps: what the importer writes down is what the simulator is given, instruction by instruction, lane by lane.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "frontend/import/recorded_launch.h"
#include "frontend/trace/htrace.h"
#include "tests/support/shell.h"
#include "tests/support/traceg_writer.h"

namespace heddle::importer {
namespace {

using isa::MemorySpace;
using isa::Op;
using isa::StepKind;
using isa::WarpState;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A folder with one kernel, imported, written, read back and opened.
class RecordedStreamTest : public testing::Test {
 protected:
  TracegHeader header = TestHeader({1, 1, 1}, {32, 1, 1});
  std::vector<TestBlock> blocks;
  trace::Trace trace;
  trace::ResolvedTrace resolved;
  std::unique_ptr<RecordedLaunch> launch;

  void Open(bool lenient = false) {
    Result<Imported> imported = ImportText(TracegText(header, blocks), lenient);
    ASSERT_TRUE(imported.ok()) << imported.error().ToString();
    const testing_support::TemporaryFolder folder;
    const std::string file = folder / "x.htrace";
    const Status written = trace::WriteTrace(imported->trace, file);
    ASSERT_TRUE(written.ok()) << written.error().ToString();
    Result<trace::Trace> read = trace::ReadTrace(file);
    ASSERT_TRUE(read.ok()) << read.error().ToString();
    trace = std::move(*read);
    resolved = *trace::Resolve(trace, {});
    auto opened = RecordedLaunch::Open(trace, resolved.launches[0], 0);
    ASSERT_TRUE(opened.ok()) << opened.error().ToString();
    launch = std::move(*opened);
  }
  TestInstruction Load(uint32_t pc, std::vector<uint64_t> addresses, uint32_t mask = ~0u) {
    TestInstruction load{.pc = pc, .opcode = "LDG.E", .destination = 4, .sources = {2}, .mask = mask};
    load.width_bytes = 4;
    load.mode = AddressMode::kList;
    load.addresses = std::move(addresses);
    return load;
  }
  TestInstruction Exit(uint32_t pc, uint32_t mask = ~0u) {
    return {.pc = pc, .opcode = "EXIT", .mask = mask};
  }
};

isa::CtaStart FirstBlock() {
  return {.slot = 0, .cta = {0, 0, 0}, .sm = 0, .first_warp_slot = 0, .cycle = 0};
}

struct Played {
  uint32_t pc = 0;
  uint32_t mask = 0;
  std::vector<uint64_t> addresses;
  bool operator==(const Played&) const = default;
};

// Everything that a warp does until it ends; barriers open at once.
std::vector<Played> Play(isa::WarpStream* stream, uint32_t slot, uint32_t warp) {
  std::vector<Played> all;
  isa::WarpStep step;
  for (int i = 0; i < 1'000'000; ++i) {
    const isa::InstructionRun run = stream->NextRun(warp);
    if (run.state == WarpState::kFinished) return all;
    if (run.state == WarpState::kBlocked) {
      stream->ReleaseBarrier(slot, step.barrier.id);
      continue;
    }
    for (uint32_t k = 0; k < run.count; ++k) all.push_back({16 * (run.first + k), run.lanes, {}});
    stream->Execute(warp, 0, &step);
    EXPECT_EQ(step.lanes, run.lanes) << "a run and what ends it have one mask";
    EXPECT_EQ(step.index, run.first + run.count);
    Played& played = all.emplace_back(Played{16 * step.index, step.lanes, {}});
    if (step.kind == StepKind::kMemory)
      for (uint32_t lane = 0; lane < kWarpLanes; ++lane)
        if (step.memory.lanes >> lane & 1) played.addresses.push_back(step.memory.address[lane]);
    if (step.state == WarpState::kFinished) return all;
  }
  ADD_FAILURE() << "does not end";
  return all;
}

std::vector<Played> Wanted(const std::vector<TestInstruction>& warp) {
  std::vector<Played> all;
  for (const TestInstruction& each : warp)
    all.push_back({each.pc, each.mask, each.mask == 0 ? std::vector<uint64_t>{} : each.addresses});
  return all;
}

TEST_F(RecordedStreamTest, SampleOfEveryVersionComesBack) {
  blocks = SampleBlocks();
  for (uint32_t version = 1; version <= kNewestVersion; ++version) {
    header = TestHeader({2, 1, 1}, {64, 1, 1});
    header.version = version;
    Open();
    const auto stream = launch->OpenOnSm(0);
    for (uint32_t block = 0; block < 2; ++block) {
      stream->StartCta({.slot = block, .cta = blocks[block].id, .sm = 0, .first_warp_slot = 0, .cycle = 0});
      for (uint32_t w = 0; w < 2; ++w)
        EXPECT_EQ(Play(stream.get(), block, 2 * block + w), Wanted(blocks[block].warps[w])) << version;
      stream->EndCta(block);
    }
    EXPECT_THAT(launch->Issues(), IsEmpty());
    EXPECT_EQ(launch->recording().warp_instructions, 2u * (2 * 16));
  }
}

// Whatever the addresses, masks and ways are: random warps come back as they were.
TEST_F(RecordedStreamTest, RandomWarpsComeBack) {
  std::mt19937_64 random(7);
  header = TestHeader({6, 5, 2}, {96, 1, 1});
  for (uint32_t b = 0; b < 60; ++b) {
    TestBlock& block = blocks.emplace_back(TestBlock{{b % 6, b / 6 % 5, b / 30}, {}});
    for (uint32_t w = 0; w < 3; ++w) {
      std::vector<TestInstruction>& warp = block.warps.emplace_back();
      const uint64_t count = random() % 80;
      for (uint64_t i = 0; i < count; ++i) {
        const auto pc = static_cast<uint32_t>(16 * (random() % 3 == 0 ? random() % 40 : warp.size() % 40));
        uint32_t mask = random() % 2 == 0 ? ~0u : static_cast<uint32_t>(random());
        if (random() % 8 == 0) mask = 0;
        if (pc % 64 != 0) {
          warp.push_back(
              {.pc = pc, .opcode = pc % 32 == 0 ? "FFMA" : "IADD3", .destination = 1, .mask = mask});
          continue;
        }
        std::vector<uint64_t> addresses;
        uint64_t at = random() % 3 == 0 ? random() : 0x7f0000000000 + 4096 * b + 128 * w + 512 * i;
        for (uint32_t left = mask; left != 0; left &= left - 1) {
          addresses.push_back(at);
          at += random() % 3 == 0 ? random() : 4;
        }
        warp.push_back(Load(pc, addresses, mask));
      }
      if (random() % 5 != 0) warp.push_back(Exit(16 * 40));
    }
  }
  Open();
  const auto stream = launch->OpenOnSm(3);
  // Not in the order of the file.
  for (uint32_t i = 0; i < 60; ++i) {
    const TestBlock& block = blocks[i * 7 % 60];
    stream->StartCta({.slot = i % 3, .cta = block.id, .sm = 3, .first_warp_slot = 0, .cycle = 0});
    for (uint32_t w = 0; w < 3; ++w) {
      std::vector<Played> wanted = Wanted(block.warps[w]);
      // Nothing recorded: an EXIT behind all code.
      if (wanted.empty())
        wanted.push_back({16 * static_cast<uint32_t>(launch->code().instructions.size() - 1), ~0u, {}});
      EXPECT_EQ(Play(stream.get(), i % 3, 3 * (i % 3) + w), wanted);
    }
    stream->EndCta(i % 3);
  }
  EXPECT_THAT(launch->Issues(), IsEmpty());
}

// Blocks are found by their coordinates, not by their place in the file.
TEST_F(RecordedStreamTest, BlocksInAnyOrder) {
  header.grid = {2, 2, 1};
  for (const uint32_t b : {3u, 0u, 2u, 1u})
    blocks.push_back({{b % 2, b / 2, 0}, {{Load(0, Strided(0x1000 * (b + 1), 4)), Exit(16)}}});
  Open();
  const auto stream = launch->OpenOnSm(0);
  for (uint32_t b = 0; b < 4; ++b) {
    stream->StartCta({.slot = 0, .cta = {b % 2, b / 2, 0}, .sm = 0, .first_warp_slot = 0, .cycle = 0});
    EXPECT_EQ(Play(stream.get(), 0, 0)[0].addresses[0], 0x1000 * (b + 1));
    stream->EndCta(0);
  }
}

// A predicated EXIT that was recorded with all lanes, and the warp goes on: it ends where its instructions end.
TEST_F(RecordedStreamTest, ExitOfAllLanesInTheMiddle) {
  blocks = {
      {{0, 0, 0},
       {{Exit(0), {.pc = 16, .opcode = "NOP"}, Exit(32, 0xff), {.pc = 48, .opcode = "NOP", .mask = 0xf}}}}};
  Open();
  const auto stream = launch->OpenOnSm(0);
  stream->StartCta(FirstBlock());
  EXPECT_EQ(Play(stream.get(), 0, 0), Wanted(blocks[0].warps[0]));
}

TEST_F(RecordedStreamTest, SpacesOfGenericAccesses) {
  const uint64_t global = 0x7f0000000100, shared = header.shared_base + 0x40,
                 local = header.local_base + 0x80;
  TestInstruction load = Load(0, {global, shared, local}, 7);
  load.opcode = "LD.E";
  blocks = {{{0, 0, 0}, {{load, Exit(16)}}}};
  Open();
  const auto stream = launch->OpenOnSm(0);
  stream->StartCta(FirstBlock());
  isa::WarpStep step;
  stream->NextRun(0);
  stream->Execute(0, 0, &step);
  EXPECT_EQ(step.memory.space, MemorySpace::kGlobal);
  EXPECT_EQ(step.memory.lanes, 5u) << "local memory is backed by global memory";
  EXPECT_EQ(step.memory.address[0], global);
  EXPECT_EQ(step.memory.shared_lanes, 2u);
  EXPECT_EQ(step.memory.shared_address[1], 0x40u);
}

// Without base addresses all generic accesses are shared ones.
TEST_F(RecordedStreamTest, NoWindows) {
  header.shared_base = header.local_base = 0;
  TestInstruction store = Load(0, Strided(0x20, 4));
  store.opcode = "ST.E";
  blocks = {{{0, 0, 0}, {{store, Exit(16)}}}};
  Open();
  const auto stream = launch->OpenOnSm(0);
  stream->StartCta(FirstBlock());
  isa::WarpStep step;
  stream->NextRun(0);
  stream->Execute(0, 0, &step);
  EXPECT_EQ(step.memory.lanes, 0u);
  EXPECT_EQ(step.memory.shared_lanes, ~0u);
  EXPECT_EQ(step.memory.shared_address[31], 0x20u + 124);
}

// Local words of one offset lie side by side, warps apart.
TEST_F(RecordedStreamTest, LocalMemory) {
  header.block = {64, 1, 1};
  TestInstruction load = Load(0, std::vector<uint64_t>(32, header.local_base + 0xfff0));
  load.opcode = "LDL";
  blocks = {{{0, 0, 0}, {{load, Exit(16)}, {load, Exit(16)}}}};
  Open();
  const auto stream = launch->OpenOnSm(0);
  stream->StartCta(FirstBlock());
  isa::WarpStep a, b;
  stream->NextRun(0);
  stream->Execute(0, 0, &a);
  stream->NextRun(1);
  stream->Execute(1, 0, &b);
  EXPECT_EQ(a.memory.space, MemorySpace::kLocal);
  for (uint32_t lane = 1; lane < 32; ++lane)
    EXPECT_EQ(a.memory.address[lane], a.memory.address[0] + 4 * lane);
  EXPECT_GE(b.memory.address[0], a.memory.address[31] + 4);
}

// Lanes that went different ways arrive one after the other; the warp waits with the last ones.
TEST_F(RecordedStreamTest, BarriersOfPartialWarps) {
  const auto bar = [](uint32_t pc, uint32_t mask, int64_t immediate = 0) {
    return TestInstruction{
        .pc = pc, .opcode = "BAR.SYNC.DEFER_BLOCKING", .mask = mask, .immediate = immediate};
  };
  blocks = {{{0, 0, 0},
             {{bar(0, 0xff), bar(16, 0xffffff00), bar(32, ~0u, 3), bar(48, ~0u, 64), bar(64, 0), Exit(80)}}}};
  Open();
  const auto stream = launch->OpenOnSm(0);
  stream->StartCta(FirstBlock());
  isa::WarpStep step;
  std::vector<std::string> seen;
  for (int i = 0; i < 6; ++i) {
    ASSERT_EQ(stream->NextRun(0).state, WarpState::kRunnable);
    stream->Execute(0, 0, &step);
    seen.push_back(step.kind == StepKind::kBarrier ? "barrier " + std::to_string(step.barrier.id) + " of " +
                                                         std::to_string(step.barrier.expected_threads)
                                                   : "none");
    if (step.kind != StepKind::kBarrier) continue;
    EXPECT_EQ(step.state, WarpState::kBlocked);
    EXPECT_EQ(stream->NextRun(0).state, WarpState::kBlocked);
    stream->ReleaseBarrier(0, static_cast<uint8_t>(step.barrier.id + 1));
    EXPECT_EQ(stream->NextRun(0).state, WarpState::kBlocked) << "another barrier";
    stream->ReleaseBarrier(0, step.barrier.id);
  }
  EXPECT_THAT(seen,
              ElementsAre("none", "barrier 0 of 0", "barrier 3 of 0", "barrier 2 of 64", "none", "none"));
  EXPECT_EQ(trace.functions[0].barriers, 4u);
}

// What stands in a line, as operands: widths from the opcode, registers behind a predicate found again.
TEST_F(RecordedStreamTest, CodeOfTheKernel) {
  const auto plain = [](uint32_t pc, const char* opcode, std::optional<int> to, std::vector<int> from) {
    return TestInstruction{.pc = pc, .opcode = opcode, .destination = to, .sources = std::move(from)};
  };
  TestInstruction wide = Load(0x10, Strided(0x1000, 16));
  wide.opcode = "LDG.E.128";
  TestInstruction copy = Load(0x20, Strided(0x1000, 16));
  copy.opcode = "LDGSTS.E.BYPASS.LTC128B.128";
  copy.destination.reset();
  copy.sources = {4, 12};
  TestInstruction depbar{.pc = 0x40, .opcode = "DEPBAR.LE", .immediate = 3};
  blocks = {
      {{0, 0, 0},
       {{plain(0, "HMMA.16816.F32", 32, {108, 26, 32}), wide, copy, plain(0x30, "LDGDEPBAR", {}, {}), depbar,
         plain(0x50, "SHFL.BFLY", {}, {7, 8}), plain(0x60, "ISETP.GE.AND", {}, {4, 5}), Exit(0x70)}}}};
  Open();
  const isa::KernelCode& code = launch->code();
  EXPECT_FALSE(code.has_control_bits);
  EXPECT_EQ(code.sm_version, 80u);
  ASSERT_EQ(code.instructions.size(), 9u) << "and the EXIT behind all code";
  EXPECT_EQ(isa::ToString(code.instructions[0]), "HMMA.16816.F32 R32, R108, R26, R32");
  EXPECT_EQ(code.instructions[0].operands[0].width, 4);
  EXPECT_EQ(code.instructions[0].operands[1].width, 4);
  EXPECT_EQ(code.instructions[0].operands[2].width, 2);
  EXPECT_EQ(code.instructions[1].operands[0].width, 4);
  EXPECT_TRUE(code.instructions[1].operands[1].Has(isa::kAddress64));
  EXPECT_EQ(code.instructions[2].operands[1].kind, isa::OperandKind::kMemory);
  EXPECT_EQ(code.instructions[3].control.write_barrier, 0);
  EXPECT_EQ(code.instructions[4].operands[1].value, 3);
  EXPECT_TRUE(code.instructions[5].operands[0].is_destination) << "SHFL PT, R7, R8";
  EXPECT_FALSE(code.instructions[6].operands[0].is_destination);
}

// Functions alias: the same pc with other instructions. Each has its own place.
TEST_F(RecordedStreamTest, VariantsOfOnePc) {
  blocks = {{{0, 0, 0},
             {{{.pc = 0, .opcode = "MOV", .destination = 1},
               {.pc = 0, .opcode = "FADD", .destination = 2},
               {.pc = 16, .opcode = "IADD3", .destination = 3},
               Exit(32)}}}};
  Open();
  const auto stream = launch->OpenOnSm(0);
  stream->StartCta(FirstBlock());
  std::vector<Op> ops;
  for (const Played& each : Play(stream.get(), 0, 0))
    ops.push_back(launch->code().instructions[each.pc / 16].op);
  EXPECT_THAT(ops, ElementsAre(Op::kMOV, Op::kFADD, Op::kIADD3, Op::kEXIT));
  EXPECT_EQ(launch->code().instructions.size(), 2u * 3 + 1);
}

TEST_F(RecordedStreamTest, OccupancyAndCopiesComeFromTheFiles) {
  blocks = {{{0, 0, 0}, {{Exit(0)}}}};
  Open();
  EXPECT_EQ(launch->shape().registers_per_thread, 32u);
  EXPECT_EQ(launch->shape().shared_bytes_per_cta, 1024u + 1024u) << "the system's KiB of sm_80 is added";
  ASSERT_EQ(trace.buffers.size(), 1u);
  EXPECT_EQ(trace.buffers[0].address, 0x7f0000000000u);
  EXPECT_THAT(trace.contents, IsEmpty());
}

TEST_F(RecordedStreamTest, FaultsStopTheImportUnlessLenient) {
  blocks = {{{0, 0, 0},
             {{{.pc = 0, .opcode = "FROBNICATE.E", .destination = 1, .sources = {2, 3}},
               {.pc = 16, .opcode = "UTMALDG.2D"},
               Load(32, Strided(0x1000, 4)),
               Exit(48)}}}};
  blocks[0].warps[0][2].opcode = "LDX.E";
  const Result<Imported> strict = ImportText(TracegText(header, blocks));
  ASSERT_FALSE(strict.ok());
  EXPECT_EQ(strict.error().code, ExitCode::kTrace);
  EXPECT_EQ(strict.error().place, "kernel-1.traceg:23");
  EXPECT_THAT(strict.error().message, HasSubstr("kernel-1.traceg:23: an unknown opcode: FROBNICATE.E"));
  EXPECT_THAT(strict.error().message,
              HasSubstr("kernel-1.traceg:24: an instruction whose recorded form says too little"));
  Open(true);
  const auto& instructions = launch->code().instructions;
  EXPECT_EQ(instructions[0].op, Op::kNOP);
  EXPECT_EQ(instructions[1].op, Op::kNOP);
  EXPECT_EQ(instructions[2].op, Op::kLDG) << "it has addresses and a destination";
  std::vector<std::string> notes;
  for (const trace::RecordingNote& note : launch->recording().notes)
    notes.push_back(note.kind + ": " + note.detail + " x " + std::to_string(note.count));
  EXPECT_THAT(notes, ElementsAre("damaged_recording: an instruction whose recorded form says too little x 1",
                                 "damaged_recording: an unknown opcode x 2"));
}

TEST_F(RecordedStreamTest, MissingBlocksAndWarps) {
  header = TestHeader({3, 1, 1}, {64, 1, 1});
  blocks = {{{0, 0, 0}, {{Exit(0)}}}, {{2, 0, 0}, {{Exit(0)}, {Exit(0)}}}};
  EXPECT_THAT(ImportText(TracegText(header, blocks)).error().message,
              HasSubstr("not as many blocks as the grid has: 2 of 3"));
  Open(true);
  const auto stream = launch->OpenOnSm(0);
  for (uint32_t b = 0; b < 3; ++b) {
    stream->StartCta({.slot = 0, .cta = {b, 0, 0}, .sm = 0, .first_warp_slot = 0, .cycle = 0});
    for (uint32_t w = 0; w < 2; ++w) EXPECT_EQ(Play(stream.get(), 0, w).size(), 1u);
    stream->EndCta(0);
  }
  EXPECT_EQ(launch->recording().notes.front().kind, "warps_not_recorded");
  EXPECT_EQ(launch->recording().notes.front().count, 3u) << "warp 1 of block 0, both of block 1";
}

// Bytes that are not what the importer writes end warps, are counted, and nothing else.
TEST_F(RecordedStreamTest, DamagedRowsAreNoticed) {
  blocks = SampleBlocks();
  header = TestHeader({2, 1, 1}, {64, 1, 1});
  Open();
  std::mt19937 random(3);
  uint32_t noticed = 0;
  for (int i = 0; i < 300; ++i) {
    trace::Trace damaged = trace;
    auto row = trace::DecodeRecording(damaged.warp_streams[1].bytes, "");
    ASSERT_TRUE(row.ok());
    auto& chunk = std::get<trace::RecordingChunk>(*row);
    std::string& bytes = i % 3 == 0 ? chunk.firsts : chunk.tokens;
    bytes[random() % bytes.size()] = static_cast<char>(random());
    damaged.warp_streams[1].bytes = trace::EncodeRecording(chunk);
    auto opened = RecordedLaunch::Open(damaged, resolved.launches[0], 0);
    ASSERT_TRUE(opened.ok());
    const auto stream = (*opened)->OpenOnSm(0);
    for (uint32_t b = 0; b < 2; ++b) {
      stream->StartCta({.slot = 0, .cta = {b, 0, 0}, .sm = 0, .first_warp_slot = 0, .cycle = 0});
      for (uint32_t w = 0; w < 2; ++w)
        for (const Played& each : Play(stream.get(), 0, w))
          ASSERT_LT(each.pc / 16, (*opened)->code().instructions.size());
      stream->EndCta(0);
    }
    noticed += !(*opened)->Issues().empty();
  }
  EXPECT_GT(noticed, 50u);
}

}  // namespace
}  // namespace heddle::importer
