// Are profilers' exports read for what they say? Expected values are those that stand in the files.
#include "frontend/profile/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>

#include "frontend/profile/metric_names.h"
#include "frontend/profile/units.h"
#include "sim/sqlite/sqlite.h"
#include "tests/support/shell.h"

namespace heddle::profile {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::StartsWith;

const std::string kProfiles = std::string(HEDDLE_SOURCE_DIR) + "/tests/profiles/";

Profile Read(const std::string& name) {
  Result<Profile> profile = ReadProfile(kProfiles + name);
  EXPECT_TRUE(profile.ok()) << profile.error().ToString();
  return profile.ok() ? *profile : Profile{};
}

double Value(const Launch& launch, const std::string& name) {
  for (const Metric& metric : launch.metrics)
    if (metric.name == name) return metric.value;
  return -1;
}

std::string UnitOf(const Launch& launch, const std::string& name) {
  for (const Metric& metric : launch.metrics)
    if (metric.name == name) return metric.unit;
  return "none";
}

TEST(Units, NumbersAndUnitsOfProfilers) {
  EXPECT_EQ(ParseNumber("1,410,000,000.50"), 1410000000.5);
  EXPECT_EQ(ParseNumber(" -12 "), -12);
  for (const char* text :
       {"", "n/a", "1,2", "12,34,567", "1.5,000", "NVIDIA", "1 (2; 3)", "nan", "inf", ",123"})
    EXPECT_FALSE(ParseNumber(text).has_value()) << text;
  const auto base = [](const char* unit) {
    return std::pair(ToBaseUnit(unit).unit, ToBaseUnit(unit).factor);
  };
  EXPECT_EQ(base("nsecond"), std::pair(std::string("ps"), 1e3));
  EXPECT_EQ(base("ms"), std::pair(std::string("ps"), 1e9));
  EXPECT_EQ(base("Kbyte/block"), std::pair(std::string("byte/block"), 1e3));
  EXPECT_EQ(base("Gbyte/second"), std::pair(std::string("byte/second"), 1e9));
  EXPECT_EQ(base("byte/nsecond"), std::pair(std::string("byte/second"), 1e9));
  EXPECT_EQ(base("cycle/usecond"), std::pair(std::string("hz"), 1e6));
  EXPECT_EQ(base("register/thread"), std::pair(std::string("register/thread"), 1.0));
  EXPECT_EQ(base(""), std::pair(std::string(), 1.0));
  EXPECT_EQ(ParseDim3("(256, 1, 1)"), (Dim3{256, 1, 1}));
  EXPECT_EQ(ParseDim3("4x2"), (Dim3{4, 2, 1}));
  for (const char* text : {"", "()", "(0, 1, 1)", "(1, 2, 3, 4)", "(1; 2)", "99999999999"})
    EXPECT_FALSE(ParseDim3(text).has_value()) << text;
  EXPECT_EQ(HeddleName("dram__bytes_read.sum"), "dram_read_bytes");
  EXPECT_EQ(HeddleName("smsp__pcsamp_warp_stall_no_instructions"), "stall_samples_no_instruction");
  EXPECT_EQ(HeddleName("smsp__average_warps_issue_stalled_wait_per_issue_active.ratio"),
            "stall_per_issue_wait");
  EXPECT_EQ(HeddleName("dram__frequency"), "dram__frequency");
}

TEST(NsightSystems, KernelsWithTheirCalls) {
  const Profile profile = Read("nsys_ga102.sqlite");
  EXPECT_EQ(profile.producer, "Nsight Systems 2026.1.1.204, schema 3.24.14");
  ASSERT_EQ(profile.launches.size(), 2u);
  const Launch& first = profile.launches[0];
  EXPECT_THAT(first.kernel, StartsWith("void at::native::vectorized_elementwise_kernel<(int)4, "));
  EXPECT_THAT(first.mangled_name, StartsWith("_ZN2at6native29vectorized_elementwise_kernelILi4E"));
  EXPECT_EQ(first.gpu, "NVIDIA GeForce RTX 3080");
  EXPECT_EQ(first.grid, (Dim3{1, 1, 1}));
  EXPECT_EQ(first.block, (Dim3{128, 1, 1}));
  EXPECT_FALSE(first.cluster.has_value());
  EXPECT_EQ(first.registers_per_thread, 16u);
  EXPECT_EQ(first.start_ns, 1517727052);
  EXPECT_EQ(Value(first, "duration_ps"), 1440e3);
  EXPECT_THAT(first.launch_call, StartsWith("cudaLaunchKernel"));
}

// 100 kernels have their call, 9 lie before the window, 10 share a correlation with another process's call only.
TEST(NsightSystems, CallsAreJoinedByCorrelationAndProcess) {
  const Profile profile = Read("nsys_h100_trim.sqlite");
  EXPECT_EQ(profile.launches.size(), 119u);
  EXPECT_EQ(std::count_if(profile.launches.begin(), profile.launches.end(),
                          [](const Launch& launch) { return !launch.launch_call.empty(); }),
            100);
  EXPECT_THAT(profile.notes,
              ElementsAre(Pair("kernels whose correlation only another process's call has", 10),
                          Pair("kernels whose launch call is outside the profile", 9)));
  EXPECT_TRUE(std::is_sorted(profile.launches.begin(), profile.launches.end(),
                             [](const Launch& a, const Launch& b) { return a.start_ns < b.start_ns; }));
}

TEST(NsightSystems, AbsentColumnsAreAbsentAndFaultsHaveTheirPlace) {
  const testing_support::TemporaryFolder folder;
  const auto with = [&](const std::string& sql) {
    const std::string path = folder / "x.sqlite";
    std::remove(path.c_str());
    Result<sqlite::Database> database = sqlite::Database::Open(path, sqlite::Database::Mode::kCreate);
    EXPECT_TRUE(database.ok() && database->Execute(sql).ok());
    return path;
  };
  const std::string strings =
      "CREATE TABLE StringIds (id INTEGER, value TEXT); INSERT INTO StringIds VALUES (7, 'k');";
  const std::string kernels =
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, shortName INTEGER);";
  const Result<Profile> small =
      ReadProfile(with(strings + kernels + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 15, 7);"));
  ASSERT_TRUE(small.ok()) << small.error().ToString();
  EXPECT_EQ(small->launches[0].kernel, "k");
  EXPECT_FALSE(small->launches[0].grid.has_value());
  EXPECT_EQ(Value(small->launches[0], "duration_ps"), 5000);

  const auto fault = [&](const std::string& sql) {
    const Result<Profile> profile = ReadProfile(with(sql));
    EXPECT_FALSE(profile.ok());
    EXPECT_EQ(profile.error().code, ExitCode::kTrace);
    return profile.error().place + ": " + profile.error().message;
  };
  EXPECT_THAT(fault(strings), HasSubstr("has no table CUPTI_ACTIVITY_KIND_KERNEL"));
  EXPECT_THAT(fault(strings + kernels), HasSubstr("has no kernels"));
  EXPECT_THAT(fault(strings + kernels + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 5, 7);"),
              HasSubstr("row 1 by start: ends at 5 ns, before its start at 10"));
  EXPECT_THAT(fault(strings + kernels + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 15, 8);"),
              HasSubstr("its name is not in StringIds"));
  EXPECT_THAT(fault(strings + kernels + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 'x', 7);"),
              HasSubstr("no integer"));
  // A view could make the reader compute anything.
  EXPECT_THAT(fault(strings +
                    "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT 1 AS start, 2 AS end, 7 AS shortName;"),
              HasSubstr("has no table"));
}

TEST(NsightCompute, WideWithUnitsInTheSecondRow) {
  const Profile profile = Read("ncu_raw_wide_gtx1080.csv");
  ASSERT_EQ(profile.launches.size(), 3u);
  const Launch& first = profile.launches[0];
  EXPECT_EQ(first.kernel, "vecAdd");
  EXPECT_EQ(first.gpu, "NVIDIA GeForce GTX 1080");
  EXPECT_EQ(first.stream, 7u);
  EXPECT_EQ(first.registers_per_thread, 8u);
  EXPECT_EQ(Value(first, "duration_ps"), 2720e3);
  EXPECT_EQ(Value(first, "dram_read_bytes"), 7552);
  EXPECT_EQ(Value(first, "smsp_inst_executed"), 344);
  EXPECT_EQ(UnitOf(first, "dram__bytes_per_sec"), "byte/second");
  EXPECT_EQ(Value(first, "stall_per_issue_imc_miss"), 36.16);
  EXPECT_EQ(Value(first, "stall_samples_no_instruction"), 4);
  EXPECT_EQ(Value(first, "device__attribute_clock_rate"), -1);
}

TEST(NsightCompute, LongBehindNoticesAndOutput) {
  const Profile conv = Read("ncu_long_conv2d_l1_trim.csv");
  ASSERT_EQ(conv.launches.size(), 1u);
  EXPECT_THAT(conv.launches[0].kernel, StartsWith("void implicit_convolve_sgemm<float, float, (int)128"));
  EXPECT_EQ(conv.launches[0].process, 9384u);
  EXPECT_EQ(conv.launches[0].metrics.size(), 47u);
  EXPECT_EQ(Value(conv.launches[0], "l1tex__m_l1tex2xbar_write_sectors_mem_lg_op_st.sum"), 8192);
  EXPECT_THAT(conv.notes, Contains(Pair("lines before the header", 10)));

  const Profile bert = Read("ncu_long_bert.csv");
  EXPECT_EQ(bert.launches.size(), 2u);
  EXPECT_EQ(Value(bert.launches[0], "dram__bytes.sum"), 128);
}

TEST(NsightCompute, LabelsOfTheDetailsPageAndScaledUnits) {
  const std::string header =
      "\"ID\",\"Process ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"Device\",\"CC\",\"Section "
      "Name\",\"Metric "
      "Name\",\"Metric Unit\",\"Metric Value\"\n";
  const std::string id = "\"3\",\"11\",\"a, \"\"b\"\"\",\"(256, 1, 1)\",\"(12, 2, 1)\",\"0\",\"9.0\",";
  const Result<Profile> profile = ReadNsightComputeCsv(
      header + id + "\"GPU Speed Of Light Throughput\",\"Duration\",\"usecond\",\"12.50\"\n" +
          "==PROF== between\n" + id + "\"Memory Workload Analysis\",\"L2 Hit Rate\",\"%\",\"55.5\"\n" + id +
          "\"Memory Workload Analysis\",\"Memory Throughput\",\"Gbyte/second\",\"1.5\"\n" + id +
          "\"Other\",\"Memory Throughput\",\"%\",\"77\"\n" + id + "\"Other\",\"X\",\"inst\",\"n/a\"\n",
      "t.csv");
  ASSERT_TRUE(profile.ok()) << profile.error().ToString();
  ASSERT_EQ(profile->launches.size(), 1u);
  const Launch& launch = profile->launches[0];
  EXPECT_EQ(launch.kernel, "a, \"b\"");
  EXPECT_EQ(launch.grid, (Dim3{12, 2, 1}));
  EXPECT_EQ(launch.gpu, "GPU of compute capability 9.0");
  EXPECT_EQ(Value(launch, "duration_ps"), 12.5e6);
  EXPECT_EQ(Value(launch, "lts_hit_rate"), 55.5);
  EXPECT_EQ(Value(launch, "Memory Throughput"), 1.5e9);
  EXPECT_EQ(Value(launch, "Other: Memory Throughput"), 77);
  EXPECT_THAT(profile->notes,
              ElementsAre(Pair("lines between the records", 1), Pair("metrics that were not available", 1)));
}

TEST(NsightCompute, FaultsHaveTheirPlace) {
  const auto fault = [](const std::string& text) {
    const Result<Profile> profile = ReadNsightComputeCsv(text, "t.csv");
    EXPECT_FALSE(profile.ok()) << text;
    if (profile.ok()) return std::string();
    EXPECT_EQ(profile.error().code, ExitCode::kTrace);
    return profile.error().place + ": " + profile.error().message;
  };
  const std::string header = "\"ID\",\"Kernel Name\",\"Grid Size\",\"Metric Name\",\"Metric Value\"\n";
  EXPECT_THAT(fault("==PROF== x\nnothing\n"), HasSubstr("t.csv: has no header"));
  EXPECT_THAT(fault(header), HasSubstr("no launches"));
  EXPECT_THAT(fault(header + "\"0\",\"k\",\"(1, 1, 1)\",\"m\n"),
              HasSubstr("t.csv:2: a quote is never closed"));
  EXPECT_THAT(fault(header + "\"0\",\"k\"x,\"(1, 1, 1)\",\"m\",\"1\"\n"), HasSubstr("t.csv:2: text behind"));
  EXPECT_THAT(fault(header + "\"z\",\"k\",\"(1, 1, 1)\",\"m\",\"1\"\n"), HasSubstr("t.csv:2: 'z' is no ID"));
  EXPECT_THAT(fault(header + "\"0\",\"k\",\"(1, 1)x\",\"m\",\"1\"\n"), HasSubstr("is no Grid Size"));
  EXPECT_THAT(fault(header + "\"0\",\"k\",\"(1, 1, 1)\",\"m\"\n"), HasSubstr("ends before its value"));
  EXPECT_THAT(fault(header + "\"0\",\"k\",\"1\",\"m\",\"1\",\"2\",\"3\"\n"),
              HasSubstr("7 cells where the header has 5"));
  EXPECT_THAT(fault("\"ID\",\"m\"\n\"0\",\"1\"\n"), HasSubstr("no column \"Kernel Name\""));
}

TEST(Kineto, NewTraceWithNanoseconds) {
  const Profile profile = Read("kineto_a100_triton_small.pt.trace.json");
  ASSERT_EQ(profile.launches.size(), 1u);
  const Launch& launch = profile.launches[0];
  EXPECT_EQ(launch.kernel, "triton_poi_fused_add_cos_sin_0");
  EXPECT_EQ(launch.gpu, "NVIDIA A100-PG509-200");
  EXPECT_EQ(launch.block, (Dim3{128, 1, 1}));
  EXPECT_EQ(launch.launch_call, "cuLaunchKernel");
  EXPECT_EQ(launch.process, 1670242u);
  EXPECT_EQ(Value(launch, "duration_ps"), 1.76e6);
  EXPECT_EQ(profile.time_resolution_ns, 1u);
}

TEST(Kineto, OldTraceWithWholeMicrosecondsIsMarked) {
  const Profile old = Read("kineto_a100_event_sync.pt.trace.json");
  EXPECT_EQ(old.launches.size(), 4u);
  EXPECT_EQ(old.time_resolution_ns, 1000u);
  EXPECT_EQ(Value(old.launches[0], "duration_ps"), 1e6);
  EXPECT_EQ(Read("kineto_v100_nanoseconds.pt.trace.json").time_resolution_ns, 1u);
  const Profile nccl = Read("kineto_a100_nccl.pt.trace.json");
  EXPECT_EQ(nccl.launches.size(), 8u);
  EXPECT_EQ(
      std::count_if(nccl.launches.begin(), nccl.launches.end(),
                    [](const Launch& launch) { return launch.kernel.starts_with("ncclKernel_AllReduce"); }),
      2);
}

TEST(Kineto, CountersOfTheRangeProfiler) {
  const Profile profile = Read("kineto_a100_cupti_range.json");
  ASSERT_EQ(profile.launches.size(), 4u);
  EXPECT_EQ(Value(profile.launches[0], "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"), 38731776);
  EXPECT_EQ(Value(profile.launches[0], "duration_ps"), -1);
}

TEST(Kineto, OtherFormsAndFaults) {
  const std::string kernel =
      R"({"ph":"X","cat":"Kernel","name":"k","pid":0,"ts":5,"dur":2,"args":{"grid":"[2, 3, 1]","block":[32,1,1],)"
      R"("correlation":"9","blocks per SM":"inf","nested":{"deep":[[{}]]}}})";
  const std::string call =
      R"({"ph":"X","cat":"cuda_driver","name":"cuLaunchKernel","pid":%,"args":{"correlation":9}})";
  const auto of_process = [&](const char* pid) { return std::string(call).replace(call.find('%'), 1, pid); };
  const Result<Profile> array = ReadKinetoJson("[" + kernel + "," + of_process("4") + "]", "t");
  ASSERT_TRUE(array.ok()) << array.error().ToString();
  EXPECT_EQ(array->launches[0].grid, (Dim3{2, 3, 1}));
  EXPECT_EQ(array->launches[0].process, 4u);
  const Result<Profile> two = ReadKinetoJson(
      R"({"traceEvents":[)" + kernel + "," + of_process("4") + "," + of_process("5") + "]}", "t");
  ASSERT_TRUE(two.ok());
  EXPECT_FALSE(two->launches[0].process.has_value());
  EXPECT_THAT(two->notes, ElementsAre(Pair("kernels whose correlation several processes have", 1)));

  const auto fault = [](const std::string& text) {
    const Result<Profile> profile = ReadKinetoJson(text, "t.json");
    EXPECT_FALSE(profile.ok()) << text;
    if (profile.ok()) return std::string();
    EXPECT_EQ(profile.error().code, ExitCode::kTrace);
    return profile.error().place + ": " + profile.error().message;
  };
  EXPECT_THAT(fault("{\"traceEvents\":[\n{\"cat\" 3}]}"), HasSubstr("t.json:2:8: is no JSON"));
  EXPECT_THAT(fault("{\"a\":1}"), HasSubstr("without \"traceEvents\""));
  EXPECT_THAT(fault("{\"traceEvents\":[]}"), HasSubstr("has no kernels"));
  EXPECT_THAT(fault(R"({"traceEvents":[{},{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":-4}]})"),
              HasSubstr("t.json: traceEvents[1]: -4 is no duration"));
  EXPECT_THAT(fault(R"({"traceEvents":[{"ph":"X","cat":"kernel","ts":1,"dur":4}]})"),
              HasSubstr("without a name"));
  EXPECT_THAT(fault(R"({"traceEvents":[{"ph":"X","cat":"kernel","name":"k","args":{"grid":[1,"x",2]}}]})"),
              HasSubstr("grid is not three sizes"));
}

TEST(Recognition, GzipAndWhatIsNoProfile) {
  const testing_support::TemporaryFolder folder;
  const std::string json = testing_support::ReadFile(kProfiles + "kineto_a100_triton_small.pt.trace.json");
  gzFile file = gzopen((folder / "t.json.gz").c_str(), "wb");
  gzwrite(file, json.data(), static_cast<unsigned>(json.size()));
  gzclose(file);
  const Result<Profile> packed = ReadProfile(folder / "t.json.gz");
  ASSERT_TRUE(packed.ok()) << packed.error().ToString();
  EXPECT_EQ(packed->launches.size(), 1u);
  const std::string bytes = testing_support::ReadFile(folder / "t.json.gz");
  std::ofstream(folder / "cut.json.gz", std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  EXPECT_THAT(ReadProfile(folder / "cut.json.gz").error().message, HasSubstr("cut short"));
  std::ofstream(folder / "empty") << " \n";
  EXPECT_THAT(ReadProfile(folder / "empty").error().message, HasSubstr("is empty"));
  EXPECT_FALSE(ReadProfile(folder / "missing").ok());
  EXPECT_FALSE(ReadProfile(folder.path()).ok());
  const std::string database = testing_support::ReadFile(kProfiles + "nsys_ga102.sqlite");
  std::ofstream(folder / "cut.sqlite", std::ios::binary) << database.substr(0, database.size() / 3);
  EXPECT_EQ(ReadProfile(folder / "cut.sqlite").error().code, ExitCode::kTrace);
}

}  // namespace
}  // namespace heddle::profile
