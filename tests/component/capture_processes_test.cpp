// Commands of several processes, and what `heddle trace merge` makes of their traces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "frontend/trace/build.h"
#include "frontend/trace/htrace.h"
#include "tests/support/capture_run.h"
#include "tests/support/captured_trace.h"

namespace heddle {
namespace {

using testing::HasSubstr;
using testing_support::CaptureFolder;
using testing_support::Outcome;
using testing_support::Parameter;
using testing_support::ReadFile;
using testing_support::ScriptOf;
using testing_support::Shell;
using testing_support::WithCheckOf;

const std::string kHeddle = HEDDLE_BINARY_DIR "/tools/heddle/heddle ";
const std::string kPlayer = HEDDLE_BINARY_DIR "/tests/support/capture/heddle_capture_player";

// As a server starts its workers. Both compute the same kernel on other inputs, at the same addresses: merged, each computes its own
// numbers.
TEST(CaptureProcesses, WorkersOnTheSameAddressesAreMergedAndComputeTheRightNumbers) {
  const Result<trace::Trace> original =
      trace::ReadTrace(HEDDLE_SOURCE_DIR "/traces/silu_and_mul.sm_80.htrace");
  ASSERT_TRUE(original.ok());
  const Result<trace::ResolvedTrace> resolved =
      trace::Resolve(*original, trace::TypicalDevice(), {{"tokens", 2}, {"d", 2048}});
  ASSERT_TRUE(resolved.ok());
  const CaptureFolder folder;
  const std::string script = ScriptOf(*original, *resolved, folder);
  // The other worker's input: the same words in another order.
  std::string input = ReadFile(folder.Path("b1"));
  std::rotate(input.begin(), input.begin() + 64, input.end());
  std::string other = script;
  const std::string upload = "upload b1 " + folder.Path("b1");
  other.replace(other.find(upload), upload.size(), "upload b1 " + folder.Write("other_input", input));
  const std::string second = folder.Write("second", other);
  // setarch -R: addresses are not random.
  const Outcome run =
      folder.CaptureRaw(script, "--snapshot all", "", "setarch -R sh -c '$0 $1 & $0 " + second + "; wait'");
  if (run.err.find("setarch") != std::string::npos)
    GTEST_SKIP() << "addresses cannot be kept from being random here";
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::vector<std::string> traces = folder.Traces();
  ASSERT_EQ(traces.size(), 2u) << run.err;
  const Outcome merge = Shell(kHeddle + "trace merge " + folder.Path(traces[0]) + " " +
                              folder.Path(traces[1]) + " -o " + folder.Path("all.htrace"));
  ASSERT_EQ(merge.exit_code, 0) << merge.err;
  EXPECT_THAT(merge.err, HasSubstr("moved"));
  const trace::Trace all = folder.Read("all.htrace");
  ASSERT_EQ(all.launches.size(), 2u);
  EXPECT_EQ(all.modules.size(), 1u);
  EXPECT_NE(all.launches[0].stream, all.launches[1].stream);
  for (size_t launch = 0; launch < 2; ++launch) {
    const std::string path = folder.Path("checked.htrace");
    trace::Trace checked = WithCheckOf(*original, *resolved, all, launch);
    ASSERT_TRUE(trace::WriteTrace(checked, path).ok());
    const Outcome right = Shell(kHeddle + "trace verify " + path);
    EXPECT_EQ(right.exit_code, 0) << launch << right.out << right.err;
    // Pointed at the other one's memory it would not.
    checked.launches[launch].parameters = all.launches[1 - launch].parameters;
    ASSERT_TRUE(trace::WriteTrace(checked, path).ok());
    EXPECT_EQ(Shell(kHeddle + "trace verify " + path).exit_code, 6) << launch;
  }
  const std::string path = folder.Path("run.htrace");
  trace::Trace runs = all;
  runs.sass = original->sass;  // without a disassembler on this machine
  ASSERT_TRUE(trace::WriteTrace(runs, path).ok());
  const Outcome both = Shell(kHeddle + "run " + path + " -q -a a100_sxm4_80gb --db " + folder.Path("a.db"));
  EXPECT_EQ(both.exit_code, 0) << both.err;
}

// In a container that has the library and nothing else of heddle: the trace is made from its records outside (docs/capture.md).
TEST(CaptureProcesses, TheLibraryAloneRecordsByVariables) {
  const CaptureFolder folder;
  std::filesystem::create_directory(folder.Path("records"));
  const std::string script = folder.Write("alone", "module m " + folder.cubin() +
                                                       "\nfunction f m k\nalloc a 4096\n"
                                                       "launch f 1,1,1 32,1,1 0 0 b:a i:5\n"
                                                       "push step\nlaunch f 1,1,1 32,1,1 0 0 b:a i:6\npop\n"
                                                       "launch f 1,1,1 32,1,1 0 0 b:a i:7\n");
  const std::string library = HEDDLE_BINARY_DIR "/lib/libheddle_capture.so";
  const Outcome run = Shell(
      "LD_LIBRARY_PATH=" HEDDLE_BINARY_DIR "/tests/support/capture/doubles CUDA_INJECTION64_PATH=" + library +
      " HEDDLE_CAPTURE_FOLDER=" + folder.Path("records") +
      " HEDDLE_CAPTURE_RANGE=step NVTX_INJECTION64_PATH=" + library + " " + kPlayer + " " + script);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Outcome made = Shell("HEDDLE_NVDISASM=/nonexistent " + kHeddle + "trace recover " +
                             folder.Path("records") + " -o " + folder.Path("out.htrace"));
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const trace::Trace trace = folder.Read();
  ASSERT_EQ(trace.launches.size(), 1u);
  EXPECT_EQ(Parameter(trace.launches[0], 8, 4), 6u);
  // The same by the file itself, from inside its folder.
  EXPECT_EQ(Shell("cd " + folder.Path("records") + "/* && HEDDLE_NVDISASM=/nonexistent " + kHeddle +
                  "trace recover records -o here.htrace")
                .exit_code,
            0);
}

// A process that a forked child becomes by exec has records of its own; the parent's go on.
TEST(CaptureProcesses, EachProcessHasATraceOfItsOwn) {
  const CaptureFolder folder;
  const std::string other = folder.Write(
      "other", "module m " + folder.cubin() + "\nfunction f m k\nlaunch f 7,1,1 32,1,1 0 0 q:1 i:70\n");
  const Outcome run = folder.Capture("launch f 1,1,1 32,1,1 0 0 b:a i:1\nexec " + kPlayer + " " + other +
                                     "\nlaunch f 1,1,1 32,1,1 0 0 b:a i:2\n");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::vector<std::string> traces = folder.Traces();
  ASSERT_EQ(traces.size(), 2u) << run.err;
  std::vector<std::vector<uint64_t>> values;
  for (const std::string& name : traces) {
    std::vector<uint64_t>& of_trace = values.emplace_back();
    for (const trace::Launch& launch : folder.Read(name).launches)
      of_trace.push_back(Parameter(launch, 8, 4));
  }
  EXPECT_THAT(values, testing::UnorderedElementsAre(std::vector<uint64_t>{1, 2}, std::vector<uint64_t>{70}));
}

}  // namespace
}  // namespace heddle
