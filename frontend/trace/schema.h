// The tables of a .htrace as data. Private to frontend/trace.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/base/result.h"
#include "sim/sqlite/sqlite.h"

namespace heddle::trace {

struct TableDefinition {
  std::string_view name;
  std::string_view columns;
};
std::span<const TableDefinition> Tables();

// "CREATE TABLE define(...) STRICT", as SQLite keeps it in sqlite_schema.
std::string CreateStatement(const TableDefinition& table);

// SQL that leads from version n to n + 1; element 0 from version 1.
using Migrations = std::span<const std::string_view>;
Migrations KnownMigrations();

// Brings an open trace of version `from` to version migrations.size() + 1, in a copy in memory; an open trace
// that is current already is returned as it is.
Result<sqlite::Database> Migrate(sqlite::Database database, int64_t from, Migrations migrations);

// The file's tables are exactly Tables(): nothing else is ever read from it.
Status CheckSchema(sqlite::Database* database);

}  // namespace heddle::trace
