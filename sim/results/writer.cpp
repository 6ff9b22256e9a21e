#include <fmt/format.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <optional>

#include "sim/base/digest.h"
#include "sim/results/results.h"
#include "sim/results/schema.h"

namespace heddle::results {

namespace fs = std::filesystem;

const char* const kModelVersion = "6";

namespace {

std::string NowUtc() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

Error FileError(const std::string& path, const std::string& what, const std::error_code& code) {
  return {ExitCode::kUsage, path, fmt::format("{}: {}", what, code.message()),
          "choose another --db, or free some space"};
}

// The id of the row that `select` finds with `key`, if any.
Result<std::optional<int64_t>> FindId(sqlite::Database* database, std::string_view select,
                                      const std::string& key) {
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement statement, database->Prepare(select));
  HEDDLE_ASSIGN_OR_RETURN(const bool found, statement.Bind(key).Step());
  if (!found) return std::optional<int64_t>();
  return std::optional<int64_t>(statement.Integer(0));
}

}  // namespace

std::string LaunchKey(const LaunchRecord& record, const std::string& config_digest) {
  return Sha256Hex(fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", kModelVersion, record.trace_digest,
                               record.ordinal, config_digest, record.mode, record.cache_policy,
                               record.dependence, record.grid_frozen, record.options));
}

Result<Writer> Writer::Open(const std::string& path) {
  const std::string partial = path + ".partial";
  std::error_code code;
  if (!fs::exists(partial, code) && fs::exists(path, code)) {
    // Refused before it is copied: it may be any file.
    HEDDLE_ASSIGN_OR_RETURN(const sqlite::Database check, OpenForReading(path));
    fs::copy_file(path, partial, code);
    if (code) return FileError(partial, "cannot be written", code);
  }
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Database database,
                          sqlite::Database::Open(partial, sqlite::Database::Mode::kCreate));
  HEDDLE_RETURN_IF_ERROR(PrepareSchema(&database));
  Writer writer(std::move(database));
  writer.path_ = path;
  return writer;
}

Status Writer::BeginRun(const RunManifest& manifest) {
  HEDDLE_ASSIGN_OR_RETURN(
      sqlite::Statement statement,
      database_.Prepare("INSERT INTO run (command, heddle_version, build, started_at) VALUES (?, ?, ?, ?)"));
  HEDDLE_RETURN_IF_ERROR(statement.Bind(manifest.command)
                             .Bind(manifest.heddle_version)
                             .Bind(manifest.build)
                             .Bind(NowUtc())
                             .Run());
  run_id_ = database_.LastInsertId();
  return Ok();
}

Result<bool> Writer::HasLaunch(const std::string& key) {
  HEDDLE_ASSIGN_OR_RETURN(const std::optional<int64_t> id,
                          FindId(&database_, "SELECT launch_id FROM launch WHERE key = ?", key));
  return id.has_value();
}

Result<int64_t> Writer::ConfigId(const ConfigRecord& config) {
  HEDDLE_ASSIGN_OR_RETURN(const std::optional<int64_t> id,
                          FindId(&database_, "SELECT config_id FROM config WHERE digest = ?", config.digest));
  if (id) return *id;
  HEDDLE_ASSIGN_OR_RETURN(
      sqlite::Statement statement,
      database_.Prepare("INSERT INTO config (digest, name, sm_count, sm_clock_hz, "
                        "dram_bytes_per_second, tensor_ops_per_second, fma_ops_per_second, text) "
                        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
  statement.Bind(config.digest).Bind(config.name).Bind(config.sm_count).Bind(config.sm_clock_hz);
  statement.Bind(config.dram_bytes_per_second).Bind(config.tensor_ops_per_second);
  HEDDLE_RETURN_IF_ERROR(statement.Bind(config.fma_ops_per_second).Bind(config.text).Run());
  return database_.LastInsertId();
}

std::string KernelDigest(std::string_view name, std::span<const std::byte> code) {
  std::string identity = std::string(name) + '\n';
  identity.append(reinterpret_cast<const char*>(code.data()), code.size());
  return Sha256Hex(identity);
}

Result<int64_t> Writer::KernelId(const isa::KernelCode& code, const isa::LaunchShape& shape) {
  std::vector<std::array<uint64_t, 2>> words;
  words.reserve(code.instructions.size());
  for (const isa::Instruction& instruction : code.instructions) words.push_back(instruction.encoding);
  const std::string digest = KernelDigest(code.name, std::as_bytes(std::span(words)));
  HEDDLE_ASSIGN_OR_RETURN(const std::optional<int64_t> id,
                          FindId(&database_, "SELECT kernel_id FROM kernel WHERE digest = ?", digest));
  if (id) return *id;
  HEDDLE_ASSIGN_OR_RETURN(
      sqlite::Statement kernel,
      database_.Prepare(
          "INSERT INTO kernel (digest, name, sm_version, instruction_count, registers_per_thread) "
          "VALUES (?, ?, ?, ?, ?)"));
  kernel.Bind(digest).Bind(code.name).Bind(code.sm_version);
  HEDDLE_RETURN_IF_ERROR(
      kernel.Bind(uint64_t{code.instructions.size()}).Bind(shape.registers_per_thread).Run());
  const int64_t kernel_id = database_.LastInsertId();
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement text,
                          database_.Prepare("INSERT INTO instruction VALUES (?, ?, ?)"));
  for (const isa::Instruction& instruction : code.instructions) {
    HEDDLE_RETURN_IF_ERROR(text.Bind(kernel_id).Bind(instruction.pc).Bind(isa::ToString(instruction)).Run());
  }
  return kernel_id;
}

Status Writer::AddMemorySums(int64_t launch_id, const stats::LaunchStats& stats) {
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement memory,
                          database_.Prepare("INSERT INTO pc_memory VALUES (?, ?, ?, ?, ?, ?, ?)"));
  for (size_t index = 0; index < stats.per_pc.size(); ++index) {
    const stats::MemorySums& sums = stats.per_pc[index].memory;
    if (!sums.any()) continue;
    memory.Bind(launch_id).Bind(uint64_t{index} * isa::kInstructionBytes).Bind(sums.requests);
    memory.Bind(sums.sectors).Bind(sums.ideal_sectors);
    HEDDLE_RETURN_IF_ERROR(memory.Bind(sums.wavefronts).Bind(sums.bank_conflicts).Run());
  }
  return Ok();
}

Status Writer::AddCounts(int64_t launch_id, const stats::LaunchStats& stats,
                         const std::vector<isa::StreamIssue>& issues) {
  HEDDLE_ASSIGN_OR_RETURN(
      sqlite::Statement stat,
      database_.Prepare("INSERT INTO stat SELECT ?, stat_id, ? FROM stat_def WHERE name = ?"));
  for (const stats::CounterDef& def : stats::CounterDefs()) {
    HEDDLE_RETURN_IF_ERROR(stat.Bind(launch_id).Bind(stats.counters.*def.member).Bind(def.name).Run());
  }
  std::array<int64_t, stats::kStallCount> stall_ids{};
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement find,
                          database_.Prepare("SELECT stall_id FROM stall_def WHERE name = ?"));
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement stall, database_.Prepare("INSERT INTO stall VALUES (?, ?, ?)"));
  for (size_t i = 0; i < stats.slots.size(); ++i) {
    HEDDLE_RETURN_IF_ERROR(find.Bind(stats::StallDefs()[i].name).Step());
    stall_ids[i] = find.Integer(0);
    find.Reset();
    HEDDLE_RETURN_IF_ERROR(stall.Bind(launch_id).Bind(stall_ids[i]).Bind(stats.slots[i]).Run());
  }
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement pc_stat,
                          database_.Prepare("INSERT INTO pc_stat VALUES (?, ?, ?, ?)"));
  for (size_t index = 0; index < stats.per_pc.size(); ++index) {
    const stats::PcStats& pc = stats.per_pc[index];
    for (size_t i = 0; i < pc.slots.size(); ++i) {
      const uint64_t slots = i == static_cast<size_t>(stats::Stall::k_selected) ? pc.issued : pc.slots[i];
      if (slots == 0) continue;
      pc_stat.Bind(launch_id).Bind(uint64_t{index} * isa::kInstructionBytes);
      HEDDLE_RETURN_IF_ERROR(pc_stat.Bind(stall_ids[i]).Bind(slots).Run());
    }
  }
  HEDDLE_RETURN_IF_ERROR(AddMemorySums(launch_id, stats));
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement wait,
                          database_.Prepare("INSERT INTO barrier_wait VALUES (?, ?, ?, ?, ?)"));
  for (const auto& [key, sum] : stats.waits) {
    const auto& [index, cause] = key;
    wait.Bind(launch_id).Bind(uint64_t{index} * isa::kInstructionBytes);
    if (cause == stats::kUnknownCause)
      wait.Bind(-1);
    else
      wait.Bind(uint64_t{cause} * isa::kInstructionBytes);
    HEDDLE_RETURN_IF_ERROR(wait.Bind(sum.count).Bind(sum.cycles).Run());
  }
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement issue,
                          database_.Prepare("INSERT INTO trace_issue VALUES (?, ?, ?, ?)"));
  for (const isa::StreamIssue& item : issues) {
    HEDDLE_RETURN_IF_ERROR(issue.Bind(launch_id).Bind(item.kind).Bind(item.detail).Bind(item.count).Run());
  }
  return Ok();
}

Status Writer::AddLaunch(const LaunchRecord& record, const ConfigRecord& config, const isa::KernelCode& code,
                         const isa::LaunchShape& shape, const stats::LaunchStats& stats,
                         const std::vector<isa::StreamIssue>& issues) {
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Transaction transaction, sqlite::Transaction::Begin(&database_));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t config_id, ConfigId(config));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t kernel_id, KernelId(code, shape));
  HEDDLE_ASSIGN_OR_RETURN(
      sqlite::Statement launch,
      database_.Prepare(
          "INSERT INTO launch (run_id, config_id, kernel_id, key, trace_digest, trace_name, ordinal, "
          "stream, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes_per_cta, grid_frozen, "
          "mode, execution, cache_policy, dependence, start_cycle, end_cycle, duration_ps) "
          "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  launch.Bind(run_id_).Bind(config_id).Bind(kernel_id).Bind(LaunchKey(record, config.digest));
  launch.Bind(record.trace_digest).Bind(record.trace_name).Bind(record.ordinal).Bind(record.stream);
  launch.Bind(shape.grid.x).Bind(shape.grid.y).Bind(shape.grid.z);
  launch.Bind(shape.block.x).Bind(shape.block.y).Bind(shape.block.z);
  launch.Bind(shape.shared_bytes_per_cta).Bind(record.grid_frozen ? 1 : 0);
  launch.Bind(record.mode).Bind(record.execution).Bind(record.cache_policy).Bind(record.dependence);
  launch.Bind(stats.start_cycle).Bind(stats.end_cycle).Bind(record.duration_ps);
  HEDDLE_RETURN_IF_ERROR(launch.Run());
  const int64_t launch_id = database_.LastInsertId();
  HEDDLE_RETURN_IF_ERROR(AddCounts(launch_id, stats, issues));
  if (record.sampling) {
    HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement sampling,
                            database_.Prepare("INSERT INTO sampling VALUES (?, ?, ?, ?, ?, ?, ?)"));
    const uint64_t ctas = shape.grid.Count();
    sampling.Bind(launch_id).Bind(ctas).Bind(ctas - record.sampling->ctas_left_out);
    sampling.Bind(record.sampling->jumps).Bind(record.sampling->interval_cycles);
    sampling.Bind(record.sampling->whole_because);
    if (record.sampling->like_ordinal)
      sampling.Bind(*record.sampling->like_ordinal);
    else
      sampling.BindNull();
    HEDDLE_RETURN_IF_ERROR(sampling.Run());
  }
  return transaction.Commit();
}

Status Writer::Finish() {
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement statement,
                          database_.Prepare("UPDATE run SET finished_at = ? WHERE run_id = ?"));
  HEDDLE_RETURN_IF_ERROR(statement.Bind(NowUtc()).Bind(run_id_).Run());
  std::error_code code;
  fs::rename(path_ + ".partial", path_, code);
  if (code) return FileError(path_, "cannot be put in place", code);
  return Ok();
}

void Writer::Abandon() {
  const Result<int64_t> launches = database_.QueryInteger("SELECT COUNT(*) FROM launch");
  if (!launches.ok() || *launches != 0) return;
  std::error_code ignored;
  fs::remove(path_ + ".partial", ignored);
}

Result<sqlite::Database> OpenForReading(const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Database database,
                          sqlite::Database::Open(path, sqlite::Database::Mode::kReadOnly));
  HEDDLE_RETURN_IF_ERROR(CheckSchema(&database));
  return database;
}

}  // namespace heddle::results
