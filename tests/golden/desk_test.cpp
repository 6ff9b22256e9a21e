// From a trace to a roofline, an explanation and a report, by the program itself; the report in a browser where there is
// one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "tests/support/shell.h"

namespace heddle {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing_support::Outcome;
using testing_support::ReadFile;
using testing_support::Shell;
using testing_support::TemporaryFolder;

const std::string kHeddle = HEDDLE_BINARY_DIR "/tools/heddle/heddle ";
const std::string kTraces = HEDDLE_SOURCE_DIR "/traces/";

// Two kernels on an A100, simulated once for all tests.
class Desk : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const Outcome run = Shell(
        kHeddle + "run " + kTraces +
        "rms_norm.sm_80.htrace -d rows=216 -a a100_sxm4_80gb -q --no-table --db " + Database() + " && " +
        kHeddle + "run " + kTraces +
        "gemm.sm_80.htrace -d m=256 -d n=256 -d k=256 -a a100_sxm4_80gb -q --no-table --db " + Database());
    ASSERT_EQ(run.exit_code, 0) << run.err;
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string Database() { return *folder_ / "run.db"; }
  static std::string File(const std::string& name) { return *folder_ / name; }
  static Outcome Heddle(const std::string& arguments) { return Shell(kHeddle + arguments); }
  static json Json(const std::string& arguments) {
    const Outcome outcome = Heddle(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(outcome.out, nullptr, false);
  }

  static TemporaryFolder* folder_;
};
TemporaryFolder* Desk::folder_ = nullptr;

TEST_F(Desk, RooflineAsTextAndJson) {
  const Outcome text = Heddle("roofline " + Database());
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("bounded by"));
  EXPECT_THAT(text.out, HasSubstr("operations per byte"));
  const Outcome one = Heddle("roofline " + Database() + " -k rms_norm");
  for (const char* title : {"GPU Speed Of Light Throughput", "Occupancy", "Lower bound by resource"})
    EXPECT_THAT(one.out, HasSubstr(title));
  const json all = Json("roofline --json " + Database());
  ASSERT_EQ(all["kernels"].size(), 2u);
  for (const json& kernel : all["kernels"]) {
    EXPECT_GT(kernel["lower_bound"]["reached"], 0);
    EXPECT_LE(kernel["lower_bound"]["reached"], 1);
    double share = 0;
    for (const json& stall : kernel["stalls"]) share += stall["share"].get<double>();
    EXPECT_NEAR(share, 1, 1e-9);
  }
}

TEST_F(Desk, WhatIsNotThereIsSaid) {
  EXPECT_EQ(Heddle("roofline " + Database() + " -k nothing").exit_code, 2);
  EXPECT_EQ(Heddle("roofline " + Database() + " -k '('").exit_code, 2);
  EXPECT_EQ(Heddle("explain " + kTraces + "rms_norm.sm_80.htrace").exit_code, 4);
  EXPECT_EQ(Heddle("report " + Database() + " -o /nowhere/x.html").exit_code, 2);
}

// The launch is found again by its run's command, takes the same cycles, and a relief that is known to help does.
TEST_F(Desk, ExplainMeasuresWhatWouldHelp) {
  const json explained = Json("explain --json -q -k rms_norm --reliefs 4 " + Database());
  ASSERT_EQ(explained["kernels"].size(), 1u);
  const json& kernel = explained["kernels"][0];
  EXPECT_FALSE(kernel.contains("note")) << kernel["note"];
  ASSERT_FALSE(kernel["causes"].empty());
  bool waits_for_load = false;
  for (const json& cause : kernel["causes"])
    for (const json& site : cause["sites"])
      waits_for_load |= site.contains("waits_for") &&
                        site["waits_for"]["text"].get<std::string>().find("LDG") != std::string::npos;
  EXPECT_TRUE(waits_for_load);
  // The largest causes have a relief each, before one of them has several.
  size_t relieved = 0;
  for (const json& cause : kernel["causes"]) {
    if (cause["stall"] == "selected") continue;
    EXPECT_FALSE(cause["reliefs"].empty()) << cause["stall"];
    if (++relieved == 3) break;
  }
  double overhead = 0;
  for (const json& gain : kernel["gains"]) {
    ASSERT_FALSE(gain.contains("error")) << gain;
    if (gain["relief"] == "launch") overhead = gain["time_won"];
  }
  // 2200 cycles of overhead and drain, and at most what dispatching takes.
  EXPECT_GE(overhead, 2200.0 / kernel["cycles"].get<double>());
  EXPECT_EQ(explained["by_kernel"].size(), 1u);
  const Outcome without = Heddle("explain --no-gains " + Database());
  EXPECT_EQ(without.exit_code, 0) << without.err;
  EXPECT_THAT(without.out, Not(HasSubstr("->")));
}

TEST_F(Desk, ReportIsOneFileThatLoadsNothing) {
  const Outcome written = Heddle("report " + Database() + " " + Database() +
                                 " -q --explain 1 --reliefs 1 -o " + File("report.html"));
  ASSERT_EQ(written.exit_code, 0) << written.err;
  const std::string page = ReadFile(File("report.html"));
  for (const char* part : {"Roofline", "Bottleneck tree", "Issue slots", "Speed of light", "Instructions",
                           "Beside hardware", "Machines", "Manifest", "a100_sxm4_80gb"})
    EXPECT_THAT(page, HasSubstr(part));
  for (const char* network : {"http:", "https:", "<script", "@import", "src=", "url("})
    EXPECT_THAT(page, Not(HasSubstr(network))) << "a report is read offline";
  EXPECT_LT(page.size(), 3'000'000u);
}

// A console message or a request would mean that something in the file is not what the browser allows or has.
TEST_F(Desk, ReportOpensInABrowser) {
  const std::string browser = Shell("command -v chromium || command -v chromium-headless-shell").out;
  if (browser.empty()) GTEST_SKIP() << "no chromium";
  ASSERT_EQ(Heddle("report " + Database() + " -q -o " + File("page.html")).exit_code, 0);
  const std::string program = browser.substr(0, browser.find('\n'));
  const std::string options =
      " --headless --no-sandbox --disable-gpu --hide-scrollbars --virtual-time-budget=2000 "
      "--enable-logging=stderr --v=0 --user-data-dir=" +
      File("profile");
  const Outcome shot =
      Shell("timeout 100 " + program + options + " --log-net-log=" + File("net.json") +
            " --window-size=390,844 --screenshot=" + File("page.png") + " file://" + File("page.html"));
  ASSERT_EQ(shot.exit_code, 0) << shot.err;
  EXPECT_THAT(shot.err, Not(HasSubstr("CONSOLE"))) << shot.err;
  EXPECT_GT(std::filesystem::file_size(File("page.png")), 10'000u);
  // Requests of a page from a file have the origin null; those of the browser's own services have none.
  const std::string net = ReadFile(File("net.json"));
  EXPECT_THAT(net, Not(HasSubstr("\"initiator\":\"null\"")));
}

}  // namespace
}  // namespace heddle
