// Does heddle_measure play launches as the trace says: shapes, parameter bytes with the GPU's addresses, memory's contents,
// cold and warm? tests/support/cuda_double.cpp is the driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <sstream>

#include "frontend/trace/htrace.h"
#include "sim/results/results.h"
#include "tests/support/shell.h"

namespace heddle {
namespace {

using testing::HasSubstr;

const std::string kTraces = std::string(HEDDLE_SOURCE_DIR) + "/traces/";

testing_support::Outcome Measure(const std::string& folder, const std::string& arguments,
                                 const std::string& environment = "") {
  return testing_support::Shell(environment + " HEDDLE_CUDA_DOUBLE_LOG=" + folder +
                                "/log " HEDDLE_BINARY_DIR
                                "/tools/measure/heddle_measure --library " HEDDLE_BINARY_DIR
                                "/tests/support/libheddle_cuda_double.so " +
                                arguments);
}

std::string Hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(byte));
    text += digits;
  }
  return text;
}

TEST(Measure, PlaysLaunchesAsTheTraceSays) {
  const testing_support::TemporaryFolder folder;
  const std::string path = kTraces + "gemm.sm_80.htrace";
  const auto outcome = Measure(
      folder.path(), path + " " + kTraces + "softmax.sm_90.htrace --repeats 2 --db " + (folder / "m.db"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("gemm.sm_80.htrace: matmul 12.50 us cold, 10.00 us warm"));
  EXPECT_THAT(outcome.err, HasSubstr("softmax.sm_90.htrace: left out, it has code for sm_90, this is sm_80"));

  // 3 times to warm up and 2 measurements, each cold and warm: ten equal lines.
  std::istringstream log(testing_support::ReadFile(folder / "log"));
  std::string line, first;
  size_t lines = 0;
  while (std::getline(log, line)) {
    if (lines++ == 0) first = line;
    EXPECT_EQ(line, first);
  }
  EXPECT_EQ(lines, 10u);
  std::string digest;
  const trace::Trace trace = *trace::ReadTrace(path, &digest);
  const trace::ResolvedTrace resolved = *trace::Resolve(trace, {{"sm_count", 108}, {"l2_bytes", 1 << 20}});
  EXPECT_THAT(first, HasSubstr("matmul grid " + std::to_string(resolved.launches[0].grid.x) +
                               " 1 1 block 128 1 1 shared 49152"));
  // Behind the three addresses the bytes are the trace's.
  const std::string parameters = first.substr(first.find("parameters ") + 11);
  EXPECT_EQ(parameters.substr(48, parameters.find(' ') - 48),
            Hex(std::span(resolved.launches[0].parameters).subspan(24)));
  for (const trace::ResolvedContent& content : resolved.contents) {
    std::byte bytes[16];
    content.source->Fill(0, bytes);
    EXPECT_THAT(first, HasSubstr(" at " + std::to_string(8 * content.buffer) + " -> " + Hex(bytes)));
  }

  Result<sqlite::Database> database = results::OpenForReading(folder / "m.db");
  ASSERT_TRUE(database.ok());
  EXPECT_EQ(*database->QueryInteger("SELECT COUNT(*) FROM hardware_run WHERE gpu = 'Double A100'"), 1);
  EXPECT_EQ(*database->QueryInteger("SELECT value FROM hardware_metric WHERE name = 'duration_ps'"),
            12'500'000);
  EXPECT_EQ(*database->QueryInteger("SELECT value FROM hardware_metric WHERE name = 'duration_warm_ps'"),
            10'000'000);
  EXPECT_EQ(
      *database->QueryInteger(
          "SELECT COUNT(*) FROM hardware_launch WHERE trace_ordinal = 0 AND trace_digest = '" + digest + "'"),
      1);
}

TEST(Measure, SaysWhatIsWrong) {
  const testing_support::TemporaryFolder folder;
  const std::string trace = kTraces + "gemm.sm_80.htrace", db = " --db " + (folder / "m.db");
  EXPECT_EQ(Measure(folder.path(), trace).exit_code, 2);
  EXPECT_EQ(Measure(folder.path(), trace + db + " --repeats 0").exit_code, 2);
  const auto failed = Measure(folder.path(), trace + db, "HEDDLE_CUDA_DOUBLE_FAIL=cuLaunchKernelEx");
  EXPECT_EQ(failed.exit_code, 5);
  EXPECT_THAT(failed.err, HasSubstr("cuLaunchKernelEx: CUDA_ERROR_OF_THE_DOUBLE (700)"));
  EXPECT_EQ(Measure(folder.path(), kTraces + "softmax.sm_90.htrace" + db).exit_code, 4);
  const auto missing = testing_support::Shell(
      HEDDLE_BINARY_DIR "/tools/measure/heddle_measure --library libnothing.so " + trace + db);
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("--dry-run"));
}

// The way from a GPU to an error: what was measured is found by its digest, simulated and compared.
TEST(Measure, ValidateTakesMeasuredLaunchesAsTruth) {
  const testing_support::TemporaryFolder folder;
  const std::string db = folder / "m.db", heddle = HEDDLE_BINARY_DIR "/tools/heddle/heddle validate ";
  ASSERT_EQ(Measure(folder.path(), kTraces + "tests/relu.sm_80.htrace --repeats 1 --db " + db).exit_code, 0);
  const std::string validate = heddle + "--quiet -a a100_sxm4_80gb --hardware " + db;
  const auto outcome = testing_support::Shell(validate + " --json --traces " + kTraces + "tests");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\"measured_matched\": 1"));
  // The stand-in takes 12.5 us, whatever runs: the simulation does not.
  EXPECT_EQ(testing_support::Shell(validate + " --max-error 0.001 --traces " + kTraces + "tests").exit_code,
            6);
  EXPECT_EQ(testing_support::Shell(validate + " --max-error 1e9 --traces " + kTraces + "tests").exit_code, 0);
  const auto elsewhere = testing_support::Shell(validate + " --traces " + kTraces + "bench");
  EXPECT_EQ(elsewhere.exit_code, 4);
  EXPECT_THAT(elsewhere.err, HasSubstr("none of the 1 measured traces was found"));
  EXPECT_EQ(testing_support::Shell(heddle + "--hardware " + db).exit_code, 2);
  EXPECT_EQ(testing_support::Shell(heddle + "-a a100_sxm4_80gb").exit_code, 2);
}

// What each thread did, from a GPU (here the stand-in, whose memory holds what the emulator wrote) to the comparison. A warp of which a
// thread used another address, a result that is another, and counts that are others are found and named.
TEST(Measure, StreamsOfAGpuAreComparedWithTheEmulators) {
  const testing_support::TemporaryFolder folder;
  const std::string heddle = HEDDLE_BINARY_DIR "/tools/heddle/heddle ";
  const std::string trace = kTraces + "tests/streams.sm_80.htrace";
  const auto compare = [&](const std::string& streams, const std::string& more = "") {
    return testing_support::Shell(heddle + "trace streams " + trace + " --against " + streams + more);
  };
  ASSERT_EQ(
      testing_support::Shell(heddle + "trace streams " + trace + " --write " + (folder / "own")).exit_code,
      0);
  const auto played = Measure(folder.path(), "--streams " + (folder / "gpu") + " " + trace,
                              "HEDDLE_CUDA_DOUBLE_MEMORY=" + (folder / "own"));
  ASSERT_EQ(played.exit_code, 0) << played.err;
  std::string launches = testing_support::ReadFile(folder / "log");
  EXPECT_EQ(std::count(launches.begin(), launches.end(), '\n'), 20);  // each once
  const auto same = compare(folder / "gpu");
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
  EXPECT_THAT(same.out, HasSubstr("collatz"));

  // The second record of launch 2 (gather, warp 0), lane 5.
  constexpr size_t kLog = 8 * (1 + 33 * 64), kWord = 2 * kLog + 8 * (1 + 33 + 1 + 5);
  std::string log = testing_support::ReadFile(folder / "gpu/log.bin");
  log[kWord] = static_cast<char>(log[kWord] ^ 4);
  std::ofstream(folder / "gpu/log.bin", std::ios::binary) << log;
  const auto other = compare(folder / "gpu");
  EXPECT_EQ(other.exit_code, 6);
  EXPECT_THAT(other.err, HasSubstr("1 of 20 warps differ"));
  EXPECT_THAT(other.err, HasSubstr("gather (2): thread 5, access 1: measured in+"));

  // A GPU on which nothing ran.
  ASSERT_EQ(Measure(folder.path(), "--streams " + (folder / "none") + " " + trace).exit_code, 0);
  const auto none = compare(folder / "none");
  EXPECT_EQ(none.exit_code, 6);
  EXPECT_THAT(none.err, HasSubstr("the GPU wrote nothing down"));
  EXPECT_EQ(compare(folder / "nowhere").exit_code, 4);
}

TEST(Measure, ExecutedCountsOfWarpsAreComparedToo) {
  const testing_support::TemporaryFolder folder;
  const std::string heddle = HEDDLE_BINARY_DIR "/tools/heddle/heddle ";
  const std::string path = kTraces + "tests/streams.sm_80.htrace", own = folder / "own";
  ASSERT_EQ(testing_support::Shell(heddle + "trace streams " + path + " --write " + own).exit_code, 0);
  // Every instruction of the first launch once, which no kernel with a loop does.
  trace::Trace counted = *trace::ReadTrace(path);
  for (const isa::Instruction& instruction : counted.sass[0].code.instructions) {
    char name[64];
    std::snprintf(name, sizeof name, "smsp__sass_inst_executed@0x%x", instruction.pc);
    counted.counters.push_back({0, name, 1, ""});
  }
  ASSERT_TRUE(trace::WriteTrace(counted, folder / "counts.htrace").ok());
  const auto outcome = testing_support::Shell(heddle + "trace streams " + path + " --against " + own +
                                              " --counts " + (folder / "counts.htrace"));
  EXPECT_EQ(outcome.exit_code, 6);
  EXPECT_THAT(outcome.err, HasSubstr("1 of 20 warps differ"));
  EXPECT_THAT(outcome.out, HasSubstr(std::to_string(counted.sass[0].code.instructions.size()) + " | "));
}

TEST(Measure, DryRunShowsThePlan) {
  const auto outcome = testing_support::Shell(
      "cd " HEDDLE_SOURCE_DIR " && HEDDLE_BUILD_DIR=" HEDDLE_BINARY_DIR " tools/measure-gpu --dry-run");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("gemm.sm_80.htrace: matmul for sm_80, 3 + 20 times cold and warm"));
  EXPECT_THAT(outcome.out, HasSubstr("built for this GPU: kernels/cuda/rms_norm.launch.textproto"));
  EXPECT_THAT(outcome.out, HasSubstr("counters"));
  EXPECT_THAT(outcome.out, HasSubstr("executed counts of: kernels/streams/streams.launch.textproto"));
}

}  // namespace
}  // namespace heddle
