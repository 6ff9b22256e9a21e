// What copies and fills make of memory in a captured trace, and at which launch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "frontend/trace/build.h"
#include "frontend/trace/htrace.h"
#include "tests/support/capture_run.h"
#include "tests/support/captured_trace.h"

namespace heddle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::CaptureFolder;
using testing_support::Outcome;
using testing_support::ScriptOf;
using testing_support::Shell;
using testing_support::Text;
using testing_support::WithCheckOf;

const std::string kHeddle = HEDDLE_BINARY_DIR "/tools/heddle/heddle ";

struct Change {
  trace::RuleKind kind;
  uint64_t offset;  // from buffer a
  uint64_t bytes;   // of a copy, of bytes, of what is unknown
  uint32_t before;
  bool operator==(const Change&) const = default;
};
void PrintTo(const Change& change, std::ostream* out) {
  *out << static_cast<int>(change.kind) << " at " << change.offset << ", " << change.bytes
       << " bytes, before " << change.before;
}
// What becomes of the buffer at `address`, in order. Zeros are bytes: their rule reaches to the buffer's end.
std::vector<Change> ChangesOf(const trace::Trace& trace, uint64_t address) {
  std::vector<Change> changes;
  for (const trace::Content& content : trace.contents) {
    const trace::Buffer& buffer = trace.buffers[content.buffer];
    const auto offset = static_cast<uint64_t>(content.offset_bytes.value);
    if (address < buffer.address || buffer.address + offset < address) continue;
    const uint64_t bytes =
        content.rule.kind == trace::RuleKind::kBytes ? content.rule.bytes.size() : content.rule.copy_bytes;
    changes.push_back({content.rule.kind, buffer.address + offset - address, bytes, content.before_launch});
  }
  return changes;
}
uint64_t AddressIn(const std::string& out, const std::string& name) {
  const size_t at = ("\n" + out).find("\n" + name + " ");
  return at == std::string::npos ? 0 : std::stoull(out.substr(at + name.size() + 1));
}
constexpr auto kCopied = trace::RuleKind::kCopy, kGiven = trace::RuleKind::kBytes,
               kUnknown = trace::RuleKind::kUnknown;

// Rows that touch are one range; others are kept row by row.
TEST(CaptureContents, CopiesAndFillsOfSeveralRowsAreReplayed) {
  const CaptureFolder folder;
  const std::string data = folder.Write("data", "0123456789abcdef");
  const Outcome run = folder.Capture(
      "alloc z 8192\naddress z\nalloc b 4096\nfill b 3 1024\n"
      "copy2d z+100 32 b 16 16 3 0\n"      // three rows, apart
      "copy2d z+512 16 b 16 16 3 0\n"      // that touch
      "copy3d z+1024 16 4 b 16 2 8 2 2\n"  // two layers of two rows
      "fill2d z+2048 16 7 2 2 0\n"         // two rows of two words
      "upload2d z+3072 8 " +
          data +
          " 4 2 3\n"  // three rows of two bytes
          "launch f 1,1,1 32,1,1 0 0 b:a i:1\n",
      "--snapshot index");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const trace::Trace trace = folder.Read();
  const uint64_t z = AddressIn(run.out, "z");
  const std::vector<Change> expected = {{kCopied, 100, 16, 0}, {kCopied, 132, 16, 0}, {kCopied, 164, 16, 0},
                                        {kCopied, 512, 48, 0}, {kCopied, 1024, 8, 0}, {kCopied, 1040, 8, 0},
                                        {kCopied, 1088, 8, 0}, {kCopied, 1104, 8, 0}, {kGiven, 2048, 8, 0},
                                        {kGiven, 2064, 8, 0},  {kGiven, 3072, 2, 0},  {kGiven, 3080, 2, 0},
                                        {kGiven, 3088, 2, 0}};
  EXPECT_EQ(ChangesOf(trace, z), expected);
  std::vector<uint64_t> sources;
  std::string given;
  for (const trace::Content& content : trace.contents) {
    if (content.rule.kind == kCopied) sources.push_back(content.rule.copy_offset_bytes);
    if (content.rule.kind == kGiven && content.rule.bytes.size() == 2) given += Text(content.rule.bytes);
  }
  const uint64_t first = sources.empty() ? 0 : sources[0];
  for (uint64_t& source : sources) source -= first;
  EXPECT_THAT(sources, ElementsAre(0, 16, 32, 0, 0, 16, 32, 48));
  EXPECT_EQ(given, "014589");
}

// Between the kernels that they stand between, at each replay; behind the last kernel, before the launch that follows.
TEST(CaptureContents, CopiesAndFillsInsideGraphsAreReplayed) {
  const CaptureFolder folder;
  const Outcome run = folder.Capture(
      "alloc z 8192\naddress z\nalloc b 4096\nfill b 3 1024\n"
      "begin 1\ncopy z b 64 1\nlaunch f 1,1,1 32,1,1 0 1 b:a i:1\nfill z+128 5 4 1\n"
      "launch f 2,1,1 32,1,1 0 1 b:a i:2\ncopy z+256 b 32 1\nend 1 g\ninstantiate e g\n"
      "graph e 1\ngraph e 1\nlaunch f 3,1,1 32,1,1 0 1 b:a i:3\n");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const trace::Trace trace = folder.Read();
  ASSERT_EQ(trace.launches.size(), 5u);
  const std::vector<Change> expected = {{kCopied, 0, 64, 0}, {kGiven, 128, 16, 1}, {kCopied, 256, 32, 2},
                                        {kCopied, 0, 64, 2}, {kGiven, 128, 16, 3}, {kCopied, 256, 32, 4}};
  EXPECT_EQ(ChangesOf(trace, AddressIn(run.out, "z")), expected);
  EXPECT_TRUE(trace.edges.empty());
  EXPECT_THAT(run.err, testing::Not(HasSubstr("of graphs")));
}

// The same built node by node; a copy that changes after it was added; a kernel beside the copy that does not wait for it.
TEST(CaptureContents, NodesOfGraphsThatWereAddedOneByOneAreKnown) {
  const CaptureFolder folder;
  const Outcome run = folder.Capture(
      "alloc z 8192\naddress z\nalloc b 4096\nfill b 3 1024\nnewgraph g\n"
      "kernelnode k1 g - f 1,1,1 32,1,1 0 0 b:a i:10\n"
      "copynode c g k1 z b 64\nfillnode s g c z+512 9 8\n"
      "kernelnode k2 g s f 2,1,1 32,1,1 0 0 b:a i:20\n"
      "kernelnode k3 g k1 f 3,1,1 32,1,1 0 0 b:a i:30\n"
      "setcopynode c z+64 b 32\ninstantiate e g\ngraph e 0\n");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const trace::Trace trace = folder.Read();
  ASSERT_EQ(trace.launches.size(), 3u);
  const std::vector<Change> expected = {{kCopied, 64, 32, 1}, {kGiven, 512, 32, 1}};
  EXPECT_EQ(ChangesOf(trace, AddressIn(run.out, "z")), expected);
  EXPECT_EQ(trace.launches[0].stream, trace.launches[1].stream);
  EXPECT_NE(trace.launches[2].stream, trace.launches[1].stream);
  EXPECT_THAT(trace.edges, ElementsAre(trace::Edge{0, 2}));
}

// A copy from the host inside a graph reads the host's memory when the graph runs, which the capture does not see.
TEST(CaptureContents, WhatAGraphCopiesFromTheHostIsUnknownAndSaidToBe) {
  const CaptureFolder folder;
  const std::string data = folder.Write("data", std::string(64, 'x'));
  const Outcome run = folder.Capture("alloc z 4096\naddress z\nbegin 1\nupload z " + data +
                                         " 1\nlaunch f 1,1,1 32,1,1 0 1 b:a i:1\nend 1 g\ninstantiate e g\n"
                                         "launch f 1,1,1 32,1,1 0 1 b:a i:0\ngraph e 1\n",
                                     "--snapshot all");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const trace::Trace trace = folder.Read();
  EXPECT_THAT(ChangesOf(trace, AddressIn(run.out, "z")), testing::Contains(Change{kUnknown, 0, 64, 1}));
  EXPECT_THAT(run.err, HasSubstr("1 copies to the device (64 bytes) came without their contents"));
  EXPECT_THAT(trace.doc, HasSubstr("came without their contents"));
}

// An upload that is too long for `index` hides what the buffer held: a check of zeros against zeros is none.
TEST(CaptureContents, AnUploadThatIsNotKeptIsUnknownAndNothingIsVerifiedWithIt) {
  const Result<trace::Trace> original =
      trace::ReadTrace(HEDDLE_SOURCE_DIR "/traces/silu_and_mul.sm_80.htrace");
  ASSERT_TRUE(original.ok());
  const Result<trace::ResolvedTrace> resolved =
      trace::Resolve(*original, trace::TypicalDevice(), {{"tokens", 8}});
  ASSERT_TRUE(resolved.ok());
  ASSERT_GT(resolved->buffers[1].size_bytes, 64u << 10);
  for (const bool zeroed : {false, true}) {
    const CaptureFolder folder;
    std::string script = ScriptOf(*original, *resolved, folder);
    if (zeroed)
      script.insert(script.find("upload b1"),
                    "fill b1 0 " + std::to_string(resolved->buffers[1].size_bytes / 4) + "\n");
    const Outcome run = folder.CaptureRaw(script, "--snapshot index");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.err, HasSubstr("came without their contents"));
    const std::string path = folder.Path("checked.htrace");
    ASSERT_TRUE(trace::WriteTrace(WithCheckOf(*original, *resolved, folder.Read()), path).ok());
    const Outcome verify = Shell(kHeddle + "trace verify " + path);
    EXPECT_EQ(verify.exit_code, 6) << verify.out;
    EXPECT_THAT(verify.out, HasSubstr("not verified"));
    EXPECT_THAT(verify.err, HasSubstr("the contents of 'x' before the first launch are not all known"));
  }
}

}  // namespace
}  // namespace heddle
