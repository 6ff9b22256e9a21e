// The recorder of launches (kernels/recorder, kernels/builder/recorder.py): what host code passes is what the description says, and
// the described launch computes what it should.
#include <gtest/gtest.h>

#include <cstdlib>

#include "frontend/trace/build.h"
#include "sim/config/load.h"
#include "tests/support/shell.h"
#include "tools/replay/verify.h"
#include "tools/toolchain/toolchain.h"

namespace heddle {
namespace {

using testing_support::Outcome;
using testing_support::ReadFile;
using testing_support::Shell;
using testing_support::TemporaryFolder;

void HasLine(const std::string& text, const std::string& words) {
  EXPECT_NE(text.find(words), std::string::npos) << words << "\nis not in\n" << text;
}

// Records data/recorder_probe.cu into a folder; why it cannot be done here, or nothing.
std::string Record(const TemporaryFolder& out) {
  const char* named = std::getenv("HEDDLE_PYTHON");
  const std::string python = named != nullptr ? named : "python3";
  if (Shell(python + " -c 'import lz4, zstandard'").exit_code != 0) return "no Python with lz4 is here";
  const Outcome recorded =
      Shell("PYTHONPATH='" HEDDLE_SOURCE_DIR "/kernels' " + python +
            " '" HEDDLE_SOURCE_DIR "/tests/validation/data/recorder_probe.py' '" + out.path() + "'");
  if (recorded.exit_code == 77) return recorded.out;
  EXPECT_EQ(recorded.exit_code, 0) << recorded.err;
  return "";
}

Result<replay::Verification> RunDescription(const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(const trace::Trace trace, trace::BuildTrace(path, {}, toolchain::Default()));
  HEDDLE_ASSIGN_OR_RETURN(const config::Gpu machine, config::LoadGpu("h100_sxm5"));
  return replay::Verify(trace, machine, {});
}

TEST(Recorder, DescribesALaunchByBuffersMapsAndBytes) {
  const TemporaryFolder out;
  if (const std::string missing = Record(out); !missing.empty()) GTEST_SKIP() << missing;
  const std::string path = out / "probe.small.launch.textproto";
  const std::string text = ReadFile(path);
  HasLine(text, R"(grid: ["132", "1", "1"])");  // of the device that it said it is
  HasLine(text, R"(block: ["64", "1", "1"])");
  HasLine(text, R"(cluster: ["2", "1", "1"])");
  HasLine(text, R"(dynamic_shared_bytes: "2048")");
  HasLine(text,
          R"(field { at: "0" tensor_map { buffer: "x" element: "bf16" size: ["96", "35"] box: ["64", "8"] )"
          R"(stride: ["192"] offset: "1024" interleave: interleave_none swizzle: swizzle_128b )"
          R"(promotion: promotion_256b fill: fill_zero } })");
  HasLine(text, R"(field { at: "136" buffer: "table" offset: "8" })");
  HasLine(text, R"(field { at: "128" raw: "\x23" })");                              // rows
  HasLine(text, R"(field { at: "144" raw: "\x88\x77\x66\x55\x44\x33\x22\x11" })");  // magic
  HasLine(text, R"(buffer: "out")");

  const auto verified = RunDescription(path);
  ASSERT_TRUE(verified.ok()) << verified.error().ToString();
  EXPECT_TRUE(verified->check.passed());
  EXPECT_TRUE(verified->issues.empty());
}

// The host code's scratch is of unknown contents. A branch on a word that an earlier launch wrote is not a branch on the padding
// beside it, though one instruction loads both.
TEST(Recorder, ScratchIsUnknownByWord) {
  const TemporaryFolder out;
  if (const std::string missing = Record(out); !missing.empty()) GTEST_SKIP() << missing;
  EXPECT_NE(ReadFile(out / "padding.word0.launch.textproto").find("unknown {}"), std::string::npos);
  const auto written = RunDescription(out / "padding.word0.launch.textproto");
  ASSERT_TRUE(written.ok()) << written.error().ToString();
  EXPECT_TRUE(written->issues.empty()) << written->issues[0].kind << " " << written->issues[0].detail;
  const auto padding = RunDescription(out / "padding.word3.launch.textproto");
  ASSERT_TRUE(padding.ok()) << padding.error().ToString();
  ASSERT_FALSE(padding->issues.empty());
  EXPECT_TRUE(padding->issues[0].kind.starts_with("unknown_"));
}

}  // namespace
}  // namespace heddle
