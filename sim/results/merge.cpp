#include <fmt/format.h>

#include "sim/results/measurements.h"
#include "sim/results/results.h"
#include "sim/results/schema.h"

namespace heddle::results {
namespace {

// Copies everything of the attached database `source` that `main` lacks. Ids are private to a file, so rows
// are joined through what identifies them: digests, keys and names.
constexpr std::string_view kMergeSql = R"sql(
INSERT OR IGNORE INTO main.config (digest, name, sm_count, sm_clock_hz, dram_bytes_per_second, tensor_ops_per_second,
                                   fma_ops_per_second, text)
  SELECT digest, name, sm_count, sm_clock_hz, dram_bytes_per_second, tensor_ops_per_second, fma_ops_per_second, text
  FROM source.config ORDER BY config_id;
CREATE TEMP TABLE new_kernel AS
  SELECT s.kernel_id AS old_id, s.digest FROM source.kernel s
  WHERE NOT EXISTS (SELECT 1 FROM main.kernel m WHERE m.digest = s.digest);
INSERT INTO main.kernel (digest, name, sm_version, instruction_count, registers_per_thread)
  SELECT digest, name, sm_version, instruction_count, registers_per_thread
  FROM source.kernel WHERE kernel_id IN (SELECT old_id FROM new_kernel) ORDER BY kernel_id;
INSERT INTO main.instruction (kernel_id, pc, text)
  SELECT m.kernel_id, i.pc, i.text FROM new_kernel n JOIN source.instruction i ON i.kernel_id = n.old_id
  JOIN main.kernel m ON m.digest = n.digest;
INSERT OR IGNORE INTO main.stat_def (name, unit, text) SELECT name, unit, text FROM source.stat_def ORDER BY stat_id;
INSERT OR IGNORE INTO main.stall_def (name, text) SELECT name, text FROM source.stall_def ORDER BY stall_id;
CREATE TEMP TABLE stat_map (old_id INTEGER PRIMARY KEY, new_id INTEGER);
INSERT INTO stat_map SELECT s.stat_id, m.stat_id FROM source.stat_def s JOIN main.stat_def m ON m.name = s.name;
CREATE TEMP TABLE stall_map (old_id INTEGER PRIMARY KEY, new_id INTEGER);
INSERT INTO stall_map SELECT s.stall_id, m.stall_id FROM source.stall_def s JOIN main.stall_def m ON m.name = s.name;
CREATE TEMP TABLE new_run (old_id INTEGER PRIMARY KEY, new_id INTEGER);
INSERT INTO new_run SELECT run_id, run_id + (SELECT COALESCE(MAX(run_id), 0) FROM main.run) FROM source.run;
INSERT INTO main.run SELECT n.new_id, r.command, r.heddle_version, r.build, r.started_at, r.finished_at
  FROM source.run r JOIN new_run n ON n.old_id = r.run_id;
CREATE TEMP TABLE new_launch (old_id INTEGER PRIMARY KEY, new_id INTEGER);
INSERT INTO new_launch
  SELECT s.launch_id, s.launch_id + (SELECT COALESCE(MAX(launch_id), 0) FROM main.launch) FROM source.launch s
  WHERE NOT EXISTS (SELECT 1 FROM main.launch m WHERE m.key = s.key);
INSERT INTO main.launch
  SELECT n.new_id, r.new_id, c.config_id, k.kernel_id, l.key, l.trace_digest, l.trace_name, l.ordinal, l.stream,
         l.grid_x, l.grid_y, l.grid_z, l.block_x, l.block_y, l.block_z, l.shared_bytes_per_cta, l.grid_frozen, l.mode,
         l.execution, l.cache_policy, l.dependence, l.start_cycle, l.end_cycle, l.duration_ps
  FROM new_launch n JOIN source.launch l ON l.launch_id = n.old_id JOIN new_run r ON r.old_id = l.run_id
  JOIN source.config sc ON sc.config_id = l.config_id JOIN main.config c ON c.digest = sc.digest
  JOIN source.kernel sk ON sk.kernel_id = l.kernel_id JOIN main.kernel k ON k.digest = sk.digest;
INSERT INTO main.stat SELECT n.new_id, d.new_id, s.value
  FROM new_launch n CROSS JOIN source.stat s ON s.launch_id = n.old_id
  CROSS JOIN stat_map d ON d.old_id = s.stat_id;
INSERT INTO main.stall SELECT n.new_id, d.new_id, s.slots
  FROM new_launch n CROSS JOIN source.stall s ON s.launch_id = n.old_id
  CROSS JOIN stall_map d ON d.old_id = s.stall_id;
INSERT INTO main.pc_stat SELECT n.new_id, s.pc, d.new_id, s.slots
  FROM new_launch n CROSS JOIN source.pc_stat s ON s.launch_id = n.old_id
  CROSS JOIN stall_map d ON d.old_id = s.stall_id;
INSERT INTO main.trace_issue SELECT n.new_id, s.kind, s.detail, s.count
  FROM new_launch n JOIN source.trace_issue s ON s.launch_id = n.old_id;
)sql";

// A measurement is known by what it is of. The launches of a profile belong together: a source is taken whole, or not at
// all where it is there already. {0} limits the rows to those without a place in a profile.
constexpr std::string_view kMergeHardwareSql = R"sql(
CREATE TEMP TABLE new_hardware (old_id INTEGER PRIMARY KEY, new_id INTEGER);
INSERT INTO new_hardware
  SELECT s.hardware_run_id, s.hardware_run_id + (SELECT COALESCE(MAX(hardware_run_id), 0) FROM main.hardware_run)
  FROM source.hardware_run s WHERE {0} NOT EXISTS (
    SELECT 1 FROM main.hardware_run m WHERE m.gpu = s.gpu AND m.kernel_name = s.kernel_name AND m.source = s.source
    AND m.launch_key IS s.launch_key);
)sql";

constexpr std::string_view kMergeProfilesSql = R"sql(
INSERT INTO new_hardware
  SELECT s.hardware_run_id, s.hardware_run_id + (SELECT COALESCE(MAX(hardware_run_id), 0) FROM main.hardware_run)
  FROM source.hardware_run s JOIN source.hardware_launch USING (hardware_run_id)
  WHERE s.source NOT IN (SELECT h.source FROM main.hardware_run h JOIN main.hardware_launch USING (hardware_run_id));
)sql";

constexpr std::string_view kCopyHardwareSql = R"sql(
INSERT INTO main.hardware_run SELECT n.new_id, h.gpu, h.kernel_name, h.source, h.protocol, h.launch_key
  FROM new_hardware n JOIN source.hardware_run h ON h.hardware_run_id = n.old_id;
INSERT INTO main.hardware_metric SELECT n.new_id, m.name, m.unit, m.value
  FROM new_hardware n JOIN source.hardware_metric m ON m.hardware_run_id = n.old_id;
)sql";

constexpr std::string_view kCopyProfilesSql = R"sql(
INSERT INTO main.hardware_launch
  SELECT n.new_id, l.ordinal, l.mangled_name, l.grid_x, l.grid_y, l.grid_z, l.block_x, l.block_y, l.block_z, l.cluster_x,
         l.cluster_y, l.cluster_z, l.registers_per_thread, l.static_shared_bytes, l.dynamic_shared_bytes, l.device,
         l.context, l.stream, l.process, l.correlation, l.graph_node, l.launch_call, l.start_ns, l.time_resolution_ns,
         l.trace_digest, l.trace_ordinal
  FROM new_hardware n JOIN source.hardware_launch l ON l.hardware_run_id = n.old_id;
)sql";

constexpr std::string_view kCopyHardwareCodeSql = R"sql(
INSERT INTO main.hardware_code SELECT n.new_id, c.kernel_digest
  FROM new_hardware n JOIN source.hardware_code c ON c.hardware_run_id = n.old_id;
INSERT INTO main.hardware_pc_metric SELECT n.new_id, m.pc, m.name, m.value
  FROM new_hardware n CROSS JOIN source.hardware_pc_metric m ON m.hardware_run_id = n.old_id;
)sql";

constexpr std::string_view kMergeWaitsSql = R"sql(
INSERT INTO main.barrier_wait SELECT n.new_id, s.pc, s.cause_pc, s.waits, s.cycles
  FROM new_launch n JOIN source.barrier_wait s ON s.launch_id = n.old_id;
)sql";

constexpr std::string_view kMergeMemorySumsSql = R"sql(
INSERT INTO main.pc_memory SELECT n.new_id, s.pc, s.requests, s.sectors, s.ideal_sectors, s.wavefronts, s.bank_conflicts
  FROM new_launch n CROSS JOIN source.pc_memory s ON s.launch_id = n.old_id;
)sql";

// Of launches that the target has without a timeline, too.
constexpr std::string_view kMergeTimelineSql = R"sql(
CREATE TEMP TABLE new_timeline (old_id INTEGER PRIMARY KEY, new_id INTEGER);
INSERT INTO new_timeline
  SELECT s.launch_id, m.launch_id FROM source.launch s JOIN main.launch m ON m.key = s.key
  WHERE s.launch_id IN (SELECT launch_id FROM source.counter_sample)
  AND m.launch_id NOT IN (SELECT launch_id FROM main.counter_sample);
INSERT INTO main.cta SELECT n.new_id, s.cta, s.sm, s.start_cycle, s.end_cycle
  FROM new_timeline n JOIN source.cta s ON s.launch_id = n.old_id;
INSERT INTO main.counter_sample SELECT n.new_id, s.cycle, d.stat_id, s.value
  FROM new_timeline n JOIN source.counter_sample s ON s.launch_id = n.old_id
  JOIN source.stat_def o ON o.stat_id = s.stat_id JOIN main.stat_def d ON d.name = o.name;
DROP TABLE temp.new_timeline;
)sql";

constexpr std::string_view kMergeSamplingSql = R"sql(
INSERT INTO main.sampling SELECT n.new_id, s.ctas, s.simulated_ctas, s.jumps, s.interval_cycles, s.whole_because,
         s.like_ordinal FROM new_launch n JOIN source.sampling s ON s.launch_id = n.old_id;
)sql";

constexpr std::string_view kMergeEndSql = R"sql(
DROP TABLE temp.new_kernel; DROP TABLE temp.new_run; DROP TABLE temp.new_launch; DROP TABLE temp.new_hardware;
DROP TABLE temp.stat_map; DROP TABLE temp.stall_map;
)sql";

// `version`: of the source's schema.
Status MergeHardware(sqlite::Database* target, int64_t version) {
  const bool has_profiles = version >= kHardwareLaunchVersion;
  HEDDLE_RETURN_IF_ERROR(target->Execute(fmt::format(
      kMergeHardwareSql,
      has_profiles ? "s.hardware_run_id NOT IN (SELECT hardware_run_id FROM source.hardware_launch) AND"
                   : "")));
  if (has_profiles) HEDDLE_RETURN_IF_ERROR(target->Execute(kMergeProfilesSql));
  HEDDLE_RETURN_IF_ERROR(target->Execute(kCopyHardwareSql));
  if (has_profiles) HEDDLE_RETURN_IF_ERROR(target->Execute(kCopyProfilesSql));
  return version >= kHardwareCodeVersion ? target->Execute(kCopyHardwareCodeSql) : Ok();
}

// A source is one transaction with its journal, so that a process that is killed leaves whole sources. The disk is waited for
// once, at the end (the write of user_version), before the file takes its place. References hold by construction.
constexpr std::string_view kFastSql =
    "PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; PRAGMA temp_store = MEMORY; PRAGMA cache_size = "
    "-65536;";

Status MergeOne(sqlite::Database* target, const std::string& source) {
  {
    // Opening it alone first gives a clear error for a file that is no results database.
    HEDDLE_ASSIGN_OR_RETURN(const sqlite::Database check, OpenForReading(source));
  }
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement attach, target->Prepare("ATTACH ? AS source"));
  HEDDLE_RETURN_IF_ERROR(attach.Bind(source).Run());
  {
    HEDDLE_ASSIGN_OR_RETURN(sqlite::Transaction transaction, sqlite::Transaction::Begin(target));
    HEDDLE_RETURN_IF_ERROR(target->Execute(kMergeSql));
    HEDDLE_ASSIGN_OR_RETURN(const int64_t version, target->QueryInteger("PRAGMA source.user_version"));
    if (version >= kBarrierWaitVersion) HEDDLE_RETURN_IF_ERROR(target->Execute(kMergeWaitsSql));
    HEDDLE_RETURN_IF_ERROR(MergeHardware(target, version));
    if (version >= kTimelineVersion) HEDDLE_RETURN_IF_ERROR(target->Execute(kMergeTimelineSql));
    if (version >= kSamplingVersion) HEDDLE_RETURN_IF_ERROR(target->Execute(kMergeSamplingSql));
    if (version >= kMemorySumsVersion) HEDDLE_RETURN_IF_ERROR(target->Execute(kMergeMemorySumsSql));
    HEDDLE_RETURN_IF_ERROR(target->Execute(kMergeEndSql));
    HEDDLE_RETURN_IF_ERROR(transaction.Commit());
  }
  return target->Execute("DETACH source");
}

// One line a row, columns joined by tabs; NULL prints as \N.
Status AppendTable(sqlite::Database* database, std::string_view title, std::string_view query,
                   std::string* out) {
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement statement, database->Prepare(query));
  *out += fmt::format("# {}\n", title);
  while (true) {
    HEDDLE_ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) break;
    for (int column = 0; column < statement.columns(); ++column) {
      if (column != 0) *out += '\t';
      *out += statement.IsNull(column) ? "\\N" : statement.Text(column);
    }
    *out += '\n';
  }
  return Ok();
}

struct DumpQuery {
  std::string_view title;
  std::string_view sql;
  int since_version = 1;
};

constexpr DumpQuery kDumpQueries[] = {
    {"config",
     "SELECT digest, name, sm_count, sm_clock_hz, dram_bytes_per_second, tensor_ops_per_second, "
     "fma_ops_per_second, "
     "text FROM config ORDER BY digest"},
    {"kernel",
     "SELECT digest, name, sm_version, instruction_count, registers_per_thread FROM kernel ORDER BY digest"},
    {"instruction",
     "SELECT k.digest, i.pc, i.text FROM instruction i JOIN kernel k USING (kernel_id) ORDER BY k.digest, "
     "i.pc"},
    {"launch",
     "SELECT l.key, c.digest, k.digest, l.trace_digest, l.trace_name, l.ordinal, l.stream, l.grid_x, "
     "l.grid_y, "
     "l.grid_z, l.block_x, l.block_y, l.block_z, l.shared_bytes_per_cta, l.grid_frozen, l.mode, "
     "l.cache_policy, "
     "l.dependence, l.start_cycle, l.end_cycle, l.duration_ps FROM launch l JOIN config c USING (config_id) "
     "JOIN kernel k USING (kernel_id) ORDER BY l.key"},
    {"stat",
     "SELECT l.key, d.name, d.unit, s.value FROM stat s JOIN launch l USING (launch_id) JOIN stat_def d "
     "USING "
     "(stat_id) ORDER BY l.key, d.name"},
    {"stall",
     "SELECT l.key, d.name, s.slots FROM stall s JOIN launch l USING (launch_id) JOIN stall_def d USING "
     "(stall_id) "
     "ORDER BY l.key, d.name"},
    {"pc_stat",
     "SELECT l.key, s.pc, d.name, s.slots FROM pc_stat s JOIN launch l USING (launch_id) JOIN stall_def d "
     "USING "
     "(stall_id) ORDER BY l.key, s.pc, d.name"},
    {"pc_memory",
     "SELECT l.key, s.pc, s.requests, s.sectors, s.ideal_sectors, s.wavefronts, s.bank_conflicts FROM "
     "pc_memory s "
     "JOIN launch l USING (launch_id) ORDER BY l.key, s.pc",
     kMemorySumsVersion},
    {"barrier_wait",
     "SELECT l.key, s.pc, s.cause_pc, s.waits, s.cycles FROM barrier_wait s JOIN launch l USING (launch_id) "
     "ORDER BY l.key, s.pc, s.cause_pc",
     kBarrierWaitVersion},
    {"cta",
     "SELECT l.key, s.cta, s.sm, s.start_cycle, s.end_cycle FROM cta s JOIN launch l USING (launch_id) "
     "ORDER BY l.key, s.cta",
     kTimelineVersion},
    {"counter_sample",
     "SELECT l.key, s.cycle, d.name, s.value FROM counter_sample s JOIN launch l USING (launch_id) "
     "JOIN stat_def d USING (stat_id) ORDER BY l.key, s.cycle, d.name",
     kTimelineVersion},
    {"sampling",
     "SELECT l.key, s.ctas, s.simulated_ctas, s.jumps, s.interval_cycles, s.whole_because, s.like_ordinal "
     "FROM sampling s "
     "JOIN launch l USING (launch_id) ORDER BY l.key",
     kSamplingVersion},
    {"trace_issue",
     "SELECT l.key, s.kind, s.detail, s.count FROM trace_issue s JOIN launch l USING (launch_id) "
     "ORDER BY l.key, s.kind, s.detail"},
    {"hardware_run",
     "SELECT gpu, kernel_name, source, protocol, launch_key FROM hardware_run "
     "ORDER BY gpu, kernel_name, source, launch_key"},
    {"hardware_metric",
     "SELECT h.gpu, h.kernel_name, h.source, h.launch_key, m.name, m.unit, m.value FROM hardware_metric m "
     "JOIN hardware_run h USING (hardware_run_id) ORDER BY 1, 2, 3, 4, 5, 6, 7"},
    {"hardware_launch",
     "SELECT h.gpu, h.source, l.ordinal, h.kernel_name, l.grid_x, l.grid_y, l.grid_z, l.block_x, l.block_y, "
     "l.block_z, l.cluster_x, l.cluster_y, l.cluster_z, l.registers_per_thread, l.static_shared_bytes, "
     "l.dynamic_shared_bytes, l.device, l.context, l.stream, l.process, l.correlation, l.graph_node, "
     "l.launch_call, l.start_ns, l.time_resolution_ns, l.trace_digest, l.trace_ordinal, l.mangled_name "
     "FROM hardware_launch l JOIN hardware_run h USING (hardware_run_id) ORDER BY 1, 2, 3",
     kHardwareLaunchVersion},
    {"hardware_pc_metric",
     "SELECT h.gpu, h.source, l.ordinal, c.kernel_digest, m.pc, m.name, m.value FROM hardware_pc_metric m "
     "JOIN hardware_code c USING (hardware_run_id) JOIN hardware_run h USING (hardware_run_id) "
     "JOIN hardware_launch l USING (hardware_run_id) ORDER BY 1, 2, 3, 5, 6",
     kHardwareCodeVersion},
};

}  // namespace

Status Merge(const std::string& target, const std::vector<std::string>& sources) {
  HEDDLE_ASSIGN_OR_RETURN(Writer writer, Writer::Open(target));
  sqlite::Database& database = writer.database();
  HEDDLE_RETURN_IF_ERROR(database.Execute(kFastSql));
  for (const std::string& source : sources) HEDDLE_RETURN_IF_ERROR(MergeOne(&database, source));
  HEDDLE_RETURN_IF_ERROR(
      database.Execute(fmt::format("PRAGMA synchronous = FULL; PRAGMA user_version = {}", kSchemaVersion)));
  return writer.Finish();
}

Status MergeMeasurements(Writer* writer, const std::string& source) {
  { HEDDLE_ASSIGN_OR_RETURN(const sqlite::Database check, OpenForReading(source)); }
  sqlite::Database* target = &writer->database();
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement attach, target->Prepare("ATTACH ? AS source"));
  HEDDLE_RETURN_IF_ERROR(attach.Bind(source).Run());
  {
    HEDDLE_ASSIGN_OR_RETURN(sqlite::Transaction transaction, sqlite::Transaction::Begin(target));
    HEDDLE_ASSIGN_OR_RETURN(const int64_t version, target->QueryInteger("PRAGMA source.user_version"));
    HEDDLE_RETURN_IF_ERROR(MergeHardware(target, version));
    HEDDLE_RETURN_IF_ERROR(target->Execute("DROP TABLE temp.new_hardware"));
    HEDDLE_RETURN_IF_ERROR(transaction.Commit());
  }
  return target->Execute("DETACH source");
}

Result<std::string> CanonicalDump(sqlite::Database* database) {
  std::string out;
  HEDDLE_ASSIGN_OR_RETURN(const int64_t version, database->QueryInteger("PRAGMA user_version"));
  for (const DumpQuery& query : kDumpQueries) {
    if (version < query.since_version) continue;
    HEDDLE_RETURN_IF_ERROR(AppendTable(database, query.title, query.sql, &out));
  }
  return out;
}

}  // namespace heddle::results
