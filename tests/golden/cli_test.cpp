// The program as a user meets it: exit codes, words, files left behind.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/shell.h"

namespace heddle {
namespace {

using testing_support::Outcome;
using testing_support::ReadFile;
using testing_support::Shell;
using testing_support::TemporaryFolder;

const std::string kHeddle = HEDDLE_BINARY_DIR "/tools/heddle/heddle ";
const std::string kTraces = HEDDLE_SOURCE_DIR "/traces/";
const std::string kGemm = kTraces + "gemm.sm_80.htrace";

std::string HeddleRun(const std::string& arguments) { return kHeddle + "run " + arguments; }

std::string Dump(const std::string& database) {
  const Outcome dump = Shell(kHeddle + "db dump --canonical " + database);
  EXPECT_EQ(dump.exit_code, 0) << dump.err;
  EXPECT_GT(dump.out.size(), 1000u);
  return dump.out;
}

TEST(Cli, RunPrintsATableAndKeepsADatabase) {
  const TemporaryFolder folder;
  const std::string db = folder / "a.db";
  const Outcome run = Shell(HeddleRun(kGemm + " -a a100_sxm4_80gb -d m=256 -d n=256 -d k=256 --db " + db));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("a100_sxm4_80gb"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("tensor%"), std::string::npos);
  EXPECT_NE(run.err.find("Results are in"), std::string::npos);
  const Outcome show = Shell(kHeddle + "db show " + db);
  EXPECT_EQ(show.out, run.out);
  const Outcome sql = Shell(kHeddle + "db sql " + db + " 'SELECT SUM(percent) AS percent FROM v_stall'");
  EXPECT_NE(sql.out.find("100.0"), std::string::npos) << sql.out;
}

TEST(Cli, TheSameRunAgainDoesNothing) {
  const TemporaryFolder folder;
  const std::string db = folder / "a.db";
  const std::string command = HeddleRun(kGemm + " -a a100_sxm4_80gb -d m=256 -d n=256 -d k=256 --db " + db);
  ASSERT_EQ(Shell(command).exit_code, 0);
  const std::string before = Dump(db);
  ASSERT_EQ(Shell(command).exit_code, 0);
  EXPECT_EQ(Dump(db), before);
  const Outcome count = Shell(kHeddle + "db sql --json " + db + " 'SELECT COUNT(*) AS n FROM launch'");
  EXPECT_NE(count.out.find("\"n\": 1"), std::string::npos) << count.out;
}

TEST(Cli, ErrorsHaveTheirCodeAPlaceAndLeaveNothingBehind) {
  const TemporaryFolder folder;
  const std::string db = folder / "a.db";
  struct Case {
    std::string command;
    int exit_code;
    std::string words;
  };
  const Case cases[] = {
      {HeddleRun(kGemm + " --db " + db), 2, "arch"},
      {HeddleRun("-a a100_sxm4_80gb --db " + db), 2, "no trace given"},
      {HeddleRun(kGemm + " -a a100_sxm4_80gb --lanch 1 --db " + db), 2, "did you mean \"--launch\"?"},
      {HeddleRun(kGemm + " -a a100_sxm4_80gb -l 3-1 --db " + db), 2, "ends before it starts"},
      {HeddleRun(kGemm + " -a a100_sxm4_80gb -k '(' --db " + db), 2, "no regular expression"},
      {HeddleRun(kGemm + " -a a100_smx4_80gb --db " + db), 3, "a100_sxm4_80gb"},
      {HeddleRun(kGemm + " -a a100_sxm4_80gb -s sm.cuont=3 --db " + db), 3, "sm.cuont"},
      {HeddleRun(kTraces + "nosuch.htrace -a a100_sxm4_80gb --db " + db), 4, "nosuch.htrace"},
      {HeddleRun(HEDDLE_SOURCE_DIR "/README.md -a a100_sxm4_80gb --db " + db), 4, "README.md"},
      {HeddleRun(kGemm + " -a a100_sxm4_80gb -d nosuch=1 --db " + db), 4, "nosuch"},
      {HeddleRun(kGemm + " -a h100_sxm5 -d m=256 -d n=256 -d k=256 --db " + db), 4, "sm_80"},
      {HeddleRun(kGemm + " -a a100_sxm4_80gb -d m=256 -d n=256 -d k=256 --max-cycles 100 --db " + db), 5,
       "100"},
      {kHeddle + "db show " + kGemm, 4, "not a heddle results database"},
      {kHeddle + "db sql " + kGemm + " 'SELECT 1'", 4, ""},
  };
  for (const Case& c : cases) {
    const Outcome outcome = Shell(c.command);
    EXPECT_EQ(outcome.exit_code, c.exit_code) << c.command << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(c.words), std::string::npos) << c.command << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << c.command;
    EXPECT_FALSE(std::filesystem::exists(db)) << c.command;
    EXPECT_FALSE(std::filesystem::exists(db + ".partial")) << c.command;
  }
}

TEST(Cli, ASignalKeepsWhatIsFinishedAndTheNextRunGoesOn) {
  const TemporaryFolder folder;
  const std::string db = folder / "a.db";
  const std::string arguments = kGemm + " " + kTraces + "softmax.sm_80.htrace " + kTraces +
                                "rms_norm.sm_80.htrace -a a100_sxm4_80gb -q --no-table --db ";
  // The signal reaches the first launch or a later one; wherever it does, nothing is lost or counted twice.
  const Outcome interrupted =
      Shell(HeddleRun(arguments + db) + " & pid=$!; sleep 0.3; kill -INT $pid; wait $pid");
  if (interrupted.exit_code == 75) {
    EXPECT_FALSE(std::filesystem::exists(db));
    EXPECT_NE(interrupted.err.find("run the same command again"), std::string::npos) << interrupted.err;
  } else {
    EXPECT_EQ(interrupted.exit_code, 0) << interrupted.err;  // it was quicker than the signal
  }
  ASSERT_EQ(Shell(HeddleRun(arguments + db)).exit_code, 0);
  const std::string undisturbed = folder / "b.db";
  ASSERT_EQ(Shell(HeddleRun(arguments + undisturbed)).exit_code, 0);
  EXPECT_EQ(Dump(db), Dump(undisturbed));
}

TEST(Cli, CompletionsLoadInTheirShells) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Outcome script = Shell(kHeddle + "completion " + shell);
    ASSERT_EQ(script.exit_code, 0);
    EXPECT_NE(script.out.find("run"), std::string::npos);
    EXPECT_NE(script.out.find(shell == std::string("fish") ? "-l arch" : "--arch"), std::string::npos);
  }
  const Outcome words =
      Shell("bash -c 'source <(" + kHeddle +
            "completion bash); COMP_WORDS=(heddle db sh); COMP_CWORD=2; _heddle; echo ${COMPREPLY[*]}'");
  EXPECT_EQ(words.out, "show\n") << words.err;
}

}  // namespace
}  // namespace heddle
