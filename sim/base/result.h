// Errors that belong to the user (a file, a configuration, a command line) travel as values.
//
// Error carries where it happened and what to do next; ExitCode is the process exit status that it leads to.
// Errors of the model itself are not values: see check.h.
#pragma once

#include <cstdlib>
#include <string>
#include <utility>
#include <variant>

namespace heddle {

// Documented in README.md; stable.
enum class ExitCode : int {
  kOk = 0,
  kInternal = 1,       // the model contradicted itself
  kUsage = 2,          // command line
  kConfiguration = 3,  // machine description
  kTrace = 4,          // trace, cubin, launch description or database
  kDidNotFinish = 5,   // deadlock or a stated limit
  kGateFailed = 6,     // a comparison or check did not hold
  kInterrupted = 75,   // stopped by a signal; running again resumes
};

struct Error {
  ExitCode code = ExitCode::kInternal;
  std::string place;      // "file:line:column", "file @ offset 0x40", "--set sm.count"; may be empty
  std::string message;    // what is wrong, without a trailing full stop
  std::string next_step;  // what the user can do about it; may be empty

  // "place: message\n  next_step", leaving out what is empty.
  std::string ToString() const;
};

// A value or the Error that prevented it. value() and error() may only be asked for what ok() says is there.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : state_(std::move(error)) {}  // NOLINT: implicit on purpose

  bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }

  T& value() & { return std::get<T>(state_); }
  const T& value() const& { return std::get<T>(state_); }
  T&& value() && { return std::get<T>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const { return std::get<Error>(state_); }

 private:
  std::variant<T, Error> state_;
};

struct Unit {};
using Status = Result<Unit>;
inline Status Ok() { return Unit{}; }

}  // namespace heddle

// Evaluates a Result expression; returns its error from the enclosing function, or assigns the value to `lhs`.
#define HEDDLE_ASSIGN_OR_RETURN(lhs, expr) \
  HEDDLE_ASSIGN_OR_RETURN_IMPL_(HEDDLE_CONCAT_(heddle_result_, __LINE__), lhs, expr)
#define HEDDLE_ASSIGN_OR_RETURN_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                                  \
  if (!tmp.ok()) return tmp.error();                  \
  lhs = std::move(tmp).value()
#define HEDDLE_RETURN_IF_ERROR(expr)                                                   \
  do {                                                                                 \
    if (auto heddle_status = (expr); !heddle_status.ok()) return heddle_status.error(); \
  } while (false)
#define HEDDLE_CONCAT_(a, b) HEDDLE_CONCAT_IMPL_(a, b)
#define HEDDLE_CONCAT_IMPL_(a, b) a##b
