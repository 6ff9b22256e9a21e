// Accel-Sim's text: every version and every quirk of its lines, blocks and headers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lzma.h>

#include <fstream>
#include <string>
#include <vector>

#include "frontend/import/kernels_list.h"
#include "tests/support/shell.h"
#include "tests/support/traceg_writer.h"

namespace heddle::importer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The calls that a sink gets, as text.
class Recorder final : public TracegSink {
 public:
  Status Header(const TracegHeader& header) override {
    header_ = header;
    return Ok();
  }
  void BeginBlock(Dim3 block, uint64_t) override {
    calls.push_back("block " + std::to_string(block.x) + "," + std::to_string(block.y) + "," +
                    std::to_string(block.z));
  }
  void BeginWarp(uint32_t warp, uint64_t) override { calls.push_back("warp " + std::to_string(warp)); }
  void Instruction(const TracegInstruction& each, uint64_t) override {
    calls.push_back(std::string(each.opcode));
    instructions.push_back(each);
  }
  void EndWarp() override { calls.push_back("end warp"); }
  void EndBlock() override { calls.push_back("end block"); }

  TracegHeader header_;
  std::vector<std::string> calls;
  std::vector<TracegInstruction> instructions;
};

struct Outcome {
  Recorder sink;
  FaultLog faults;
  Status status = Ok();
};

Outcome Read(const std::string& text) {
  Outcome out;
  LineReader lines(OpenBytes(text));
  out.status = ReadTraceg(&lines, "k.traceg", &out.sink, &out.faults);
  return out;
}

std::vector<std::string> Faults(const Outcome& outcome) {
  std::vector<std::string> all;
  for (const FaultLog::Placed& each : outcome.faults.placed()) all.push_back(each.place + ": " + each.what);
  return all;
}

const char* Parse(std::string_view line, uint32_t version, TracegInstruction* out, bool lines = false) {
  TracegHeader header;
  header.version = version;
  header.has_line_numbers = lines;
  return ParseInstruction(line, header, out);
}

TEST(TracegLine, Version5) {
  TracegInstruction got;
  ASSERT_EQ(Parse("0f50 ffffffff 1 R6 HADD2.F32 2 R255 R8 0 -9 ", 5, &got), nullptr);
  EXPECT_EQ(got.pc, 0xf50u);
  EXPECT_EQ(got.mask, 0xffffffffu);
  EXPECT_TRUE(got.has_destination);
  EXPECT_EQ(got.destination, 6);
  EXPECT_EQ(got.opcode, "HADD2.F32");
  EXPECT_EQ(got.source_count, 2);
  EXPECT_EQ(got.sources[0], 255);
  EXPECT_EQ(got.sources[1], 8);
  EXPECT_EQ(got.mode, AddressMode::kNone);
  EXPECT_EQ(got.immediate, -9);
}

// Before version 5 no immediate, before 3 block and warp in front, from 4 on a line number where the header says so.
TEST(TracegLine, EachVersionHasItsFields) {
  TracegInstruction got;
  EXPECT_EQ(Parse("1 2 0 3 0010 ffffffff 0 NOP 0 0 ", 1, &got), nullptr);
  EXPECT_EQ(got.pc, 0x10u);
  EXPECT_EQ(Parse("1 2 0 3 0010 ffffffff 0 NOP 0 0 ", 2, &got), nullptr);
  EXPECT_EQ(Parse("0010 ffffffff 0 NOP 0 0 ", 3, &got), nullptr);
  EXPECT_EQ(Parse("77 0010 ffffffff 0 NOP 0 0", 4, &got, true), nullptr);
  EXPECT_EQ(got.pc, 0x10u);
  EXPECT_EQ(Parse("0010 ffffffff 0 NOP 0 0", 5, &got), nullptr) << "a missing immediate is 0";
  EXPECT_EQ(got.immediate, 0);
  EXPECT_STREQ(Parse("0010 ffffffff 0 NOP 0 0 7", 4, &got), "more fields than the line has room for");
  EXPECT_STREQ(Parse("0010 ffffffff 0 NOP 0 0", 2, &got),
               "block and warp in front of the line are missing or no numbers");
}

TEST(TracegLine, AddressModes) {
  TracegInstruction got;
  ASSERT_EQ(Parse("0 80000003 1 R1 LDG.E 1 R2 4 0 0x10 0x7f0000000020 0x8 3 ", 5, &got), nullptr);
  EXPECT_EQ(got.mode, AddressMode::kList);
  EXPECT_EQ(got.address[0], 0x10u);
  EXPECT_EQ(got.address[1], 0x7f0000000020u);
  EXPECT_EQ(got.address[31], 0x8u);
  EXPECT_EQ(got.immediate, 3);

  ASSERT_EQ(Parse("0 000000f0 1 R1 LDG.E 1 R2 4 1 0x100 -16 0", 5, &got), nullptr);
  EXPECT_EQ(got.mode, AddressMode::kStride);
  EXPECT_EQ(got.address[4], 0x100u);
  EXPECT_EQ(got.address[7], 0x100u - 48);

  // The differences are between lanes that are active; behind the last one stands the immediate.
  ASSERT_EQ(Parse("0 00000105 0 STG.E 2 R2 R4 4 2 0x1000 8 -24 5", 5, &got), nullptr);
  EXPECT_EQ(got.mode, AddressMode::kDelta);
  EXPECT_EQ(got.address[0], 0x1000u);
  EXPECT_EQ(got.address[2], 0x1008u);
  EXPECT_EQ(got.address[8], 0xff0u);
  EXPECT_EQ(got.immediate, 5);
  ASSERT_EQ(Parse("0 00000001 0 STG.E 2 R2 R4 4 2 0x1000 5", 5, &got), nullptr) << "one lane: no difference";
  EXPECT_EQ(got.immediate, 5);

  // Predicated off: a base without lanes.
  ASSERT_EQ(Parse("0 00000000 1 R6 LDG.E.64 1 R28 8 1 0x0 0 0", 5, &got), nullptr);
  EXPECT_EQ(got.mask, 0u);
  ASSERT_EQ(Parse("0 00000000 1 R6 LDG.E.64 1 R28 8 0 7", 5, &got), nullptr);
  EXPECT_EQ(got.immediate, 7);
}

TEST(TracegLine, WhatCannotBe) {
  TracegInstruction got;
  const std::pair<const char*, const char*> cases[] = {
      {"", "the pc is missing or no hexadecimal number"},
      {"xyz ffffffff 0 NOP 0 0 0", "the pc is missing or no hexadecimal number"},
      {"0 fffffffff 0 NOP 0 0 0", "the mask is missing or no hexadecimal number"},
      {"0 f 2 R1 R2 NOP 0 0 0", "more than one destination register"},
      {"0 f 1 P1 NOP 0 0 0", "the destination is no vector register"},
      {"0 f 1 R256 NOP 0 0 0", "the destination is no vector register"},
      {"0 f 0", "the opcode is missing"},
      {"0 f 0 NOP", "the number of sources is missing or no number"},
      {"0 f 0 NOP 6 R1 R1 R1 R1 R1 R1 0 0", "more than five source registers"},
      {"0 f 0 NOP 2 R1 UR2 0 0", "a source is no vector register"},
      {"0 f 0 NOP 0", "the width of the access is missing or no number"},
      {"0 f 0 LDG 0 4", "the address mode is missing or no number"},
      {"0 f 0 LDG 0 4 3 0x0", "an address mode other than 0, 1 and 2"},
      {"0 f 0 LDG 0 4 0 0x0 0x1 0x2", "an address of a list is missing or no number"},
      {"0 f 0 LDG 0 4 1 0x0", "base or stride is missing or no number"},
      {"0 5 0 LDG 0 4 1 0x0 4 0", "base and stride with lanes that are not one contiguous run"},
      {"0 f 0 LDG 0 4 2 0x0 1 2", "an address difference is missing or no number"},
      {"0 f 0 LDG 0 5000 1 0x0 4 0", "an access of more than 4096 bytes"},
      {"0 f 0 NOP 0 0 x", "the immediate is no number"},
      {"0 f 0 NOP 0 0 1 2", "more fields than the line has room for"},
  };
  for (const auto& [line, fault] : cases) EXPECT_STREQ(Parse(line, 5, &got), fault) << line;
  EXPECT_EQ(Parse("0 f 0 NOP 0 0 18446744073709551615", 5, &got), nullptr) << "an immediate printed unsigned";
  EXPECT_EQ(got.immediate, -1);
}

TEST(TracegFile, HeaderAndBlocksOfEveryVersion) {
  for (uint32_t version = 1; version <= kNewestVersion; ++version) {
    TracegHeader header = TestHeader({2, 1, 1}, {64, 1, 1});
    header.version = version;
    header.has_line_numbers = version >= 4;
    header.stream = 7;
    TestInstruction load{.pc = 0x10, .opcode = "LDG.E", .destination = 4, .sources = {2}, .width_bytes = 4};
    load.addresses = Strided(0x7f0000001000, 4);
    load.mode = version < 3 ? AddressMode::kList : AddressMode::kStride;
    const TestBlock first{{0, 0, 0}, {{load}, {}}}, second{{1, 0, 0}, {{}, {load, load}}};
    const Outcome got = Read(TracegText(header, {first, second}));
    ASSERT_TRUE(got.status.ok()) << got.status.error().ToString();
    EXPECT_THAT(Faults(got), IsEmpty()) << version;
    EXPECT_EQ(got.sink.header_.version, version);
    EXPECT_EQ(got.sink.header_.stream, 7u);
    EXPECT_EQ(got.sink.header_.kernel_name, "test_kernel");
    EXPECT_EQ(got.sink.header_.shared_base, 0x7f3a00000000u);
    EXPECT_EQ(got.sink.header_.local_base, 0x7f39fe000000u);
    EXPECT_EQ(got.sink.header_.shared_bytes, 1024u);
    EXPECT_EQ(got.sink.header_.registers, 32u);
    EXPECT_THAT(got.sink.calls, ElementsAre("block 0,0,0", "warp 0", "LDG.E", "end warp", "warp 1",
                                            "end warp", "end block", "block 1,0,0", "warp 0", "end warp",
                                            "warp 1", "LDG.E", "LDG.E", "end warp", "end block"));
    EXPECT_EQ(got.sink.instructions[0].address[31], 0x7f0000001000u + 124);
  }
}

TEST(TracegFile, FaultsAreCountedAndPlaced) {
  const std::string header = HeaderText(TestHeader({1, 1, 1}, {32, 1, 1}));  // 16 lines
  const Outcome got = Read(header +
                           "#BEGIN_TB\nthread block = 0,0,0\nwarp = 0\ninsts = 3\n"
                           "0000 ffffffff 0 NOP 0 0 0 \n"
                           "0010 ffffffff 0 NOP 0 zero 0 \n"
                           "0020 ffffffff 0 EXIT 0 0 0 \n"
                           "warp = 1\ninsts = 1\n0000 ffffffff 0 EXIT 0 0 0\n"
                           "#END_TB\n#END_TB\n0000 f 0 NOP 0 0 0\nwarp = 0\n");
  ASSERT_TRUE(got.status.ok());
  EXPECT_THAT(
      Faults(got),
      ElementsAre(
          "k.traceg:22: the width of the access is missing or no number: 0010 ffffffff 0 NOP 0 zero 0 ",
          "k.traceg:24: a warp beyond those of the block",
          "k.traceg:28: a thread block ends that has not begun",
          "k.traceg:29: a line outside a warp: 0000 f 0 NOP 0 0 0",
          "k.traceg:30: a warp outside a thread block"));
  EXPECT_THAT(got.sink.calls, ElementsAre("block 0,0,0", "warp 0", "NOP", "EXIT", "end warp", "end block"));
  const Error error = got.faults.ToError();
  EXPECT_EQ(error.code, ExitCode::kTrace);
  EXPECT_EQ(error.place, "k.traceg:22");
  EXPECT_THAT(error.message, HasSubstr("5 faults"));
}

TEST(TracegFile, WarpsSayHowManyInstructionsTheyHave) {
  const std::string header = HeaderText(TestHeader({1, 1, 1}, {32, 1, 1}));
  const Outcome few =
      Read(header + "#BEGIN_TB\nthread block = 0,0,0\nwarp = 0\ninsts = 2\n0 f 0 EXIT 0 0 0\n#END_TB\n");
  EXPECT_THAT(Faults(few), ElementsAre(HasSubstr("a warp has not as many instructions as it says: 1 of 2")));
  const Outcome none =
      Read(header + "#BEGIN_TB\nthread block = 0,0,0\nwarp = 0\n0 f 0 EXIT 0 0 0\n#END_TB\n");
  EXPECT_THAT(Faults(none), ElementsAre(HasSubstr("does not say how many")));
}

TEST(TracegFile, CutShort) {
  const std::string whole =
      TracegText(TestHeader({1, 1, 1}, {32, 1, 1}),
                 {{{0, 0, 0}, {{{.pc = 0, .opcode = "NOP"}, {.pc = 16, .opcode = "EXIT"}}}}});
  // In the middle of the line of EXIT.
  const Outcome got = Read(whole.substr(0, whole.find("EXIT") + 2));
  ASSERT_TRUE(got.status.ok());
  EXPECT_THAT(Faults(got), ElementsAre(HasSubstr("does not end in a newline"),
                                       HasSubstr("ends inside a thread block"), HasSubstr("1 of 2")));
  EXPECT_EQ(got.sink.calls.back(), "end block");
}

TEST(TracegFile, HeadersThatCannotBeUsed) {
  const auto error_of = [](const std::string& text) {
    const Outcome got = Read(text);
    return got.status.ok() ? "" : got.status.error().message;
  };
  TracegHeader header = TestHeader({1, 1, 1}, {32, 1, 1});
  EXPECT_EQ(error_of(HeaderText(header)), "");
  header.version = 6;
  EXPECT_THAT(error_of(HeaderText(header)), HasSubstr("has version 6"));
  header = TestHeader({1, 1, 1}, {1024, 2, 1});
  EXPECT_THAT(error_of(HeaderText(header)), HasSubstr("blocks that no GPU can start"));
  header = TestHeader({0, 1, 1}, {32, 1, 1});
  EXPECT_THAT(error_of(HeaderText(header)), HasSubstr("a grid that no GPU can start"));
  header = TestHeader({1, 1, 1}, {32, 1, 1});
  header.binary_version = 61;
  EXPECT_THAT(error_of(HeaderText(header)), HasSubstr("binary version 61"));
  EXPECT_THAT(error_of("-kernel name = x\n#\n"), HasSubstr("states no grid"));
  EXPECT_THAT(error_of(""), HasSubstr("states no grid"));
}

// ---- Lines and compression

std::string Xz(const std::string& text) {
  std::string out(lzma_stream_buffer_bound(text.size()), '\0');
  size_t size = 0;
  EXPECT_EQ(
      lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const uint8_t*>(text.data()),
                              text.size(), reinterpret_cast<uint8_t*>(out.data()), &size, out.size()),
      LZMA_OK);
  out.resize(size);
  return out;
}

std::string WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

TEST(LineReader, XzOfSeveralStreams) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i) + "\n";
  const testing_support::TemporaryFolder folder;
  const std::string path = WriteFile(folder / "several.traceg.xz", Xz(text) + Xz("last\n"));
  auto source = OpenFile(path);
  ASSERT_TRUE(source.ok());
  LineReader lines(std::move(*source));
  std::string_view line;
  for (int i = 0; i < 100'000; ++i) {
    const auto got = lines.Next(&line);
    ASSERT_TRUE(got.ok());
    ASSERT_EQ(line, std::to_string(i));
  }
  ASSERT_TRUE(lines.Next(&line).ok());
  EXPECT_EQ(line, "last");
  EXPECT_EQ(lines.line_number(), 100'001u);
  EXPECT_EQ(*lines.Next(&line), LineReader::Got::kEnd);
}

TEST(LineReader, DamagedXzIsAnError) {
  std::string bytes = Xz(std::string(100'000, 'a') + "\n");
  const testing_support::TemporaryFolder folder;
  const std::string cut = WriteFile(folder / "cut.traceg.xz", bytes.substr(0, bytes.size() / 2));
  LineReader lines(std::move(*OpenFile(cut)));
  std::string_view line;
  const auto got = lines.Next(&line);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code, ExitCode::kTrace);
  EXPECT_THAT(got.error().message, HasSubstr("cut short"));
  LineReader other(std::move(*OpenFile(WriteFile(folder / "no.traceg.xz", "this was never compressed\n"))));
  EXPECT_THAT(other.Next(&line).error().message, HasSubstr("is not what xz writes"));
}

TEST(LineReader, LongLinesAreSkippedAndCounted) {
  LineReader lines(OpenBytes("a\n" + std::string(1'000'000, 'x') + "\nb\r\nc"));
  std::string_view line;
  EXPECT_EQ(*lines.Next(&line), LineReader::Got::kLine);
  EXPECT_EQ(*lines.Next(&line), LineReader::Got::kTooLong);
  EXPECT_EQ(*lines.Next(&line), LineReader::Got::kLine);
  EXPECT_EQ(line, "b");
  EXPECT_EQ(lines.line_number(), 3u);
  EXPECT_EQ(*lines.Next(&line), LineReader::Got::kNoEnd);
  EXPECT_EQ(line, "c");
  EXPECT_EQ(*lines.Next(&line), LineReader::Got::kEnd);
}

// ---- kernelslist.g

TEST(KernelsList, CommandsInOrder) {
  FaultLog faults;
  LineReader lines(
      OpenBytes("MemcpyHtoD,0x00007f0000000000,4096\nkernel-1.traceg\nsomething else\n\n"
                "MemcpyHtoD,0x7f0000002000,16\nkernel-2.traceg.xz\nkernel-3.tracez\nkernel/../../"
                "x.traceg\nkernel-4.gz\n"
                "MemcpyHtoD,zero,4\nkernel-5.traceg"));
  const auto list = ReadKernelsList(&lines, "kernelslist.g", &faults);
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->copies.size(), 2u);
  EXPECT_EQ(list->copies[0].address, 0x7f0000000000u);
  EXPECT_EQ(list->copies[0].size_bytes, 4096u);
  EXPECT_EQ(list->copies[1].address, 0x7f0000002000u);
  EXPECT_EQ(list->copies[1].size_bytes, 16u);
  EXPECT_THAT(list->kernels,
              ElementsAre("kernel-1.traceg", "kernel-2.traceg.xz", "kernel-3.tracez", "kernel-5.traceg"))
      << "a list's last line needs no newline";
  std::vector<std::string> places;
  for (const auto& each : faults.placed()) places.push_back(each.place + " " + each.what);
  EXPECT_THAT(places, ElementsAre(HasSubstr(":8 a kernel's file outside"),
                                  HasSubstr(":9 a kernel's file that is neither"),
                                  HasSubstr(":10 a copy that is no")));
}

}  // namespace
}  // namespace heddle::importer
