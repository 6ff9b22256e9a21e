// `heddle sweep --backend slurm` on a real Slurm of this machine (tests/support/slurm/cluster): a node that dies with its daemons
// and a task that is told to stop lose nothing, and nothing is counted twice. Skipped where no Slurm comes up.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>

#include "tests/support/shell.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing_support::Outcome;
using testing_support::ReadFile;
using testing_support::Shell;
using testing_support::TemporaryFolder;

const std::string kHeddle = HEDDLE_BINARY_DIR "/tools/heddle/heddle";
const std::string kCluster = HEDDLE_SOURCE_DIR "/tests/support/slurm/cluster";
const std::string kTrace = HEDDLE_SOURCE_DIR "/traces/softmax.sm_80.htrace";
constexpr int kNotInstalled = 77;
constexpr auto kPatience = std::chrono::seconds(150);
constexpr auto kInterval = std::chrono::milliseconds(300);

class Slurm : public testing::Test {
 protected:
  void SetUp() override {
    const Outcome started = Shell(fmt::format("MAX_ARRAY_SIZE=4 {} start {}", kCluster, cluster()));
    if (started.exit_code == kNotInstalled) GTEST_SKIP() << "Slurm is not installed";
    // Not a fault of heddle's: the kernel or the network of this machine does not let its daemons run.
    if (started.exit_code != 0) GTEST_SKIP() << "no Slurm comes up here: " << started.out << started.err;
  }
  void TearDown() override { Shell(fmt::format("{} stop {}", kCluster, cluster())); }

  std::string cluster() const { return folder_ / "cluster"; }

  Outcome Client(const std::string& command) const {
    return Shell(
        fmt::format("export SLURM_CONF={}/slurm.conf TMPDIR={}; {}", cluster(), folder_.path(), command));
  }

  // Six jobs and more a task: a signal that follows its first result comes long before its last launch.
  Outcome Sweep(const std::string& more) const {
    return Client(fmt::format("{} sweep -a a100_sxm4_80gb -d rows=2048 -T {} -x 'sm.count=[72:120:2]' {}",
                              kHeddle, kTrace, more));
  }

  std::string Dump(const std::string& database) const {
    const Outcome outcome = Shell(fmt::format("{} db dump --canonical {}", kHeddle, folder_ / database));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
  }

  size_t Published() const {
    size_t count = 0;
    std::error_code error;
    for (fs::directory_iterator it(folder_ / "a.db.batch/out", error), end; !error && it != end;
         it.increment(error))
      count += it->path().extension() == ".db" ? 1 : 0;
    return count;
  }

  // Slurm lets two minutes pass before it starts a task again that was put back; not here.
  bool QueueIsEmpty() const {
    Client(
        "squeue -h -t PD -o '%i %r' | sed -n 's/ BeginTime//p' | "
        "xargs -r -I JOB scontrol update jobid=JOB StartTime=now");
    return Client("squeue -h").out.empty();
  }

  // The step daemon says how each attempt ended. (The controller's own record of a task that puts itself back is written
  // when it asks for that, before it exits.)
  bool SomeTaskExitedWith(int exit_code) const {
    return ReadFile(folder_ / "cluster/slurmd.log")
               .find(fmt::format("exited with exit code {}.", exit_code)) != std::string::npos;
  }

  std::string ControllerLog() const { return ReadFile(folder_ / "cluster/slurmctld.log"); }

  static bool WaitFor(const std::function<bool()>& condition) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(kInterval);
    }
    return true;
  }

  TemporaryFolder folder_;
};

TEST_F(Slurm, DeadNodesAndStoppedTasksLoseNothing) {
  const Outcome undisturbed = Sweep(fmt::format("--db {} --jobs 2", folder_ / "whole.db"));
  ASSERT_EQ(undisturbed.exit_code, 0) << undisturbed.err;
  const std::string submit =
      fmt::format("--db {} --backend slurm --jobs 2 --publish-every 1", folder_ / "a.db");
  const Outcome submitted = Sweep(submit);
  ASSERT_EQ(submitted.exit_code, 0) << submitted.err;
  EXPECT_THAT(submitted.err, HasSubstr("25 jobs in 4 tasks"));  // MaxArraySize is 4
  const std::string id = submitted.out.substr(0, submitted.out.find('\n'));
  EXPECT_THAT(ReadFile(folder_ / "a.db.batch/array.sh"), HasSubstr("#SBATCH --array=0-3%2\n"));
  EXPECT_THAT(Sweep(submit).err, HasSubstr("still waits or runs"));  // not twice

  // Before Slurm's time limit a task gets this, in the middle of a launch: it finishes that, and puts itself back into the
  // queue. (scancel says that it could not, tries again, and the task gets it twice or more.)
  ASSERT_TRUE(WaitFor([&] { return Published() > 0; })) << Client("squeue; sinfo").out;
  Client(fmt::format("timeout 2 scancel --signal=USR1 --batch {}_1", id));
  ASSERT_TRUE(WaitFor([&] { return SomeTaskExitedWith(75); })) << ReadFile(folder_ / "cluster/slurmd.log");
  EXPECT_TRUE(WaitFor([&] {
    return ControllerLog().find(fmt::format("Requeuing JobId={}_1(", id)) != std::string::npos;
  })) << ControllerLog();
  // The node loses power: its daemon and its step daemons die, what they started lives on for a while.
  Shell(fmt::format("{} kill-node {}", kCluster, cluster()));
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const Outcome back = Shell(fmt::format("{} start-node {}", kCluster, cluster()));
  ASSERT_EQ(back.exit_code, 0) << back.err;

  ASSERT_TRUE(WaitFor([&] { return QueueIsEmpty(); })) << Client("squeue").out;
  const Outcome shown = Client(fmt::format("{} batch show {}", kHeddle, folder_ / "a.db.batch"));
  EXPECT_THAT(shown.out, HasSubstr("tasks through       4\n"))
      << Client("cat " + (folder_ / "a.db.batch/log/*")).out;
  EXPECT_EQ(Dump("a.db"), Dump("whole.db"));  // merged by the job that ran afterany
  EXPECT_THAT(Sweep(submit).err, HasSubstr("all 25 jobs are in"));
}

}  // namespace
}  // namespace heddle
