// What a machine description may say, and what is said about one that is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sim/config/describe.h"
#include "sim/config/load.h"

namespace heddle::config {
namespace {

// Two lines: what follows starts at line 3.
constexpr char kChild[] = "base: \"a100_sxm4_80gb\"\nname: \"test\"\n";

Gpu Loaded(const std::string& text, const std::vector<std::string>& overrides = {}) {
  auto gpu = ParseGpu(text, "t.textproto", overrides);
  if (!gpu.ok()) {
    ADD_FAILURE() << gpu.error().ToString();
    return {};
  }
  return *gpu;
}

std::string Faults(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const auto gpu = ParseGpu(text, "t.textproto", overrides);
  if (gpu.ok()) return "";
  EXPECT_EQ(gpu.error().code, ExitCode::kConfiguration);
  return gpu.error().message;
}

std::string ChildFaults(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return Faults(kChild + text, overrides);
}

TEST(ConfigLoad, ReadsValuesOfEveryKind) {
  const auto gpu = LoadGpu("a100_sxm4_80gb");
  ASSERT_TRUE(gpu.ok()) << gpu.error().ToString();
  EXPECT_EQ(gpu->name, "a100_sxm4_80gb");
  EXPECT_EQ(gpu->sm.count, 108u);
  EXPECT_EQ(gpu->l2.size_bytes, 40ull << 20);
  EXPECT_EQ(gpu->launch.cta_dispatch_interval_cycles, 2.1);
  EXPECT_EQ(gpu->dependence, DependenceMode::kControlBits);
  EXPECT_TRUE(gpu->l2.replicate_far);
  EXPECT_EQ(gpu->sm.shared_memory.capacities_bytes.back(), 164u << 10);
  EXPECT_FALSE(gpu->sm.tma.has_value());
  EXPECT_FALSE(gpu->cluster_network.has_value());
}

TEST(ConfigLoad, StoredDescriptionsMayBeOlderThanSomeFields) {
  const Gpu gpu = Loaded(kChild);
  std::string text = CanonicalText(gpu);
  for (const std::string line : {"  graph_overhead_ns: 350\n", "    bank_conflicts: true\n"}) {
    const size_t at = text.find(line);
    ASSERT_NE(at, std::string::npos) << line;
    text.erase(at, line.size());
  }
  EXPECT_THAT(Faults(text), testing::AllOf(testing::HasSubstr("launch.graph_overhead_ns: missing"),
                                           testing::HasSubstr("sm.shared_memory.bank_conflicts: missing")));
  const Result<Gpu> old = ParseStoredGpu(text, "results.db");
  ASSERT_TRUE(old.ok()) << old.error().ToString();
  EXPECT_EQ(old->launch.graph_overhead_ns, 0);
  EXPECT_TRUE(old->sm.shared_memory.bank_conflicts);
  EXPECT_EQ(old->launch.l2_bytes, gpu.launch.l2_bytes);
}

TEST(ConfigLoad, SpreadsSmsOverGpcsInTpcs) {
  // 54 TPCs over 7 GPCs: five of 8 and two of 7; with 27 TPCs of 4 SMs: six of 4 and one of 3.
  EXPECT_THAT(Loaded(kChild).sms_per_gpc, testing::ElementsAre(16, 16, 16, 16, 16, 14, 14));
  EXPECT_THAT(Loaded(kChild, {"sm.sms_per_tpc=4"}).sms_per_gpc,
              testing::ElementsAre(16, 16, 16, 16, 16, 16, 12));
}

TEST(ConfigLoad, ChildChangesWhatItNamesAndReplacesLists) {
  const Gpu base = *LoadGpu("a100_sxm4_80gb");
  Gpu expected = base;
  expected.board.names.clear();
  expected.name = "test";
  expected.sm.max_ctas = 16;
  expected.runs_sm_versions = {80, 86};
  EXPECT_EQ(Loaded(std::string(kChild) + "sm { max_ctas: 16 }\nruns_sm_versions: [80, 86]"), expected);
  // A list may be given element by element; the first drops what was inherited.
  EXPECT_EQ(Loaded(std::string(kChild) + "sm { max_ctas: 16 }\nruns_sm_versions: 80 runs_sm_versions: 86"),
            expected);
}

TEST(ConfigLoad, SyntaxErrorStandsAlone) {
  EXPECT_EQ(ChildFaults("sm { cuont: 3 }\nl2 { size_bytes 5 }"),
            "t.textproto:4:17: error: expected \":\" after \"size_bytes\", found \"5\"");
  EXPECT_EQ(ChildFaults("sm {\n  max_ctas: 3\n"),
            "t.textproto:5:1: error: expected the name of a field, found the end of the file");
  EXPECT_EQ(ChildFaults("chip: \"GA"), "t.textproto:3:10: error: Unexpected end of string.");
  EXPECT_EQ(ChildFaults("sm { max_ctas: }"), "t.textproto:3:16: error: expected a value, found \"}\"");
  EXPECT_EQ(ChildFaults("unknown { a [ } ]"), "t.textproto:3:15: error: expected \"]\", found \"}\"");
  EXPECT_EQ(ChildFaults("unknown: { a: \"b\n } }"),
            "t.textproto:3:17: error: String literals cannot cross line boundaries.");
  EXPECT_EQ(ChildFaults("unknown: [ \x01 ]"),
            "t.textproto:3:12: error: Invalid control characters encountered in text.");
}

TEST(ConfigLoad, ReportsAllOtherFaultsTogetherInOrder) {
  EXPECT_EQ(
      ChildFaults("sm {\n"
                  "  cuont: 144\n"
                  "  max_warps: \"many\"\n"
                  "  max_ctas: 32 max_ctas: 16\n"
                  "  l1 { sets: 48 }\n"
                  "  barriers_per_cta: 100\n"
                  "}\n"
                  "l2 { replacement: lur slices: 81 }\n"),
      "t.textproto:4:3: error: sm.cuont: no such field; did you mean \"count\"?\n"
      "t.textproto:5:14: error: sm.max_warps: expects a whole number, not \"many\"\n"
      "t.textproto:6:16: error: sm.max_ctas: given twice, first at line 6\n"
      "t.textproto:7:8: error: sm.l1.sets: must be a power of two, not 48\n"
      "t.textproto:8:3: error: sm.barriers_per_cta: must be at most 64 barrier, not 100\n"
      "t.textproto:10:19: error: l2.replacement: expects one of lru, random_replacement, protected_lru, not "
      "\"lur\"; did you mean \"lru\"?\n"
      "t.textproto:10:23: error: l2.slices: 81 slices do not spread over 2 partitions");
}

TEST(ConfigLoad, WrongKindsOfValues) {
  EXPECT_EQ(ChildFaults("sm: 5"), "t.textproto:3:1: error: sm: holds fields: write sm { ... }");
  EXPECT_EQ(ChildFaults("gpc_count { a: 1 }"),
            "t.textproto:3:1: error: gpc_count: holds one value: write gpc_count: ...");
  EXPECT_EQ(ChildFaults("gpc_count: [7]"), "t.textproto:3:1: error: gpc_count: holds one value, not a list");
  EXPECT_EQ(ChildFaults("gpc_count: -7"),
            "t.textproto:3:12: error: gpc_count: expects a whole number, not \"-7\"");
  EXPECT_EQ(ChildFaults("gpc_count: 7.5"),
            "t.textproto:3:12: error: gpc_count: expects a whole number, not \"7.5\"");
  EXPECT_EQ(ChildFaults("gpc_count: 99999999999"),
            "t.textproto:3:12: error: gpc_count: does not fit in 32 bits: 99999999999");
  EXPECT_EQ(ChildFaults("clocks { sm_mhz: fast }"),
            "t.textproto:3:18: error: clocks.sm_mhz: expects a number, not \"fast\"");
  EXPECT_EQ(ChildFaults("clocks { sm_mhz: -1 }"),
            "t.textproto:3:10: error: clocks.sm_mhz: must be at least 1 MHz, not -1");
  EXPECT_EQ(ChildFaults("l2 { replicate_far: yes }"),
            "t.textproto:3:21: error: l2.replicate_far: expects true or false, not \"yes\"");
  EXPECT_EQ(ChildFaults("chip: GA100"),
            "t.textproto:3:7: error: chip: expects a string in quotes, not \"GA100\"");
}

TEST(ConfigLoad, MissingFactsAreErrors) {
  const std::string faults = Faults("name: \"t\"\nsm { count: 4 }\n");
  EXPECT_THAT(faults, testing::HasSubstr("t.textproto: error: chip: missing (The die, or what-if)"));
  EXPECT_THAT(faults, testing::HasSubstr("t.textproto:2:1: error: sm.max_warps: missing (Resident warps)"));
  EXPECT_THAT(faults, testing::Not(testing::HasSubstr("nvlink")));  // optional
}

TEST(ConfigLoad, OptionalSectionIsWholeOrAbsent) {
  EXPECT_EQ(
      ChildFaults("cluster_network { max_cluster_ctas: 8 latency_cycles: 78 barrier_latency_cycles: 190 "
                  "multicast_extra_cycles: 135 }"),
      "t.textproto:3:1: error: cluster_network.sm_bytes_per_cycle: missing (Of one SM, each direction)");
}

TEST(ConfigLoad, ElementsOfListsHaveTheirOwnPlacesAndKeys) {
  EXPECT_EQ(ChildFaults("runs_sm_versions: [80,\n  700]"),
            "t.textproto:4:3: error: runs_sm_versions[1]: must be at most 130, not 700");
  EXPECT_EQ(ChildFaults("sm {\n"
                        "  operations { op: \"LDS\" width_bits: 32 addressing: any source_release_cycles: 9 "
                        "result_cycles: 1 }\n"
                        "  operations { op: \"LDS\" width_bits: 32 addressing: any source_release_cycles: 9 "
                        "result_cycles: 2 }\n"
                        "}"),
            "t.textproto:5:3: error: sm.operations[1]: a second entry for \"LDS.32.any\", first at "
            "t.textproto:4:3");
}

struct RelationCase {
  std::string text;
  std::string fault;
};

class Relation : public testing::TestWithParam<RelationCase> {};

TEST_P(Relation, IsCheckedAtTheFieldThatBreaksIt) {
  EXPECT_EQ(ChildFaults(GetParam().text), "t.textproto:3:" + GetParam().fault);
}

INSTANTIATE_TEST_SUITE_P(
    ConfigLoad, Relation,
    testing::Values(
        RelationCase{"sm_version: 86", "1: error: runs_sm_versions: lacks the machine's own sm_version, 86"},
        RelationCase{"sm { mbarrier { wake_cycles: 23 } }",
                     "6: error: sm.mbarrier: sm_version 80 has no such unit"},
        RelationCase{"sm { count: 107 }",
                     "6: error: sm.count: 107 SMs are no whole number of TPCs of 2 "
                     "(sm.sms_per_tpc)"},
        RelationCase{
            "sms_per_gpc: [54, 52, 1, 1, 1, 1, 1]",
            "1: error: sms_per_gpc: sums to 111 SMs, sm.count is 108; leave it out to spread them evenly"},
        RelationCase{"sms_per_gpc: [54, 54]", "1: error: sms_per_gpc: lists 2 GPCs, gpc_count is 7"},
        RelationCase{"gpc_count: 60", "1: error: gpc_count: 60 GPCs are more than the 54 TPCs"},
        RelationCase{"sm { max_warps: 62 }",
                     "6: error: sm.max_warps: 62 warps do not spread over 4 sub-cores"},
        RelationCase{"sm { max_threads_per_cta: 4096 }",
                     "6: error: sm.max_threads_per_cta: 4096 threads do not fit in 64 warps (sm.max_warps)"},
        RelationCase{
            "sm { max_registers_per_thread: 1024 }",
            "6: error: sm.max_registers_per_thread: a warp with 1024 registers a thread does not fit in a "
            "sub-core"},
        RelationCase{"sm { shared_memory { capacities_bytes: [0, 8192, 167936, 65536] } }",
                     "22: error: sm.shared_memory.capacities_bytes: must rise from one to the next"},
        RelationCase{"sm { shared_memory { capacities_bytes: [0, 4095, 167936] } }",
                     "44: error: sm.shared_memory.capacities_bytes[1]: 4095 leaves no whole number of ways "
                     "of 4096 bytes "
                     "(sm.l1.sets x line_bytes) of 196608 for L1"},
        RelationCase{
            "sm { shared_memory { max_per_cta_bytes: 167936 } }",
            "22: error: sm.shared_memory.max_per_cta_bytes: 167936 and 1024 reserved do not fit in the "
            "largest carve-out, 167936"},
        RelationCase{
            "sm { constant_caches { l0 { ways: 5 } } }",
            "29: error: sm.constant_caches.l0.size_bytes: 2048 is no whole number of sets of 5 ways x 64 "
            "bytes"},
        RelationCase{
            "l2 { size_bytes: 41943168 }",
            "6: error: l2.size_bytes: 41943168 is no whole number of sets of 80 slices x 16 ways x 128 "
            "bytes = 163840"},
        RelationCase{
            "dram { channels: 60 }",
            "8: error: dram.channels: 60 channels and 80 slices: one must be a multiple of the other"},
        RelationCase{"dram { burst_bytes: 128 row_bytes: 64 }",
                     "8: error: dram.burst_bytes: 128 is longer than a row, 64"},
        RelationCase{"dram { tras_ns: 10 }", "8: error: dram.tras_ns: 10 ns is shorter than trcd_ns, 14"},
        RelationCase{
            "dram { refresh_duration_ns: 4000 }",
            "8: error: dram.refresh_duration_ns: 4000 ns leaves nothing of refresh_interval_ns, 3900"},
        RelationCase{"tlb { l2 { entries: 250 } }",
                     "12: error: tlb.l2.entries: 250 entries are no whole number of sets of 16 ways"}));

TEST(ConfigOverride, SetsByPathWithSuffixes) {
  const Gpu gpu = Loaded(
      kChild, {"l2.size_bytes=100Mi", "sm.count=0x90", "clocks.sm_mhz=1.5k", "sm.l1.write_policy=write_back",
               "l2.replicate_far=false", "chip=what-if", "sm.shared_memory.reserved_per_cta_bytes=0.5Ki"});
  EXPECT_EQ(gpu.l2.size_bytes, 100ull << 20);
  EXPECT_EQ(gpu.sm.count, 144u);
  EXPECT_EQ(gpu.clocks.sm_mhz, 1500);
  EXPECT_EQ(gpu.sm.l1.write_policy, WritePolicy::kWriteBack);
  EXPECT_FALSE(gpu.l2.replicate_far);
  EXPECT_EQ(gpu.chip, "what-if");
  EXPECT_EQ(gpu.sm.shared_memory.reserved_per_cta_bytes, 512u);
}

TEST(ConfigOverride, LaterOnesWin) {
  EXPECT_EQ(Loaded(kChild, {"sm.max_ctas=8", "sm.max_ctas=24"}).sm.max_ctas, 24u);
}

TEST(ConfigOverride, ReachesElementsByIndexByKeyAndWholeLists) {
  const Gpu gpu =
      Loaded(kChild, {"sm.operations[LDS.64.regular].result_cycles=77", "sm.operations[0].result_cycles=66",
                      "sm.tensor[HMMA.16.8.16.f16.f32].latency_cycles=33", "runs_sm_versions[0]=80",
                      "sms_per_gpc=[18, 18,18,18,18,10,8]"});
  EXPECT_EQ(gpu.sm.operations[0].result_cycles, 66u);
  EXPECT_EQ(gpu.sm.tensor[0].latency_cycles, 33u);
  EXPECT_THAT(gpu.sms_per_gpc, testing::ElementsAre(18, 18, 18, 18, 18, 10, 8));
  for (const OperationTiming& entry : gpu.sm.operations) {
    const bool is_lds =
        entry.op == "LDS" && entry.width_bits == 64 && entry.addressing == Addressing::kRegular;
    EXPECT_EQ(entry.result_cycles == 77, is_lds) << entry.op;
  }
}

struct OverrideCase {
  std::string text;
  std::string fault;
};

class BadOverride : public testing::TestWithParam<OverrideCase> {};

TEST_P(BadOverride, IsNamedInTheError) {
  EXPECT_EQ(ChildFaults("", {GetParam().text}), "--set " + GetParam().text + ": error: " + GetParam().fault);
}

INSTANTIATE_TEST_SUITE_P(
    ConfigOverride, BadOverride,
    testing::Values(OverrideCase{"sm.count", "expects path=value, as in l2.size_bytes=100Mi"},
                    OverrideCase{"sm.count=", "expects path=value, as in l2.size_bytes=100Mi"},
                    OverrideCase{"=4", "expects a path such as sm.l1.sets before \"=\""},
                    OverrideCase{"sm..count=4", "expects a path such as sm.l1.sets before \"=\""},
                    OverrideCase{"sms_per_gpc[0=4", "expects a path such as sm.l1.sets before \"=\""},
                    OverrideCase{"sm.cuont=4", "sm: no field \"cuont\"; did you mean \"count\"?"},
                    OverrideCase{"l3.size_bytes=4", "no field \"l3\"; did you mean \"l2\"?"},
                    OverrideCase{"sm=4", "sm holds fields: give one of them, as in sm.count=..."},
                    OverrideCase{"sm.count.x=4", "sm.count is a value and has no fields"},
                    OverrideCase{"sm.count[0]=4", "sm.count is no list"},
                    OverrideCase{"sm[0].count=4", "sm is no list"},
                    OverrideCase{"runs_sm_versions=4",
                                 "runs_sm_versions is a list: say which element, as in runs_sm_versions[0]"},
                    OverrideCase{"runs_sm_versions[7]=80", "runs_sm_versions has 1 elements, [0] to [0]"},
                    OverrideCase{
                        "sm.operations[LDS.46.regular].result_cycles=30",
                        "sm.operations has no element \"LDS.46.regular\"; did you mean \"LDS.64.regular\"?"},
                    OverrideCase{"sm.count=1e", "sm.count: expects a whole number, not \"1e\""},
                    OverrideCase{"sm.count=1.5", "sm.count: expects a whole number, not \"1.5\""},
                    OverrideCase{"sm.count=9Gi", "sm.count: does not fit in 32 bits: 9Gi"},
                    OverrideCase{"l2.size_bytes=99999999999Ti",
                                 "l2.size_bytes: expects a whole number, not \"99999999999Ti\""},
                    OverrideCase{"clocks.sm_mhz=nan", "clocks.sm_mhz: expects a number, not \"nan\""},
                    OverrideCase{"sm.l1.sets=48", "sm.l1.sets: must be a power of two, not 48"},
                    OverrideCase{"base=h100_sxm5", "base belongs in a file"}));

// A chain of descriptions, the first complete: what is the longest that loads, and what of a circle?
TEST(ConfigLoad, BasesUponBases) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "heddle_config_bases";
  std::filesystem::create_directories(folder);
  const auto write = [&](const std::string& name, const std::string& base) {
    std::ofstream(folder / (name + ".textproto"))
        << "base: \"" << base << "\"\nname: \"" << name << "\"\nboard { names: [\"" << name << "\"] }\n"
        << "sm { max_ctas: " << name.back() << " }\n";
  };
  write("chain1", "a100_sxm4_80gb");
  for (int i = 2; i <= 5; ++i) write("chain" + std::to_string(i), "chain" + std::to_string(i - 1));
  write("circle1", "circle2");
  write("circle2", "circle1");
  setenv("HEDDLE_ARCH_DIR", folder.c_str(), 1);
  const auto longest = LoadGpu("chain4");
  ASSERT_TRUE(longest.ok()) << longest.error().ToString();
  EXPECT_EQ(longest->sm.max_ctas, 4u);
  EXPECT_EQ(longest->board.names, std::vector<std::string>{"chain4"});
  EXPECT_EQ(ArchsOfBoard("chain3"), std::vector<std::string>{"chain3"});
  EXPECT_THAT(ArchsOfBoard("chain"), testing::IsEmpty());
  const auto longer = LoadGpu("chain5");
  ASSERT_FALSE(longer.ok());
  EXPECT_THAT(longer.error().message,
              testing::HasSubstr("chain1.textproto:1:1: error: base: \"a100_sxm4_80gb\" is "
                                 "one base too many: 4 are all there may be"));
  EXPECT_FALSE(LoadGpu("circle1").ok());
  unsetenv("HEDDLE_ARCH_DIR");
  std::filesystem::remove_all(folder);
}

TEST(ConfigLoad, NamesAndBases) {
  EXPECT_EQ(Faults("base: \"a100_sxm4_80gb\"\n"),
            "t.textproto: error: name: missing: a description that inherits has a name of its own");
  EXPECT_EQ(Loaded("name: \"t\"\nbase: \"a100_192sm\"\n").sm.count, 192u);  // a base may have one
  EXPECT_EQ(Faults("name: \"t\"\nbase: \"h100_sxm6\"\n"),
            "t.textproto:2:1: error: base: no machine description is named \"h100_sxm6\"; did you mean "
            "\"h100_sxm5\"?");
  const auto unknown = LoadGpu("a100_sxm_80gb");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().message,
            "no machine description is named \"a100_sxm_80gb\"; did you mean \"a100_sxm4_80gb\"?");
  EXPECT_FALSE(LoadGpu("/nonexistent/x.textproto").ok());
  EXPECT_FALSE(LoadGpu("/").ok());
}

TEST(ConfigDigest, DependsOnTheMachineAlone) {
  const Gpu gpu = *LoadGpu("a100_sxm4_80gb");
  EXPECT_EQ(Digest(gpu).size(), 64u);
  // Read back from its own text, with comments, order and spelling of numbers changed.
  const std::string text = CanonicalText(gpu);
  EXPECT_EQ(Loaded(text), gpu);
  EXPECT_EQ(Digest(Loaded("# a comment\n" + text)), Digest(gpu));
  const std::string clocks = "clocks {\n  sm_mhz: 1410\n}\n";
  ASSERT_NE(text.find(clocks), std::string::npos);
  std::string moved = text;
  moved.erase(moved.find(clocks), clocks.size());
  EXPECT_EQ(Digest(Loaded(moved + "clocks { sm_mhz: 1.41e3 }")), Digest(gpu));
  EXPECT_EQ(Digest(*LoadGpu("a100_sxm4_80gb", std::vector<std::string>{"sm.count=108"})), Digest(gpu));
}

TEST(ConfigDigest, ChangesWithEveryValue) {
  Gpu gpu = *LoadGpu("a100_sxm4_80gb");
  const std::string before = Digest(gpu);
  gpu.sm.operations.back().result_cycles += 1;
  EXPECT_NE(Digest(gpu), before);
}

TEST(ConfigCompare, ListsDifferencesByPath) {
  const Gpu left = *LoadGpu("a100_sxm4_80gb");
  Gpu right = left;
  right.l2.ways = 32;
  right.sm.tensor[0].latency_cycles = 18;
  right.runs_sm_versions.push_back(86);
  const std::vector<Difference> differences = Compare(left, right);
  ASSERT_EQ(differences.size(), 3u);
  EXPECT_EQ(differences[0].path, "sm.tensor[HMMA.16.8.16.f16.f32].latency_cycles");
  EXPECT_EQ(differences[0].right, "18");
  EXPECT_EQ(differences[1].path, "l2.ways");
  EXPECT_EQ(differences[2].path, "runs_sm_versions[1]");
  EXPECT_EQ(differences[2].left, "-");
}

}  // namespace
}  // namespace heddle::config
