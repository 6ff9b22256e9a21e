#include "frontend/profile/units.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>

namespace heddle::profile {
namespace {

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

std::string Lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

// Groups of three behind commas only, so that "1,2" (a list, or another country's decimals) is refused.
bool CommasGroupThousands(std::string_view text) {
  const size_t first = text.find(',');
  if (first == std::string_view::npos) return true;
  const size_t dot = text.find('.');
  const std::string_view whole = text.substr(0, dot);
  if (dot != std::string_view::npos && text.substr(dot).find(',') != std::string_view::npos) return false;
  size_t digits = 0;
  for (size_t i = whole.size(); i-- > 0;) {
    if (whole[i] == ',') {
      if (digits != 3 || i == 0) return false;
      digits = 0;
    } else if (std::isdigit(static_cast<unsigned char>(whole[i]))) {
      ++digits;
    } else if (i != 0) {
      return false;
    }
  }
  return digits >= 1 && digits <= 3;
}

// One side of a quotient.
BaseUnit SimpleUnit(const std::string& unit) {
  struct Known {
    std::string_view name;
    std::string_view base;
    double factor;
  };
  static constexpr Known kKnown[] = {
      {"s", "ps", 1e12},      {"second", "ps", 1e12}, {"sec", "ps", 1e12},       {"ms", "ps", 1e9},
      {"msecond", "ps", 1e9}, {"us", "ps", 1e6},      {"usecond", "ps", 1e6},    {"µs", "ps", 1e6},
      {"ns", "ps", 1e3},      {"nsecond", "ps", 1e3}, {"nanosecond", "ps", 1e3}, {"ps", "ps", 1},
      {"psecond", "ps", 1},   {"hz", "hz", 1},        {"khz", "hz", 1e3},        {"mhz", "hz", 1e6},
      {"ghz", "hz", 1e9},     {"byte", "byte", 1},    {"b", "byte", 1},          {"bytes", "byte", 1},
      {"percent", "%", 1},
  };
  const std::string lower = Lower(unit);
  for (const Known& known : kKnown) {
    if (lower == known.name) return {std::string(known.base), known.factor};
  }
  constexpr std::pair<char, double> kPrefixes[] = {
      {'k', 1e3}, {'m', 1e6}, {'g', 1e9}, {'t', 1e12}, {'p', 1e15}};
  for (const auto& [prefix, factor] : kPrefixes) {
    if (lower.empty() || lower[0] != prefix) continue;
    const std::string rest = lower.substr(1);
    for (const std::string_view base :
         {"byte", "b", "inst", "sector", "cycle", "request", "warp", "thread"}) {
      if (rest == base) return {base == "b" ? "byte" : std::string(base), factor};
    }
  }
  return {unit, 1};
}

}  // namespace

std::optional<double> ParseNumber(std::string_view text) {
  text = Trimmed(text);
  if (text.empty() || !CommasGroupThousands(text)) return std::nullopt;
  std::string digits;
  std::copy_if(text.begin(), text.end(), std::back_inserter(digits), [](char c) { return c != ','; });
  const char* begin = digits.data() + (digits[0] == '+' ? 1 : 0);
  double value = 0;
  const auto [end, error] = std::from_chars(begin, digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

BaseUnit ToBaseUnit(std::string_view text) {
  const std::string unit(Trimmed(text));
  const size_t slash = unit.find('/');
  if (slash == std::string::npos) return SimpleUnit(unit);
  const BaseUnit above = SimpleUnit(unit.substr(0, slash)), below = SimpleUnit(unit.substr(slash + 1));
  if (below.unit != "ps") return {above.unit + "/" + below.unit, above.factor / below.factor};
  // Rates are per second.
  const double per_second = above.factor * 1e12 / below.factor;
  if (above.unit == "cycle") return {"hz", per_second};
  return {above.unit + "/second", per_second};
}

std::optional<Dim3> ParseDim3(std::string_view text) {
  text = Trimmed(text);
  if (text.starts_with('(') && text.ends_with(')')) text = text.substr(1, text.size() - 2);
  std::array<uint32_t, 3> sizes{1, 1, 1};
  size_t count = 0;
  while (true) {
    text = Trimmed(text);
    if (count == sizes.size()) return std::nullopt;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), sizes[count]);
    if (error != std::errc() || sizes[count] == 0) return std::nullopt;
    ++count;
    text = Trimmed(text.substr(static_cast<size_t>(end - text.data())));
    if (text.empty()) return Dim3{sizes[0], sizes[1], sizes[2]};
    if (text[0] != ',' && text[0] != 'x') return std::nullopt;
    text.remove_prefix(1);
  }
}

}  // namespace heddle::profile
