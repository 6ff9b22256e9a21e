// What the program prints, whole: tests/golden/texts/NAME.txt holds the command, its exit code and both streams.
// tools/update_goldens writes them anew (HEDDLE_UPDATE_GOLDENS=1); the change is then reviewed like any other.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "sim/results/results.h"
#include "tests/support/shell.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;
using testing_support::Outcome;
using testing_support::ReadFile;
using testing_support::Shell;
using testing_support::TemporaryFolder;

const std::string kSource = HEDDLE_SOURCE_DIR;
const std::string kTexts = kSource + "/tests/golden/texts/";

struct Golden {
  std::string name;
  std::string arguments;  // of heddle; run in a folder with results.db (WriteResults) and two broken files
};

void PrintTo(const Golden& golden, std::ostream* out) { *out << golden.name; }

std::vector<Golden> Goldens() {
  std::vector<Golden> goldens = {{"help", "--help"}, {"usage", ""}, {"unknown_command", "rnu"}};
  for (const char* command : {"roofline",
                              "explain",
                              "report",
                              "run",
                              "validate",
                              "trace",
                              "trace build",
                              "trace info",
                              "trace dump",
                              "trace verify",
                              "trace extract",
                              "arch",
                              "arch list",
                              "arch show",
                              "arch check",
                              "arch diff",
                              "arch params",
                              "db",
                              "db show",
                              "db sql",
                              "db dump",
                              "db merge",
                              "db schema",
                              "sass",
                              "completion",
                              "hw",
                              "hw import",
                              "compare",
                              "trace from-profile",
                              "sweep",
                              "batch",
                              "batch task",
                              "batch merge",
                              "batch show",
                              "capture",
                              "trace plan",
                              "trace recover",
                              "trace streams",
                              "trace merge",
                              "sensitivity",
                              "top",
                              "timeline"}) {
    std::string name = std::string("help_") + command;
    for (char& c : name)
      if (c == ' ' || c == '-') c = '_';
    goldens.push_back({name, std::string(command) + " --help"});
  }
  const std::string gemm = "run $SOURCE/traces/gemm.sm_80.htrace ";
  const std::vector<Golden> others = {
      {"db_show", "db show results.db"},
      {"db_show_json", "db show --json results.db"},
      {"db_sql_stall", "db sql results.db 'SELECT * FROM v_stall'"},
      {"db_sql_json", "db sql --json results.db 'SELECT name, value FROM v_stat WHERE value > 0'"},
      {"error_no_arch", gemm},
      {"error_option", gemm + "--arhc a100_sxm4_80gb"},
      {"error_arch", gemm + "-a a100_smx4_80gb --db x.db"},
      {"error_set", gemm + "-a a100_sxm4_80gb -s sm.cuont=3 -s l2.slices=81 -s sm.max_warps=x --db x.db"},
      {"error_description", "arch check wrong.textproto"},
      {"error_trace", "trace info wrong.textproto"},
      {"error_sql", "db sql results.db 'SELECT slots FROM v_stal'"},
      {"validate_skipped",
       "validate --suite $SOURCE/tests/validation/data/suite_quick.csv -c membound_counters --where 'n < 2' "
       "-q"},
      {"validate_json",
       "validate --suite $SOURCE/tests/validation/data/suite_quick.csv -c membound_counters --where 'n < 2' "
       "-q "
       "--json"},
      {"validate_gate",
       "validate --suite $SOURCE/tests/validation/data/suite_quick.csv -c membound_counters --where 'n < 2' "
       "-q "
       "--max-error 5"},
      {"error_profile", "hw import wrong.textproto --db x.db"},
      {"compare_without_measurements", "compare results.db"},
      {"error_sweep",
       "sweep -a a100_sxm4_80gb -T no.htrace -x sm.cuont=1,2 -x 'l2.ways=[9:1]' -x l2.slices=81 --db x.db"},
      {"sweep_dry_run",
       "sweep -a a100_sxm4_80gb -T $SOURCE/traces/softmax.sm_80.htrace --shape one-at-a-time "
       "-x 'sm.count=[108:132:x12]' -x sm.shared_memory.max_per_cta_bytes=192Ki --dry-run"},
      {"error_suite", "validate --suite wrong.textproto"},
      {"error_database", "db show wrong.textproto"},
  };
  goldens.insert(goldens.end(), others.begin(), others.end());
  return goldens;
}

// Two launches with counts made up so that every column of the table shows something.
void WriteResults(const std::string& path) {
  Result<results::Writer> writer = results::Writer::Open(path);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->BeginRun({"heddle run", "0", "test"}).ok());
  isa::KernelCode code;
  code.sm_version = 80;
  code.instructions.resize(2);
  code.instructions[1].pc = 16;
  const results::ConfigRecord machine{"c0ffee", "machine", "text", 2, 1000000000, 1000000000000, 4096, 512};
  for (uint32_t ordinal : {0u, 1u}) {
    code.name = ordinal == 0 ? "first" : "second_kernel_with_a_name_that_is_longer_than_the_column";
    isa::LaunchShape shape;
    shape.grid = {3 + ordinal, 2, 1};
    shape.block = {64, 1, 1};
    stats::LaunchStats stats;
    stats.end_cycle = 1000 * (ordinal + 1);
    stats.counters.smsp_inst_executed = 500;
    stats.counters.sm_cycles_elapsed = stats.end_cycle;
    stats.counters.dram_read_bytes = 100'000;
    stats.counters.dram_write_bytes = 20'000;
    stats.counters.sm_pipe_tensor_cycles_active = 800;
    stats.slots[static_cast<size_t>(stats::Stall::k_selected)] = 500;
    stats.slots[static_cast<size_t>(stats::Stall::k_long_scoreboard)] = 6000;
    stats.slots[static_cast<size_t>(stats::Stall::k_barrier)] = 1000;
    stats.slots[static_cast<size_t>(stats::Stall::k_no_warp)] = 500 + 8000 * ordinal;
    stats.counters.smsp_issue_slots = 8000 * (ordinal + 1);
    results::LaunchRecord record;
    record.trace_digest = "feed";
    record.trace_name = "golden.htrace";
    record.ordinal = ordinal;
    record.mode = "skeleton";
    record.execution = "optimistic";
    record.duration_ps = 1'000'000 * (ordinal + 1);
    ASSERT_TRUE(writer->AddLaunch(record, machine, code, shape, stats, {}).ok());
  }
  ASSERT_TRUE(writer->Finish().ok());
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string TextOf(const Golden& golden) {
  const TemporaryFolder folder;
  WriteResults(folder / "results.db");
  std::ofstream(folder / "wrong.textproto")
      << "base: \"a100_sxm4_80gb\"\nname: \"wrong\"\nsm {\n  cuont: 4\n  max_warps: 0\n}\nnosuch: 1\n";
  const Outcome outcome =
      Shell("cd " + folder.path() + " && HEDDLE_ARCH_DIR= " HEDDLE_BINARY_DIR "/tools/heddle/heddle " +
            Replaced(golden.arguments, "$SOURCE", kSource));
  std::string text = fmt::format("$ heddle {}\nexit code {}\n", golden.arguments, outcome.exit_code);
  if (!outcome.out.empty()) text += "--- stdout\n" + outcome.out;
  if (!outcome.err.empty()) text += "--- stderr\n" + outcome.err;
  return Replaced(Replaced(text, kSource, "$SOURCE"), folder.path(), "$FOLDER");
}

class GoldenText : public testing::TestWithParam<Golden> {};
INSTANTIATE_TEST_SUITE_P(Cli, GoldenText, testing::ValuesIn(Goldens()),
                         [](const testing::TestParamInfo<Golden>& info) { return info.param.name; });

TEST_P(GoldenText, IsWhatTheProgramPrints) {
  const std::string path = kTexts + GetParam().name + ".txt";
  const std::string text = TextOf(GetParam());
  if (std::getenv("HEDDLE_UPDATE_GOLDENS") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  ASSERT_TRUE(fs::exists(path)) << path << " is missing: run tools/update_goldens";
  EXPECT_EQ(text, ReadFile(path)) << "if this is meant: run tools/update_goldens";
}

TEST(GoldenTexts, NoneIsLeftOver) {
  std::set<std::string> names;
  for (const Golden& golden : Goldens()) names.insert(golden.name + ".txt");
  for (const auto& entry : fs::directory_iterator(kTexts))
    EXPECT_TRUE(names.contains(entry.path().filename().string())) << entry.path();
}

}  // namespace
}  // namespace heddle
