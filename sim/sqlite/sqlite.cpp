#include "sim/sqlite/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

namespace heddle::sqlite {
namespace {

int OpenFlags(Database::Mode mode) {
  switch (mode) {
    case Database::Mode::kReadOnly:
      return SQLITE_OPEN_READONLY;
    case Database::Mode::kReadWrite:
      return SQLITE_OPEN_READWRITE;
    case Database::Mode::kCreate:
      return SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    case Database::Mode::kImmutable:
      return SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
  }
  return SQLITE_OPEN_READONLY;
}

// SQLite takes "immutable" in a URI only, where some characters of a path mean something else.
std::string ImmutableUri(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '?' || c == '#' || c == '%')
      uri += fmt::format("%{:02x}", static_cast<unsigned>(c));
    else
      uri += c;
  }
  return uri + "?immutable=1";
}

}  // namespace

void Database::Closer::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }

Result<Database> Database::Open(const std::string& path, Mode mode, ExitCode code) {
  Database database;
  database.path_ = path;
  database.code_ = code;
  sqlite3* handle = nullptr;
  const std::string name = mode == Mode::kImmutable ? ImmutableUri(path) : path;
  const int status = sqlite3_open_v2(name.c_str(), &handle, OpenFlags(mode) | SQLITE_OPEN_NOMUTEX, nullptr);
  database.handle_.reset(handle);
  if (status != SQLITE_OK) return database.MakeError("cannot be opened");
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, 5000);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  return database;
}

Result<Database> Database::CopyToMemory() const {
  HEDDLE_ASSIGN_OR_RETURN(Database memory, Open(":memory:", Mode::kReadWrite, code_));
  memory.path_ = path_;
  sqlite3_backup* backup = sqlite3_backup_init(memory.handle_.get(), "main", handle_.get(), "main");
  if (backup == nullptr) return memory.MakeError("cannot be copied");
  const int status = sqlite3_backup_step(backup, -1);
  sqlite3_backup_finish(backup);
  if (status != SQLITE_DONE) return MakeError("cannot be copied");
  return memory;
}

Error Database::MakeError(const std::string& what) const {
  const char* detail = handle_ ? sqlite3_errmsg(handle_.get()) : "out of memory";
  return {code_, path_, fmt::format("{} ({})", what, detail), ""};
}

Status Database::Execute(std::string_view sql) {
  const std::string text(sql);
  if (sqlite3_exec(handle_.get(), text.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    return MakeError("a statement failed");
  }
  return Ok();
}

Result<Statement> Database::Prepare(std::string_view sql) {
  sqlite3_stmt* handle = nullptr;
  if (sqlite3_prepare_v2(handle_.get(), sql.data(), static_cast<int>(sql.size()), &handle, nullptr) !=
      SQLITE_OK) {
    return MakeError("a query could not be prepared");
  }
  return Statement(handle);
}

Result<int64_t> Database::QueryInteger(std::string_view sql) {
  HEDDLE_ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  HEDDLE_ASSIGN_OR_RETURN(const bool row, statement.Step());
  if (!row) return MakeError("a query gave no row");
  return statement.Integer(0);
}

int64_t Database::LastInsertId() const { return sqlite3_last_insert_rowid(handle_.get()); }

void Statement::Finalizer::operator()(sqlite3_stmt* handle) const { sqlite3_finalize(handle); }

Statement& Statement::Bind(int64_t value) {
  bind_failed_ |= sqlite3_bind_int64(handle_.get(), next_parameter_++, value) != SQLITE_OK;
  return *this;
}

Statement& Statement::Bind(double value) {
  bind_failed_ |= sqlite3_bind_double(handle_.get(), next_parameter_++, value) != SQLITE_OK;
  return *this;
}

Statement& Statement::Bind(std::string_view text) {
  bind_failed_ |=
      sqlite3_bind_text64(handle_.get(), next_parameter_++, text.data() == nullptr ? "" : text.data(),
                          text.size(), SQLITE_TRANSIENT, SQLITE_UTF8) != SQLITE_OK;
  return *this;
}

Statement& Statement::Bind(std::span<const std::byte> blob) {
  const int status = blob.empty() ? sqlite3_bind_zeroblob(handle_.get(), next_parameter_, 0)
                                  : sqlite3_bind_blob64(handle_.get(), next_parameter_, blob.data(),
                                                        blob.size(), SQLITE_TRANSIENT);
  ++next_parameter_;
  bind_failed_ |= status != SQLITE_OK;
  return *this;
}

Statement& Statement::BindNull() {
  bind_failed_ |= sqlite3_bind_null(handle_.get(), next_parameter_++) != SQLITE_OK;
  return *this;
}

namespace {

Error StatementError(sqlite3_stmt* handle, const std::string& what) {
  sqlite3* database = sqlite3_db_handle(handle);
  const char* path = sqlite3_db_filename(database, "main");
  return {ExitCode::kTrace, path == nullptr ? "" : path,
          fmt::format("{} ({})", what, sqlite3_errmsg(database)), ""};
}

}  // namespace

Result<bool> Statement::Step() {
  if (bind_failed_) return StatementError(handle_.get(), "a parameter could not be bound");
  switch (sqlite3_step(handle_.get())) {
    case SQLITE_ROW:
      return true;
    case SQLITE_DONE:
      return false;
    default:
      return StatementError(handle_.get(), "a statement failed");
  }
}

Status Statement::Run() {
  while (true) {
    Result<bool> row = Step();
    if (!row.ok()) {
      const Error error = row.error();
      Reset();
      return error;
    }
    if (!*row) break;
  }
  Reset();
  return Ok();
}

void Statement::Reset() {
  sqlite3_reset(handle_.get());
  sqlite3_clear_bindings(handle_.get());
  next_parameter_ = 1;
  bind_failed_ = false;
}

int Statement::columns() const { return sqlite3_column_count(handle_.get()); }

std::string Statement::ColumnName(int column) const {
  const char* name = sqlite3_column_name(handle_.get(), column);
  return name == nullptr ? "" : name;
}

bool Statement::IsNull(int column) const { return sqlite3_column_type(handle_.get(), column) == SQLITE_NULL; }
bool Statement::IsInteger(int column) const {
  return sqlite3_column_type(handle_.get(), column) == SQLITE_INTEGER;
}
bool Statement::IsNumber(int column) const {
  return IsInteger(column) || sqlite3_column_type(handle_.get(), column) == SQLITE_FLOAT;
}
int64_t Statement::Integer(int column) const { return sqlite3_column_int64(handle_.get(), column); }
double Statement::Real(int column) const { return sqlite3_column_double(handle_.get(), column); }

std::string Statement::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(handle_.get(), column));
  if (text == nullptr) return "";
  return {text, static_cast<size_t>(sqlite3_column_bytes(handle_.get(), column))};
}

std::span<const std::byte> Statement::Blob(int column) const {
  const auto* data = static_cast<const std::byte*>(sqlite3_column_blob(handle_.get(), column));
  if (data == nullptr) return {};
  return {data, static_cast<size_t>(sqlite3_column_bytes(handle_.get(), column))};
}

Result<Transaction> Transaction::Begin(Database* database) {
  HEDDLE_RETURN_IF_ERROR(database->Execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Transaction::~Transaction() {
  if (database_ != nullptr) (void)database_->Execute("ROLLBACK");
}

Status Transaction::Commit() {
  Database* database = std::exchange(database_, nullptr);
  return database->Execute("COMMIT");
}

}  // namespace heddle::sqlite
