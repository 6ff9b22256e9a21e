// Sweeps before anything runs: axes, designs, what follows what, area and power, the best trade-offs, scripts for clusters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "sim/config/load.h"
#include "tools/batch/follow.h"
#include "tools/batch/frozen.h"
#include "tools/batch/kubernetes.h"
#include "tools/batch/proxy.h"
#include "tools/batch/slurm.h"
#include "tools/batch/summary.h"

namespace heddle::batch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

std::vector<std::string> Values(const std::string& text) {
  const Result<Axis> axis = ParseAxis(text);
  EXPECT_TRUE(axis.ok()) << text;
  return axis.ok() ? axis->values : std::vector<std::string>();
}

TEST(Axis, ListsStepsAndFactors) {
  EXPECT_THAT(Values("a=3350,4800,8000"), ElementsAre("3350", "4800", "8000"));
  EXPECT_THAT(Values("a=[132:192:12]"), ElementsAre("132", "144", "156", "168", "180", "192"));
  EXPECT_THAT(Values("a=[1:3]"), ElementsAre("1", "2", "3"));
  EXPECT_THAT(Values("a=[128Ki:512Ki:x2]"), ElementsAre("131072", "262144", "524288"));
  // The factor leaves only the first value: the number is a step.
  EXPECT_THAT(Values("sm.count=[132:160:x12]"), ElementsAre("132", "144", "156"));
  EXPECT_THAT(Values("a=[0.1:0.3:0.1]"), ElementsAre("0.1", "0.2", "0.3"));
  EXPECT_THAT(Values("a=[18,18];[16,16]"), ElementsAre("[18,18]", "[16,16]"));
  EXPECT_EQ(ParseAxis("hbm.bandwidth_gb_s=3350")->path, "dram.bandwidth_gb_s");
  EXPECT_EQ(ParseAxis("l2.slice_count=80")->path, "l2.slices");
  EXPECT_THAT(Values("a=on, off,on"), ElementsAre("on", "off"));
  EXPECT_THAT(Values("sm.operations[LDS.64.regular].result_cycles=30"), ElementsAre("30"));
}

TEST(Axis, SaysWhatIsWrong) {
  for (const char* text : {"sm.count", "=3", "a=[9:1]", "a=[1:9:0]", "a=[1:9:-2]", "a=[1:x:2]", "a=1,,2",
                           "a=", "a=[0:8:x2]", "a=[1:2:3:4]", "a=[0:1:1e-9]", "a=[1:2"}) {
    const Result<Axis> axis = ParseAxis(text);
    ASSERT_FALSE(axis.ok()) << text;
    EXPECT_EQ(axis.error().code, ExitCode::kUsage);
    EXPECT_THAT(axis.error().place, HasSubstr("--axis"));
  }
}

std::vector<std::string> Labels(const Space& space) {
  const Result<std::vector<Assignments>> designs = Enumerate(space);
  EXPECT_TRUE(designs.ok());
  std::vector<std::string> labels;
  for (const Assignments& design : *designs) labels.push_back(Label(design));
  return labels;
}

TEST(Designs, OfEachShape) {
  Space space{{{"a", {"1", "2"}}, {"b", {"3", "4"}}}, Shape::kGrid, 0, 1};
  EXPECT_THAT(Labels(space), ElementsAre("a=1 b=3", "a=1 b=4", "a=2 b=3", "a=2 b=4"));
  space.shape = Shape::kList;
  EXPECT_THAT(Labels(space), ElementsAre("a=1 b=3", "a=2 b=4"));
  space.shape = Shape::kOneByOne;
  EXPECT_THAT(Labels(space), ElementsAre("base", "a=1", "a=2", "b=3", "b=4"));
  space.shape = Shape::kRandom;
  space.samples = 3;
  const std::vector<std::string> drawn = Labels(space);
  EXPECT_EQ(drawn.size(), 3u);
  EXPECT_EQ(drawn, Labels(space));  // the seed decides
  std::vector<std::string> sorted = drawn;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(std::unique(sorted.begin(), sorted.end()), sorted.end());
}

TEST(Designs, RefusesWhatHasNoMeaning) {
  EXPECT_FALSE(Enumerate({{{"a", {"1", "2"}}, {"b", {"3"}}}, Shape::kList, 0, 1}).ok());
  EXPECT_FALSE(Enumerate({{{"a", {"1"}}, {"a", {"3"}}}, Shape::kGrid, 0, 1}).ok());
  EXPECT_FALSE(Enumerate({{{"a", {"1"}}}, Shape::kRandom, 0, 1}).ok());
}

class Following : public testing::Test {
 protected:
  void SetUp() override {
    const Result<config::Gpu> base = config::LoadGpu("h100_sxm5");
    ASSERT_TRUE(base.ok());
    base_ = ValuesOf(*base);
  }

  // What follows, after checking that the description with all of it is accepted.
  Assignments Of(const Assignments& given) {
    const Assignments followed = Follow(base_, given);
    std::vector<std::string> overrides;
    for (const auto& [path, value] : given) overrides.push_back(path + "=" + value);
    for (const auto& [path, value] : followed) overrides.push_back(path + "=" + value);
    const Result<config::Gpu> gpu = config::LoadGpu("h100_sxm5", overrides);
    EXPECT_TRUE(gpu.ok()) << gpu.error().ToString();
    return followed;
  }

  BaseValues base_;
};

TEST_F(Following, NothingWhereNothingMust) {
  EXPECT_THAT(Of({{"l2.size_bytes", "100Mi"}}), IsEmpty());
  EXPECT_THAT(Of({{"dram.bandwidth_gb_s", "8000"}}), IsEmpty());
  EXPECT_THAT(Of({{"sm.count", "144"}}), ElementsAre(Pair("sms_per_gpc", "[]")));
}

// A set of all 80 slices is 160 KiB: 50 MiB are 320 of them.
TEST_F(Following, SlicesGoWithCapacityAndChannels) {
  EXPECT_THAT(Of({{"l2.slices", "160"}}), IsEmpty());  // 160 sets of 320 KiB
  // 96 slices: sets of 192 KiB, of which 267 are nearest to 50 MiB.
  EXPECT_THAT(Of({{"dram.channels", "96"}}),
              ElementsAre(Pair("l2.slices", "96"), Pair("l2.size_bytes", std::to_string(267 * 192 * 1024))));
  // 48 MiB are 307.2 sets of 80 slices; slices must go with 80 channels, so 160 or 40, which do no better: an error of loading.
  EXPECT_THAT(Follow(base_, {{"l2.size_bytes", "48Mi"}}), IsEmpty());
  // 12 ways: sets of 120 KiB, 427 of them.
  EXPECT_THAT(Of({{"l2.ways", "12"}}), ElementsAre(Pair("l2.size_bytes", std::to_string(427 * 120 * 1024))));
}

TEST_F(Following, SharedMemoryTakesTheArrayAlong) {
  // 300 KiB and 1 reserved need a carve-out of 301 KiB, rounded up to 4 KiB ways: 304; the array grows by 304 - 228 KiB.
  EXPECT_THAT(Of({{"sm.shared_memory.max_per_cta_bytes", "300Ki"}}),
              ElementsAre(Pair("sm.l1.unified_size_bytes", std::to_string((256 + 304 - 228) * 1024)),
                          Pair("sm.shared_memory.capacities_bytes",
                               "[0,8192,16384,32768,65536,102400,135168,167936,200704,233472,311296]")));
  // Half the array: carve-outs of 128 KiB and more leave nothing for L1.
  EXPECT_THAT(Of({{"sm.l1.unified_size_bytes", "128Ki"}}),
              ElementsAre(Pair("sm.shared_memory.capacities_bytes", "[0,8192,16384,32768,65536,102400]"),
                          Pair("sm.shared_memory.max_per_cta_bytes", "101376")));
}

TEST_F(Following, WarpsAndTranslation) {
  EXPECT_THAT(Of({{"sm.max_warps", "16"}}), ElementsAre(Pair("sm.max_threads_per_cta", "512")));
  EXPECT_THAT(Of({{"tlb.l1.entries", "32"}}), ElementsAre(Pair("tlb.l1.ways", "32")));  // fully associative
  EXPECT_THAT(Of({{"tlb.l2.entries", "512"}}), IsEmpty());
}

TEST_F(Following, GivenFieldsStay) {
  EXPECT_THAT(Follow(base_, {{"sm.max_warps", "16"}, {"sm.max_threads_per_cta", "1024"}}), IsEmpty());
}

// Five launches: a persistent one with the number of SMs among its parameters, one that its shape made as large, one that follows
// the machine, one of many more CTAs than fit, and one whose expression meets no machine property.
TEST(Frozen, LaunchesThatLookComputedForAMachineAreNamed) {
  trace::Trace trace;
  trace.launches.resize(5);
  trace.launches[0].grid[0] = trace::Expr(216);
  trace.launches[1].grid[0] = trace::Expr("rows");
  trace.launches[2].grid[0] = trace::Expr("2 * sm_count");
  trace.launches[3].grid[0] = trace::Expr(108 * 33);
  trace.launches[4].grid[0] = trace::Expr(100);
  trace.launches[4].frozen_grid = true;
  std::map<trace::Symbols, trace::ResolvedTrace> resolved;
  for (const uint32_t sms : {108u, 132u}) {
    trace::ResolvedTrace& machine = resolved[{{"sm_count", sms}}];
    for (const uint32_t x : {216u, 216u, 2 * sms, 108u * 33, 100u})
      machine.launches.emplace_back().grid = {x, 1, 1};
    const uint32_t words[] = {7, 108, 9};
    machine.launches[0].parameters.resize(sizeof words);
    std::memcpy(machine.launches[0].parameters.data(), words, sizeof words);
    machine.launches[4].frozen_grid = true;
  }
  trace.device.attributes["sm_count"] = 108;
  EXPECT_THAT(
      FrozenNotes("x.htrace", trace, resolved, 80),
      ElementsAre("x.htrace: launches 2 follow the machine by expressions",
                  "x.htrace: launches 0 look computed for 108 SMs (the device of the capture) and have no "
                  "expression: "
                  "they stay so on every design; to let them follow: heddle trace rebuild x.htrace --grid "
                  "'0=2*sm_count' --parameter 0:4=sm_count -o NEW.htrace",
                  HasSubstr("launches 4 keep the grid of their capture")));
  // Recorded on as many SMs as the only design has: nothing to say. On others: the same, by the base.
  resolved.erase(resolved.begin()->first.at("sm_count") == 108 ? std::prev(resolved.end())
                                                               : resolved.begin());
  EXPECT_THAT(FrozenNotes("x.htrace", trace, resolved, 80), IsEmpty());
  trace.device.attributes.clear();
  EXPECT_THAT(FrozenNotes("x.htrace", trace, resolved, 72),
              ElementsAre(HasSubstr("launches 0 look computed for 72 SMs (as many as the base has)"),
                          HasSubstr("launches 4 keep")));
}

TEST(Proxy, FullGa100IsAsLargeAsItsDie) {
  // The whole die: 128 SMs, 48 MB, six stacks. NVIDIA states 826 mm2.
  const std::vector<std::string> whole = {
      "sm.count=128",     "gpc_count=8",    "l2.size_bytes=48Mi",      "l2.slices=96",
      "dram.channels=48", "sms_per_gpc=[]", "dram.bandwidth_gb_s=2766"};
  const Result<config::Gpu> gpu = config::LoadGpu("a100_sxm4_80gb", whole);
  ASSERT_TRUE(gpu.ok()) << gpu.error().ToString();
  EXPECT_NEAR(AreaOf(*gpu).total(), 826, 0.15 * 826);
}

TEST(Proxy, EachResourceCostsWhatItsTermSays) {
  const Result<config::Gpu> base = config::LoadGpu("h100_sxm5");
  ASSERT_TRUE(base.ok());
  const Area area = AreaOf(*base);
  EXPECT_NEAR(PowerOf(*base, *base), base->board.power_limit_w, 1e-9);
  config::Gpu more = *base;
  more.sm.count *= 2;
  EXPECT_NEAR(AreaOf(more).sms_mm2, 2 * area.sms_mm2, 1e-9);
  EXPECT_EQ(AreaOf(more).l2_mm2, area.l2_mm2);
  more = *base;
  more.l2.size_bytes += 1 << 20;
  // 2^23 bits x 0.125 um2 / 0.602
  EXPECT_NEAR(AreaOf(more).l2_mm2 - area.l2_mm2, 8388608 * 0.125e-6 / 0.602, 1e-9);
  more = *base;
  more.dram.bandwidth_gb_s += 1000;
  // 8e12 bits a second x 3.92 pJ
  EXPECT_NEAR(PowerOf(more, *base) - PowerOf(*base, *base), 31.36, 1e-6);
  more = *base;
  more.clocks.sm_mhz *= 2;
  const double dram = base->dram.bandwidth_gb_s * 8 * 3.92e-3;
  EXPECT_NEAR(PowerOf(more, *base), dram + (base->board.power_limit_w - dram) * 1.7, 1e-6);
}

Plan ThreeDesigns() {
  Plan plan;
  plan.paths = {"a", "b"};
  plan.designs.resize(3);
  for (size_t i = 0; i < 3; ++i) plan.designs[i].area.sms_mm2 = 100 + 10 * static_cast<double>(i);
  plan.designs[1].values = {{"a", "2"}};
  plan.designs[2].values = {{"b", "3"}};
  return plan;
}

TEST(Pareto, MarksWhatNothingBeats) {
  const Plan plan = ThreeDesigns();
  std::vector<DesignResult> results(3);
  const uint64_t times[] = {100, 100, 50};  // the second is larger and no faster
  for (size_t i = 0; i < 3; ++i) results[i].picoseconds = times[i];
  MarkPareto({Objective::kTime, Objective::kArea}, plan, &results);
  EXPECT_TRUE(results[0].pareto);
  EXPECT_FALSE(results[1].pareto);
  EXPECT_TRUE(results[2].pareto);
  results[2].missing = 1;
  MarkPareto({Objective::kTime, Objective::kArea}, plan, &results);
  EXPECT_FALSE(results[2].pareto);
}

TEST(Pareto, ObjectivesAreNamed) {
  EXPECT_THAT(*ParseObjectives("time,area"), ElementsAre(Objective::kTime, Objective::kArea));
  EXPECT_FALSE(ParseObjectives("time").ok());
  EXPECT_THAT(ParseObjectives("time,aera").error().message, HasSubstr("did you mean \"area\"?"));
}

TEST(Sensitivity, IsAgainstTheBase) {
  const Plan plan = ThreeDesigns();
  std::vector<DesignResult> results(3);
  results[0].picoseconds = 100;
  results[1].picoseconds = 150;
  results[2].picoseconds = 50;
  const std::vector<Sensitivity> found = Sensitivities(plan, results);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].path, "a");
  EXPECT_NEAR(found[0].time_ratio, 1.5, 1e-12);
  EXPECT_NEAR(found[1].time_ratio, 0.5, 1e-12);
}

TEST(Slurm, ScriptsSayWhatTheDocsPromise) {
  Batch batch{"/shared/x.db.batch", "/shared/x.db", 40, {}};
  SlurmOptions options;
  options.program = "/opt/heddle";
  options.at_a_time = 8;
  options.extras = {"partition=gpu"};
  const std::string script = ArrayScript(batch, options);
  for (const char* line :
       {"#SBATCH --array=0-39%8\n", "#SBATCH --requeue\n", "#SBATCH --signal=B:USR1@120\n",
        "#SBATCH --partition=gpu\n", "exec '/opt/heddle' batch task '/shared/x.db.batch' --task"})
    EXPECT_THAT(script, HasSubstr(line));
  EXPECT_EQ(MaxArraySize("MaxArraySize            = 101\n"), 101u);
  EXPECT_EQ(MaxArraySize(""), 1001u);
}

TEST(Kubernetes, RefusesWhatTheClusterWould) {
  const Batch batch{"/data/x.db.batch", "/data/x.db", 3, {}};
  KubernetesOptions options{"heddle-sweep", "registry/heddle:1", "claim", "/data", 0, 20, 1};
  const Result<std::string> good = KubernetesManifest(batch, options);
  ASSERT_TRUE(good.ok());
  EXPECT_THAT(*good, HasSubstr("completionMode: Indexed\n  completions: 3\n  parallelism: 3\n"));
  options.mount = "/other";
  EXPECT_FALSE(KubernetesManifest(batch, options).ok());
  options.mount = "/data";
  options.name = "Heddle_Sweep";
  EXPECT_FALSE(KubernetesManifest(batch, options).ok());
  options.name = "heddle-sweep";
  options.image = "";
  EXPECT_FALSE(KubernetesManifest(batch, options).ok());
}

}  // namespace
}  // namespace heddle::batch
