// Runs that were stopped between the launches of a trace and are started again: what is there is neither stored twice nor
// missing in what comes out.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "sim/results/results.h"
#include "tests/support/machines.h"
#include "tests/support/shell.h"
#include "tools/replay/trace_run.h"
#include "tools/validate/simulate.h"

namespace heddle {
namespace {

const std::string kTraces = HEDDLE_SOURCE_DIR "/traces/tests/";

replay::NamedTrace Read(const std::string& name) {
  auto trace = replay::ReadNamedTrace(kTraces + name);
  EXPECT_TRUE(trace.ok()) << trace.error().ToString();
  return std::move(*trace);
}

class ResumedValidation : public testing::Test {
 protected:
  validate::Plan PlanOf(std::vector<uint32_t> launches) const {
    validate::Simulation simulation;
    simulation.trace_path = named_.path;
    simulation.trace = std::make_shared<const trace::Trace>(named_.trace);
    simulation.trace_digest = named_.digest;
    simulation.machine = machine_;
    simulation.launches = std::move(launches);
    validate::Plan plan;
    plan.simulations.push_back(std::move(simulation));
    return plan;
  }

  static validate::Measured Run(const validate::Plan& plan, results::Writer* writer) {
    validate::SimulateOptions options;
    options.writer = writer;
    const auto measured = validate::RunSimulations(plan, options);
    EXPECT_TRUE(measured.ok()) << measured.error().ToString();
    return measured.ok() ? measured->front() : validate::Measured{};
  }

  replay::NamedTrace named_ = Read("streams.sm_80.htrace");
  std::shared_ptr<const replay::MachineRecord> machine_ =
      std::make_shared<const replay::MachineRecord>(replay::RecordMachine(test::A100()));
};

TEST_F(ResumedValidation, GoesOnInTheMiddleOfARow) {
  const testing_support::TemporaryFolder folder;
  const validate::Measured fresh = Run(PlanOf({0, 1}), nullptr);
  auto writer = results::Writer::Open(folder / "validation.db");
  ASSERT_TRUE(writer.ok()) << writer.error().ToString();
  ASSERT_TRUE(writer->BeginRun({"test", "0", "test"}).ok());
  Run(PlanOf({0}), &*writer);  // all that a run left that was stopped before the second launch
  const validate::Measured resumed = Run(PlanOf({0, 1}), &*writer);
  EXPECT_EQ(resumed.error, "");
  EXPECT_EQ(resumed.cycles, fresh.cycles);
  EXPECT_EQ(*writer->database().QueryInteger("SELECT COUNT(*) FROM launch"), 2);
  const validate::Measured loaded = Run(PlanOf({0, 1}), &*writer);
  EXPECT_EQ(loaded.cycles, fresh.cycles);
  EXPECT_EQ(loaded.counters.at("smsp_inst_executed"), fresh.counters.at("smsp_inst_executed"));
}

// Launches that overlap are simulated again together, and only what is missing is handed on.
TEST(ResumedReplay, OverlappingLaunchesThatAreDoneAreNotHandedOnAgain) {
  replay::NamedTrace named = Read("streams.sm_80.htrace");
  for (uint32_t i = 0; i < named.trace.launches.size(); ++i) named.trace.launches[i].stream = i;
  const replay::MachineRecord machine = replay::RecordMachine(test::A100());
  const auto handed = [&](const replay::TraceRun::IsDone& is_done) {
    std::vector<uint32_t> ordinals;
    auto run = replay::TraceRun::Open(named, machine, {});
    EXPECT_TRUE(run.ok()) << run.error().ToString();
    (*run)->Select({.wanted = [](uint32_t i) { return i < 3; }});
    EXPECT_FALSE((*run)->sequential());
    const Status status = (*run)->Run(is_done, [&](const replay::LaunchResult& result) -> Status {
      ordinals.push_back(result.ordinal);
      return Ok();
    });
    EXPECT_TRUE(status.ok()) << status.error().ToString();
    return ordinals;
  };
  const std::vector<uint32_t> all = handed([](uint32_t) { return Result<bool>(false); });
  EXPECT_EQ(all, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(handed([](uint32_t i) { return Result<bool>(i == 1); }), (std::vector<uint32_t>{0, 2}));
}

}  // namespace
}  // namespace heddle
