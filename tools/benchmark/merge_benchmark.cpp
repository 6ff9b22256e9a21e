// How long `heddle db merge` takes: writes databases through the results writer, merges them and says time and memory.
//
//   heddle_merge_benchmark FOLDER [DATABASES [ROWS]]     1000 databases with 10 million rows of table stat by default
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "sim/results/results.h"

namespace heddle {
namespace {

constexpr uint32_t kConfigs = 50;
constexpr uint32_t kKernels = 20;
constexpr uint32_t kInstructions = 60;

struct Shape {
  uint32_t databases = 1000;
  uint64_t rows = 10'000'000;
};

Status AddLaunch(results::Writer* writer, uint32_t number) {
  isa::KernelCode code;
  code.name = fmt::format("kernel_{}", number % kKernels);
  code.instructions.resize(kInstructions);
  for (uint32_t i = 0; i < kInstructions; ++i) code.instructions[i].pc = i * isa::kInstructionBytes;
  isa::LaunchShape shape;
  shape.grid = {number, 1, 1};
  stats::LaunchStats stats;
  stats.end_cycle = 1000 + number;
  for (const stats::CounterDef& def : stats::CounterDefs()) stats.counters.*def.member = number;
  stats.per_pc.resize(kInstructions);
  for (stats::PcStats& pc : stats.per_pc) pc.issued = 1;
  const uint32_t config = number % kConfigs;
  const results::ConfigRecord machine{fmt::format("config{}", config), "machine", "text", 1, 1, 1, 1, 1};
  results::LaunchRecord record;
  record.trace_digest = "trace";
  record.ordinal = number;
  return writer->AddLaunch(record, machine, code, shape, stats, {});
}

Result<std::vector<std::string>> Write(const std::string& folder, const Shape& shape) {
  const uint64_t per_launch = stats::CounterDefs().size();
  const auto launches = static_cast<uint32_t>((shape.rows + per_launch - 1) / per_launch);
  std::vector<std::string> files;
  for (uint32_t i = 0; i < shape.databases; ++i) {
    files.push_back(fmt::format("{}/{:05}.db", folder, i));
    if (std::filesystem::exists(files.back())) continue;
    HEDDLE_ASSIGN_OR_RETURN(results::Writer writer, results::Writer::Open(files.back()));
    HEDDLE_RETURN_IF_ERROR(
        writer.database().Execute("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY;"));
    HEDDLE_RETURN_IF_ERROR(writer.BeginRun({"benchmark", "0", "0"}));
    for (uint32_t launch = i; launch < launches; launch += shape.databases)
      HEDDLE_RETURN_IF_ERROR(AddLaunch(&writer, launch));
    HEDDLE_RETURN_IF_ERROR(writer.Finish());
  }
  return files;
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Status Run(const std::string& folder, const Shape& shape) {
  std::filesystem::create_directories(folder);
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> files, Write(folder, shape));
  const std::string target = folder + "/merged.db";
  std::filesystem::remove(target);
  const double cpu = CpuSeconds();
  const auto start = std::chrono::steady_clock::now();
  HEDDLE_RETURN_IF_ERROR(results::Merge(target, files));
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Database merged, results::OpenForReading(target));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t rows, merged.QueryInteger("SELECT COUNT(*) FROM stat"));
  fmt::print("{} databases, {} rows of stat: {:.1f} s ({:.1f} s of CPU), {} MiB at most\n", files.size(),
             rows, wall.count(), CpuSeconds() - cpu, usage.ru_maxrss / 1024);
  return Ok();
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  if (argc < 2) return static_cast<int>(heddle::ExitCode::kUsage);
  heddle::Shape shape;
  if (argc > 2) shape.databases = static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10));
  if (argc > 3) shape.rows = std::strtoull(argv[3], nullptr, 10);
  const heddle::Status status = heddle::Run(argv[1], shape);
  if (!status.ok()) fmt::print(stderr, "{}\n", status.error().ToString());
  return status.ok() ? 0 : static_cast<int>(status.error().code);
}
