#include "frontend/trace/schema.h"

#include <fmt/format.h>

#include <array>
#include <map>

namespace heddle::trace {
namespace {

constexpr std::array kTables{
#define HEDDLE_TABLE(name, columns) TableDefinition{#name, columns},
#include "frontend/trace/schema.def"
#undef HEDDLE_TABLE
};

Error NotATrace(const sqlite::Database& database, std::string message) {
  return Error{ExitCode::kTrace, database.path(), std::move(message),
               "the file is damaged: copy it again, or build the trace again"};
}

}  // namespace

std::span<const TableDefinition> Tables() { return kTables; }

std::string CreateStatement(const TableDefinition& table) {
  return fmt::format("CREATE TABLE {}({}) STRICT", table.name, table.columns);
}

Migrations KnownMigrations() { return {}; }

Result<sqlite::Database> Migrate(sqlite::Database database, int64_t from, Migrations migrations) {
  const auto newest = static_cast<int64_t>(migrations.size()) + 1;
  if (from == newest) return database;
  if (from < 1) return NotATrace(database, fmt::format("states the impossible version {}", from));
  if (from > newest)
    return Error{ExitCode::kTrace, database.path(),
                 fmt::format("has version {} of the format, this heddle reads up to {}", from, newest),
                 "update heddle, or build the trace again with this one"};
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Database memory, database.CopyToMemory());
  for (int64_t version = from; version < newest; ++version)
    HEDDLE_RETURN_IF_ERROR(memory.Execute(migrations[static_cast<size_t>(version - 1)]));
  return memory;
}

Status CheckSchema(sqlite::Database* database) {
  std::map<std::string, std::string, std::less<>> expected;
  for (const TableDefinition& table : Tables()) expected.emplace(table.name, CreateStatement(table));
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement rows,
                          database->Prepare("SELECT type, name, sql FROM sqlite_schema"));
  for (;;) {
    HEDDLE_ASSIGN_OR_RETURN(const bool more, rows.Step());
    if (!more) break;
    const std::string name = rows.Text(1);
    if (name.starts_with("sqlite_autoindex_")) continue;
    const auto found = expected.find(name);
    if (found == expected.end() || rows.Text(0) != "table" || rows.Text(2) != found->second)
      return NotATrace(*database, fmt::format("its {} '{}' is not as this version of the format has it",
                                              rows.Text(0), name));
    expected.erase(found);
  }
  if (!expected.empty())
    return NotATrace(*database, fmt::format("its table '{}' is missing", expected.begin()->first));
  return Ok();
}

}  // namespace heddle::trace
