// Nsight Systems' SQLite exports. Only the tables that are named here are read: others hold the environment, the hosts and
// the command lines of whoever profiled.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "frontend/profile/readers.h"
#include "sim/sqlite/sqlite.h"

namespace heddle::profile {
namespace {

constexpr uint64_t kThreadBits = 0xffffff;  // globalTid without them is globalPid

constexpr const char* kKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr const char* kCalls = "CUPTI_ACTIVITY_KIND_RUNTIME";

class NsysReader {
 public:
  explicit NsysReader(sqlite::Database database) : database_(std::move(database)) {}

  Result<Profile> Read() {
    profile_.format = Format::kNsightSystems;
    profile_.protocol = "device times of CUPTI's activity records in a running process";
    HEDDLE_ASSIGN_OR_RETURN(columns_, Columns(kKernels));
    if (columns_.empty()) {
      return Malformed(database_.path(), fmt::format("has no table {}", kKernels),
                       "profile with `nsys profile --trace=cuda`, export with `nsys export --type sqlite`");
    }
    for (const char* needed : {"start", "end"}) {
      if (!columns_.contains(needed))
        return Malformed(database_.path(), fmt::format("{} has no column {}", kKernels, needed));
    }
    HEDDLE_RETURN_IF_ERROR(ReadProducer());
    HEDDLE_RETURN_IF_ERROR(ReadGpus());
    HEDDLE_RETURN_IF_ERROR(ReadNames());
    HEDDLE_RETURN_IF_ERROR(ReadCalls());
    HEDDLE_RETURN_IF_ERROR(ReadKernels());
    return std::move(profile_);
  }

 private:
  // Those of a table; none where it is missing or a view.
  Result<std::set<std::string>> Columns(const std::string& table) {
    std::set<std::string> names;
    HEDDLE_ASSIGN_OR_RETURN(
        sqlite::Statement is_table,
        database_.Prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ? AND sql NOT LIKE "
                          "'CREATE VIRTUAL%'"));
    HEDDLE_ASSIGN_OR_RETURN(const bool found, is_table.Bind(table).Step());
    if (!found) return names;
    HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement columns,
                            database_.Prepare(fmt::format("PRAGMA table_info({})", table)));
    while (true) {
      HEDDLE_ASSIGN_OR_RETURN(const bool more, columns.Step());
      if (!more) return names;
      names.insert(columns.Text(1));
    }
  }

  Status ReadProducer() {
    profile_.producer = "Nsight Systems";
    HEDDLE_ASSIGN_OR_RETURN(const std::set<std::string> columns, Columns("META_DATA_EXPORT"));
    if (!columns.contains("name") || !columns.contains("value")) return Ok();
    HEDDLE_ASSIGN_OR_RETURN(
        sqlite::Statement rows,
        database_.Prepare("SELECT name, value FROM META_DATA_EXPORT WHERE name IN ('EXPORT_PRODUCT_VERSION', "
                          "'EXPORT_SCHEMA_VERSION') ORDER BY name LIMIT 2"));
    while (true) {
      HEDDLE_ASSIGN_OR_RETURN(const bool more, rows.Step());
      if (!more) return Ok();
      profile_.producer += (rows.Text(0) == "EXPORT_SCHEMA_VERSION" ? ", schema " : " ") + rows.Text(1);
    }
  }

  // (process, CUDA's device number) -> name of the GPU.
  Status ReadGpus() {
    HEDDLE_ASSIGN_OR_RETURN(const std::set<std::string> gpus, Columns("TARGET_INFO_GPU"));
    if (!gpus.contains("id") || !gpus.contains("name")) return Ok();
    std::map<int64_t, std::string> by_id;
    HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement names,
                            database_.Prepare(fmt::format("SELECT id, name, {} FROM TARGET_INFO_GPU",
                                                          gpus.contains("cuDevice") ? "cuDevice" : "id")));
    while (true) {
      HEDDLE_ASSIGN_OR_RETURN(const bool more, names.Step());
      if (!more) break;
      by_id[names.Integer(0)] = names.Text(1);
      gpu_of_device_[names.IsNull(2) ? names.Integer(0) : names.Integer(2)] = names.Text(1);
    }
    HEDDLE_ASSIGN_OR_RETURN(const std::set<std::string> devices, Columns("TARGET_INFO_CUDA_DEVICE"));
    if (!devices.contains("gpuId") || !devices.contains("cudaId") || !devices.contains("pid")) return Ok();
    HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement rows,
                            database_.Prepare("SELECT pid, cudaId, gpuId FROM TARGET_INFO_CUDA_DEVICE"));
    while (true) {
      HEDDLE_ASSIGN_OR_RETURN(const bool more, rows.Step());
      if (!more) return Ok();
      if (const auto found = by_id.find(rows.Integer(2)); found != by_id.end()) {
        gpu_of_process_[{rows.Integer(0), rows.Integer(1)}] = found->second;
      }
    }
  }

  Status ReadNames() {
    HEDDLE_ASSIGN_OR_RETURN(const std::set<std::string> strings, Columns("StringIds"));
    std::string wanted;
    for (const char* column : {"demangledName", "shortName", "mangledName"}) {
      if (columns_.contains(column)) {
        wanted += fmt::format("{}SELECT {} FROM {}", wanted.empty() ? "" : " UNION ", column, kKernels);
      }
    }
    if (wanted.empty() || !strings.contains("id") || !strings.contains("value")) {
      return Malformed(database_.path(),
                       "has no names of kernels: StringIds, or the columns that refer to it, are missing");
    }
    HEDDLE_ASSIGN_OR_RETURN(has_calls_, HasCalls());
    if (has_calls_) wanted += fmt::format(" UNION SELECT nameId FROM {}", kCalls);
    HEDDLE_ASSIGN_OR_RETURN(
        sqlite::Statement rows,
        database_.Prepare(fmt::format("SELECT id, value FROM StringIds WHERE id IN ({})", wanted)));
    while (true) {
      HEDDLE_ASSIGN_OR_RETURN(const bool more, rows.Step());
      if (!more) return Ok();
      names_[rows.Integer(0)] = rows.Text(1);
    }
  }

  Result<bool> HasCalls() {
    HEDDLE_ASSIGN_OR_RETURN(const std::set<std::string> calls, Columns(kCalls));
    return columns_.contains("correlationId") && columns_.contains("globalPid") &&
           calls.contains("correlationId") && calls.contains("globalTid") && calls.contains("nameId");
  }

  Status ReadCalls() {
    if (!has_calls_) return Ok();
    HEDDLE_ASSIGN_OR_RETURN(
        sqlite::Statement rows,
        database_.Prepare(
            fmt::format("SELECT correlationId, globalTid, nameId FROM {} WHERE correlationId IN (SELECT "
                        "correlationId FROM {})",
                        kCalls, kKernels)));
    while (true) {
      HEDDLE_ASSIGN_OR_RETURN(const bool more, rows.Step());
      if (!more) return Ok();
      const uint64_t process = static_cast<uint64_t>(rows.Integer(1)) & ~kThreadBits;
      calls_[{rows.Integer(0), process}] = rows.Integer(2);
      correlations_.insert(rows.Integer(0));
    }
  }

  Status ReadKernels() {
    constexpr const char* kColumns[] = {"start",
                                        "end",
                                        "demangledName",
                                        "shortName",
                                        "mangledName",
                                        "gridX",
                                        "gridY",
                                        "gridZ",
                                        "blockX",
                                        "blockY",
                                        "blockZ",
                                        "clusterX",
                                        "clusterY",
                                        "clusterZ",
                                        "registersPerThread",
                                        "staticSharedMemory",
                                        "dynamicSharedMemory",
                                        "deviceId",
                                        "contextId",
                                        "streamId",
                                        "correlationId",
                                        "globalPid",
                                        "graphNodeId"};
    std::string list;
    for (const char* column : kColumns) {
      list += fmt::format("{}{}", list.empty() ? "" : ", ", columns_.contains(column) ? column : "NULL");
    }
    HEDDLE_ASSIGN_OR_RETURN(
        sqlite::Statement rows,
        database_.Prepare(fmt::format("SELECT {} FROM {} ORDER BY start, rowid", list, kKernels)));
    while (true) {
      Result<bool> more = rows.Step();
      if (!more.ok())
        return Malformed(RowPlace(), more.error().message, "export it anew; the file may be cut short");
      if (!*more) break;
      HEDDLE_RETURN_IF_ERROR(ReadKernel(rows));
    }
    if (profile_.launches.empty()) return Malformed(database_.path(), "has no kernels");
    return Ok();
  }

  std::string RowPlace() const {
    return fmt::format("{}: {}, row {} by start", database_.path(), kKernels, profile_.launches.size() + 1);
  }

  static std::optional<uint64_t> Count(const sqlite::Statement& row, int column) {
    if (!row.IsInteger(column) || row.Integer(column) < 0) return std::nullopt;
    return static_cast<uint64_t>(row.Integer(column));
  }

  static std::optional<Dim3> Shape(const sqlite::Statement& row, int column) {
    Dim3 shape;
    for (const auto& [member, at] : {std::pair{&Dim3::x, 0}, {&Dim3::y, 1}, {&Dim3::z, 2}}) {
      const std::optional<uint64_t> size = Count(row, column + at);
      if (!size || *size == 0 || *size > 0xffffffff) return std::nullopt;
      shape.*member = static_cast<uint32_t>(*size);
    }
    return shape;
  }

  Status ReadKernel(const sqlite::Statement& row) {
    if (!row.IsInteger(0) || !row.IsInteger(1)) return Malformed(RowPlace(), "start or end is no integer");
    const int64_t start = row.Integer(0), end = row.Integer(1);
    if (end < start)
      return Malformed(RowPlace(), fmt::format("ends at {} ns, before its start at {}", end, start));
    if (start < 0 || end - start > int64_t{1'000'000'000'000'000})
      return Malformed(RowPlace(), "start and end are no times");
    Launch launch;
    for (const int column : {2, 3, 4}) {
      const auto found = row.IsInteger(column) ? names_.find(row.Integer(column)) : names_.end();
      if (found == names_.end() || found->second.empty()) continue;
      if (launch.kernel.empty()) launch.kernel = found->second;
      if (column == 4) launch.mangled_name = found->second;
    }
    if (launch.kernel.empty()) return Malformed(RowPlace(), "its name is not in StringIds");
    launch.grid = Shape(row, 5);
    launch.block = Shape(row, 8);
    launch.cluster = Shape(row, 11);  // zeros mean none
    launch.registers_per_thread = Count(row, 14);
    launch.static_shared_bytes = Count(row, 15);
    launch.dynamic_shared_bytes = Count(row, 16);
    launch.device = Count(row, 17);
    launch.context = Count(row, 18);
    launch.stream = Count(row, 19);
    launch.correlation = Count(row, 20);
    launch.process = Count(row, 21);
    launch.graph_node = Count(row, 22);
    NameGpu(&launch);
    JoinCall(&launch);
    if (start == 0 && end == 0) {
      ++profile_.notes["kernels without a time"];
    } else {
      launch.start_ns = start;
      AddMetric(&launch, "duration_ps", "ps", static_cast<double>(end - start) * 1e3);
    }
    profile_.launches.push_back(std::move(launch));
    return Ok();
  }

  void NameGpu(Launch* launch) const {
    if (!launch->device) return;
    const auto device = static_cast<int64_t>(*launch->device);
    if (launch->process) {
      const auto pid = static_cast<int64_t>((*launch->process >> 24) & 0xffffff);
      if (const auto found = gpu_of_process_.find({pid, device}); found != gpu_of_process_.end()) {
        launch->gpu = found->second;
        return;
      }
    }
    if (const auto found = gpu_of_device_.find(device); found != gpu_of_device_.end())
      launch->gpu = found->second;
  }

  void JoinCall(Launch* launch) {
    if (!has_calls_ || !launch->correlation || !launch->process) return;
    const auto correlation = static_cast<int64_t>(*launch->correlation);
    if (const auto found = calls_.find({correlation, *launch->process}); found != calls_.end()) {
      const auto name = names_.find(found->second);
      launch->launch_call = name == names_.end() ? "" : name->second;
    } else if (correlations_.contains(correlation)) {
      ++profile_.notes["kernels whose correlation only another process's call has"];
    } else {
      ++profile_.notes["kernels whose launch call is outside the profile"];
    }
  }

  sqlite::Database database_;
  Profile profile_;
  std::set<std::string> columns_;  // of the kernels' table
  bool has_calls_ = false;
  std::unordered_map<int64_t, std::string> names_;
  std::map<int64_t, std::string> gpu_of_device_;
  std::map<std::pair<int64_t, int64_t>, std::string> gpu_of_process_;
  std::map<std::pair<int64_t, uint64_t>, int64_t> calls_;  // (correlation, process) -> name
  std::set<int64_t> correlations_;
};

}  // namespace

Result<Profile> ReadNsightSystems(const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Database database,
                          sqlite::Database::Open(path, sqlite::Database::Mode::kImmutable));
  return NsysReader(std::move(database)).Read();
}

}  // namespace heddle::profile
