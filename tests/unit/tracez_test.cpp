// Accel-Sim 2.0's compressed traces: the same as text, and every damage ends in an error.
#include "frontend/import/tracez.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "frontend/import/launch_recorder.h"
#include "tests/support/tracez_writer.h"

namespace heddle::importer {
namespace {

using testing::HasSubstr;

TracegHeader SampleHeader() { return TestHeader({2, 1, 1}, {64, 1, 1}); }

struct Outcome {
  FaultLog faults;
  Status status = Ok();
  bool clean() const { return status.ok() && faults.total() == 0; }
  std::string Text() const {
    std::string text = status.ok() ? "" : status.error().place + ": " + status.error().message + "\n";
    for (const FaultLog::Placed& each : faults.placed()) text += each.place + ": " + each.what + "\n";
    return text;
  }
};

// All the way into the rows of a recorded launch.
Outcome Read(const std::string& bytes) {
  struct OneCode final : LaunchRecorder::CodeChooser {
    StaticCode code;
    StaticCode* Choose(const TracegHeader&) override { return &code; }
  } chooser;
  Outcome out;
  LaunchRecorder recorder("k.tracez", &chooser, &out.faults);
  const auto input = OpenRandomBytes(bytes);
  out.status = ReadTracez(input.get(), "k.tracez", &recorder, &out.faults);
  if (out.status.ok()) recorder.Finish();
  return out;
}

void ExpectSame(const Imported& text, const Imported& other) {
  EXPECT_GT(text.warp_instructions, 0u);
  EXPECT_EQ(text.warp_instructions, other.warp_instructions);
  ASSERT_EQ(text.trace.launches.size(), other.trace.launches.size());
  EXPECT_EQ(text.trace.launches[0].name, other.trace.launches[0].name);
  EXPECT_EQ(text.trace.functions[0].name, other.trace.functions[0].name);
  ASSERT_EQ(text.trace.warp_streams.size(), other.trace.warp_streams.size());
  for (size_t i = 0; i < text.trace.warp_streams.size(); ++i)
    EXPECT_EQ(text.trace.warp_streams[i].bytes, other.trace.warp_streams[i].bytes) << "row " << i;
}

TEST(Tracez, ImportsToTheSameBytesAsText) {
  for (uint32_t version = 3; version <= kNewestVersion; ++version) {
    TracegHeader header = SampleHeader();
    header.version = version;
    header.has_line_numbers = version == 4;
    const auto text = ImportText(TracegText(header, SampleBlocks()));
    ASSERT_TRUE(text.ok()) << text.error().ToString();
    for (const bool dictionary : {false, true})
      for (const uint32_t piece_instructions : {1u, 3u, 2048u}) {
        const auto packed =
            ImportTracez(TracezBytes(header, SampleBlocks(), {piece_instructions, dictionary}));
        ASSERT_TRUE(packed.ok()) << packed.error().ToString();
        ExpectSame(*text, *packed);
      }
  }
}

// What the dictionary is for: without it the same pieces cannot be read.
TEST(Tracez, PiecesNeedTheirDictionary) {
  const std::string bytes = TracezBytes(SampleHeader(), SampleBlocks(), {3, true});
  std::string other = bytes;
  other[HeaderText(SampleHeader()).size() + 1 + 8 + 4] ^= 1;  // the dictionary's own number
  EXPECT_TRUE(Read(bytes).clean()) << Read(bytes).Text();
  EXPECT_THAT(Read(other).Text(), HasSubstr("ompress"));
}

TEST(Tracez, CutAtEveryLength) {
  const std::string bytes = TracezBytes(SampleHeader(), SampleBlocks(), {3, false});
  for (size_t size = 0; size < bytes.size(); ++size) {
    const Outcome got = Read(bytes.substr(0, size));
    ASSERT_FALSE(got.clean()) << size;
    if (!got.status.ok()) {
      ASSERT_EQ(got.status.error().code, ExitCode::kTrace) << size;
    }
  }
  EXPECT_FALSE(Read(bytes + '\0').clean());
}

// Frames have no checksum, so that a changed digit of an address is not seen; but nothing crashes, and whatever changes in
// the index is seen, but for places of clusters, which mean nothing here.
TEST(Tracez, FlippedBytes) {
  for (const bool dictionary : {false, true}) {
    const std::string bytes = TracezBytes(SampleHeader(), SampleBlocks(), {3, dictionary});
    const uint64_t index = TracezIndexOffset(bytes);
    const uint64_t block_bytes = 11 * 4 + 2 * (16 + 6 * 4);  // two warps of 6 pieces
    ASSERT_EQ(bytes.size(), index + 4 + 2 * block_bytes + 8);
    for (size_t at = 0; at < (dictionary ? index : bytes.size()); at += at < index ? 61 : 1) {
      for (const char flip : {'\x01', '\xff'}) {
        std::string damaged = bytes;
        damaged[at] = static_cast<char>(damaged[at] ^ flip);
        const Outcome got = Read(damaged);
        if (!got.status.ok()) {
          ASSERT_EQ(got.status.error().code, ExitCode::kTrace) << at;
        }
        if (at < index) continue;
        const uint64_t in_block = at < index + 4 ? 0 : (at - index - 4) % block_bytes;
        const bool of_cluster = at < bytes.size() - 8 && in_block >= 12 && in_block < 36;
        EXPECT_EQ(got.clean(), of_cluster) << "byte " << at - index << " of the index";
      }
    }
  }
}

TEST(Tracez, FaultsAreInOnePieceAndSayWhere) {
  std::vector<TestBlock> blocks = SampleBlocks();
  blocks[1].warps[0][4].sources = {300};  // no register
  const std::string bytes = TracezBytes(SampleHeader(), blocks, {3, false});
  const Outcome got = Read(bytes);
  EXPECT_TRUE(got.status.ok());
  EXPECT_THAT(got.Text(), HasSubstr("k.tracez at byte "));
  const auto strict = ImportTracez(bytes);
  ASSERT_FALSE(strict.ok());
  EXPECT_EQ(strict.error().code, ExitCode::kTrace);
  EXPECT_THAT(strict.error().message, HasSubstr("kernel-1.tracez at byte "));
  const auto lenient = ImportTracez(bytes, true);
  ASSERT_TRUE(lenient.ok()) << lenient.error().ToString();
  const auto whole = ImportTracez(TracezBytes(SampleHeader(), SampleBlocks(), {3, false}));
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(lenient->warp_instructions, whole->warp_instructions - 1);
}

TEST(Tracez, AnIndexCannotNameTheSameDataTwice) {
  std::string bytes = TracezBytes(SampleHeader(), SampleBlocks(), {2048, false});
  const uint64_t first = TracezIndexOffset(bytes) + 4 + 11 * 4 + 8;  // the first warp's offset
  const uint64_t second = first + 8 + 4 + 8;                         // behind its one piece
  bytes.replace(second, 8, bytes.substr(first, 8));
  EXPECT_THAT(Read(bytes).Text(), HasSubstr("a warp's data cannot begin at byte"));
}

TEST(Tracez, ClustersAreRefused) {
  std::string bytes = TracezBytes(SampleHeader(), SampleBlocks());
  bytes[TracezIndexOffset(bytes) + 4 + 9 * 4] = 1;  // the first block's rank
  EXPECT_THAT(Read(bytes).Text(), HasSubstr("a block in a cluster of several"));
}

}  // namespace
}  // namespace heddle::importer
