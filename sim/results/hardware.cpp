// Measurements on real hardware in the results database.
#include "sim/base/check.h"
#include "sim/results/results.h"

namespace heddle::results {
namespace {

// Prepared once for all the records of a profile.
class HardwareInserter {
 public:
  static Result<HardwareInserter> Make(sqlite::Database* database) {
    HEDDLE_ASSIGN_OR_RETURN(
        sqlite::Statement run,
        database->Prepare("INSERT INTO hardware_run (gpu, kernel_name, source, protocol, launch_key) "
                          "VALUES (?, ?, ?, ?, NULLIF(?, ''))"));
    HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement metric,
                            database->Prepare("INSERT INTO hardware_metric VALUES (?, ?, ?, ?)"));
    HEDDLE_ASSIGN_OR_RETURN(
        sqlite::Statement launch,
        database->Prepare(
            "INSERT INTO hardware_launch VALUES (?, ?, NULLIF(?, ''), ?, ?, ?, ?, ?, ?, ?, ?, ?, "
            "?, ?, ?, ?, ?, ?, ?, ?, ?, NULLIF(?, ''), ?, ?, NULLIF(?, ''), ?)"));
    HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement code,
                            database->Prepare("INSERT INTO hardware_code VALUES (?, ?)"));
    HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement pc_metric,
                            database->Prepare("INSERT INTO hardware_pc_metric VALUES (?, ?, ?, ?)"));
    return HardwareInserter(database, {std::move(run), std::move(metric), std::move(launch), std::move(code),
                                       std::move(pc_metric)});
  }

  Status Insert(const HardwareRecord& record, uint64_t ordinal) {
    statements_.run.Bind(record.gpu).Bind(record.kernel_name).Bind(record.source).Bind(record.protocol);
    HEDDLE_RETURN_IF_ERROR(statements_.run.Bind(record.launch_key).Run());
    const int64_t id = database_->LastInsertId();
    for (const HardwareRecord::Metric& item : record.metrics) {
      HEDDLE_RETURN_IF_ERROR(
          statements_.metric.Bind(id).Bind(item.name).Bind(item.unit).Bind(item.value).Run());
    }
    if (!record.pc_metrics.empty())
      HEDDLE_RETURN_IF_ERROR(statements_.code.Bind(id).Bind(record.kernel_digest).Run());
    for (const HardwareRecord::PcMetric& item : record.pc_metrics) {
      HEDDLE_RETURN_IF_ERROR(
          statements_.pc_metric.Bind(id).Bind(item.pc).Bind(item.name).Bind(item.value).Run());
    }
    return record.launch ? InsertLaunch(*record.launch, id, ordinal) : Ok();
  }

 private:
  struct Statements {
    sqlite::Statement run, metric, launch, code, pc_metric;
  };
  HardwareInserter(sqlite::Database* database, Statements statements)
      : database_(database), statements_(std::move(statements)) {}

  template <typename T>
  void BindOptional(const std::optional<T>& value) {
    if (value) {
      statements_.launch.Bind(*value);
    } else {
      statements_.launch.BindNull();
    }
  }

  void BindOptional(const std::optional<Dim3>& value) {
    for (const uint32_t Dim3::*member : {&Dim3::x, &Dim3::y, &Dim3::z}) {
      BindOptional(value ? std::optional<uint32_t>((*value).*member) : std::nullopt);
    }
  }

  Status InsertLaunch(const HardwareLaunch& launch, int64_t id, uint64_t ordinal) {
    statements_.launch.Bind(id).Bind(ordinal).Bind(launch.mangled_name);
    for (const auto& shape : {launch.grid, launch.block, launch.cluster}) BindOptional(shape);
    for (const auto& value :
         {launch.registers_per_thread, launch.static_shared_bytes, launch.dynamic_shared_bytes, launch.device,
          launch.context, launch.stream, launch.process, launch.correlation, launch.graph_node}) {
      BindOptional(value);
    }
    statements_.launch.Bind(launch.launch_call);
    BindOptional(launch.start_ns);
    statements_.launch.Bind(launch.time_resolution_ns).Bind(launch.trace_digest);
    BindOptional(launch.trace_ordinal);
    return statements_.launch.Run();
  }

  sqlite::Database* database_;
  Statements statements_;
};

}  // namespace

Status Writer::AddHardware(const HardwareRecord& record) {
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Transaction transaction, sqlite::Transaction::Begin(&database_));
  HEDDLE_ASSIGN_OR_RETURN(
      sqlite::Statement old,
      database_.Prepare("DELETE FROM hardware_run WHERE gpu = ? AND kernel_name = ? AND source = ?"));
  HEDDLE_RETURN_IF_ERROR(old.Bind(record.gpu).Bind(record.kernel_name).Bind(record.source).Run());
  HEDDLE_ASSIGN_OR_RETURN(HardwareInserter inserter, HardwareInserter::Make(&database_));
  HEDDLE_RETURN_IF_ERROR(inserter.Insert(record, 0));
  return transaction.Commit();
}

Status Writer::ReplaceProfile(const std::string& source, const std::vector<HardwareRecord>& records) {
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Transaction transaction, sqlite::Transaction::Begin(&database_));
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement old,
                          database_.Prepare("DELETE FROM hardware_run WHERE source = ?"));
  HEDDLE_RETURN_IF_ERROR(old.Bind(source).Run());
  HEDDLE_ASSIGN_OR_RETURN(HardwareInserter inserter, HardwareInserter::Make(&database_));
  for (size_t i = 0; i < records.size(); ++i) {
    HEDDLE_CHECK(records[i].source == source && records[i].launch.has_value(), "results", 0,
                 "a record of another source");
    HEDDLE_RETURN_IF_ERROR(inserter.Insert(records[i], i));
  }
  return transaction.Commit();
}

}  // namespace heddle::results
