#include "sim/results/schema.h"

#include <fmt/format.h>

#include "sim/results/results.h"
#include "sim/stats/launch_stats.h"

namespace heddle::results {
namespace {

Status FillDefinitions(sqlite::Database* database) {
  HEDDLE_ASSIGN_OR_RETURN(
      sqlite::Statement stat,
      database->Prepare("INSERT INTO stat_def (name, unit, text) VALUES (?, ?, ?) "
                        "ON CONFLICT (name) DO UPDATE SET unit = excluded.unit, text = excluded.text"));
  for (const stats::CounterDef& def : stats::CounterDefs()) {
    HEDDLE_RETURN_IF_ERROR(stat.Bind(def.name).Bind(def.unit).Bind(def.text).Run());
  }
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement stall,
                          database->Prepare("INSERT INTO stall_def (name, text) VALUES (?, ?) "
                                            "ON CONFLICT (name) DO UPDATE SET text = excluded.text"));
  for (const stats::StallDef& def : stats::StallDefs()) {
    HEDDLE_RETURN_IF_ERROR(stall.Bind(def.name).Bind(def.text).Run());
  }
  return Ok();
}

// Views hold no data: those of an older version are made anew, as schema.sql has them.
Status RenewViews(sqlite::Database* database) {
  constexpr std::string_view kCreate = "CREATE VIEW ";
  for (size_t at = kSchemaSql.find(kCreate); at != std::string_view::npos;
       at = kSchemaSql.find(kCreate, at + 1)) {
    const std::string_view create = kSchemaSql.substr(at, kSchemaSql.find(';', at) - at);
    const std::string_view name =
        create.substr(kCreate.size(), create.find(' ', kCreate.size()) - kCreate.size());
    HEDDLE_RETURN_IF_ERROR(database->Execute(fmt::format("DROP VIEW IF EXISTS {}", name)));
    HEDDLE_RETURN_IF_ERROR(database->Execute(create));
  }
  return Ok();
}

// Tables that came with later versions are made as schema.sql has them.
Status Upgrade(sqlite::Database* database) {
  struct Addition {
    int version;
    std::string_view create;
  };
  constexpr Addition kAdditions[] = {{kBarrierWaitVersion, "CREATE TABLE barrier_wait "},
                                     {kHardwareLaunchVersion, "CREATE TABLE hardware_launch "},
                                     {kTimelineVersion, "CREATE TABLE cta "},
                                     {kTimelineVersion, "CREATE TABLE counter_sample "},
                                     {kSamplingVersion, "CREATE TABLE sampling "},
                                     {kHardwareCodeVersion, "CREATE TABLE hardware_code "},
                                     {kHardwareCodeVersion, "CREATE TABLE hardware_pc_metric "},
                                     {kMemorySumsVersion, "CREATE TABLE pc_memory "}};
  HEDDLE_ASSIGN_OR_RETURN(const int64_t version, database->QueryInteger("PRAGMA user_version"));
  if (version >= kSchemaVersion) return Ok();
  for (const Addition& addition : kAdditions) {
    if (version >= addition.version) continue;
    const std::string_view create = kSchemaSql.substr(kSchemaSql.find(addition.create));
    HEDDLE_RETURN_IF_ERROR(database->Execute(create.substr(0, create.find(") STRICT") + 8)));
  }
  HEDDLE_RETURN_IF_ERROR(
      database->Execute("CREATE INDEX IF NOT EXISTS hardware_run_of_launch ON hardware_run (launch_key)"));
  HEDDLE_RETURN_IF_ERROR(RenewViews(database));
  return database->Execute(fmt::format("PRAGMA user_version = {}", kSchemaVersion));
}

}  // namespace

Status CheckSchema(sqlite::Database* database) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t application_id, database->QueryInteger("PRAGMA application_id"));
  if (application_id != kApplicationId) {
    return Error{ExitCode::kTrace, database->path(), "is not a heddle results database",
                 "give a file that `heddle run --db` wrote"};
  }
  HEDDLE_ASSIGN_OR_RETURN(const int64_t version, database->QueryInteger("PRAGMA user_version"));
  if (version > kSchemaVersion) {
    return Error{ExitCode::kTrace, database->path(),
                 fmt::format("has schema version {}, this heddle knows up to {}", version, kSchemaVersion),
                 "use the heddle that wrote it, or a newer one"};
  }
  return Ok();
}

Status PrepareSchema(sqlite::Database* database) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t tables, database->QueryInteger("SELECT COUNT(*) FROM sqlite_schema"));
  if (tables != 0) HEDDLE_RETURN_IF_ERROR(CheckSchema(database));
  HEDDLE_RETURN_IF_ERROR(database->Execute("PRAGMA foreign_keys = ON"));
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Transaction transaction, sqlite::Transaction::Begin(database));
  if (tables == 0) {
    HEDDLE_RETURN_IF_ERROR(database->Execute(fmt::format(
        "PRAGMA application_id = {}; PRAGMA user_version = {};", kApplicationId, kSchemaVersion)));
    HEDDLE_RETURN_IF_ERROR(database->Execute(kSchemaSql));
  }
  HEDDLE_RETURN_IF_ERROR(Upgrade(database));
  HEDDLE_RETURN_IF_ERROR(FillDefinitions(database));
  return transaction.Commit();
}

}  // namespace heddle::results
