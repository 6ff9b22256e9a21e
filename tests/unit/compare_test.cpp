// Do simulated and measured launches find each other, and are the sums right? Expected numbers are worked out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "frontend/trace/htrace.h"
#include "sim/results/results.h"
#include "tests/support/shell.h"
#include "tools/compare/comparison.h"
#include "tools/compare/hardware_import.h"
#include "tools/compare/kernel_name.h"

namespace heddle::compare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// What a cubin, Nsight and Kineto call the same kernel.
TEST(KernelName, DemanglersAgree) {
  const auto same = [](const std::vector<std::string>& names) {
    for (const std::string& name : names)
      EXPECT_EQ(CanonicalKernelName(name), CanonicalKernelName(names[0])) << name;
  };
  same({"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
        "void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>, "
        "std::array<char *, (unsigned "
        "long)1>>(int, T2, T3)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, "
        "1ul> >(int, "
        "at::native::FillFunctor<float>, std::array<char*, 1ul>)"});
  same(
      {"void <unnamed>::softmax_warp_forward<float, float, float, (int)6, (bool)0, (bool)1>(T2 *, const T1 "
       "*, int)",
       "void (anonymous namespace)::softmax_warp_forward<float, float, float, 6, false, true>(float*, float "
       "const*, int)"});
  same(
      {"void k<at::f(at::B &, T2)::[lambda(float) (instance 2)]::operator ()() const::[lambda(int) (instance "
       "1)]>(T1)",
       "void k<at::f(at::B&, float)::{lambda(float)#2}::operator()() const::{lambda(int)#1}>(X)"});
  EXPECT_NE(CanonicalKernelName("void k<(int)4>(int)"), CanonicalKernelName("void k<(int)2>(int)"));
  EXPECT_NE(CanonicalKernelName("void k<f()::[lambda() (instance 1)]>()"),
            CanonicalKernelName("void k<f()::[lambda() (instance 2)]>()"));
  EXPECT_EQ(FunctionName("at::native::{anonymous}::f<a::b<4>,c>"), "f");
  EXPECT_EQ(FunctionName("vecAdd"), "vecAdd");
  EXPECT_EQ(DisplayName("_ZN2at1fILi3EEEvi"), "at::f<3>");
  EXPECT_EQ(DisplayName("triton_poi_fused_add_0"), "triton_poi_fused_add_0");
  EXPECT_EQ(CategoryOf("ncclKernel_AllReduce_RING_LL_Sum_float"), "collective");
  EXPECT_EQ(CategoryOf("sm80_xmma_gemm_f32f32"), "gemm");
  EXPECT_EQ(CategoryOf("whatever"), "other");
}

Simulated Sim(const std::string& name, uint32_t grid, double us, const std::string& key = "") {
  Simulated launch;
  launch.key = key;
  launch.name = name;
  launch.canonical = CanonicalKernelName(name);
  launch.grid = {grid, 1, 1};
  launch.block = {128, 1, 1};
  launch.ps = us * 1e6;
  return launch;
}

Measured Real(const std::string& name, uint32_t grid, double us) {
  Measured launch;
  launch.name = name;
  launch.canonical = CanonicalKernelName(name);
  if (grid != 0) {
    launch.grid = Dim3{grid, 1, 1};
    launch.block = Dim3{128, 1, 1};
  }
  if (us > 0) launch.ps = us * 1e6;
  return launch;
}

// A number that says nothing is not shown as one.
TEST(Compare, WhatDoesNotFollowFromSoFewRowsIsNotANumber) {
  const SimulatedSet simulated{"m", {Sim("gemm", 4, 90), Sim("norm", 2, 12), Sim("copy", 1, 3)}};
  const auto with = [&](std::vector<Measured> launches) {
    return Compare(simulated, MeasuredSet{"g", std::move(launches)}, By::kKernel);
  };
  const auto totals = [](const Comparison& c) { return nlohmann::json::parse(ComparisonJson(c))["totals"]; };
  const Comparison two = with({Real("gemm", 4, 100), Real("norm", 2, 10)});
  EXPECT_THAT(ComparisonText(two, 10), HasSubstr("median 15.0 %, 90th percentile -, correlation -\n"));
  EXPECT_TRUE(totals(two)["correlation"].is_null());
  EXPECT_TRUE(totals(two)["p90_abs_error_percent"].is_null());
  EXPECT_THAT(ComparisonHtml(two), HasSubstr("<b>-</b><span>correlation"));
  EXPECT_TRUE(
      totals(with({Real("gemm", 4, 10), Real("norm", 2, 10), Real("copy", 1, 10)}))["correlation"].is_null())
      << "all measured times are equal";
  EXPECT_GT(totals(with({Real("gemm", 4, 100), Real("norm", 2, 10), Real("copy", 1, 4)}))["correlation"],
            0.9);
  const Comparison none = with({Real("other", 4, 100)});
  EXPECT_TRUE(totals(none)["mape_percent"].is_null());
  EXPECT_THAT(ComparisonText(none, 10), Not(HasSubstr("MAPE")));
  EXPECT_THAT(ComparisonHtml(none), HasSubstr("<b>-</b><span>mean |error| (MAPE)"));
}

// Two sampled launches of one kernel: what is printed beside their mean is the mean of their intervals.
TEST(Compare, IntervalsOfSampledLaunchesAreShown) {
  SimulatedSet simulated{"m", {Sim("gemm", 4, 90), Sim("gemm", 4, 94), Sim("norm", 2, 12)}};
  simulated.launches[0].interval_ps = 1e6;
  simulated.launches[1].interval_ps = 3e6;
  const MeasuredSet measured{"g", {Real("gemm", 4, 100), Real("norm", 2, 10)}};
  const Comparison c = Compare(simulated, measured, By::kKernel);
  ASSERT_EQ(c.rows.size(), 2u);
  EXPECT_DOUBLE_EQ(c.rows[0].interval_ps, 2e6);
  EXPECT_EQ(c.rows[1].interval_ps, 0);
  const std::string text = ComparisonText(c, 10);
  EXPECT_THAT(text, testing::HasSubstr("92.00 +-2.00"));
  EXPECT_THAT(text, testing::HasSubstr("+-: of launches in sampled mode"));
  EXPECT_THAT(ComparisonHtml(c), testing::HasSubstr("92.00 +-2.00"));
  EXPECT_THAT(ComparisonJson(c), testing::HasSubstr("\"simulated_interval_ps\": 2000000.0"));
  EXPECT_DOUBLE_EQ(Compare(simulated, measured, By::kCategory).rows[0].interval_ps, 2e6);
}

TEST(Compare, TotalsAndOrder) {
  const SimulatedSet simulated{"m", {Sim("gemm", 4, 90), Sim("norm", 2, 12), Sim("norm", 8, 40)}};
  const MeasuredSet measured{"g",
                             {Real("norm", 2, 10), Real("gemm", 4, 100), Real("gemm", 4, 100),
                              Real("norm", 2, 10), Real("norm", 8, 50)}};
  const Comparison c = Compare(simulated, measured, By::kKernel);
  ASSERT_EQ(c.rows.size(), 3u);
  EXPECT_EQ(c.rows[0].kernel, "gemm");  // 200 us, before 50 and 20
  EXPECT_EQ(c.rows[0].measured, 2u);
  EXPECT_DOUBLE_EQ(c.rows[0].ErrorPercent(), -10);
  EXPECT_DOUBLE_EQ(c.rows[1].ErrorPercent(), -20);
  EXPECT_DOUBLE_EQ(c.rows[2].ErrorPercent(), 20);
  EXPECT_DOUBLE_EQ(c.totals.measured_ps, 270e6);
  EXPECT_DOUBLE_EQ(c.totals.simulated_ps, 244e6);  // 180 + 24 + 40
  EXPECT_NEAR(c.totals.total_error_percent, -100.0 * 26 / 270, 1e-9);
  EXPECT_NEAR(c.totals.weighted_mape_percent, 100.0 * (20 + 4 + 10) / 270, 1e-9);
  EXPECT_NEAR(c.totals.mape_percent, 50.0 / 3, 1e-9);
  EXPECT_DOUBLE_EQ(c.CoveredPercent(), 100);

  const Comparison launches = Compare(simulated, measured, By::kLaunch);
  EXPECT_EQ(launches.rows.size(), 5u);
  EXPECT_NEAR(launches.totals.mape_percent, (10 + 10 + 20 + 20 + 20) / 5.0, 1e-9);
  const Comparison categories = Compare(simulated, measured, By::kCategory);
  ASSERT_EQ(categories.rows.size(), 2u);
  EXPECT_EQ(categories.rows[1].kernel, "norm");
  EXPECT_NEAR(categories.rows[1].ErrorPercent(), 100.0 * (64.0 / 70 - 1), 1e-9);
  EXPECT_NEAR(categories.totals.total_error_percent, c.totals.total_error_percent, 1e-9);
}

TEST(Compare, WhoHasNoPartnerAndWhy) {
  const SimulatedSet simulated{
      "m", {Sim("a", 4, 10), Sim("only_simulated", 1, 5), Sim("b", 2, 7), Sim("t", 3, 1)}};
  const MeasuredSet measured{
      "g", {Real("a", 4, 10), Real("a", 5, 20), Real("nobody", 1, 70), Real("b", 9, 1), Real("t", 3, 0)}};
  const Comparison c = Compare(simulated, measured, By::kKernel);
  ASSERT_EQ(c.rows.size(), 1u);
  EXPECT_NEAR(c.CoveredPercent(), 100.0 * 10 / 101, 1e-9);
  std::vector<std::string> reasons;
  for (const Unmatched& entry : c.measured_alone) reasons.push_back(entry.kernel + ": " + entry.reason);
  EXPECT_THAT(reasons, ElementsAre("nobody: not simulated", "a: simulated with another grid or block only",
                                   "b: simulated with another grid or block only"));
  reasons.clear();
  for (const Unmatched& entry : c.simulated_alone) reasons.push_back(entry.kernel + ": " + entry.reason);
  EXPECT_THAT(reasons, ElementsAre("b: measured with another grid or block only",
                                   "only_simulated: not measured", "t: measured without a time"));
  EXPECT_THAT(ComparisonText(c, 10),
              HasSubstr("without a partner: 1 measured launch (0.070 ms): not simulated"));
}

TEST(Compare, LooseNamesAreJoinedWhereOneFits) {
  const SimulatedSet simulated{"m",
                               {Sim("_ZN2at1fILi3EEEvi", 4, 10), Sim("_ZN2at1fILi3EEEvi", 8, 20),
                                Sim("_ZN2at1gILi1EEEvi", 4, 10), Sim("_ZN2at1gILi2EEEvi", 4, 10)}};
  // The function's name and a grid; no grid, but two shapes; a name that two instances share.
  const MeasuredSet measured{"g", {Real("f", 8, 21), Real("f", 0, 9), Real("g", 4, 3)}};
  const Comparison c = Compare(simulated, measured, By::kKernel);
  ASSERT_EQ(c.rows.size(), 1u);
  EXPECT_EQ(c.rows[0].note, "joined by the function's name");
  EXPECT_EQ(c.rows[0].grid.x, 8u);
  ASSERT_EQ(c.measured_alone.size(), 2u);
  EXPECT_THAT(c.measured_alone[0].reason, HasSubstr("fit several"));
}

// A key or a trace's launch says more than names; Nsight Compute's times yield to those of the running process.
TEST(Compare, KnownLaunchesAndSources) {
  SimulatedSet simulated{"m", {Sim("x", 1, 10, "k1"), Sim("y", 1, 20, "k2")}};
  simulated.launches[1].trace_digest = "d";
  simulated.launches[1].ordinal = 3;
  MeasuredSet measured{"g", {Real("label", 0, 11), Real("other", 1, 22), Real("y", 1, 30)}};
  measured.launches[0].launch_key = "k1";
  measured.launches[1].trace_digest = "d";
  measured.launches[1].trace_ordinal = 3;
  measured.launches[2].is_replayed = true;
  measured.launches[2].numbers.dram_bytes = 4e6;
  const Comparison c = Compare(simulated, measured, By::kKernel);
  ASSERT_EQ(c.rows.size(), 2u);
  EXPECT_DOUBLE_EQ(c.rows[0].measured_ps, 22e6);
  EXPECT_EQ(c.rows[0].measured_numbers.dram_bytes, 4e6);
  EXPECT_DOUBLE_EQ(c.rows[1].measured_ps, 11e6);
}

TEST(Compare, CyclesAloneAreTakenAtTheSimulatedClock) {
  SimulatedSet simulated{"m", {Sim("a", 1, 10)}};
  simulated.launches[0].cycles = 10000;  // 1 GHz
  MeasuredSet measured{"g", {Real("a", 1, 0)}};
  measured.launches[0].cycles = 8000;
  const Comparison c = Compare(simulated, measured, By::kKernel);
  ASSERT_EQ(c.rows.size(), 1u);
  EXPECT_DOUBLE_EQ(c.rows[0].measured_ps, 8e6);
  EXPECT_EQ(c.rows[0].note, "time from measured cycles");
}

TEST(Compare, BaselineSaysWhatBecameBetter) {
  const SimulatedSet now{"m", {Sim("a", 1, 95), Sim("b", 1, 20), Sim("c", 1, 5)}};
  const SimulatedSet before{"m", {Sim("a", 1, 80), Sim("b", 1, 11)}};
  const MeasuredSet measured{"g", {Real("a", 1, 100), Real("b", 1, 10), Real("c", 1, 5)}};
  const Comparison c = Compare(now, measured, By::kKernel, &before);
  EXPECT_DOUBLE_EQ(*c.rows[0].BaselineErrorPercent(), -20);
  EXPECT_EQ(c.baseline->rows, 2u);
  EXPECT_NEAR(c.baseline->weighted_mape_percent, 100.0 * 21 / 110, 1e-9);
  EXPECT_NEAR(c.against_baseline->weighted_mape_percent, 100.0 * 15 / 110, 1e-9);
  const std::string text = ComparisonText(c, 10);
  EXPECT_THAT(text, HasSubstr("    100.00         95.00     -5.0       87.0       -20.0  better\n"));
  EXPECT_THAT(text, HasSubstr("     10.00         20.00   +100.0        8.7       +10.0   worse\n"));
  EXPECT_THAT(text, HasSubstr("      5.00          5.00     +0.0        4.3           -     new\n"));
}

// A trace as --sass-metrics and --pc-sampling leave it, imported, beside a simulation of its launch: counts of the instruction at 0x0 are
// equal, those at 0x10 are not, and the samples fall elsewhere.
class Instructions : public testing::Test {
 protected:
  void SetUp() override {
    trace_ = *trace::ReadTrace(std::string(HEDDLE_SOURCE_DIR) + "/traces/silu_and_mul.sm_80.htrace");
    trace_.device.name = "GPU";
    trace_.launches[0].measured_start_ns = 0;
    trace_.launches[0].measured_end_ns = 1000;
    trace_.launches[0].grid = {trace::Expr(3), trace::Expr(1), trace::Expr(1)};
    const std::string stalled = "smsp__pcsamp_warps_issue_stalled_";
    trace_.counters = {
        {0, "smsp__sass_inst_executed", 30, ""},      {0, "smsp__sass_inst_executed@0x0", 10, ""},
        {0, "smsp__sass_inst_executed@0x10", 20, ""}, {0, stalled + "long_scoreboard@0x0", 3, ""},
        {0, stalled + "barrier@0x10", 1, ""},         {0, stalled + "selected@0x10", 50, ""}};
    ASSERT_TRUE(trace::WriteTrace(trace_, folder_ / "k.htrace").ok());
    ASSERT_TRUE(trace::ReadTrace(folder_ / "k.htrace", &digest_).ok());
    const auto imported = ImportHardware({folder_ / "k.htrace"}, folder_ / "m.db", {});
    ASSERT_TRUE(imported.ok()) << imported.error().ToString();
  }

  Status Simulate(const isa::KernelCode& code) {
    isa::LaunchShape shape;
    shape.grid = {3, 1, 1};
    shape.block = {128, 1, 1};
    stats::LaunchStats stats;
    stats.end_cycle = 100;
    stats.per_pc.resize(2);
    stats.per_pc[0].issued = 10;
    stats.per_pc[1].issued = 22;
    stats.per_pc[0].slots[static_cast<size_t>(stats::Stall::k_long_scoreboard)] = 25;
    stats.per_pc[1].slots[static_cast<size_t>(stats::Stall::k_barrier)] = 75;
    results::LaunchRecord record;
    record.trace_digest = digest_;
    record.duration_ps = 900'000;
    HEDDLE_ASSIGN_OR_RETURN(results::Writer writer, results::Writer::Open(folder_ / "s.db"));
    HEDDLE_RETURN_IF_ERROR(writer.BeginRun({"heddle run", "0", "test"}));
    HEDDLE_RETURN_IF_ERROR(
        writer.AddLaunch(record, {"c0ffee", "machine", "text", 2, 1, 1, 1, 1}, code, shape, stats, {}));
    return writer.Finish();
  }

  Comparison CompareBoth() {
    Comparison c =
        Compare(*LoadSimulated(folder_ / "s.db", {}), *LoadMeasured(folder_ / "m.db", {}), By::kKernel);
    const Status status = AddLines(folder_ / "s.db", folder_ / "m.db", &c);
    EXPECT_TRUE(status.ok()) << status.error().ToString();
    return c;
  }

  testing_support::TemporaryFolder folder_;
  trace::Trace trace_;
  std::string digest_;
};

TEST_F(Instructions, StandSideBySide) {
  ASSERT_TRUE(Simulate(trace_.sass[0].code).ok());
  const Comparison c = CompareBoth();
  ASSERT_EQ(c.rows.size(), 1u);
  ASSERT_TRUE(c.rows[0].lines.has_value());
  const Lines& lines = *c.rows[0].lines;
  EXPECT_EQ(lines.refused, "");
  ASSERT_EQ(lines.lines.size(), 2u);
  EXPECT_EQ(lines.equal, 1u);
  EXPECT_EQ(lines.measured_sum, 30);
  EXPECT_EQ(lines.simulated_sum, 32);
  EXPECT_EQ(lines.lines[0].text, isa::ToString(trace_.sass[0].code.instructions[0]));
  EXPECT_EQ(lines.lines[0].measured.waits.at("long_scoreboard"), 75);
  EXPECT_EQ(lines.lines[0].simulated.waits.at("long_scoreboard"), 25);
  EXPECT_EQ(lines.lines[1].measured.WaitPercent(), 25);
  EXPECT_EQ(c.rows[0].measured_numbers.instructions, 30);
  const std::string text = ComparisonText(c, 10);
  EXPECT_THAT(
      text,
      HasSubstr("instructions executed: measured 30, simulated 32 (+6.67 %); 1 of 2 have equal counts"));
  EXPECT_THAT(text, HasSubstr("20 | 22  25.0 | 75.0"));
  const nlohmann::json json = nlohmann::json::parse(ComparisonJson(c))["rows"][0]["instructions"];
  EXPECT_EQ(json["lines"][1]["measured"]["inst_executed"], 20);
  EXPECT_THAT(ComparisonHtml(c), HasSubstr("Instruction by instruction"));
}

TEST_F(Instructions, OfOtherCodeAreNotCompared) {
  isa::KernelCode other = trace_.sass[0].code;
  other.instructions[3].encoding[0] ^= 1;
  ASSERT_TRUE(Simulate(other).ok());
  EXPECT_THAT(ComparisonText(CompareBoth(), 10),
              HasSubstr("not compared: other code of this name was simulated"));
}

TEST(Compare, FormsAreWellFormed) {
  SimulatedSet simulated{"m", {Sim("k<&\"x\">", 4, 90)}};
  simulated.launches[0].numbers = {1000, 2e6, 50, 25, {{"wait", 100}}};
  MeasuredSet measured{"g", {Real("k<&\"x\">", 4, 100), Real("alone", 1, 1)}};
  measured.launches[0].numbers = {1001, 2.5e6, 60, 30, {{"barrier", 60}, {"wait", 40}}};
  const Comparison c = Compare(simulated, measured, By::kKernel);
  const nlohmann::json json = nlohmann::json::parse(ComparisonJson(c));
  EXPECT_EQ(json["rows"][0]["measured"]["wait_percent"]["barrier"], 60);
  EXPECT_EQ(json["measured_alone"][0]["reason"], "not simulated");
  EXPECT_THAT(ComparisonCsv(c), HasSubstr("\n\"k<&\"\"x\"\">\",other,4x1x1,128x1x1,1,1,100,90,"));
  const std::string html = ComparisonHtml(c);
  EXPECT_THAT(html, HasSubstr("k&lt;&amp;&quot;x&quot;&gt;"));
  EXPECT_THAT(html, Not(HasSubstr("k<&")));
  EXPECT_THAT(html, HasSubstr("2.50 | 2.00"));
  EXPECT_THAT(ComparisonText(Compare(simulated, {"g", {}}, By::kKernel), 5), HasSubstr("nothing was joined"));
  EXPECT_THAT(ComparisonHtml(Compare(simulated, {"g", {}}, By::kKernel)), HasSubstr("</html>"));
}

TEST(HardwareImport, WholeOrNothingAndOnce) {
  const std::string profiles = std::string(HEDDLE_SOURCE_DIR) + "/tests/profiles/";
  const testing_support::TemporaryFolder folder;
  const std::string database = folder / "m.db";
  const auto bad = ImportHardware({profiles + "nsys_ga102.sqlite", profiles + "SOURCES.md"}, database, {});
  EXPECT_EQ(bad.error().code, ExitCode::kTrace);
  EXPECT_FALSE(results::OpenForReading(database).ok());

  const std::vector<std::string> files = {profiles + "nsys_h100_trim.sqlite",
                                          profiles + "ncu_raw_wide_gtx1080.csv",
                                          profiles + "kineto_a100_event_sync.pt.trace.json"};
  for (int round = 0; round < 2; ++round) {
    const auto imported = ImportHardware(files, database, {"NVIDIA H100", {"test", "0", "test"}});
    ASSERT_TRUE(imported.ok()) << imported.error().ToString();
    EXPECT_EQ((*imported)[0].launches, 119u);
    EXPECT_EQ((*imported)[0].with_call, 100u);
    EXPECT_EQ((*imported)[2].time_resolution_ns, 1000u);
  }
  // A database of measurements is taken over as it is, each source once.
  ASSERT_TRUE(ImportHardware({database}, folder / "copy.db", {}).ok());
  ASSERT_TRUE(ImportHardware({database, files[1]}, folder / "copy.db", {}).ok());
  for (const std::string& path : {database, folder / "copy.db"}) {
    Result<sqlite::Database> reader = results::OpenForReading(path);
    EXPECT_EQ(*reader->QueryInteger("SELECT COUNT(*) FROM hardware_run"), 119 + 3 + 4);
    EXPECT_EQ(*reader->QueryInteger("SELECT COUNT(*) FROM hardware_launch WHERE time_resolution_ns = 1000"),
              4);
    EXPECT_EQ(*reader->QueryInteger("SELECT COUNT(*) FROM hardware_run WHERE gpu = 'NVIDIA H100'"), 119);
    EXPECT_EQ(*reader->QueryInteger("SELECT COUNT(*) FROM hardware_run WHERE source LIKE '%/%'"), 0);
  }
  const auto measured = LoadMeasured(database, {});
  EXPECT_THAT(measured.error().ToString(), HasSubstr("NVIDIA GeForce GTX 1080"));
  Selection pascal;
  pascal.gpu = "GTX 1080";
  const auto chosen = LoadMeasured(database, pascal);
  ASSERT_TRUE(chosen.ok()) << chosen.error().ToString();
  ASSERT_EQ(chosen->launches.size(), 3u);
  EXPECT_EQ(chosen->launches[0].numbers.dram_bytes, 7552 + 384);
  EXPECT_TRUE(chosen->launches[0].is_replayed);
  EXPECT_GT(chosen->launches[0].numbers.waits.at("imc_miss"), 0);
}

}  // namespace
}  // namespace heddle::compare
