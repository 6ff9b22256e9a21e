#include <gtest/gtest.h>

#include "tools/heddle/command.h"

namespace heddle::tools {
namespace {

ExitCode RunHeddle(std::vector<std::string> arguments) { return Dispatch(arguments); }

TEST(Dispatch, NamesTheClosestCommand) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(RunHeddle({"completon", "bash"}), ExitCode::kUsage);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("did you mean \"completion\"?"), std::string::npos);
}

TEST(Dispatch, RefusesUnknownAndAbbreviatedOptions) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(RunHeddle({"completion", "--hel"}), ExitCode::kUsage);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("did you mean \"--help\"?"), std::string::npos);
}

TEST(Dispatch, EveryCommandHasHelp) {
  const std::function<void(std::vector<std::string>, const std::vector<Command>&)> visit =
      [&](std::vector<std::string> path, const std::vector<Command>& commands) {
        for (const Command& command : commands) {
          std::vector<std::string> words = path;
          words.emplace_back(command.name);
          if (command.run == nullptr) visit(words, command.subcommands);
          words.emplace_back("--help");
          testing::internal::CaptureStdout();
          EXPECT_EQ(RunHeddle(words), ExitCode::kOk) << command.name;
          EXPECT_FALSE(testing::internal::GetCapturedStdout().empty()) << command.name;
          EXPECT_FALSE(command.summary.empty());
        }
      };
  visit({}, Commands());
}

TEST(Dispatch, CommandLineCanBeTypedAgain) {
  testing::internal::CaptureStderr();
  RunHeddle({"run", "a b.htrace", "--set", "sm.count=144", "--kernel", "it's|x*", ""});
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(CommandLine(), "heddle run 'a b.htrace' --set sm.count=144 --kernel 'it'\\''s|x*' ''");
}

}  // namespace
}  // namespace heddle::tools
