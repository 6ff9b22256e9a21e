#include "tools/compare/hardware_import.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "frontend/capture/pc_counter.h"
#include "frontend/profile/profile.h"
#include "frontend/profile/units.h"
#include "frontend/sass/cubin.h"
#include "frontend/trace/htrace.h"
#include "sim/base/digest.h"
#include "sim/results/measurements.h"
#include "sim/sqlite/sqlite.h"

namespace heddle::compare {
namespace {

struct Read {
  ImportedFile file;
  std::string source;
  std::vector<results::HardwareRecord> records;
  bool is_database = false;  // its rows are merged as they are
};

// SHA-256 of a file, mapped: exports of long runs are larger than what one wants to copy.
Result<std::string> FileDigest(const std::string& path) {
  const Error error{ExitCode::kTrace, path, "cannot be read", "give a file that exists and can be read"};
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return error;
  struct stat status {};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(file);
    return error;
  }
  const auto size = static_cast<size_t>(status.st_size);
  void* bytes = size == 0 ? nullptr : mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (bytes == MAP_FAILED) return error;
  std::string digest = Sha256Hex(std::span(static_cast<const std::byte*>(bytes), size));
  if (bytes != nullptr) munmap(bytes, size);
  return digest;
}

// PRAGMA application_id, which stands in the header; 0 for files that are no SQLite databases.
int32_t ApplicationId(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  unsigned char header[72] = {};
  in.read(reinterpret_cast<char*>(header), sizeof header);
  if (in.gcount() != sizeof header ||
      std::string_view(reinterpret_cast<char*>(header), 15) != "SQLite format 3")
    return 0;
  return static_cast<int32_t>(uint32_t{header[68]} << 24 | uint32_t{header[69]} << 16 |
                              uint32_t{header[70]} << 8 | header[71]);
}

results::HardwareRecord ToRecord(profile::Launch launch, const profile::Profile& profile,
                                 const std::string& source, const std::string& gpu) {
  results::HardwareRecord record;
  record.gpu = !launch.gpu.empty() ? launch.gpu : gpu.empty() ? "unknown" : gpu;
  record.kernel_name = std::move(launch.kernel);
  record.source = source;
  record.protocol = fmt::format("{}; {}{}", profile.producer, profile.protocol,
                                profile.time_resolution_ns == 1 ? "" : "; whole microseconds");
  for (profile::Metric& metric : launch.metrics) {
    record.metrics.push_back({std::move(metric.name), std::move(metric.unit), metric.value});
  }
  results::HardwareLaunch& row = record.launch.emplace();
  row.mangled_name = std::move(launch.mangled_name);
  row.grid = launch.grid;
  row.block = launch.block;
  row.cluster = launch.cluster;
  row.registers_per_thread = launch.registers_per_thread;
  row.static_shared_bytes = launch.static_shared_bytes;
  row.dynamic_shared_bytes = launch.dynamic_shared_bytes;
  row.device = launch.device;
  row.context = launch.context;
  row.stream = launch.stream;
  row.process = launch.process;
  row.correlation = launch.correlation;
  row.graph_node = launch.graph_node;
  row.launch_call = std::move(launch.launch_call);
  row.start_ns = launch.start_ns;
  row.time_resolution_ns = profile.time_resolution_ns;
  return record;
}

Status ReadProfileFile(const std::string& gpu, Read* read) {
  HEDDLE_ASSIGN_OR_RETURN(profile::Profile profile, profile::ReadProfile(read->file.path));
  read->file.producer = profile.producer;
  read->file.notes = profile.notes;
  read->file.time_resolution_ns = profile.time_resolution_ns;
  for (profile::Launch& launch : profile.launches) {
    read->records.push_back(ToRecord(std::move(launch), profile, read->source, gpu));
  }
  return Ok();
}

// Which code a function of a trace is, and where its kernel begins in it.
struct Code {
  std::string digest;  // empty: the module is recorded, or its cubin cannot be read
  uint64_t entry = 0;
};

Code CodeOf(const trace::Trace& trace, uint32_t function) {
  const trace::Module& module = trace.modules[trace.functions[function].module];
  const std::string& name = trace.functions[function].name;
  const auto cubin = sass::ReadCubin(module.cubin, module.name);
  const sass::CubinKernel* kernel = cubin.ok() ? cubin->FindKernel(name) : nullptr;
  if (kernel == nullptr) return {};
  return {results::KernelDigest(name, kernel->code), kernel->entry_offset};
}

// Counters of a capture's further runs, in base units. A time that was taken while counters were collected keeps CUPTI's name: it is
// no time of the launch. Of two that heddle counts under one name the first is taken, and the other keeps its own. Those of single
// instructions are counts, or samples, and need to know of which code.
void AddCounters(const std::vector<const trace::Counter*>& counters, const Code& code,
                 results::HardwareRecord* record) {
  std::set<std::string> taken;
  std::set<std::pair<uint64_t, std::string>> taken_pcs;
  for (const auto& metric : record->metrics) taken.insert(metric.name);
  for (const trace::Counter* counter : counters) {
    if (const auto of_pc = capture::SplitPcCounter(counter->name)) {
      const uint64_t pc = code.entry + of_pc->pc;
      std::string name = profile::MetricName(of_pc->name);
      if (!code.digest.empty() && taken_pcs.emplace(pc, name).second)
        record->pc_metrics.push_back({pc, std::move(name), counter->value});
      continue;
    }
    const profile::BaseUnit unit = profile::ToBaseUnit(counter->unit);
    std::string name = profile::MetricName(counter->name);
    if (name == "duration_ps" || taken.contains(name)) name = counter->name;
    if (taken.insert(name).second) record->metrics.push_back({name, unit.unit, counter->value * unit.factor});
  }
}

// A trace of a real process: its launches have start, end and counters.
Status ReadTraceFile(const std::string& gpu, Read* read) {
  std::string digest;
  HEDDLE_ASSIGN_OR_RETURN(const trace::Trace trace, trace::ReadTrace(read->file.path, &digest));
  read->file.producer = "heddle trace";
  std::map<uint32_t, Code> codes;  // by function, of those whose launches have counters
  std::map<uint32_t, std::vector<const trace::Counter*>> counters;
  for (const trace::Counter& counter : trace.counters) counters[counter.launch].push_back(&counter);
  for (uint32_t i = 0; i < trace.launches.size(); ++i) {
    const trace::Launch& launch = trace.launches[i];
    const bool has_time = launch.measured_start_ns >= 0 && launch.measured_end_ns >= launch.measured_start_ns;
    if (!has_time && !counters.contains(i)) {
      ++read->file.notes["launches without a measurement"];
      continue;
    }
    results::HardwareRecord record;
    record.gpu = !trace.device.name.empty() ? trace.device.name : gpu.empty() ? "unknown" : gpu;
    record.kernel_name = trace.functions[launch.function].name;
    record.source = read->source;
    record.protocol = "heddle capture; device times of CUPTI's activity records in a running process";
    if (has_time) {
      const double duration = static_cast<double>(launch.measured_end_ns - launch.measured_start_ns) * 1e3;
      record.metrics.push_back({"duration_ps", "ps", duration});
    }
    if (const auto found = counters.find(i); found != counters.end()) {
      const auto [code, is_new] = codes.try_emplace(launch.function);
      if (is_new) code->second = CodeOf(trace, launch.function);
      AddCounters(found->second, code->second, &record);
      if (!record.pc_metrics.empty()) record.kernel_digest = code->second.digest;
    }
    results::HardwareLaunch& row = record.launch.emplace();
    row.mangled_name = record.kernel_name;
    const auto shape = [](const std::array<trace::Expr, 3>& sizes) -> std::optional<Dim3> {
      for (const trace::Expr& size : sizes)
        if (!size.text.empty() || size.value <= 0 || size.value > 0xffffffff) return std::nullopt;
      return Dim3{static_cast<uint32_t>(sizes[0].value), static_cast<uint32_t>(sizes[1].value),
                  static_cast<uint32_t>(sizes[2].value)};
    };
    row.grid = shape(launch.grid);
    row.block = shape(launch.block);
    row.cluster = shape(launch.cluster);
    row.stream = launch.stream;
    if (has_time) row.start_ns = launch.measured_start_ns;
    row.trace_digest = digest;
    row.trace_ordinal = i;
    read->records.push_back(std::move(record));
  }
  if (!read->records.empty()) return Ok();
  return Error{ExitCode::kTrace, read->file.path, "is a trace without measured times or counters",
               "capture it on a GPU with `heddle capture`"};
}

Result<Read> ReadOne(const std::string& path, const std::string& gpu) {
  Read read;
  read.file.path = path;
  HEDDLE_ASSIGN_OR_RETURN(const std::string digest, FileDigest(path));
  // The name without its folder, which may say whose machine it was.
  read.source = fmt::format("{} ({})", std::filesystem::path(path).filename().string(), digest.substr(0, 12));
  const int32_t application = ApplicationId(path);
  if (application == results::kApplicationId) {
    HEDDLE_ASSIGN_OR_RETURN(sqlite::Database database, results::OpenForReading(path));
    HEDDLE_ASSIGN_OR_RETURN(const int64_t rows, database.QueryInteger("SELECT COUNT(*) FROM hardware_run"));
    if (rows == 0)
      return Error{ExitCode::kTrace, path, "has no measurements", "give a database of tools/measure-gpu"};
    read.is_database = true;
    read.file.producer = "heddle database";
    read.file.launches = static_cast<size_t>(rows);
    return read;
  }
  HEDDLE_RETURN_IF_ERROR(application == trace::kApplicationId ? ReadTraceFile(gpu, &read)
                                                              : ReadProfileFile(gpu, &read));
  std::set<std::string_view> kernels;
  for (const results::HardwareRecord& record : read.records) {
    kernels.insert(record.kernel_name);
    if (!record.launch->launch_call.empty()) ++read.file.with_call;
    for (const auto& metric : record.metrics)
      if (metric.name == "duration_ps") read.file.total_ps += metric.value;
  }
  read.file.launches = read.records.size();
  read.file.kernels = kernels.size();
  return read;
}

}  // namespace

Result<std::vector<ImportedFile>> ImportHardware(const std::vector<std::string>& files,
                                                 const std::string& database, const ImportOptions& options) {
  std::vector<Read> reads;
  for (const std::string& file : files) {
    HEDDLE_ASSIGN_OR_RETURN(Read read, ReadOne(file, options.gpu));
    reads.push_back(std::move(read));
  }
  HEDDLE_ASSIGN_OR_RETURN(results::Writer writer, results::Writer::Open(database));
  const auto write = [&]() -> Status {
    HEDDLE_RETURN_IF_ERROR(writer.BeginRun(options.manifest));
    for (const Read& read : reads) {
      HEDDLE_RETURN_IF_ERROR(read.is_database ? results::MergeMeasurements(&writer, read.file.path)
                                              : writer.ReplaceProfile(read.source, read.records));
    }
    return writer.Finish();
  };
  if (const Status status = write(); !status.ok()) {
    writer.Abandon();
    return status.error();
  }
  std::vector<ImportedFile> imported;
  for (Read& read : reads) imported.push_back(std::move(read.file));
  return imported;
}

}  // namespace heddle::compare
