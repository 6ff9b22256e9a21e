#include "tools/replay/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "frontend/emulator/functional_runner.h"
#include "sim/isa/instruction.h"
#include "tools/replay/replay.h"

namespace heddle::replay {
namespace {

constexpr uint32_t kLanes = 32, kRecordWords = 33, kRecords = 64;
constexpr size_t kLogBytes = 8 * (1 + size_t{kRecordWords} * kRecords);  // of a launch
constexpr uint64_t kOfOut = uint64_t{1} << 63;
constexpr const char* kCountName = "smsp__sass_inst_executed@0x";

struct Access {
  uint32_t site = 0;
  uint64_t word = 0;  // as in the log: 1 + offset, and the buffer
  bool operator==(const Access&) const = default;
};
using Threads = std::array<std::vector<Access>, kLanes>;

uint64_t WordAt(std::span<const std::byte> bytes, size_t index) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + 8 * index, 8);
  return word;
}

Threads Decode(std::span<const std::byte> log) {
  Threads threads;
  const uint64_t records = std::min<uint64_t>(WordAt(log, 0), kRecords);
  for (uint64_t r = 0; r < records; ++r) {
    const size_t first = 1 + kRecordWords * r;
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const uint64_t word = WordAt(log, first + 1 + lane);
      if (word != 0) threads[lane].push_back({static_cast<uint32_t>(WordAt(log, first) & 0xff), word});
    }
  }
  return threads;
}

std::string Text(const std::vector<Access>& accesses, size_t index) {
  if (index >= accesses.size()) return "nothing";
  const Access& access = accesses[index];
  return fmt::format("{}+{} at place {}", (access.word & kOfOut) != 0 ? "out" : "in",
                     (access.word & ~kOfOut) - 1, access.site);
}

Result<size_t> BufferOf(const trace::ResolvedTrace& resolved, const std::string& name) {
  for (size_t i = 0; i < resolved.buffers.size(); ++i)
    if (resolved.buffers[i].name == name) return i;
  return Error{ExitCode::kTrace, "streams", fmt::format("the trace has no buffer '{}'", name),
               "build it from kernels/streams/streams.launch.textproto"};
}

// How many of the accesses in a launch's log no instruction of the thread made.
uint64_t StraysOf(std::span<const std::byte> log, const std::vector<std::byte>& parameters,
                  const std::array<std::set<uint64_t>, kLanes>& used) {
  const uint64_t in = WordAt(parameters, 0), out = WordAt(parameters, 1);
  const Threads threads = Decode(log);
  uint64_t strays = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    for (const Access& access : threads[lane])
      if (!used[lane].contains(((access.word & kOfOut) != 0 ? out : in) + (access.word & ~kOfOut) - 1))
        ++strays;
  return strays;
}

void CompareThreads(const Threads& measured, const Threads& executed, StreamComparison* row) {
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const auto &m = measured[lane], &e = executed[lane];
    row->measured_accesses += m.size();
    row->executed_accesses += e.size();
    if (m == e) continue;
    if (row->threads_that_differ++ != 0) continue;
    const size_t first =
        static_cast<size_t>(std::mismatch(m.begin(), m.end(), e.begin(), e.end()).first - m.begin());
    row->first_difference = fmt::format("thread {}, access {}: measured {}, executed {}", lane, first,
                                        Text(m, first), Text(e, first));
  }
}

// The counters of a launch are those of its single instructions, by their place.
void CompareCounts(const trace::Trace& counted, uint32_t launch, const std::vector<uint64_t>& executed,
                   StreamComparison* row) {
  std::vector<double> measured(executed.size(), 0);
  double elsewhere = 0;
  for (const trace::Counter& counter : counted.counters) {
    if (counter.launch != launch || !counter.name.starts_with(kCountName)) continue;
    row->is_counted = true;
    const uint64_t index =
        std::strtoull(counter.name.c_str() + std::strlen(kCountName), nullptr, 16) / isa::kInstructionBytes;
    (index < measured.size() ? measured[index] : elsewhere) += counter.value;
  }
  if (!row->is_counted) return;
  for (size_t i = 0; i < executed.size(); ++i) {
    const auto ours = static_cast<double>(executed[i]);
    row->measured_instructions += measured[i];
    row->executed_instructions += ours;
    if (measured[i] != ours) ++row->instructions_that_differ;
  }
  row->measured_instructions += elsewhere;
  if (elsewhere != 0) ++row->instructions_that_differ;
}

}  // namespace

Result<StreamMemory> ReadStreams(const std::string& folder, const trace::ResolvedTrace& resolved) {
  StreamMemory memory;
  for (const auto& [name, bytes] : {std::pair{"log", &memory.log}, {"out", &memory.out}}) {
    HEDDLE_ASSIGN_OR_RETURN(const size_t buffer, BufferOf(resolved, name));
    const std::string path = folder + "/" + name + ".bin";
    std::ifstream in(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    if (!in || text.size() != resolved.buffers[buffer].size_bytes)
      return Error{ExitCode::kTrace, path,
                   fmt::format("is no file of {} bytes", resolved.buffers[buffer].size_bytes),
                   "`heddle_measure --streams FOLDER` writes it, of the same trace"};
    bytes->resize(text.size());
    std::memcpy(bytes->data(), text.data(), text.size());
  }
  return memory;
}

Status WriteStreams(const StreamMemory& memory, const std::string& folder) {
  std::error_code ec;
  std::filesystem::create_directories(folder, ec);
  for (const auto& [name, bytes] : {std::pair{"log", &memory.log}, {"out", &memory.out}}) {
    const std::string path = folder + "/" + name + ".bin";
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes->data()), static_cast<std::streamsize>(bytes->size()));
    if (!out.flush()) return Error{ExitCode::kUsage, path, "cannot be written", "choose another folder"};
  }
  return Ok();
}

Result<ExecutedStreams> ExecuteStreams(const trace::Trace& trace, const config::Gpu& gpu) {
  Options options;
  options.mode = Mode::kFull;
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<Replay> replay, Replay::Open(trace, gpu, options));
  const trace::ResolvedTrace& resolved = replay->resolved();
  HEDDLE_ASSIGN_OR_RETURN(const size_t log, BufferOf(resolved, "log"));
  HEDDLE_ASSIGN_OR_RETURN(const size_t out, BufferOf(resolved, "out"));
  if (resolved.buffers[log].size_bytes != kLogBytes * resolved.launches.size())
    return Error{ExitCode::kTrace, trace.name, "its buffer 'log' has another size",
                 "build it from kernels/streams/streams.launch.textproto"};
  ExecutedStreams result;
  std::vector<std::array<std::set<uint64_t>, kLanes>> used(resolved.launches.size());
  for (uint32_t i = 0; i < replay->launch_count(); ++i) {
    if (resolved.launches[i].parameters.size() < 24)
      return Error{ExitCode::kTrace, trace.name, "its kernels take other parameters",
                   "build it from kernels/streams/streams.launch.textproto"};
    HEDDLE_ASSIGN_OR_RETURN(emulator::EmulatedLaunch * launch, replay->PrepareEmulated(i));
    std::vector<uint64_t>& counts = result.counts.emplace_back(launch->code().instructions.size(), 0);
    emulator::RunnerOptions runner;
    runner.observe = [&](const isa::InstructionRun& run, const isa::WarpStep& step) {
      for (uint32_t k = 0; k < run.count; ++k) ++counts[run.first + k];
      ++counts[step.index];
      if (step.kind != isa::StepKind::kMemory) return;
      for (uint32_t lane = 0; lane < kLanes; ++lane)
        if ((step.memory.lanes >> lane & 1) != 0) used[i][lane].insert(step.memory.address[lane]);
    };
    HEDDLE_RETURN_IF_ERROR(emulator::RunFunctionally(*launch, runner));
    replay->Close(i);
  }
  for (const auto& [buffer, bytes] : {std::pair{log, &result.memory.log}, {out, &result.memory.out}}) {
    bytes->resize(resolved.buffers[buffer].size_bytes);
    HEDDLE_RETURN_IF_ERROR(replay->memory().Read(resolved.buffers[buffer].address, *bytes));
  }
  for (size_t i = 0; i < resolved.launches.size(); ++i)
    result.strays.push_back(StraysOf(std::span(result.memory.log).subspan(i * kLogBytes, kLogBytes),
                                     resolved.launches[i].parameters, used[i]));
  return result;
}

Result<std::vector<StreamComparison>> CompareStreams(const trace::Trace& trace, const StreamMemory& measured,
                                                     const ExecutedStreams& executed,
                                                     const trace::Trace* counted) {
  const size_t launches = trace.launches.size();
  if (counted != nullptr && counted->launches.size() != launches)
    return Error{ExitCode::kTrace, counted->name,
                 fmt::format("has {} launches, the trace {}", counted->launches.size(), launches),
                 "capture `heddle_measure --streams` of the same trace with --sass-metrics"};
  if (measured.log.size() != executed.memory.log.size() || measured.out.size() != executed.memory.out.size())
    return Error{ExitCode::kTrace, trace.name, "was measured with other sizes", "measure it again"};
  const size_t out_bytes = measured.out.size() / std::max<size_t>(launches, 1);
  std::vector<StreamComparison> rows;
  for (uint32_t i = 0; i < launches; ++i) {
    StreamComparison& row = rows.emplace_back();
    row.kernel = trace.functions[trace.launches[i].function].name;
    row.strays = executed.strays[i];
    CompareThreads(Decode(std::span(measured.log).subspan(i * kLogBytes, kLogBytes)),
                   Decode(std::span(executed.memory.log).subspan(i * kLogBytes, kLogBytes)), &row);
    row.same_results = std::memcmp(measured.out.data() + i * out_bytes,
                                   executed.memory.out.data() + i * out_bytes, out_bytes) == 0;
    if (counted == nullptr) continue;
    if (counted->functions[counted->launches[i].function].name != row.kernel)
      return Error{ExitCode::kTrace, counted->name, fmt::format("its launch {} is another kernel", i),
                   "capture `heddle_measure --streams` of the same trace with --sass-metrics"};
    CompareCounts(*counted, i, executed.counts[i], &row);
  }
  return rows;
}

}  // namespace heddle::replay
