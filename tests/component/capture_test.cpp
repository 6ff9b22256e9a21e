// `heddle capture` on a real process whose libcuda and libcupti are doubles: what it launched is what the trace holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>

#include "tests/support/capture_run.h"

namespace heddle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::CaptureFolder;
using testing_support::Outcome;
using testing_support::Parameter;
using testing_support::ReadFile;

std::array<int64_t, 3> Numbers(const std::array<trace::Expr, 3>& extent) {
  return {extent[0].value, extent[1].value, extent[2].value};
}

TEST(Capture, LaunchHasItsGridItsExactParametersItsTimesAndItsCubin) {
  const CaptureFolder folder;
  const Outcome run = folder.Capture("address a\nlaunch f 3,2,1 64,1,1 128 5 b:a+16 i:-7\n");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const uint64_t address = std::stoull(run.out.substr(2));
  const trace::Trace trace = folder.Read();
  ASSERT_EQ(trace.launches.size(), 1u);
  const trace::Launch& launch = trace.launches[0];
  EXPECT_EQ(launch.name, "k");
  EXPECT_EQ(Numbers(launch.grid), (std::array<int64_t, 3>{3, 2, 1}));
  EXPECT_EQ(Numbers(launch.block), (std::array<int64_t, 3>{64, 1, 1}));
  EXPECT_EQ(launch.dynamic_shared_bytes.value, 128);
  ASSERT_EQ(launch.parameters.size(), 12u);
  EXPECT_EQ(Parameter(launch, 0, 8), address + 16);
  EXPECT_EQ(Parameter(launch, 8, 4), 0xfffffff9u);
  EXPECT_EQ(launch.measured_end_ns - launch.measured_start_ns, 2500);
  EXPECT_TRUE(launch.frozen_grid);
  ASSERT_EQ(trace.modules.size(), 1u);
  const std::string cubin = ReadFile(folder.cubin());
  ASSERT_EQ(trace.modules[0].cubin.size(), cubin.size());
  EXPECT_EQ(std::memcmp(trace.modules[0].cubin.data(), cubin.data(), cubin.size()), 0);
  ASSERT_EQ(trace.buffers.size(), 1u);
  EXPECT_EQ(trace.buffers[0].address, address);
  EXPECT_EQ(trace.buffers[0].shape[0].value, 4096);
  EXPECT_EQ(trace.device.name, "Double GPU");
  EXPECT_EQ(trace.device.sm_version, 80u);
  EXPECT_EQ(trace.device.attributes.at("sm_count"), 108);
  EXPECT_EQ(trace.device.attributes.at("cuda_attribute_20"), -1);
  EXPECT_FALSE(std::filesystem::exists(folder.Path("out.htrace.records")));
}

// What is put into other people's processes needs the C library and nothing else.
TEST(Capture, TheLibraryNeedsLibcAlone) {
  const Outcome headers =
      testing_support::Shell("readelf -d " HEDDLE_BINARY_DIR "/lib/libheddle_capture.so | grep NEEDED");
  ASSERT_EQ(headers.exit_code, 0) << headers.err;
  EXPECT_EQ(std::count(headers.out.begin(), headers.out.end(), '\n'), 1) << headers.out;
  EXPECT_THAT(headers.out, HasSubstr("[libc.so."));
}

// The same values through the four ways of launching.
TEST(Capture, EveryWayOfLaunchingGivesTheSameParameters) {
  const CaptureFolder folder;
  std::string script;
  for (const char* kind : {"launch", "extra", "coop", "cluster"})
    script += std::string(kind) + " f 2,1,1 32,1,1 0 0 q:81985529216486895 i:305419896\n";
  ASSERT_EQ(folder.Capture(script).exit_code, 0);
  const trace::Trace trace = folder.Read();
  ASSERT_EQ(trace.launches.size(), 4u);
  for (const trace::Launch& launch : trace.launches) {
    EXPECT_EQ(Parameter(launch, 0, 8), 81985529216486895u);
    EXPECT_EQ(Parameter(launch, 8, 4), 305419896u);
    EXPECT_GE(launch.measured_start_ns, 0);
  }
  EXPECT_EQ(Numbers(trace.launches[3].cluster), (std::array<int64_t, 3>{2, 1, 1}));
  EXPECT_TRUE(trace.launches[3].programmatic);
  EXPECT_FALSE(trace.launches[0].programmatic);
}

TEST(Capture, EqualCubinsAreOneModuleAndFunctionsAreFoundInEveryWay) {
  const std::string launches = "launch f 1,1,1 32,1,1 0 0 b:a i:1\nlaunch g 1,1,1 32,1,1 0 0 b:a i:2\n";
  for (const char* environment :
       {"", "DOUBLE_LAZY=1", "DOUBLE_PRIVATE=1", "DOUBLE_LAZY=1 DOUBLE_PRIVATE=1"}) {
    const CaptureFolder folder;
    const Outcome run =
        folder.Capture("library l " + folder.cubin() + "\nkernel g l k\n" + launches, "", environment);
    ASSERT_EQ(run.exit_code, 0) << environment << run.err;
    const trace::Trace trace = folder.Read();
    EXPECT_EQ(trace.modules.size(), 1u) << environment;
    EXPECT_EQ(trace.functions.size(), 1u) << environment;
    ASSERT_EQ(trace.launches.size(), 2u) << environment;
    EXPECT_EQ(Parameter(trace.launches[1], 8, 4), 2u) << environment;
  }
}

// Whose code a function is follows from its handle, not from its name.
TEST(Capture, FunctionsOfOneNameInTwoCubinsAreKeptApart) {
  for (const char* environment : {"", "DOUBLE_LAZY=1"}) {
    const CaptureFolder folder;
    const std::string other = folder.WriteCubin("other.cubin", "k", 3);
    const Outcome run =
        folder.Capture("module n " + other +
                           "\nfunction g n k\nlaunch f 1,1,1 32,1,1 0 0 b:a i:1\n"
                           "launch g 1,1,1 32,1,1 0 0 b:a i:2\nlaunch f 1,1,1 32,1,1 0 0 b:a i:3\n",
                       "", environment);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const trace::Trace trace = folder.Read();
    ASSERT_EQ(trace.launches.size(), 3u);
    ASSERT_EQ(trace.modules.size(), 2u) << environment;
    const auto code_of = [&](size_t launch) {
      return trace.modules[trace.functions[trace.launches[launch].function].module].cubin.size();
    };
    EXPECT_EQ(code_of(0), ReadFile(folder.cubin()).size()) << environment;
    EXPECT_EQ(code_of(1), ReadFile(other).size()) << environment;
    EXPECT_EQ(code_of(2), code_of(0)) << environment;
    EXPECT_NE(code_of(0), code_of(1));
  }
}

TEST(Capture, StreamsAndEventsBecomeEdges) {
  const CaptureFolder folder;
  ASSERT_EQ(folder
                .Capture("launch f 1,1,1 32,1,1 0 1 b:a i:0\n"
                         "record 90 1\n"
                         "launch f 1,1,1 32,1,1 0 1 b:a i:1\n"  // behind the event
                         "wait 2 90\n"
                         "launch f 1,1,1 32,1,1 0 2 b:a i:2\n"
                         "launch f 1,1,1 32,1,1 0 2 b:a i:3\n")
                .exit_code,
            0);
  const trace::Trace trace = folder.Read();
  ASSERT_EQ(trace.launches.size(), 4u);
  EXPECT_EQ(trace.launches[0].stream, trace.launches[1].stream);
  EXPECT_NE(trace.launches[0].stream, trace.launches[2].stream);
  EXPECT_EQ(trace.launches[2].stream, trace.launches[3].stream);
  EXPECT_THAT(trace.edges, ElementsAre(trace::Edge{0, 2}));
}

// A fork inside the captured graph: b and c run side by side behind a, d behind both. Replayed twice.
TEST(Capture, GraphsAreExpandedAtEachReplayWithTheirEdgesAndTimes) {
  const CaptureFolder folder;
  const Outcome run = folder.Capture(
      "begin 1\n"
      "launch f 1,1,1 32,1,1 0 1 b:a i:10\n"
      "record 90 1\nwait 2 90\n"
      "launch f 2,1,1 32,1,1 0 1 b:a i:11\n"
      "launch f 3,1,1 32,1,1 0 2 b:a i:12\n"
      "record 91 2\nwait 1 91\n"
      "launch f 4,1,1 32,1,1 0 1 b:a i:13\n"
      "end 1 g\ninstantiate e g\n"
      "launch f 9,1,1 32,1,1 0 1 b:a i:1\n"
      "graph e 1\ngraph e 1\n"
      "launch f 9,1,1 32,1,1 0 1 b:a i:2\n");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const trace::Trace trace = folder.Read();
  std::vector<uint64_t> values;
  for (const trace::Launch& launch : trace.launches) {
    values.push_back(Parameter(launch, 8, 4));
    EXPECT_GE(launch.measured_start_ns, 0) << values.back();
  }
  EXPECT_THAT(values, ElementsAre(1, 10, 11, 12, 13, 10, 11, 12, 13, 2));
  EXPECT_NE(trace.launches[2].stream, trace.launches[3].stream);
  const std::vector<trace::Edge> edges = {{1, 3}, {3, 4}, {5, 7}, {7, 8}};
  EXPECT_EQ(trace.edges, edges);
  EXPECT_EQ(trace.launches[0].stream, trace.launches[4].stream);
  EXPECT_EQ(trace.launches[4].stream, trace.launches[9].stream);
}

TEST(Capture, ThreadsLoseNothing) {
  const CaptureFolder folder;
  ASSERT_EQ(folder.Capture("parallel 4 500 f 1,1,1 32,1,1 0 1 b:a i:6\n").exit_code, 0);
  const trace::Trace trace = folder.Read();
  EXPECT_EQ(trace.launches.size(), 2000u);
  std::map<uint32_t, int> by_stream;
  for (const trace::Launch& launch : trace.launches) {
    ++by_stream[launch.stream];
    EXPECT_EQ(Parameter(launch, 8, 4), 6u);
    EXPECT_GE(launch.measured_start_ns, 0);
  }
  EXPECT_EQ(by_stream.size(), 4u);
}

// What a forked child does is not the parent's; one that initialises CUDA by itself would get a file of its own.
TEST(Capture, AForkedChildWritesNothingIntoItsParentsRecords) {
  const CaptureFolder folder;
  const Outcome run = folder.Capture(
      "launch f 1,1,1 32,1,1 0 0 b:a i:1\nfork\nlaunch f 1,1,1 32,1,1 0 0 b:a i:99\njoined\n"
      "launch f 1,1,1 32,1,1 0 0 b:a i:2\n");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const trace::Trace trace = folder.Read();
  ASSERT_EQ(trace.launches.size(), 2u);
  EXPECT_EQ(Parameter(trace.launches[0], 8, 4), 1u);
  EXPECT_EQ(Parameter(trace.launches[1], 8, 4), 2u);
  EXPECT_THAT(run.err, testing::Not(HasSubstr("did not end in order")));
}

// What came 250 ms before the end is there; the program itself ends as it would have.
TEST(Capture, KilledAndExitedProcessesLoseTheirLastQuarterOfASecondAtMost) {
  for (const char* how : {"exit", "kill"}) {
    const CaptureFolder folder;
    const Outcome run = folder.Capture(
        std::string("launch f 1,1,1 32,1,1 0 0 b:a i:1\nsleep 600\nlaunch f 1,1,1 32,1,1 0 0 b:a i:2\n") +
        how + "\n");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.err, HasSubstr("did not end in order"));
    const trace::Trace trace = folder.Read();
    ASSERT_GE(trace.launches.size(), 1u);
    EXPECT_EQ(Parameter(trace.launches[0], 8, 4), 1u);
    EXPECT_EQ(trace.device.name, "Double GPU");
  }
}

TEST(Capture, SelectsByNameNumberAndRange) {
  std::string launches;
  for (int i = 0; i < 6; ++i) launches += "launch f 1,1,1 32,1,1 0 0 b:a i:" + std::to_string(i) + "\n";
  const auto values = [&](const std::string& script, const std::string& options) {
    const CaptureFolder folder;
    const Outcome run = folder.Capture(script, options);
    std::vector<uint64_t> found;
    if (run.exit_code != 0) return found;
    for (const trace::Launch& launch : folder.Read().launches) found.push_back(Parameter(launch, 8, 4));
    return found;
  };
  EXPECT_THAT(values(launches, "--skip 2 --count 3"), ElementsAre(2, 3, 4));
  EXPECT_THAT(values(launches, "--skip 4"), ElementsAre(4, 5));
  EXPECT_THAT(values(launches, "--kernels '^k$' --count 1"), ElementsAre(0));
  EXPECT_THAT(values(launches, "--kernels other"), IsEmpty());
  const std::string ranges =
      "push other\nlaunch f 1,1,1 32,1,1 0 0 b:a i:20\npush decode\nlaunch f 1,1,1 32,1,1 0 0 b:a i:21\npush "
      "inner\n"
      "launch f 1,1,1 32,1,1 0 0 b:a i:22\npop\npop\nlaunch f 1,1,1 32,1,1 0 0 b:a i:23\npop\n";
  EXPECT_THAT(values(launches + ranges, "--range nvtx:decode"), ElementsAre(21, 22));
}

// The shim knows operation, size and ranks; without it, or for a call that it did not see, the kernel's name alone says what it was.
TEST(Capture, CollectivesOfNcclHaveTheirOperationSizeAndRanks) {
  const CaptureFolder folder;
  const auto module = [&](const std::string& name) {
    const std::string file = folder.WriteCubin(name, "ncclDevKernel_" + name);
    return "module m" + name + " " + file + "\nfunction f" + name + " m" + name + " ncclDevKernel_" + name +
           "\n";
  };
  const std::string script = module("AllReduce_Sum_f32_RING_LL") + module("AllGather_RING_LL") +
                             "allreduce 1000 7\nlaunch fAllReduce_Sum_f32_RING_LL 1,1,1 32,1,1 0 0 b:a i:1\n"
                             "allgather 10 9\nlaunch fAllGather_RING_LL 1,1,1 32,1,1 0 0 b:a i:1\n";
  ASSERT_EQ(folder.Capture(script, "--nccl").exit_code, 0);
  const std::vector<trace::Collective> seen = {{0, "all_reduce", 4000, 4}, {1, "all_gather", 20, 4}};
  EXPECT_EQ(folder.Read().collectives, seen);
  const CaptureFolder without;
  ASSERT_EQ(without.Capture(script).exit_code, 0);
  const std::vector<trace::Collective> named = {{0, "all_reduce", 0, 0}, {1, "all_gather", 0, 0}};
  EXPECT_EQ(without.Read().collectives, named);
}

// A collective belongs to the kernel that its own thread launches next.
TEST(Capture, CollectivesOfOneThreadAreNotAnothers) {
  const CaptureFolder folder;
  const std::string name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";
  const std::string launch = "launch n 1,1,1 32,1,1 0 0 b:a i:1\n";
  ASSERT_EQ(folder
                .Capture("module m2 " + folder.WriteCubin("n.cubin", name) + "\nfunction n m2 " + name +
                             "\ninthread allreduce 1000 7\n" + launch + "allreduce 10 7\n" + launch,
                         "--nccl")
                .exit_code,
            0);
  const std::vector<trace::Collective> expected = {{0, "all_reduce", 0, 0}, {1, "all_reduce", 40, 4}};
  EXPECT_EQ(folder.Read().collectives, expected);
}

// What cuMemAllocAsync and memory pools give out is memory like any other.
TEST(Capture, MemoryOfPoolsIsKnown) {
  const CaptureFolder folder;
  const Outcome run = folder.Capture(
      "allocasync b 512\nallocpool c 1024\naddress b\nlaunch f 1,1,1 32,1,1 0 0 b:b+8 i:1\nfreeasync b\n"
      "launch f 1,1,1 32,1,1 0 0 b:c i:2\n");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const trace::Trace trace = folder.Read();
  const uint64_t address = std::stoull(run.out.substr(2));
  std::map<uint64_t, int64_t> sizes;
  for (const trace::Buffer& buffer : trace.buffers) sizes[buffer.address] = buffer.shape[0].value;
  EXPECT_EQ(Parameter(trace.launches.at(0), 0, 8), address + 8);
  const auto b = std::find_if(sizes.begin(), sizes.end(), [&](const auto& each) {
    return each.first <= address && address + 512 <= each.first + static_cast<uint64_t>(each.second);
  });
  EXPECT_NE(b, sizes.end());
  const uint64_t c = Parameter(trace.launches.at(1), 0, 8);
  EXPECT_TRUE(std::any_of(sizes.begin(), sizes.end(), [&](const auto& each) {
    return each.first <= c && c + 1024 <= each.first + static_cast<uint64_t>(each.second);
  }));
}

// A pool is a name of the memory that came from it.
TEST(Capture, BuffersAreNamedByTheirPool) {
  const CaptureFolder folder;
  const Outcome run = folder.Capture(
      "allocpool b 4096 7\nallocpool c 4096 9\nallocpool d 4096 7\naddress b\naddress c\naddress d\n"
      "launch f 1,1,1 32,1,1 0 0 b:b i:1\n");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const trace::Trace trace = folder.Read();
  std::istringstream out(run.out);
  const char* const pools[] = {"pool1_at_", "pool2_at_", "pool1_at_"};
  for (const char* pool : pools) {
    std::string name;
    uint64_t address = 0;
    out >> name >> address;
    const auto buffer = std::find_if(trace.buffers.begin(), trace.buffers.end(), [&](const auto& each) {
      return address - each.address < static_cast<uint64_t>(each.shape[0].value);
    });
    ASSERT_NE(buffer, trace.buffers.end()) << name;
    EXPECT_THAT(buffer->name, testing::StartsWith(pool)) << name;
  }
  EXPECT_TRUE(std::any_of(trace.buffers.begin(), trace.buffers.end(),
                          [](const auto& each) { return each.name.starts_with("at_"); }));
}

// Copies and fills are counted with their bytes and their times, whatever the mode of snapshots.
TEST(Capture, CopiesAndFillsHaveTheirTimes) {
  const CaptureFolder folder;
  const Outcome run = folder.Capture(
      "alloc b 4096\nfill a 7 16\ncopy a b 64\ncopy b a 36\n"
      "upload a " +
      folder.Write("data", "12345678") + "\nlaunch f 1,1,1 32,1,1 0 0 b:a i:1\n");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("1 fill (64 bytes, 0.002 ms)"));
  EXPECT_THAT(run.err, HasSubstr("2 copies on the device (100 bytes, 0.003 ms)"));
  EXPECT_THAT(run.err, HasSubstr("1 copy host to device (8 bytes, 0.002 ms)"));
}

// Nothing stands in the way of the next attempt, and nothing is measured of nothing.
TEST(Capture, ACaptureWithoutLaunchesLeavesNothingBehind) {
  const std::string launch = "launch f 1,1,1 32,1,1 0 0 b:a i:1\n";
  const CaptureFolder folder;
  const Outcome none = folder.Capture(launch, "--kernels other --counters cycles --sass-metrics");
  EXPECT_EQ(none.exit_code, 4);
  EXPECT_THAT(none.err, HasSubstr("no launch was recorded"));
  EXPECT_THAT(none.err, testing::Not(HasSubstr("running the command again")));
  EXPECT_FALSE(std::filesystem::exists(folder.Path("out.htrace.records")));
  EXPECT_EQ(folder.Capture(launch).exit_code, 0);
  EXPECT_EQ(folder.Read().launches.size(), 1u);
}

TEST(Capture, RefusalsLeaveTheProgramAloneAndSayWhatToChange) {
  const std::string launch = "launch f 1,1,1 32,1,1 0 0 b:a i:1\naddress a\n";
  const CaptureFolder folder;
  const Outcome other = folder.Capture(launch, "", "DOUBLE_SUBSCRIBE=39");
  EXPECT_EQ(other.exit_code, 4);
  EXPECT_THAT(other.out, HasSubstr("a "));  // it ran to its end
  EXPECT_THAT(other.err, HasSubstr("'another profiler' is there already"));
  EXPECT_THAT(other.err, HasSubstr("torch.profiler"));

  const CaptureFolder missing;
  const Outcome none = missing.Capture(launch, "", "HEDDLE_CUPTI=/nonexistent.so");
  EXPECT_EQ(none.exit_code, 4);
  EXPECT_THAT(none.out, HasSubstr("a "));
  EXPECT_THAT(none.err, HasSubstr("libcupti was not found"));

  const CaptureFolder privilege;
  const Outcome refused = privilege.Capture(launch, "", "DOUBLE_ACTIVITY=35");
  EXPECT_EQ(refused.exit_code, 0) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("NVreg_RestrictProfilingToAdminUsers=0"));
  EXPECT_EQ(privilege.Read().launches.at(0).measured_start_ns, -1);
}

TEST(Capture, KernelRecordsOfOlderCuptisAreRead) {
  const std::string launches = "launch f 1,1,1 32,1,1 0 0 b:a i:1\nlaunch f 1,1,1 32,1,1 0 0 b:a i:2\n";
  const CaptureFolder folder;  // CUDA 12.0
  ASSERT_EQ(folder.Capture(launches, "", "DOUBLE_VERSION=19 DOUBLE_KERNEL_BYTES=200").exit_code, 0);
  EXPECT_GE(folder.Read().launches.at(1).measured_start_ns, 0);
  const CaptureFolder old;  // CUDA 11.6: launches alone
  const Outcome run = old.Capture(launches, "", "DOUBLE_VERSION=17");
  ASSERT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("older than CUDA 12.0"));
  EXPECT_EQ(old.Read().launches.size(), 2u);
}

TEST(Capture, RecordsOfCopiesOfOlderCuptisAreRead) {
  for (const char* environment : {"", "DOUBLE_VERSION=19 DOUBLE_COPY_BYTES=88"}) {
    const CaptureFolder folder;
    const Outcome run = folder.Capture(
        "alloc b 4096\nfill a 7 16\ncopy a b 64\npeercopy b a 40 0\nlaunch f 1,1,1 32,1,1 0 0 b:a i:1\n", "",
        environment);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.err, HasSubstr("1 fill (64 bytes, 0.002 ms)")) << environment;
    EXPECT_THAT(run.err, HasSubstr("1 copy on the device (64 bytes, 0.002 ms)")) << environment;
    EXPECT_THAT(run.err, HasSubstr("1 copy between devices (40 bytes, 0.002 ms)")) << environment;
  }
}

TEST(Capture, RecoverMakesATraceOfRecordsThatWereCutShort) {
  const CaptureFolder folder;
  ASSERT_EQ(folder
                .Capture("launch f 1,1,1 32,1,1 0 0 b:a i:1\nsleep 600\nlaunch f 1,1,1 32,1,1 0 0 b:a i:2\n",
                         "--keep-records")
                .exit_code,
            0);
  const std::string all = folder.Path("out.htrace.records");
  std::string records;
  for (const auto& entry : std::filesystem::directory_iterator(all)) records = entry.path() / "records";
  const std::string heddle = HEDDLE_BINARY_DIR "/tools/heddle/heddle ";
  std::filesystem::resize_file(records, std::filesystem::file_size(records) - 5);
  const Outcome cut = testing_support::Shell("HEDDLE_NVDISASM=/nonexistent " + heddle + "trace recover " +
                                             all + " -o " + folder.Path("cut.htrace"));
  ASSERT_EQ(cut.exit_code, 0) << cut.err;
  EXPECT_THAT(cut.err, HasSubstr("cut short"));
  EXPECT_EQ(folder.Read("cut.htrace").launches.size(), 1u);
  folder.Write("empty", "");
  const Outcome none =
      testing_support::Shell(heddle + "trace recover " + folder.Path("") + " -o " + folder.Path("x"));
  EXPECT_EQ(none.exit_code, 4);
}

// The contract of what is private: nothing of the environment, of names of users, hosts and files, or of the command line is in the records
// or in the trace, whatever a capture is asked to keep. What is looked for would be found: a kernel's name and what memory held are.
TEST(Capture, TheTraceKnowsNothingOfTheEnvironment) {
  const CaptureFolder folder;
  const std::string content = folder.Write("qvxupload", "qvxcontent of a buffer");
  const Outcome run = folder.Capture(
      "module m2 " + folder.WriteCubin("qvxcubin", "qvxkernel") + "\nfunction q m2 qvxkernel\nupload a " +
          content + "\npush step\nlaunch q 1,1,1 32,1,1 0 0 b:a i:1\nallreduce 10 7\npop\n",
      "--keep-records --snapshot all --nccl --range nvtx:step --counters cycles --sass-metrics "
      "--pc-sampling",
      "MY_TOKEN=zqxjkvbp USER=qvxuser LOGNAME=qvxuser HOSTNAME=qvxhost HOME=/qvxhome");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  std::vector<std::string> secrets = {
      "zqxjkvbp", "MY_TOKEN", "qvxuser",    "qvxhost", "/qvxhome", "player",        "qvxupload",
      "qvxcubin", "script",   "LD_LIBRARY", "nvtx:",   "--nccl",   folder.Path(""), HEDDLE_BINARY_DIR};
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) == 0 && std::strlen(host) >= 5) secrets.emplace_back(host);
  std::map<std::string, std::string> texts = {{"trace", ReadFile(folder.Path("out.htrace"))}};
  std::string& records = texts["records"];
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.Path("out.htrace.records")))
    if (entry.is_regular_file()) records += ReadFile(entry.path().string());
  std::string& blobs = texts["blobs"];  // compressed in the trace
  const auto add = [&](const std::vector<std::byte>& bytes) {
    blobs.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  const trace::Trace trace = folder.Read();
  for (const trace::Module& module : trace.modules) add(module.cubin);
  for (const trace::Content& each : trace.contents) add(each.rule.bytes);
  for (const auto& [place, text] : texts) {
    for (const std::string& secret : secrets)
      EXPECT_EQ(text.find(secret), std::string::npos) << secret << " in " << place;
    EXPECT_THAT(text, HasSubstr("qvxkernel")) << place;
  }
  EXPECT_THAT(records, HasSubstr("qvxcontent"));
  EXPECT_THAT(blobs, HasSubstr("qvxcontent"));
}

}  // namespace
}  // namespace heddle
