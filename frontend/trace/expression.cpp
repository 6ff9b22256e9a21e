#include "frontend/trace/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <type_traits>

#include "sim/base/suggest.h"

namespace heddle::trace {
namespace {

constexpr int kMaxDepth = 64;

bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The arithmetic is FlashAttention's, in its precision.
int64_t FlashSplits(int64_t tiles, int64_t places, int64_t blocks, bool third_generation) {
  constexpr int64_t kMost = 128;
  if (static_cast<float>(tiles) >= 0.8f * static_cast<float>(places)) return 1;
  if (third_generation && blocks <= 4) return 1;
  const int64_t most = std::min({kMost, places, blocks});
  const auto blocks_of = [&](int64_t splits) { return (blocks + splits - 1) / splits; };
  const auto eligible = [&](int64_t splits) {
    return third_generation || splits == 1 || blocks_of(splits) != blocks_of(splits - 1);
  };
  const auto efficiency = [&](int64_t splits) {
    const float rounds = static_cast<float>(tiles * splits) / static_cast<float>(places);
    return rounds / std::ceil(rounds);
  };
  float best = 0;
  for (int64_t splits = 1; splits <= most; ++splits)
    if (eligible(splits)) best = std::max(best, efficiency(splits));
  for (int64_t splits = 1; splits <= most; ++splits)
    if (eligible(splits) && efficiency(splits) >= 0.85f * best) return splits;
  return 1;
}

// One recursive descent for both kinds of numbers. After the first error every method returns 0 at once.
template <typename Number>
class Evaluator {
 public:
  static constexpr bool kReal = std::is_same_v<Number, double>;

  Evaluator(std::string_view text, const Scope& scope) : text_(text), scope_(scope) {}

  Number Run() {
    const Number value = Comparison();
    SkipSpace();
    if (!failed() && at_ != text_.size()) Fail(fmt::format("unexpected '{}'", text_[at_]));
    if constexpr (kReal) {
      if (!failed() && !std::isfinite(value)) Fail("the value is not finite");
    }
    return value;
  }

  bool failed() const { return !message_.empty(); }
  const std::string& message() const { return message_; }
  const std::string& next_step() const { return next_step_; }
  size_t error_at() const { return error_at_; }

 private:
  Number Fail(std::string message, std::string next_step = "") {
    if (!failed()) {
      message_ = std::move(message);
      next_step_ = std::move(next_step);
      error_at_ = at_;
    }
    at_ = text_.size();
    return 0;
  }

  void SkipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }
  bool Accept(std::string_view token) {
    SkipSpace();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  Number Comparison() {
    const Number a = Sum();
    for (const std::string_view op : {"<=", ">=", "==", "!=", "<", ">"}) {
      if (!Accept(op)) continue;
      const Number b = Sum();
      if (op == "<=") return a <= b;
      if (op == ">=") return a >= b;
      if (op == "==") return a == b;
      if (op == "!=") return a != b;
      return op == "<" ? a < b : a > b;
    }
    return a;
  }

  Number Sum() {
    Number value = Product();
    for (;;) {
      if (Accept("+"))
        value = Add(value, Product());
      else if (Accept("-"))
        value = Add(value, Product(), true);
      else
        return value;
    }
  }

  Number Product() {
    Number value = Unary();
    for (;;) {
      if (Accept("*"))
        value = Multiply(value, Unary());
      else if (Accept("/"))
        value = Divide(value, Unary());
      else if (Accept("%"))
        value = Remainder(value, Unary());
      else
        return value;
    }
  }

  Number Unary() {
    if (++depth_ > kMaxDepth) return Fail("nested too deeply");
    Number value;
    if (Accept("-"))
      value = Add(Number{0}, Unary(), true);
    else
      value = Primary();
    --depth_;
    return value;
  }

  Number Primary() {
    SkipSpace();
    if (at_ == text_.size()) return Fail("the expression ends too early");
    if (Accept("(")) {
      const Number value = Comparison();
      if (!Accept(")")) return Fail("')' expected");
      return value;
    }
    if (IsDigit(text_[at_]) || (kReal && text_[at_] == '.')) return Literal();
    if (!IsNameStart(text_[at_])) return Fail(fmt::format("unexpected '{}'", text_[at_]));
    const size_t begin = at_;
    const std::string name = Word();
    if (Accept("(")) return Call(name, begin);
    const auto found = scope_.symbols.find(name);
    if (found != scope_.symbols.end()) return static_cast<Number>(found->second);
    if constexpr (kReal) {
      if (name == "pi") return std::numbers::pi;
    }
    at_ = begin;
    std::vector<std::string> known;
    for (const auto& [key, value] : scope_.symbols) known.push_back(key);
    const std::string near = Suggest(name, known);
    return Fail(fmt::format("'{}' is not defined", name),
                near.empty() ? "add it to `define`, or give it with --define NAME=VALUE"
                             : fmt::format("did you mean '{}'?", near));
  }

  std::string Word() {
    const size_t begin = at_;
    while (at_ < text_.size() && (IsNameStart(text_[at_]) || IsDigit(text_[at_]))) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  Number Literal() {
    const char* begin = text_.data() + at_;
    const char* end = text_.data() + text_.size();
    Number value = 0;
    std::from_chars_result parsed{};
    if constexpr (kReal) {
      parsed = std::from_chars(begin, end, value);
    } else {
      const bool hex = text_.substr(at_).starts_with("0x");
      parsed = std::from_chars(hex ? begin + 2 : begin, end, value, hex ? 16 : 10);
    }
    if (parsed.ec == std::errc::result_out_of_range) return Fail("the number does not fit");
    if (parsed.ec != std::errc()) return Fail("no number");
    at_ = static_cast<size_t>(parsed.ptr - text_.data());
    if (text_.substr(at_).starts_with("Ki")) return Suffix(value, 10);
    if (text_.substr(at_).starts_with("Mi")) return Suffix(value, 20);
    if (text_.substr(at_).starts_with("Gi")) return Suffix(value, 30);
    if (at_ < text_.size() && (IsNameStart(text_[at_]) || text_[at_] == '.'))
      return Fail(fmt::format("unexpected '{}'", text_[at_]));
    return value;
  }
  Number Suffix(Number value, int shift) {
    at_ += 2;
    return Multiply(value, static_cast<Number>(int64_t{1} << shift));
  }

  Number Call(const std::string& name, size_t begin) {
    if (name == "numel" || name == "nbytes" || name == "dim") return ShapeFunction(name);
    std::vector<Number> args;
    do args.push_back(Comparison());
    while (!failed() && Accept(","));
    if (failed()) return 0;
    if (!Accept(")")) return Fail("')' expected");
    const auto takes = [&](size_t count) { return args.size() == count; };
    if (name == "ceil_div" && takes(2)) return CeilDivide(args[0], args[1]);
    if (name == "round_up" && takes(2)) return Multiply(CeilDivide(args[0], args[1]), args[1]);
    if (name == "min") return *std::min_element(args.begin(), args.end());
    if (name == "max") return *std::max_element(args.begin(), args.end());
    if (name == "select" && takes(3)) return args[0] != 0 ? args[1] : args[2];
    if constexpr (!kReal) {
      if (name == "flash_splits" && (takes(3) || takes(4))) return Splits(args);
    }
    if constexpr (kReal) {
      if (name == "sqrt" && takes(1)) return std::sqrt(args[0]);
      if (name == "rsqrt" && takes(1)) return 1 / std::sqrt(args[0]);
      if (name == "exp" && takes(1)) return std::exp(args[0]);
      if (name == "log" && takes(1)) return std::log(args[0]);
      if (name == "log2" && takes(1)) return std::log2(args[0]);
    }
    at_ = begin;
    return Fail(fmt::format("no function {} of {} argument(s)", name, args.size()),
                kReal ? "there are ceil_div, round_up, min, max, select, sqrt, rsqrt, exp, log, log2, numel, "
                        "nbytes, dim"
                      : "there are ceil_div, round_up, min, max, select, flash_splits, numel, nbytes, dim");
  }

  int64_t Splits(const std::vector<int64_t>& args) {
    constexpr int64_t kMost = int64_t{1} << 31;
    for (size_t i = 0; i < 3; ++i)
      if (args[i] < 1 || args[i] > kMost)
        return Fail(fmt::format("flash_splits of {} tiles, {} places and {} blocks", args[0], args[1], args[2]),
                    "each must be from 1 to 2147483648");
    return FlashSplits(args[0], args[1], args[2], args.size() == 4 && args[3] != 0);
  }

  Number ShapeFunction(const std::string& name) {
    SkipSpace();
    const size_t begin = at_;
    const std::string buffer = Word();
    const auto found = scope_.buffers.find(buffer);
    if (found == scope_.buffers.end()) {
      at_ = begin;
      return Fail(fmt::format("'{}' is no buffer that is declared in front of this", buffer));
    }
    const Scope::Shape& shape = found->second;
    Number value = 1;
    if (name == "dim") {
      if (!Accept(",")) return Fail("',' expected: dim(buffer, index)");
      const Number index = Comparison();
      if (failed()) return 0;
      if (index < 0 || index >= static_cast<Number>(shape.dims.size()))
        return Fail(fmt::format("{} has {} dimensions", buffer, shape.dims.size()));
      value = static_cast<Number>(shape.dims[static_cast<size_t>(index)]);
    } else {
      for (const uint64_t dim : shape.dims) value = Multiply(value, static_cast<Number>(dim));
      if (name == "nbytes") value = Multiply(value, static_cast<Number>(shape.element_bytes));
    }
    if (!Accept(")")) return Fail("')' expected");
    return value;
  }

  Number Add(Number a, Number b, bool subtract = false) {
    if constexpr (kReal) {
      return subtract ? a - b : a + b;
    } else {
      Number result = 0;
      if (subtract ? __builtin_sub_overflow(a, b, &result) : __builtin_add_overflow(a, b, &result))
        return Overflow();
      return result;
    }
  }
  Number Multiply(Number a, Number b) {
    if constexpr (kReal) {
      return a * b;
    } else {
      Number result = 0;
      if (__builtin_mul_overflow(a, b, &result)) return Overflow();
      return result;
    }
  }
  Number Divide(Number a, Number b) {
    if (failed()) return 0;
    if (b == 0) return Fail("division by zero");
    if constexpr (!kReal) {
      if (b == -1) return Add(0, a, true);
    }
    return a / b;
  }
  Number Remainder(Number a, Number b) {
    if (failed()) return 0;
    if (b == 0) return Fail("division by zero");
    if constexpr (kReal) {
      return std::fmod(a, b);
    } else {
      return b == -1 ? 0 : a % b;
    }
  }
  Number CeilDivide(Number a, Number b) {
    if (b <= 0 || a < 0)
      return Fail("ceil_div and round_up take a value of at least 0 and a divisor above 0");
    if constexpr (kReal) {
      return std::ceil(a / b);
    } else {
      return a / b + (a % b != 0);
    }
  }
  Number Overflow() { return Fail("the value does not fit into 64 bits"); }

  std::string_view text_;
  const Scope& scope_;
  size_t at_ = 0;
  int depth_ = 0;
  std::string message_;
  std::string next_step_;
  size_t error_at_ = 0;
};

template <typename Number>
Result<Number> Evaluate(std::string_view text, const Scope& scope, const std::string& place) {
  Evaluator<Number> evaluator(text, scope);
  const Number value = evaluator.Run();
  if (!evaluator.failed()) return value;
  return Error{ExitCode::kTrace, place,
               fmt::format("\"{}\", column {}: {}", text, evaluator.error_at() + 1, evaluator.message()),
               evaluator.next_step().empty() ? "correct the expression" : evaluator.next_step()};
}

}  // namespace

Result<int64_t> EvaluateInteger(std::string_view text, const Scope& scope, const std::string& place) {
  return Evaluate<int64_t>(text, scope, place);
}

Result<double> EvaluateReal(std::string_view text, const Scope& scope, const std::string& place) {
  return Evaluate<double>(text, scope, place);
}

std::set<std::string> NamesIn(std::string_view text) {
  std::set<std::string> names;
  for (size_t i = 0; i < text.size();) {
    if (IsDigit(text[i])) {  // suffixes and exponents are no names
      while (i < text.size() && (IsDigit(text[i]) || IsNameStart(text[i]) || text[i] == '.')) ++i;
      continue;
    }
    if (!IsNameStart(text[i])) {
      ++i;
      continue;
    }
    const size_t begin = i;
    while (i < text.size() && (IsNameStart(text[i]) || IsDigit(text[i]))) ++i;
    const size_t end = i;
    while (i < text.size() && text[i] == ' ') ++i;
    if (i == text.size() || text[i] != '(') names.emplace(text.substr(begin, end - begin));
  }
  return names;
}

}  // namespace heddle::trace
