// Traces that Accel-Sim's tracer wrote, and made ones of its size: each imports without a fault and replays to its end.
//
// They lie in a folder HEDDLE_TRACEG_DIR, each in a folder of its own with a kernelslist.g; without it the tests are
// skipped. What lies under `synthetic` was made by a regular kernel and must become small.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "frontend/import/accel_sim.h"
#include "frontend/trace/htrace.h"
#include "sim/config/load.h"
#include "sim/gpu/gpu.h"
#include "tests/support/shell.h"
#include "tools/replay/replay.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;

constexpr double kMostBytes = 0.2;  // of a warp instruction of a regular kernel

std::vector<fs::path> Folders() {
  std::vector<fs::path> folders;
  const char* root = std::getenv("HEDDLE_TRACEG_DIR");
  if (root == nullptr || !fs::is_directory(root)) return folders;
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (entry.path().filename() == "kernelslist.g") folders.push_back(entry.path().parent_path());
  std::sort(folders.begin(), folders.end());
  return folders;
}

uint64_t Replay(const trace::Trace& trace, const config::Gpu& machine) {
  auto replay = replay::Replay::Open(trace, machine, {});
  EXPECT_TRUE(replay.ok()) << replay.error().ToString();
  uint64_t instructions = 0;
  for (uint32_t i = 0; i < (*replay)->launch_count(); ++i) {
    const auto program = (*replay)->Prepare(i);
    EXPECT_TRUE(program.ok()) << program.error().ToString();
    gpu::RunOptions options;
    options.threads = 2;
    gpu::Gpu gpu(machine, options);
    const gpu::LaunchRequest request{*program, trace.launches[i].name, 0, {}};
    const auto stats = gpu.Run({&request, 1});
    EXPECT_TRUE(stats.ok()) << stats.error().ToString();
    EXPECT_TRUE((*program)->Issues().empty());
    if (stats.ok()) instructions += stats->front().counters.smsp_inst_executed;
    (*replay)->Close(i);
  }
  return instructions;
}

TEST(RecordedTraces, AllImportAndReplay) {
  const std::vector<fs::path> folders = Folders();
  if (folders.empty()) GTEST_SKIP() << "HEDDLE_TRACEG_DIR names no folder with traces";
  const auto machine = config::LoadGpu("a100_sxm4_80gb");
  ASSERT_TRUE(machine.ok());
  for (const fs::path& folder : folders) {
    SCOPED_TRACE(folder.filename().string());
    const auto imported = importer::ImportAccelSim(folder.string(), {});
    ASSERT_TRUE(imported.ok()) << imported.error().ToString();
    const testing_support::TemporaryFolder own;
    const std::string file = own / "recorded_traces.htrace";
    ASSERT_TRUE(trace::WriteTrace(imported->trace, file).ok());
    const auto instructions = static_cast<double>(imported->warp_instructions);
    const auto bytes = static_cast<double>(fs::file_size(file));
    std::printf("  %-24s %10.0f warp instructions, %6.4f bytes each\n", folder.filename().c_str(),
                instructions, bytes / instructions);
    // A header of some kilobytes is no part of a rate.
    if (folder.parent_path().filename() == "synthetic" && instructions > 100'000) {
      EXPECT_LE(bytes / instructions, kMostBytes);
    }
    const auto trace = trace::ReadTrace(file);
    ASSERT_TRUE(trace.ok()) << trace.error().ToString();
    EXPECT_EQ(Replay(*trace, *machine), imported->warp_instructions);
  }
}

}  // namespace
}  // namespace heddle
