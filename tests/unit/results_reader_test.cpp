// The reader gives back what the writer wrote, groups what is alike, finds measurements, and refuses what does not fit.
#include "tools/analysis/results_reader.h"

#include <gtest/gtest.h>

#include <string>

#include "sim/config/load.h"
#include "sim/results/results.h"
#include "tests/support/shell.h"
#include "tools/analysis/kernel_analysis.h"

namespace heddle::analysis {
namespace {

class Reader : public testing::Test {
 protected:
  void SetUp() override {
    const config::Gpu gpu = *config::LoadGpu("a100_sxm4_80gb");
    machine_ = {config::Digest(gpu), gpu.name, config::CanonicalText(gpu), gpu.sm.count, 1, 1, 1, 1};
    code_.name = "_Z4axpyPf";
    code_.sm_version = 80;
    code_.instructions.resize(2);
    code_.instructions[0].op = isa::Op::kFFMA;
    code_.instructions[1].op = isa::Op::kEXIT;
    code_.instructions[1].pc = isa::kInstructionBytes;
  }

  // Launches of one kernel with these grids, a cycle each for a picosecond of duration.
  void Write(const std::vector<uint32_t>& grids, const std::vector<std::string>& statements = {}) {
    Result<results::Writer> writer = results::Writer::Open(path_);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->BeginRun({"heddle run x", "0", "test"}).ok());
    for (uint32_t i = 0; i < grids.size(); ++i) {
      isa::LaunchShape shape;
      shape.grid = {grids[i], 1, 1};
      shape.block = {64, 1, 1};
      stats::LaunchStats stats;
      stats.end_cycle = 10'000 + i;
      stats.counters.dram_read_bytes = 320;
      stats.counters.smsp_inst_executed = 7;
      stats.slots[static_cast<size_t>(stats::Stall::k_selected)] = 7;
      stats.slots[static_cast<size_t>(stats::Stall::k_wait)] = 3;
      stats.counters.smsp_issue_slots = 10;
      stats.per_pc.resize(2);
      stats.per_pc[0].issued = 5;
      stats.per_pc[0].slots[static_cast<size_t>(stats::Stall::k_selected)] = 5;
      stats.per_pc[1].slots[static_cast<size_t>(stats::Stall::k_wait)] = 3;
      stats.per_pc[0].memory = {4, 32, 16, 0, 0};
      results::LaunchRecord record;
      record.trace_digest = "feed";
      record.trace_name = "x.htrace";
      record.ordinal = i;
      record.mode = "skeleton";
      record.cache_policy = "cold";
      record.duration_ps = 1'000'000 + i;
      ASSERT_TRUE(writer->AddLaunch(record, machine_, code_, shape, stats, {}).ok());
    }
    for (const std::string& statement : statements)
      ASSERT_TRUE(writer->database().Execute(statement).ok()) << statement;
    ASSERT_TRUE(writer->Finish().ok());
  }

  testing_support::TemporaryFolder folder_;
  std::string path_ = folder_ / "x.db";
  results::ConfigRecord machine_;
  isa::KernelCode code_;
};

// Two launches of which the second was sampled: 10,001 cycles in a microsecond, plus or minus 100 of them.
TEST_F(Reader, SampledLaunchesHaveAnInterval) {
  Write({3, 4, 5},
        {"INSERT INTO sampling VALUES (2, 1000, 98, 1, 100, '', NULL), (3, 8, 8, 0, 0, 'too small', NULL)"});
  auto reader = ResultsReader::Open(path_);
  ASSERT_TRUE(reader.ok()) << reader.error().ToString();
  const std::vector<LaunchInfo>& launches = reader->launches();
  ASSERT_EQ(launches.size(), 3u);
  for (const size_t whole : {size_t{0}, size_t{2}}) {
    EXPECT_FALSE(launches[whole].IsSampled());
    EXPECT_EQ(launches[whole].IntervalSeconds(), 0);
  }
  EXPECT_TRUE(launches[1].IsSampled());
  EXPECT_EQ(launches[1].simulated_share, 0.098);
  EXPECT_NEAR(launches[1].IntervalSeconds(), 1e-6 * 100 / 10'001, 1e-12);
}

TEST_F(Reader, GivesBackWhatWasWritten) {
  Write({3});
  auto reader = ResultsReader::Open(path_);
  ASSERT_TRUE(reader.ok()) << reader.error().ToString();
  ASSERT_EQ(reader->launches().size(), 1u);
  const LaunchInfo& launch = reader->launches()[0];
  EXPECT_EQ(launch.grid, (Dim3{3, 1, 1}));
  EXPECT_EQ(launch.Cycles(), 10'000u);
  EXPECT_EQ(reader->runs()[0].command, "heddle run x");
  const auto counts = reader->CountsOf(launch);
  ASSERT_TRUE(counts.ok());
  EXPECT_EQ(counts->counters.dram_read_bytes, 320u);
  EXPECT_EQ(counts->slots[static_cast<size_t>(stats::Stall::k_wait)], 3u);
  ASSERT_EQ(counts->per_pc.size(), 2u);
  EXPECT_EQ(counts->per_pc[0].issued, 5u);
  EXPECT_EQ(counts->per_pc[1].slots[static_cast<size_t>(stats::Stall::k_wait)], 3u);
  EXPECT_EQ(counts->per_pc[0].memory.requests, 4u);
  EXPECT_EQ(counts->per_pc[0].memory.sectors, 32u);
  EXPECT_EQ(counts->per_pc[0].memory.ideal_sectors, 16u);
  EXPECT_FALSE(counts->per_pc[1].memory.any());
  EXPECT_EQ((*reader->KernelOf(launch.kernel_id))->instructions[0].op, isa::Op::kFFMA);
  EXPECT_EQ((*reader->MachineOf(launch.config_id))->gpu.sm.count, 108u);
}

TEST_F(Reader, EqualLaunchesAreOneGroupToldByTheMedian) {
  Write({3, 8, 8, 8});
  auto reader = ResultsReader::Open(path_);
  ASSERT_TRUE(reader.ok());
  const std::vector<LaunchGroup> groups = GroupLaunches(reader->launches());
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].launches, (std::vector<size_t>{1, 2, 3}));
  EXPECT_EQ(groups[0].representative, 2u);
  EXPECT_NEAR(groups[0].seconds, 3'000'006e-12, 1e-15);
  Selection other;
  other.kernel.emplace("nothing");
  EXPECT_TRUE(ResultsReader::Open(path_, other)->launches().empty());
}

// By the launch of the trace that was measured; not on another GPU than the machine's.
TEST_F(Reader, MeasurementsOfTheSameLaunch) {
  const auto measured = [](int id, const char* gpu, int ordinal) {
    const std::string number = std::to_string(id);
    return std::vector<std::string>{
        "INSERT INTO hardware_run VALUES (" + number + ", '" + gpu + "', 'k', 's" + number + "', '', NULL)",
        "INSERT INTO hardware_metric VALUES (" + number + ", 'duration_ps', 'ps', 2000000)",
        "INSERT INTO hardware_launch (hardware_run_id, ordinal, time_resolution_ns, trace_digest, "
        "trace_ordinal) VALUES (" +
            number + ", 0, 1, 'feed', " + std::to_string(ordinal) + ")"};
  };
  std::vector<std::string> statements;
  for (const auto& [id, gpu, ordinal] :
       {std::tuple{1, "A100-SXM4-80GB", 0}, {2, "T4", 0}, {3, "A100-SXM4-80GB", 1}, {4, "some GPU", 0}})
    for (const std::string& statement : measured(id, gpu, ordinal)) statements.push_back(statement);
  Write({3, 4}, statements);
  auto reader = ResultsReader::Open(path_);
  ASSERT_TRUE(reader.ok());
  const auto found = reader->MeasurementsOf(reader->launches()[0]);
  ASSERT_TRUE(found.ok()) << found.error().ToString();
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].source, "s1");
  EXPECT_EQ((*found)[1].gpu, "some GPU");
  const auto analysis = Analyse(&*reader, GroupLaunches(reader->launches())[1]);
  ASSERT_TRUE(analysis.ok()) << analysis.error().ToString();
  ASSERT_EQ(analysis->roofline.measured.size(), 2u);
  EXPECT_DOUBLE_EQ(analysis->roofline.measured[0].ops_per_second, 5 * 64 / 2e-6);  // five FFMA of 32 lanes
  EXPECT_EQ(analysis->sections[0].metrics[5].measured, 2e6);                       // Duration
}

TEST_F(Reader, DamageIsAnError) {
  Write({3}, {"PRAGMA foreign_keys = OFF", "UPDATE launch SET kernel_id = 77"});
  const auto reader = ResultsReader::Open(path_);
  ASSERT_FALSE(reader.ok());
  EXPECT_EQ(reader.error().code, ExitCode::kTrace);
  EXPECT_EQ(reader.error().message, "launch 1 names no kernel or machine");
}

}  // namespace
}  // namespace heddle::analysis
