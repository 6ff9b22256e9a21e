#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "sim/results/results.h"

namespace heddle::results {
namespace {

namespace fs = std::filesystem;

class Results : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("heddle_results_" + std::to_string(getpid()) + "_" +
                                           testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  // Two instructions, one launch; `ordinal` tells launches apart.
  static Status Add(Writer* writer, uint32_t ordinal, uint64_t cycles = 100) {
    isa::KernelCode code;
    code.name = "k";
    code.sm_version = 80;
    code.instructions.resize(2);
    code.instructions[1].pc = 16;
    isa::LaunchShape shape;
    shape.grid = {3, 1, 1};
    stats::LaunchStats stats;
    stats.end_cycle = cycles;
    stats.counters.smsp_inst_executed = 50;
    stats.counters.dram_read_bytes = 1000;
    stats.counters.smsp_issue_slots = 200;
    stats.slots[static_cast<size_t>(stats::Stall::k_selected)] = 50;
    stats.slots[static_cast<size_t>(stats::Stall::k_barrier)] = 150;
    stats.per_pc.resize(2);
    stats.per_pc[1].issued = 50;
    stats.per_pc[1].slots[static_cast<size_t>(stats::Stall::k_barrier)] = 150;
    stats.per_pc[1].memory = {10, 80, 40, 30, 20};
    stats.waits[{1, 0}] = {3, 90};
    stats.waits[{1, stats::kUnknownCause}] = {1, 7};
    ConfigRecord config{"c0ffee", "machine", "text", 2, 1000000000, 1000000000000, 1, 1};
    LaunchRecord record;
    record.trace_digest = "feed";
    record.ordinal = ordinal;
    record.mode = "skeleton";
    record.execution = "optimistic";
    record.duration_ps = 100000;
    return writer->AddLaunch(record, config, code, shape, stats, {{"unknown_address", "LDG at 0x10", 2}});
  }

  static Status WriteFile(const std::string& path, std::vector<uint32_t> ordinals) {
    HEDDLE_ASSIGN_OR_RETURN(Writer writer, Writer::Open(path));
    HEDDLE_RETURN_IF_ERROR(writer.BeginRun({"heddle run", "0", "test"}));
    for (const uint32_t ordinal : ordinals) HEDDLE_RETURN_IF_ERROR(Add(&writer, ordinal));
    return writer.Finish();
  }

  static std::string Dump(const std::string& path) {
    Result<sqlite::Database> database = OpenForReading(path);
    EXPECT_TRUE(database.ok());
    Result<std::string> dump = CanonicalDump(&*database);
    EXPECT_TRUE(dump.ok()) << dump.error().ToString();
    return *dump;
  }

  fs::path folder_;
};

TEST_F(Results, ViewsGiveRatiosOfTheCounts) {
  ASSERT_TRUE(WriteFile(Path("a.db"), {0}).ok());
  Result<sqlite::Database> database = OpenForReading(Path("a.db"));
  ASSERT_TRUE(database.ok());
  // 50 instructions in 100 cycles on 2 SMs.
  EXPECT_EQ(*database->QueryInteger("SELECT CAST(1000 * ipc_sm AS INTEGER) FROM v_ipc"), 250);
  // 1000 bytes in 100 ns = 1e10 bytes/s = 1 % of 1e12.
  EXPECT_EQ(*database->QueryInteger("SELECT CAST(ROUND(100 * dram_percent) AS INTEGER) FROM v_roofline"),
            100);
  EXPECT_EQ(*database->QueryInteger("SELECT CAST(percent AS INTEGER) FROM v_stall WHERE stall = 'barrier'"),
            75);
  EXPECT_EQ(*database->QueryInteger("SELECT slots FROM pc_stat JOIN stall_def USING (stall_id) "
                                    "WHERE pc = 16 AND name = 'selected'"),
            50);
}

TEST_F(Results, AnInterruptedFileIsContinuedUnderItsFinalName) {
  {
    Result<Writer> writer = Writer::Open(Path("a.db"));
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->BeginRun({"heddle run", "0", "test"}).ok());
    ASSERT_TRUE(Add(&*writer, 0).ok());
  }
  EXPECT_FALSE(fs::exists(Path("a.db")));
  Result<Writer> writer = Writer::Open(Path("a.db"));
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->BeginRun({"heddle run", "0", "test"}).ok());
  LaunchRecord record;
  record.trace_digest = "feed";
  record.mode = "skeleton";
  EXPECT_TRUE(*writer->HasLaunch(LaunchKey(record, "c0ffee")));
  record.ordinal = 1;
  EXPECT_FALSE(*writer->HasLaunch(LaunchKey(record, "c0ffee")));
  ASSERT_TRUE(Add(&*writer, 1).ok());
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_FALSE(fs::exists(Path("a.db.partial")));
  ASSERT_TRUE(WriteFile(Path("b.db"), {0, 1}).ok());
  EXPECT_EQ(Dump(Path("a.db")), Dump(Path("b.db")));
}

TEST_F(Results, MergingGivesWhatOneRunWouldHaveGiven) {
  ASSERT_TRUE(WriteFile(Path("a.db"), {0, 2}).ok());
  ASSERT_TRUE(WriteFile(Path("b.db"), {1, 2}).ok());
  ASSERT_TRUE(WriteFile(Path("all.db"), {0, 1, 2}).ok());
  ASSERT_TRUE(Merge(Path("merged.db"), {Path("a.db"), Path("b.db")}).ok());
  EXPECT_EQ(Dump(Path("merged.db")), Dump(Path("all.db")));
}

TEST_F(Results, WhatInstructionsAskedOfMemory) {
  ASSERT_TRUE(WriteFile(Path("a.db"), {0}).ok());
  ASSERT_TRUE(WriteFile(Path("b.db"), {1}).ok());
  ASSERT_TRUE(Merge(Path("both.db"), {Path("a.db"), Path("b.db"), Path("a.db")}).ok());
  Result<sqlite::Database> database = OpenForReading(Path("both.db"));
  ASSERT_TRUE(database.ok());
  EXPECT_EQ(*database->QueryInteger("SELECT COUNT(*) FROM pc_memory"), 2) << "only instructions that asked";
  EXPECT_EQ(*database->QueryInteger(
                "SELECT COUNT(*) FROM pc_memory WHERE pc = 16 AND requests = 10 AND sectors = 80 AND "
                "ideal_sectors = 40 AND wavefronts = 30 AND bank_conflicts = 20"),
            2);
}

TEST_F(Results, WaitsNameWhatEndedThem) {
  ASSERT_TRUE(WriteFile(Path("a.db"), {0}).ok());
  Result<sqlite::Database> database = OpenForReading(Path("a.db"));
  ASSERT_TRUE(database.ok());
  EXPECT_EQ(*database->QueryInteger(
                "SELECT waits * 1000 + cycles FROM barrier_wait WHERE pc = 16 AND cause_pc = 0"),
            3090);
  EXPECT_EQ(*database->QueryInteger(
                "SELECT waits * 1000 + cycles FROM barrier_wait WHERE pc = 16 AND cause_pc = -1"),
            1007);
}

// What heddle wrote before there was barrier_wait can be read and merged, and is brought up to date when written to.
TEST_F(Results, FilesOfTheFirstVersionAreRead) {
  ASSERT_TRUE(WriteFile(Path("old.db"), {0}).ok());
  {
    Result<sqlite::Database> old = sqlite::Database::Open(Path("old.db"), sqlite::Database::Mode::kReadWrite);
    ASSERT_TRUE(old->Execute("DROP TABLE barrier_wait; DROP TABLE hardware_launch; DROP TABLE cta; "
                             "DROP TABLE counter_sample; DROP TABLE sampling; DROP TABLE hardware_code; "
                             "DROP TABLE hardware_pc_metric; DROP TABLE pc_memory; DROP INDEX "
                             "hardware_run_of_launch; DROP VIEW v_stall; "
                             "CREATE VIEW v_stall AS SELECT 1 AS old; PRAGMA user_version = 1")
                    .ok());
  }
  EXPECT_EQ(Dump(Path("old.db")).find("# barrier_wait"), std::string::npos);
  ASSERT_TRUE(WriteFile(Path("b.db"), {1}).ok());
  ASSERT_TRUE(Merge(Path("merged.db"), {Path("old.db"), Path("b.db")}).ok());
  EXPECT_NE(Dump(Path("merged.db")).find("# barrier_wait"), std::string::npos);
  ASSERT_TRUE(WriteFile(Path("old.db"), {2}).ok());
  Result<sqlite::Database> database = OpenForReading(Path("old.db"));
  EXPECT_EQ(*database->QueryInteger("PRAGMA user_version"), kSchemaVersion);
  EXPECT_EQ(*database->QueryInteger("SELECT COUNT(*) FROM barrier_wait"), 2);
  EXPECT_EQ(*database->QueryInteger("SELECT COUNT(*) FROM hardware_launch"), 0);
  EXPECT_EQ(*database->QueryInteger("SELECT COUNT(*) FROM hardware_code JOIN hardware_pc_metric"), 0);
  EXPECT_EQ(*database->QueryInteger("SELECT COUNT(*) FROM cta JOIN counter_sample USING (launch_id)"), 0);
  EXPECT_EQ(*database->QueryInteger("SELECT COUNT(*) FROM v_launch WHERE simulated_percent IS NULL"), 2);
  EXPECT_GT(*database->QueryInteger("SELECT SUM(slots) FROM v_stall"), 0) << "views are made anew";
  EXPECT_EQ(*database->QueryInteger("SELECT COUNT(*) FROM pragma_index_info('hardware_run_of_launch')"), 1);
}

// The launches of a profile stay together, in order; writing or merging the same source again changes nothing.
TEST_F(Results, ProfilesAreKeptWhole) {
  const auto write = [](const std::string& path, size_t count) -> Status {
    HEDDLE_ASSIGN_OR_RETURN(Writer writer, Writer::Open(path));
    HEDDLE_RETURN_IF_ERROR(writer.BeginRun({"heddle hw import", "0", "test"}));
    std::vector<HardwareRecord> records(count);
    for (size_t i = 0; i < count; ++i) {
      records[i] = {"GPU", "k", "a.sqlite", "protocol", "", {{"duration_ps", "ps", 1000.0 * double(i + 1)}},
                    {},    "",  {}};
      records[i].launch = HardwareLaunch{};
      records[i].launch->grid = Dim3{4, 2, 1};
      records[i].launch->correlation = 77;
      if (i == 0) continue;
      records[i].kernel_digest = "digest";
      records[i].pc_metrics = {{16, "smsp_inst_executed", 4}, {32, "smsp_inst_executed", double(i)}};
    }
    HEDDLE_RETURN_IF_ERROR(writer.ReplaceProfile("a.sqlite", records));
    return writer.Finish();
  };
  ASSERT_TRUE(write(Path("a.db"), 5).ok());
  ASSERT_TRUE(write(Path("a.db"), 3).ok());
  ASSERT_TRUE(write(Path("b.db"), 3).ok());
  EXPECT_EQ(Dump(Path("a.db")), Dump(Path("b.db")));
  ASSERT_TRUE(WriteFile(Path("c.db"), {0}).ok());
  ASSERT_TRUE(Merge(Path("merged.db"), {Path("c.db"), Path("a.db"), Path("b.db")}).ok());
  Result<sqlite::Database> database = OpenForReading(Path("merged.db"));
  EXPECT_EQ(*database->QueryInteger("SELECT COUNT(*) FROM hardware_run"), 3);
  EXPECT_EQ(*database->QueryInteger("SELECT SUM(value) FROM hardware_metric"), 6000);
  EXPECT_EQ(
      *database->QueryInteger("SELECT SUM(grid_x * 100 + ordinal) FROM hardware_launch WHERE stream IS NULL"),
      1203);
  EXPECT_EQ(*database->QueryInteger("SELECT COUNT(*) FROM hardware_code WHERE kernel_digest = 'digest'"), 2);
  EXPECT_EQ(*database->QueryInteger("SELECT SUM(pc * value * 10 + ordinal) FROM hardware_pc_metric JOIN "
                                    "hardware_launch USING (hardware_run_id)"),
            10 * (2 * 16 * 4 + 32 * (1 + 2)) + 2 * (1 + 2));
}

TEST_F(Results, RefusesForeignAndNewerFiles) {
  std::ofstream(Path("text.db")) << "this is no database at all, but long enough to be read as one";
  EXPECT_EQ(OpenForReading(Path("text.db")).error().code, ExitCode::kTrace);
  EXPECT_EQ(OpenForReading(Path("missing.db")).error().code, ExitCode::kTrace);
  {
    Result<sqlite::Database> other =
        sqlite::Database::Open(Path("other.db"), sqlite::Database::Mode::kCreate);
    ASSERT_TRUE(other->Execute("CREATE TABLE t (a); PRAGMA application_id = 1").ok());
  }
  EXPECT_NE(OpenForReading(Path("other.db")).error().message.find("not a heddle results database"),
            std::string::npos);
  EXPECT_FALSE(Writer::Open(Path("other.db")).ok());
  ASSERT_TRUE(WriteFile(Path("new.db"), {0}).ok());
  {
    Result<sqlite::Database> newer =
        sqlite::Database::Open(Path("new.db"), sqlite::Database::Mode::kReadWrite);
    ASSERT_TRUE(newer->Execute("PRAGMA user_version = 99").ok());
  }
  EXPECT_NE(OpenForReading(Path("new.db")).error().message.find("schema version 99"), std::string::npos);
}

TEST_F(Results, MarkdownNamesEveryTable) {
  const std::string text = SchemaMarkdown();
  for (const char* name : {"run", "launch", "stat", "pc_stat", "v_ipc", "v_error"}) {
    EXPECT_NE(text.find("## `" + std::string(name) + "`"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace heddle::results
