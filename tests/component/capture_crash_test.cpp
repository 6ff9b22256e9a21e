// Processes that are killed: what the records hold is what ran, from the first launch on, but for an unflushed tail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "frontend/capture/assemble.h"
#include "tests/support/capture_run.h"
#include "tools/toolchain/toolchain.h"

namespace heddle {
namespace {

using testing_support::CaptureFolder;
using testing_support::Outcome;
using testing_support::Parameter;
using testing_support::ReadFile;
using testing_support::Shell;

constexpr int kLaunches = 400;

trace::Toolchain WithoutDecoding() {
  trace::Toolchain toolchain = toolchain::Default();
  toolchain.decode = nullptr;
  return toolchain;
}

std::string NumberedLaunches(const std::string& between) {
  std::string script;
  for (int i = 0; i < kLaunches; ++i) {
    script += "launch f 1,1,1 32,1,1 0 0 b:a i:" + std::to_string(i) + "\n";
    std::istringstream lines(between);
    for (std::string line; std::getline(lines, line);)
      script += line + (line == "say" ? " " + std::to_string(i) : "") + "\n";
  }
  return script;
}

// Whether its launches are 0, 1, 2, ...
void ExpectPrefix(const trace::Trace& trace) {
  for (size_t i = 0; i < trace.launches.size(); ++i)
    ASSERT_EQ(Parameter(trace.launches[i], 8, 4), i) << trace.launches.size();
}

// Other numbers with --gtest_random_seed.
std::mt19937 Random(uint32_t of_test) {
  return std::mt19937(static_cast<uint32_t>(testing::UnitTest::GetInstance()->random_seed()) + of_test);
}

struct Said {
  size_t launches = 0;  // that it began
  size_t due = 0;       // that its records must have
};

// What was launched more than a second before the last is due: it is flushed every 250 ms, and the rest is for a machine that is busy with
// other things.
Said Heard(const std::string& out) {
  std::vector<int64_t> times;
  std::istringstream lines(out);
  for (int64_t i = 0, at = 0; lines >> i >> at;) times.push_back(at);
  Said said{times.size(), 0};
  while (said.due < times.size() && times[said.due] + 1000 < times.back()) ++said.due;
  return said;
}

void ExpectWhatIsDue(const CaptureFolder& folder, const Said& said, const std::string& point) {
  if (said.due == 0 && !std::filesystem::exists(folder.Path("out.htrace"))) return;
  const trace::Trace trace = folder.Read();
  EXPECT_GE(trace.launches.size(), said.due) << point;
  EXPECT_LE(trace.launches.size(), said.launches + 1) << point;
  ExpectPrefix(trace);
}

void KillAfter(const std::string& seconds) {
  const CaptureFolder folder;
  const Outcome run =
      folder.Capture(NumberedLaunches("say\nsleep 4\n"), "", "", "timeout -s KILL " + seconds);
  if (run.out.empty()) return;  // killed before it began
  const Said said = Heard(run.out);
  ASSERT_GT(said.launches, 0u);
  ASSERT_LT(said.launches, size_t{kLaunches}) << "it was not killed";
  ExpectWhatIsDue(folder, said, seconds);
}

// Killed from outside at random moments.
TEST(CaptureCrash, AProcessThatIsKilledLosesItsTailAlone) {
  std::mt19937 random = Random(1);
  constexpr int kPoints = 24, kAtOnce = 6;
  for (int point = 0; point < kPoints; point += kAtOnce) {
    std::vector<std::thread> together;
    for (int i = point; i < point + kAtOnce; ++i)
      together.emplace_back(KillAfter,
                            std::to_string(0.1 + 0.06 * i + static_cast<double>(random() % 60) / 1000));
    for (std::thread& each : together) each.join();
  }
}

// As on a full disk: recording ends, what was written is there, and the program does not notice.
TEST(CaptureCrash, AFileThatCannotGrowEndsTheRecordsAndNotTheProgram) {
  std::mt19937 random = Random(3);
  const std::string script = NumberedLaunches("say\nsleep 3\n");
  std::mutex lock;
  std::set<size_t> found;
  const auto limited_to = [&](uint32_t bytes) {
    const CaptureFolder folder;
    const Outcome run = folder.Capture(script, "", "", "prlimit --core=0 --fsize=" + std::to_string(bytes));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(Heard(run.out).launches, size_t{kLaunches}) << "it ran to its end";
    EXPECT_THAT(run.err, testing::HasSubstr("the record file cannot be written (File too large)"));
    const trace::Trace trace = folder.Read();
    ExpectPrefix(trace);
    EXPECT_LT(trace.launches.size(), size_t{kLaunches});
    const std::lock_guard<std::mutex> guard(lock);
    found.insert(trace.launches.size());
  };
  std::vector<std::thread> together;
  for (uint32_t i = 0; i < 6; ++i)
    together.emplace_back(limited_to, static_cast<uint32_t>(8000 + 1200 * i + random() % 1200));
  for (std::thread& each : together) each.join();
  EXPECT_GE(found.size(), 2u) << "each keeps what was written before";
}

// Cut at any byte, as a full disk or a power failure might: the frames before it are the trace.
TEST(CaptureCrash, RecordsThatEndAnywhereGiveWhatIsBeforeTheirEnd) {
  const CaptureFolder folder;
  std::string script;
  for (int part = 0; part < 4; ++part) {  // several frames
    for (int i = 0; i < 50; ++i)
      script += "launch f 1,1,1 32,1,1 0 0 b:a i:" + std::to_string(50 * part + i) + "\n";
    script += "sleep 300\n";
  }
  ASSERT_EQ(folder.Capture(script, "--keep-records").exit_code, 0);
  std::filesystem::path process;
  for (const auto& entry : std::filesystem::directory_iterator(folder.Path("out.htrace.records")))
    process = entry.path();
  const std::string records = ReadFile((process / "records").string());
  std::mt19937 random = Random(2);
  uint32_t first_frame = 0;
  std::memcpy(&first_frame, records.data() + 8, sizeof first_frame);  // its length, behind the file's mark
  first_frame += 16;
  std::set<size_t> found;
  for (int attempt = 0; attempt < 150; ++attempt) {
    const size_t end = attempt == 0 ? records.size() : random() % records.size();
    std::ofstream(process / "records", std::ios::binary | std::ios::trunc)
        .write(records.data(), static_cast<std::streamsize>(end));
    const Result<capture::Captured> captured = capture::AssembleTrace(process.string(), WithoutDecoding());
    if (!captured.ok()) {
      EXPECT_LT(end, first_frame) << captured.error().ToString();
      continue;
    }
    ExpectPrefix(captured->trace);
    EXPECT_EQ(captured->complete, end == records.size());
    found.insert(captured->trace.launches.size());
  }
  EXPECT_EQ(*found.rbegin(), 200u);
  EXPECT_GE(found.size(), 4u) << "a cut costs the frame that it is in, not all";
}

// A byte that changed on the disk ends the records where it is; nothing wrong comes out.
TEST(CaptureCrash, ABrokenByteIsFound) {
  const CaptureFolder folder;
  ASSERT_EQ(folder.Capture("parallel 1 300 f 1,1,1 32,1,1 0 1 b:a i:6\n", "--keep-records").exit_code, 0);
  std::filesystem::path process;
  for (const auto& entry : std::filesystem::directory_iterator(folder.Path("out.htrace.records")))
    process = entry.path();
  const std::string records = ReadFile((process / "records").string());
  std::mt19937 random(3);
  for (int attempt = 0; attempt < 60; ++attempt) {
    std::string broken = records;
    broken[random() % broken.size()] ^= static_cast<char>(1u << random() % 8);
    std::ofstream(process / "records", std::ios::binary | std::ios::trunc) << broken;
    const Result<capture::Captured> captured = capture::AssembleTrace(process.string(), WithoutDecoding());
    if (!captured.ok()) continue;
    EXPECT_FALSE(captured->complete);
    for (const trace::Launch& launch : captured->trace.launches) ASSERT_EQ(Parameter(launch, 8, 4), 6u);
  }
}

}  // namespace
}  // namespace heddle
