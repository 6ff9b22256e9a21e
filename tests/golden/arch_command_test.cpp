// `heddle arch`: what it prints where, and its exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/heddle/command.h"

namespace heddle::tools {
namespace {

struct Output {
  ExitCode code = ExitCode::kOk;
  std::string out;
  std::string err;
};

Output Arch(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "arch");
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Output output;
  output.code = Dispatch(arguments);
  output.out = testing::internal::GetCapturedStdout();
  output.err = testing::internal::GetCapturedStderr();
  return output;
}

TEST(ArchCommand, ListNamesEveryDescription) {
  const Output text = Arch({"list"});
  EXPECT_EQ(text.code, ExitCode::kOk);
  EXPECT_THAT(text.out, testing::HasSubstr("a100_sxm4_80gb           GA100        108   1410       40  "));
  const auto json = nlohmann::json::parse(Arch({"list", "--json"}).out);
  ASSERT_GE(json.size(), 3u);
  for (const auto& entry : json) EXPECT_TRUE(entry["valid"]) << entry["name"];
}

TEST(ArchCommand, ShowPrintsTheResolvedDescription) {
  const Output text = Arch({"show", "h100_sxm5", "--set", "sm.count=144", "--set", "l2.size_bytes=100Mi"});
  EXPECT_EQ(text.code, ExitCode::kOk) << text.err;
  EXPECT_THAT(text.out, testing::HasSubstr("\n  size_bytes: 104857600\n"));
  EXPECT_THAT(text.out, testing::HasSubstr("\nsms_per_gpc: [18, 18, 18, 18, 18, 18, 18, 18]\n"));
  const auto json = nlohmann::json::parse(Arch({"show", "h100_sxm5", "--json"}).out);
  EXPECT_EQ(json["values"]["sm.count"], 132);
  EXPECT_EQ(json["values"]["l2.replicate_far"], true);
  EXPECT_EQ(json["digest"].get<std::string>().size(), 64u);
}

TEST(ArchCommand, CheckReportsFaultsWithExitCode3) {
  const Output good = Arch({"check"});
  EXPECT_EQ(good.code, ExitCode::kOk) << good.err;
  const Output bad = Arch({"check", "a100_sxm4_80gb", "--set", "sm.cuont=4", "--set", "l2.slices=81"});
  EXPECT_EQ(bad.code, ExitCode::kConfiguration);
  EXPECT_EQ(bad.out, "");
  EXPECT_THAT(bad.err,
              testing::HasSubstr("--set sm.cuont=4: error: sm: no field \"cuont\"; did you mean \"count\"?"));
  EXPECT_THAT(bad.err,
              testing::HasSubstr("--set l2.slices=81: error: l2.slices: 81 slices do not spread over 2"));
  const Output json = Arch({"check", "a100_sxm4_80gb", "--set", "l2.slices=81", "--json"});
  EXPECT_EQ(json.code, ExitCode::kConfiguration);
  EXPECT_FALSE(nlohmann::json::parse(json.out)[0]["valid"]);
}

TEST(ArchCommand, DiffPrintsPathsThatSetTakes) {
  const Output text = Arch({"diff", "a100_sxm4_80gb", "a100_sxm4_80gb", "--set",
                            "sm.operations[LDS.64.regular].result_cycles=30"});
  EXPECT_EQ(text.code, ExitCode::kOk) << text.err;
  EXPECT_EQ(text.out, "sm.operations[LDS.64.regular].result_cycles  24 -> 30\n");
  EXPECT_EQ(Arch({"diff", "a100_sxm4_80gb", "a100_sxm4_80gb"}).out, "");
}

TEST(ArchCommand, WrongCommandLinesEndWithExitCode2) {
  EXPECT_EQ(Arch({"show"}).code, ExitCode::kUsage);
  EXPECT_EQ(Arch({"diff", "a100_sxm4_80gb"}).code, ExitCode::kUsage);
  EXPECT_EQ(Arch({"shwo", "a100_sxm4_80gb"}).code, ExitCode::kUsage);
  EXPECT_EQ(Arch({"show", "a100_sxm4_80gb", "--jso"}).code, ExitCode::kUsage);
  const Output unknown = Arch({"show", "a100_sxm_80gb"});
  EXPECT_EQ(unknown.code, ExitCode::kConfiguration);
  EXPECT_THAT(unknown.err, testing::HasSubstr("did you mean \"a100_sxm4_80gb\"?"));
}

}  // namespace
}  // namespace heddle::tools
