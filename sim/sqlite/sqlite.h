// The one wall around SQLite: connections, statements and transactions as values that clean up after
// themselves. Nothing else includes <sqlite3.h>. Errors carry the file as place and the code that the opener
// chose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "sim/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace heddle::sqlite {

class Statement;

class Database {
 public:
  // kImmutable: read only, of a file that nobody writes: no lock is taken and no journal beside it is looked at.
  enum class Mode { kReadOnly, kReadWrite, kCreate, kImmutable };

  // `code` is the exit code that errors of this database carry (ExitCode::kTrace for files that users hand
  // in). Opening sets defensive mode and refuses untrusted schemas' functions: the file may come from
  // anywhere.
  static Result<Database> Open(const std::string& path, Mode mode, ExitCode code = ExitCode::kTrace);

  // The same contents in memory, writable; path() stays.
  Result<Database> CopyToMemory() const;

  Database(Database&&) = default;
  Database& operator=(Database&&) = default;

  // One or more statements without parameters and results.
  Status Execute(std::string_view sql);
  Result<Statement> Prepare(std::string_view sql);
  Result<int64_t> QueryInteger(std::string_view sql);  // first column of the first row
  int64_t LastInsertId() const;

  const std::string& path() const { return path_; }
  Error MakeError(const std::string& what) const;  // with SQLite's own message

 private:
  Database() = default;
  struct Closer {
    void operator()(sqlite3* handle) const;
  };
  std::unique_ptr<sqlite3, Closer> handle_;
  std::string path_;
  ExitCode code_ = ExitCode::kTrace;
};

// A prepared statement. Parameters are bound from 1 on in the order of the calls:
//   statement.Bind(name).Bind(value); statement.Run();
//   while (*statement.Step()) use(statement.Integer(0));
// A statement must not outlive its database.
class Statement {
 public:
  Statement(Statement&&) = default;
  Statement& operator=(Statement&&) = default;

  Statement& Bind(int64_t value);
  Statement& Bind(uint64_t value) { return Bind(static_cast<int64_t>(value)); }
  Statement& Bind(uint32_t value) { return Bind(static_cast<int64_t>(value)); }
  Statement& Bind(int value) { return Bind(static_cast<int64_t>(value)); }
  Statement& Bind(double value);
  Statement& Bind(std::string_view text);
  Statement& Bind(const char* text) { return Bind(std::string_view(text)); }
  Statement& Bind(const std::string& text) { return Bind(std::string_view(text)); }
  Statement& Bind(std::span<const std::byte> blob);
  Statement& BindNull();

  Result<bool> Step();  // true: a row is there
  Status Run();         // steps to the end and resets, ready to be bound again
  void Reset();

  int columns() const;
  std::string ColumnName(int column) const;
  bool IsNull(int column) const;
  bool IsInteger(int column) const;
  bool IsNumber(int column) const;  // integer or real
  int64_t Integer(int column) const;
  double Real(int column) const;
  std::string Text(int column) const;
  std::span<const std::byte> Blob(int column) const;  // valid until the next Step or Reset

 private:
  friend class Database;
  struct Finalizer {
    void operator()(sqlite3_stmt* handle) const;
  };
  explicit Statement(sqlite3_stmt* handle) : handle_(handle) {}

  std::unique_ptr<sqlite3_stmt, Finalizer> handle_;
  int next_parameter_ = 1;
  bool bind_failed_ = false;
};

// Rolls back unless Commit was called.
class Transaction {
 public:
  static Result<Transaction> Begin(Database* database);
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Status Commit();

 private:
  explicit Transaction(Database* database) : database_(database) {}
  Database* database_;
};

}  // namespace heddle::sqlite
