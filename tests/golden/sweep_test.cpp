// `heddle sweep` from end to end on this machine: what is run, what is not run again, what is said of what failed; and batches
// as a cluster would run them, killed at random moments.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/support/shell.h"

namespace heddle {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing_support::Outcome;
using testing_support::ReadFile;
using testing_support::Shell;
using testing_support::TemporaryFolder;

const std::string kHeddle = HEDDLE_BINARY_DIR "/tools/heddle/heddle";
const std::string kSoftmax = HEDDLE_SOURCE_DIR "/traces/softmax.sm_80.htrace";

std::string Sweep(const std::string& options) {
  return fmt::format("{} sweep -a a100_sxm4_80gb -d rows=16 --jobs 2 {}", kHeddle, options);
}

std::string Dump(const std::string& database) {
  const Outcome outcome = Shell(fmt::format("{} db dump --canonical {}", kHeddle, database));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return outcome.out;
}

TEST(Sweep, RunsEachDesignOnce) {
  const TemporaryFolder folder;
  const std::string first = Sweep(fmt::format(
      "-T {} -x 'sm.count=[96:120:12]' -x dram.bandwidth_gb_s=1000,2039 --db {} --pareto time,area "
      "--html {} --json",
      kSoftmax, folder / "a.db", folder / "a.html"));
  Outcome outcome = Shell(first);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("6 of 6 jobs\n"));
  const json document = json::parse(outcome.out);
  ASSERT_EQ(document["designs"].size(), 6u);
  EXPECT_EQ(document["designs"][0]["values"]["sm.count"], "96");
  size_t pareto = 0;
  for (const json& design : document["designs"]) {
    EXPECT_EQ(design["missing_launches"], 0);
    EXPECT_GT(design["duration_ps"], 0);
    pareto += design["pareto"].get<bool>() ? 1 : 0;
  }
  EXPECT_GE(pareto, 1u);
  EXPECT_LT(pareto, 6u);
  const std::string page = ReadFile(folder / "a.html");
  EXPECT_THAT(page, HasSubstr("<svg"));
  EXPECT_EQ(page.find("http://"), page.find("http://www.w3.org"));
  // The same again runs nothing, and says the same.
  const Outcome again = Shell(first);
  EXPECT_THAT(again.err, HasSubstr("6 of 6 jobs, 6 were there"));
  EXPECT_EQ(again.out, outcome.out);
  EXPECT_FALSE(std::filesystem::exists(folder / "a.db.jobs"));
}

// Another database, designs that overlap: the cache has what both need, and it is the same to the byte.
TEST(Sweep, CacheServesOtherDatabases) {
  const TemporaryFolder folder;
  const auto run = [&](const std::string& database, const std::string& axis, const std::string& more) {
    const Outcome outcome =
        Shell(Sweep(fmt::format("-T {} -x {} --db {} {}", kSoftmax, axis, folder / database, more)));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.err;
  };
  const std::string cache = "--cache-dir " + (folder / "cache");
  run("a.db", "sm.count=96,108", cache);
  EXPECT_THAT(run("b.db", "sm.count=108,120", cache), HasSubstr("2 of 2 jobs, 1 were there"));
  run("c.db", "sm.count=108,120", "");
  EXPECT_EQ(Dump(folder / "b.db"), Dump(folder / "c.db"));
}

TEST(Sweep, AllFaultsAtOnceBeforeAnythingRuns) {
  const TemporaryFolder folder;
  const Outcome outcome = Shell(Sweep(
      fmt::format("-T nowhere.htrace -T {} -x sm.cuont=1,2,3 -x 'l2.ways=[9:1]' -x sm.max_warps=30 --db {}",
                  kSoftmax, folder / "a.db")));
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  for (const char* part : {"l2.ways=[9:1]: is empty", "nowhere.htrace", "no field \"cuont\""})
    EXPECT_THAT(outcome.err, HasSubstr(part));
  const Outcome values = Shell(
      Sweep(fmt::format("-T {} -x sm.cuont=1,2,3 -x sm.max_warps=30 --db {}", kSoftmax, folder / "a.db")));
  EXPECT_EQ(values.exit_code, 3);
  EXPECT_THAT(values.err, HasSubstr("no field \"cuont\"; did you mean \"count\"? (and 2 more like it)"));
  EXPECT_THAT(values.err, HasSubstr("30 warps do not spread over 4 sub-cores"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a.db"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a.db.jobs"));
}

// Words of the command line, its specification, fields, traces: one list.
TEST(Sweep, FaultsOfEveryKindStandTogether) {
  const TemporaryFolder folder;
  std::ofstream(folder / "spec.json") << R"({"shpe": "grid", "axes": {"l2.ways": []}})";
  const Outcome outcome =
      Shell(fmt::format("{} sweep {} -T nowhere.htrace -x sm.count=0 -x sm.count=96 -x 'l2.size_bytes=[1:' "
                        "--pareto time,beauty --mode silly "
                        "--cache tepid --shape spiral -k '(' -l 5-2 -d rows --backend moon --db {}",
                        kHeddle, folder / "spec.json", folder / "a.db"));
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  for (const char* part :
       {"spec.json: shpe: is not known; did you mean \"shape\"?", "--shape: 'spiral' is not one of",
        "--pareto time,beauty: 'beauty' is not one of", "--backend: 'moon' is not one of",
        "--define rows: is not NAME=INTEGER", "--kernel: '(' is no regular expression",
        "--launch: '5-2' ends before it starts", "--mode: 'silly' is not one of",
        "--cache: 'tepid' is not one of", "no machine to start from",
        "--axis l2.size_bytes=[1:", "--axis l2.ways=", "sm.count is an axis twice",
        "nowhere.htrace: there is no such file", "nothing was run"})
    EXPECT_THAT(outcome.err, HasSubstr(part));
  const Outcome values = Shell(
      Sweep(fmt::format("-T {} -x sm.count=0 -x sm.count=96 -d cols=8 --db {}", kSoftmax, folder / "a.db")));
  for (const char* part : {"sm.count is an axis twice", "sm.count: must be at least 1 SM, not 0",
                           "--define cols: the trace defines no such name"})
    EXPECT_THAT(values.err, HasSubstr(part));
}

TEST(Sweep, FailedJobsAreReportedWithTheirCommand) {
  const TemporaryFolder folder;
  Outcome outcome = Shell(
      Sweep(fmt::format("-T {} -x sm.count=96,108 --max-cycles 10 --db {}", kSoftmax, folder / "a.db")));
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_THAT(outcome.err, HasSubstr("2 of 2 jobs failed"));
  EXPECT_THAT(outcome.err, HasSubstr("heddle run " + kSoftmax + " -a a100_sxm4_80gb -s sm.count=96"));
}

TEST(Sweep, SpecificationSaysTheSameAsOptions) {
  const TemporaryFolder folder;
  std::ofstream(folder / "spec.json")
      << json{{"arch", "a100_sxm4_80gb"},
              {"traces", {kSoftmax}},
              {"axes", {{"sm.count", {96, 108}}}},
              {"designs", {{{"l2.size_bytes", "80Mi"}, {"l2.hit_latency_cycles", 80}}}}};
  const Outcome outcome = Shell(fmt::format("{} sweep {} -d rows=16 --dry-run --csv --db {}", kHeddle,
                                            folder / "spec.json", folder / "a.db"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 4);
  EXPECT_THAT(outcome.out,
              HasSubstr("sm.count,l2.hit_latency_cycles,l2.size_bytes,area mm2,power W,moved along\n96,"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a.db"));
}

// A grid as a capture leaves it, a number, follows the machine once it is rebuilt; all that is wrong is said at once.
TEST(Sweep, FrozenGridsAreRebuiltByExpressions) {
  const TemporaryFolder folder;
  const auto rebuild = [&](const std::string& options) {
    return Shell(
        fmt::format("{} trace rebuild {} -o {} {}", kHeddle, kSoftmax, folder / "y.htrace", options));
  };
  const Outcome wrong = rebuild("--grid 7=sm_count --grid sm_count --parameter 0:9999=1");
  EXPECT_EQ(wrong.exit_code, 2);
  for (const char* fault :
       {"--grid 7=sm_count: the trace has", "--grid sm_count: is not", "--parameter 0:9999=1: names no"})
    EXPECT_THAT(wrong.err, HasSubstr(fault));
  EXPECT_EQ(rebuild("--grid 0=no_such_name").exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(folder / "y.htrace"));
  ASSERT_EQ(rebuild("--grid '0=min(sm_count, 100)'").exit_code, 0);
  const auto run = [&](int sms) {
    return Shell(fmt::format("{} run {} -a a100_sxm4_80gb -s sm.count={} -d rows=128 -q --no-table --db {}",
                             kHeddle, folder / "y.htrace", sms, folder / "r.db"));
  };
  for (const int sms : {84, 108}) ASSERT_EQ(run(sms).exit_code, 0);
  const std::string query = "SELECT group_concat(grid_x || ' ' || grid_frozen) AS grids FROM launch";
  EXPECT_THAT(Shell(fmt::format("{} db sql {} \"{}\"", kHeddle, folder / "r.db", query)).out,
              HasSubstr("84 0,100 0"));
}

// Tasks of a batch, as a cluster would start them, are killed (the child that simulates too) or told to stop at random moments and
// started again: what is merged in the end is what an undisturbed sweep finds.
TEST(Batch, KilledTasksLoseNothingAndCountNothingTwice) {
  const TemporaryFolder folder;
  const std::string options = fmt::format("-T {} -x 'sm.count=[96:120:4]'", kSoftmax);
  ASSERT_EQ(Shell(Sweep(fmt::format("{} --db {}", options, folder / "whole.db"))).exit_code, 0);
  const std::string batch = folder / "a.db.batch";
  ASSERT_EQ(Shell(Sweep(fmt::format("{} --db {} --backend kubernetes --tasks 2 --image x --volume-claim c "
                                    "--volume-mount {}",
                                    options, folder / "a.db", folder.path())))
                .exit_code,
            0);
  std::mt19937 random(7);
  for (int attempt = 0; attempt < 6; ++attempt) {
    const double seconds = 0.05 + 0.001 * static_cast<double>(random() % 400);
    const std::string task = fmt::format("{} batch task {} --task {} --publish-every 1 --scratch {}", kHeddle,
                                         batch, attempt % 2, folder.path());
    if (attempt % 3 == 2)  // the process that simulates; the task says that a job failed
      Shell(fmt::format("{} & sleep {}; pkill -KILL -P $!; wait", task, seconds));
    else
      Shell(
          fmt::format("timeout --foreground -s {} {} {}", attempt % 3 == 0 ? "KILL" : "TERM", seconds, task));
    // What is published is always whole.
    for (const auto& entry : std::filesystem::directory_iterator(batch + "/out"))
      if (entry.path().extension() == ".db") Dump(entry.path().string());
  }
  for (const int task : {0, 1}) {
    const Outcome outcome =
        Shell(fmt::format("{} batch task {} --task {} --scratch {}", kHeddle, batch, task, folder.path()));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  const Outcome merged = Shell(fmt::format("{} batch merge {}", kHeddle, batch));
  EXPECT_EQ(merged.exit_code, 0) << merged.err;
  EXPECT_EQ(Dump(folder / "a.db"), Dump(folder / "whole.db"));
  EXPECT_THAT(Shell(Sweep(fmt::format("{} --db {}", options, folder / "a.db"))).err,
              HasSubstr("7 of 7 jobs, 7 were there"));
}

// A warning in the middle of a launch, given three times: the launch is finished and published, and nothing after it begins. A
// kill in the middle of the next one costs that one alone.
TEST(Batch, WarnedTasksFinishTheirLaunchAndKilledOnesLoseIt) {
  const TemporaryFolder folder;
  const auto sweep = [&](const std::string& more) {
    return Shell(fmt::format("{} sweep -a a100_sxm4_80gb -d rows=2048 -q -T {} -x sm.count=96,108 {}",
                             kHeddle, kSoftmax, more));
  };
  const std::string batch = folder / "a.db.batch";
  ASSERT_EQ(
      sweep(fmt::format("--db {} --backend kubernetes --tasks 1 --image x --volume-claim c --volume-mount {}",
                        folder / "a.db", folder.path()))
          .exit_code,
      0);
  const std::string task =
      fmt::format("{} batch task {} --task 0 --scratch {}", kHeddle, batch, folder.path());
  const auto published = [&] {
    const Outcome shown = Shell(
        fmt::format("for db in {}/out/*.db; do {} db sql $db 'SELECT COUNT(*) FROM launch' --json; done",
                    batch, kHeddle));
    return static_cast<size_t>(std::count(shown.out.begin(), shown.out.end(), '1'));
  };
  // The child reads trace and machine in less than a quarter of a second of CPU time; the launch takes most of one.
  const std::string simulates =
      "until [ \"$(awk '{print $14}' /proc/$(pgrep -P $task)/stat 2>/dev/null || echo 0)\" -ge 25 ]; do "
      "sleep "
      "0.01; done; ";
  const Outcome warned = Shell(fmt::format(
      "{} & task=$!; {} for i in 1 2 3; do kill -USR1 $task; sleep 0.02; done; wait $task", task, simulates));
  EXPECT_EQ(warned.exit_code, 75) << warned.err;
  EXPECT_THAT(warned.err, HasSubstr("stopped by a signal; what was finished is published"));
  EXPECT_EQ(published(), 1u);
  const Outcome killed = Shell(fmt::format("{} & task=$!; {} kill -KILL $task; wait $task", task, simulates));
  EXPECT_EQ(killed.exit_code, 128 + 9);
  EXPECT_EQ(published(), 1u);
  ASSERT_EQ(Shell(task).exit_code, 0);
  ASSERT_EQ(Shell(fmt::format("{} batch merge {}", kHeddle, batch)).exit_code, 0);
  ASSERT_EQ(sweep("--db " + (folder / "whole.db")).exit_code, 0);
  EXPECT_EQ(Dump(folder / "a.db"), Dump(folder / "whole.db"));
}

}  // namespace
}  // namespace heddle
