// What `heddle capture --snapshot` keeps of memory, and that a captured launch computes the right numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <sstream>

#include "frontend/trace/build.h"
#include "frontend/trace/htrace.h"
#include "tests/support/capture_run.h"
#include "tests/support/captured_trace.h"

namespace heddle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::CaptureFolder;
using testing_support::Outcome;
using testing_support::ReadFile;
using testing_support::ScriptOf;
using testing_support::Shell;
using testing_support::WithCheckOf;

const std::string kHeddle = HEDDLE_BINARY_DIR "/tools/heddle/heddle ";

// The whole way: a committed kernel's launch, played to the capture by a real process, is executed and gives the numbers that the
// reference computes from the captured inputs. With a parameter changed, it does not.
TEST(CaptureContents, ACapturedLaunchComputesTheRightNumbers) {
  const Result<trace::Trace> original =
      trace::ReadTrace(HEDDLE_SOURCE_DIR "/traces/silu_and_mul.sm_80.htrace");
  ASSERT_TRUE(original.ok());
  const Result<trace::ResolvedTrace> resolved =
      trace::Resolve(*original, trace::TypicalDevice(), {{"tokens", 2}});
  ASSERT_TRUE(resolved.ok());
  const CaptureFolder folder;
  const Outcome run = folder.CaptureRaw(ScriptOf(*original, *resolved, folder), "--snapshot all");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  trace::Trace captured = WithCheckOf(*original, *resolved, folder.Read());
  ASSERT_EQ(captured.launches.size(), original->launches.size());
  EXPECT_EQ(captured.modules[0].sha256, original->modules[0].sha256);
  const std::string path = folder.Path("checked.htrace");
  ASSERT_TRUE(trace::WriteTrace(captured, path).ok());
  const Outcome verify = Shell(kHeddle + "trace verify " + path);
  EXPECT_EQ(verify.exit_code, 0) << verify.out << verify.err;

  // Inputs that were not what the kernel saw give other numbers: the check can fail.
  for (trace::Content& content : captured.contents)
    if (!content.rule.bytes.empty()) content.rule.bytes[0] ^= std::byte{0x40};
  captured.launches[0].grid[0] = trace::Expr(1);
  ASSERT_TRUE(trace::WriteTrace(captured, path).ok());
  EXPECT_NE(Shell(kHeddle + "trace verify " + path).exit_code, 0);
}

TEST(CaptureContents, ACapturedTraceRunsOnAMachine) {
  const Result<trace::Trace> original =
      trace::ReadTrace(HEDDLE_SOURCE_DIR "/traces/silu_and_mul.sm_80.htrace");
  ASSERT_TRUE(original.ok());
  const Result<trace::ResolvedTrace> resolved =
      trace::Resolve(*original, trace::TypicalDevice(), {{"tokens", 2}});
  ASSERT_TRUE(resolved.ok());
  const CaptureFolder folder;
  ASSERT_EQ(folder.CaptureRaw(ScriptOf(*original, *resolved, folder), "--snapshot all").exit_code, 0);
  trace::Trace captured = folder.Read();
  captured.sass = original->sass;  // without a disassembler on this machine
  const std::string path = folder.Path("run.htrace");
  ASSERT_TRUE(trace::WriteTrace(captured, path).ok());
  const Outcome run = Shell(kHeddle + "run " + path + " -a a100_sxm4_80gb --db " + folder.Path("a.db"));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("a100_sxm4_80gb"));
}

// The input comes to its buffer by two copies on the device, one of them between devices, and something else comes there for the second launch:
// the first one computes the right numbers only where each copy is made at its place.
TEST(CaptureContents, ACopyBringsWhatItsSourceHeldAtItsPlace) {
  const Result<trace::Trace> original =
      trace::ReadTrace(HEDDLE_SOURCE_DIR "/traces/silu_and_mul.sm_80.htrace");
  ASSERT_TRUE(original.ok());
  const Result<trace::ResolvedTrace> resolved =
      trace::Resolve(*original, trace::TypicalDevice(),
                     {{"tokens", 2}, {"d", 2048}});  // an upload that is short enough to be kept
  ASSERT_TRUE(resolved.ok());
  const CaptureFolder folder;
  std::string script = ScriptOf(*original, *resolved, folder);  // b0 is the output, b1 the input
  const uint64_t size = resolved->buffers[1].size_bytes;
  const std::string bytes = std::to_string(size);
  const auto put = [&](const std::string& what, const std::string& with) {
    const size_t at = script.find(what);
    ASSERT_NE(at, std::string::npos) << what;
    script.replace(at, what.size(), with);
  };
  const std::string launch = script.substr(script.find("launch "));
  std::string second = launch;
  second.replace(second.find("b:b0"), 4, "b:other");
  std::string buffers;
  for (const char* name : {"stage", "between", "bad", "other"})
    buffers += "alloc " + std::string(name) + " " + bytes + "\n";
  put("alloc b1", buffers + "alloc b1");
  put("upload b1", "upload stage");
  put(launch, "fill bad 1 " + std::to_string(size / 4) + "\ncopy between stage " + bytes +
                  "\npeercopy b1 between " + bytes + " 0\n" + launch + "copy b1 bad " + bytes + "\n" +
                  second + "address stage\n");
  const std::string plan = folder.Write("plan", "# nothing steers\n");
  const Outcome run = folder.CaptureRaw(script, "--snapshot index --plan " + plan);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  trace::Trace captured = WithCheckOf(*original, *resolved, folder.Read());
  ASSERT_EQ(captured.launches.size(), 2u);
  // The reference is computed from what was uploaded.
  const uint64_t stage = std::stoull(run.out.substr(run.out.find("stage ") + 6));
  const auto named = [&](const auto& is) {
    return std::find_if(captured.buffers.begin(), captured.buffers.end(), is);
  };
  const auto input = named([](const auto& each) { return each.name == "x"; });
  const auto uploaded = named([&](const auto& each) { return each.address == stage; });
  ASSERT_TRUE(input != captured.buffers.end() && uploaded != captured.buffers.end());
  std::swap(input->name, uploaded->name);
  uploaded->type = input->type;
  uploaded->shape = input->shape;
  const auto verify = [&] {
    const std::string path = folder.Path("checked.htrace");
    EXPECT_TRUE(trace::WriteTrace(captured, path).ok());
    return Shell(kHeddle + "trace verify " + path);
  };
  const Outcome right = verify();
  EXPECT_EQ(right.exit_code, 0) << right.out << right.err;
  EXPECT_THAT(right.out, testing::Not(HasSubstr("  0     0\n"))) << "zeros compare equal whatever was copied";
  for (trace::Content& content : captured.contents) {
    if (content.rule.kind == trace::RuleKind::kCopy) content.before_launch = 0;  // all of them at once
  }
  EXPECT_NE(verify().exit_code, 0);
}

// A small one, with three tensor maps among its parameters.
struct Original {
  Result<trace::Trace> trace;
  Result<trace::ResolvedTrace> resolved;
};
Original TmaMatmul() {
  Result<trace::Trace> read = trace::ReadTrace(HEDDLE_SOURCE_DIR "/traces/tests/matmul_tma.sm_90.htrace");
  if (!read.ok()) return {read.error(), read.error()};
  Result<trace::ResolvedTrace> resolved =
      trace::Resolve(*read, trace::TypicalDevice(), {{"m", 128}, {"n", 128}, {"k", 64}});
  return {std::move(read), std::move(resolved)};
}

// Tensor maps by the fields that cuTensorMapEncodeTiled was given: what a GPU's driver makes of them is opaque. The double makes other bytes
// than heddle would, and the captured launch computes the right numbers all the same. Of maps that begin a row further it does not.
TEST(CaptureContents, ATensorMapInTheParametersIsExecutedByItsFields) {
  const Original matmul = TmaMatmul();
  ASSERT_TRUE(matmul.trace.ok());
  ASSERT_TRUE(matmul.resolved.ok());
  const CaptureFolder folder;
  const Outcome run = folder.CaptureRaw(
      ScriptOf(*matmul.trace, *matmul.resolved, folder) + "address b0\naddress b1\naddress b2\n",
      "--snapshot all");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  trace::Trace captured = WithCheckOf(*matmul.trace, *matmul.resolved, folder.Read());
  ASSERT_EQ(captured.tensor_maps.size(), 3u);
  std::istringstream addresses(run.out);
  for (size_t b = 0; b < 3; ++b) {
    std::string name;
    uint64_t address = 0;
    addresses >> name >> address;
    for (trace::Buffer& buffer : captured.buffers) {
      if (buffer.address != address) continue;
      buffer.name = matmul.trace->buffers[b].name;
      buffer.type = matmul.trace->buffers[b].type;
      buffer.shape.clear();
      for (const uint64_t extent : matmul.resolved->buffers[b].shape)
        buffer.shape.emplace_back(static_cast<int64_t>(extent));
    }
  }
  const std::string path = folder.Path("checked.htrace");
  ASSERT_TRUE(trace::WriteTrace(captured, path).ok());
  const Outcome verify = Shell(kHeddle + "trace verify " + path);
  EXPECT_EQ(verify.exit_code, 0) << verify.out << verify.err;
  captured.tensor_maps[1].offset = trace::Expr(captured.tensor_maps[1].offset.value + 128);
  ASSERT_TRUE(trace::WriteTrace(captured, path).ok());
  EXPECT_NE(Shell(kHeddle + "trace verify " + path).exit_code, 0);
}

// A map whose address was replaced is the same map elsewhere. Maps of another form are recorded, and said not to be modelled.
TEST(CaptureContents, ATensorMapMayBeMovedOrOfAnotherForm) {
  const Original matmul = TmaMatmul();
  ASSERT_TRUE(matmul.trace.ok());
  ASSERT_TRUE(matmul.resolved.ok());
  const CaptureFolder folder;
  std::istringstream plain(ScriptOf(*matmul.trace, *matmul.resolved, folder));
  std::string script;
  for (std::string line; std::getline(plain, line);) {
    std::istringstream words(line);
    std::string verb, map, buffer, rest;
    if (words >> verb >> map >> buffer && verb == "tensormap") {
      std::getline(words, rest);
      line = verb + " " + map + " elsewhere" + rest + "\nreplacemap " + map + " " + buffer;
    }
    script += line + "\n";
  }
  script = "alloc elsewhere 4096\nim2colmap other elsewhere\n" + script;
  const Outcome run = folder.CaptureRaw(script, "--keep-records");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("1 tensor maps have fields that heddle does not model"));
  const trace::Trace captured = folder.Read();
  const CaptureFolder direct;
  ASSERT_EQ(direct.CaptureRaw(ScriptOf(*matmul.trace, *matmul.resolved, direct)).exit_code, 0);
  const trace::Trace expected = direct.Read();
  ASSERT_EQ(captured.tensor_maps.size(), 3u);
  ASSERT_EQ(expected.tensor_maps.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(captured.tensor_maps[i].size, expected.tensor_maps[i].size);
    EXPECT_EQ(captured.tensor_maps[i].box, expected.tensor_maps[i].box);
    // Which parameter it is beside: the buffer that the map was moved to.
    uint64_t word = 0;
    std::memcpy(&word, &captured.launches[0].parameters[captured.tensor_maps[i].parameter_offset], 8);
    EXPECT_EQ(captured.tensor_maps[i].offset.value, static_cast<int64_t>(word));
  }
}

struct Kept {
  uint64_t offset;
  uint32_t before;
  uint32_t word;
  bool operator==(const Kept&) const = default;
};
void PrintTo(const Kept& kept, std::ostream* out) {
  *out << kept.offset << " before " << kept.before << ": " << kept.word;
}
std::vector<Kept> Contents(const trace::Trace& trace) {
  std::vector<Kept> kept;
  for (const trace::Content& content : trace.contents) {
    if (content.rule.kind != trace::RuleKind::kBytes) continue;
    uint32_t word = 0;
    std::memcpy(&word, content.rule.bytes.data(), 4);
    kept.push_back({static_cast<uint64_t>(content.offset_bytes.value), content.before_launch, word});
  }
  return kept;
}

// The buffer is filled on the device by a copy, which only a snapshot can see. Four ways for a process to find its driver's functions
// would hide the launches from a shim; two are tried: cudart's, and dlsym alone.
TEST(CaptureContents, SnapshotsSeeWhatIsInMemoryHoweverTheDriverWasFound) {
  for (const char* environment : {"", "PLAYER_DLSYM=1", "DOUBLE_PRIVATE=1"}) {
    const CaptureFolder folder;
    const std::string plan = folder.Write("plan", "# comment\n0 k\n0 other\n");
    const Outcome run = folder.Capture(
        "alloc b 64\nalloc c 64\nfill b 77 16\ncopy a b 64\n"
        "launch f 1,1,1 32,1,1 0 0 b:a i:1\n"
        "launch f 1,1,1 32,1,1 0 0 b:a i:2\n"  // unchanged: not kept again
        "fill c 78 16\ncopy a c 64\n"
        "launch f 1,1,1 32,1,1 0 0 b:a i:3\n",
        "--snapshot index --plan " + plan, environment);
    ASSERT_EQ(run.exit_code, 0) << environment << run.err;
    EXPECT_THAT(Contents(folder.Read()), ElementsAre(Kept{0, 0, 77}, Kept{0, 2, 78})) << environment;
  }
}

TEST(CaptureContents, WithoutBeingAskedNothingIsKept) {
  const CaptureFolder folder;
  const std::string data = folder.Write("data", "secret words of a user");
  ASSERT_EQ(folder.Capture("upload a " + data + "\nlaunch f 1,1,1 32,1,1 0 0 b:a i:1\n", "--keep-records")
                .exit_code,
            0);
  EXPECT_TRUE(folder.Read().contents.empty());
}

TEST(CaptureContents, AllKeepsEachAllocationOnceAndAgainWhenItsAddressIsANewOne) {
  const CaptureFolder folder;
  ASSERT_EQ(folder
                .Capture("alloc b 64\nfill b 5 16\ncopy a b 64\nlaunch f 1,1,1 32,1,1 0 0 b:a+8 i:1\n"
                         "launch f 1,1,1 32,1,1 0 0 b:a i:2\n",
                         "--snapshot all")
                .exit_code,
            0);
  EXPECT_THAT(Contents(folder.Read()), ElementsAre(Kept{0, 0, 5}));
}

// Nothing may be copied while a graph is captured (the double refuses it); its buffers are read before each of its launches.
TEST(CaptureContents, GraphsAreSnapshotAtEachReplay) {
  const CaptureFolder folder;
  const std::string plan = folder.Write("plan", "0 k\n");
  const Outcome run = folder.Capture(
      "alloc b 64\nbegin 1\nlaunch f 1,1,1 32,1,1 0 1 b:a i:1\nlaunch f 1,1,1 32,1,1 0 1 b:a i:2\nend 1 g\n"
      "instantiate e g\nfill b 7 16\ncopy a b 64\ngraph e 1\nfill b 8 16\ncopy a b 64\ngraph e 1\n",
      "--snapshot index --plan " + plan);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, testing::Not(HasSubstr("could not be read")));
  EXPECT_THAT(Contents(folder.Read()), ElementsAre(Kept{0, 0, 7}, Kept{0, 2, 8}));
}

// The plan of a paged decode: lengths and block table, and not what is only written.
TEST(CaptureContents, PlanNamesTheBuffersThatSteer) {
  const CaptureFolder folder;
  const std::string trace = HEDDLE_SOURCE_DIR "/traces/paged_decode.sm_80.htrace";
  const Outcome run = Shell(kHeddle + "trace plan " + trace + " -o " + folder.Path("plan"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Result<trace::Trace> original = trace::ReadTrace(trace);
  ASSERT_TRUE(original.ok());
  const Result<trace::ResolvedTrace> resolved = trace::Resolve(*original, trace::TypicalDevice());
  ASSERT_TRUE(resolved.ok());
  std::set<std::string> named;
  std::istringstream plan(ReadFile(folder.Path("plan")));
  for (std::string line; std::getline(plan, line);) {
    if (line[0] == '#') continue;
    const size_t offset = std::stoul(line);
    uint64_t value = 0;
    std::memcpy(&value, resolved->launches[0].parameters.data() + offset, 8);
    for (const trace::ResolvedBuffer& buffer : resolved->buffers)
      if (value == buffer.address) named.insert(buffer.name);
  }
  EXPECT_THAT(named, ElementsAre("block_table", "lengths"));
}

// What a user does: a first capture, its plan, a second capture with the plan's buffers; a decode step takes kilobytes and runs as the original
// does. Keys and values, which no plan names, come to the device as model and cache do: by uploads that are not kept.
TEST(CaptureContents, APlannedDecodeStepTakesKilobytesAndRuns) {
  const Result<trace::Trace> original =
      trace::ReadTrace(HEDDLE_SOURCE_DIR "/traces/paged_decode.sm_80.htrace");
  ASSERT_TRUE(original.ok());
  const trace::Symbols small = {{"sequences", 2}, {"max_length", 256}, {"min_length", 64}};
  const Result<trace::ResolvedTrace> resolved = trace::Resolve(*original, trace::TypicalDevice(), small);
  ASSERT_TRUE(resolved.ok());
  const CaptureFolder folder;
  std::string script = ScriptOf(*original, *resolved, folder);
  // A kernel wrote the steering buffers: their contents come by a snapshot or not at all.
  for (size_t b = 0; b < resolved->buffers.size(); ++b) {
    const std::string name = "b" + std::to_string(b);
    if (resolved->buffers[b].name != "block_table" && resolved->buffers[b].name != "lengths") continue;
    const size_t at = script.find("upload " + name + " ");
    ASSERT_NE(at, std::string::npos);
    script.replace(at, 6, "poke");
  }
  const std::string heddle = HEDDLE_BINARY_DIR "/tools/heddle/heddle ";
  const auto with_code = [&](const std::string& name) {
    trace::Trace trace = folder.Read(name);
    trace.sass = original->sass;  // without a disassembler on this machine
    EXPECT_TRUE(trace::WriteTrace(trace, folder.Path(name)).ok());
  };
  const auto count = [&](const std::string& name, const std::string& define) {
    const std::string db = folder.Path(define.empty() ? "captured.db" : "original.db");
    const Outcome run =
        Shell(heddle + "run " + name + define + " -q --no-table -a a100_sxm4_80gb --db " + db);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return Shell(
               heddle + "db query " + db +
               " \"SELECT value FROM stat JOIN stat_def USING (stat_id) WHERE name = 'smsp_inst_executed'\"")
        .out;
  };
  const Outcome first = folder.CaptureRaw(script);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  with_code("out.htrace");
  const std::string plan = folder.Path("plan");
  ASSERT_EQ(Shell(heddle + "trace plan " + folder.Path("out.htrace") + " -o " + plan).exit_code, 0);
  // Without the plan's buffers it is not complete, and says so.
  const Outcome without =
      Shell(heddle + "run " + folder.Path("out.htrace") + " -a a100_sxm4_80gb --db " + folder.Path("w.db"));
  EXPECT_EQ(without.exit_code, 4);
  EXPECT_THAT(without.err, HasSubstr("the trace is not complete"));
  std::filesystem::remove(folder.Path("out.htrace"));
  const Outcome second = folder.CaptureRaw(script, "--snapshot index --plan " + plan);
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_LT(std::filesystem::file_size(folder.Path("out.htrace")), original->modules[0].cubin.size() + 16000);
  with_code("out.htrace");
  std::string defines;
  for (const auto& [name, value] : small) defines += " -d " + name + "=" + std::to_string(value);
  EXPECT_EQ(count(folder.Path("out.htrace"), ""),
            count(HEDDLE_SOURCE_DIR "/traces/paged_decode.sm_80.htrace", defines));
}

}  // namespace
}  // namespace heddle
