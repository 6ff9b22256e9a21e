#include "tools/report/text.h"

#include <fmt/format.h>

#include <cmath>

namespace heddle::report {
namespace {

// Three digits with a metric prefix: 1.94 T.
std::string WithPrefix(double value) {
  constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t prefix = 0;
  while (std::abs(value) >= 999.5 && prefix + 1 < std::size(kPrefixes)) value /= 1000, ++prefix;
  const int decimals = value == std::floor(value) && prefix == 0 ? 0
                       : std::abs(value) < 9.995                 ? 2
                       : std::abs(value) < 99.95                 ? 1
                                                                 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, kPrefixes[prefix]);
}

std::string WithCommas(double value) {
  std::string text = fmt::format("{:.0f}", value);
  for (int i = static_cast<int>(text.size()) - 3; i > (value < 0 ? 1 : 0); i -= 3)
    text.insert(static_cast<size_t>(i), ",");
  return text;
}

}  // namespace

std::string ShortName(const std::string& name, size_t most) {
  constexpr size_t kEnd = 6;
  if (name.size() <= most || most < 2 * kEnd) return name;
  return name.substr(0, most - kEnd - 3) + "..." + name.substr(name.size() - kEnd);
}

std::string HumanSeconds(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.{}f} us", seconds * 1e6, seconds < 1e-4 ? 2 : 1);
}

std::string HumanSeconds(double seconds, double interval_seconds) {
  if (interval_seconds <= 0 || seconds <= 0) return HumanSeconds(seconds);
  return fmt::format("{} +-{:.1f} %", HumanSeconds(seconds), 100 * interval_seconds / seconds);
}

std::string Human(double value, const std::string& unit) {
  if (unit == "ps") return HumanSeconds(value / 1e12);
  if (unit == "%") return fmt::format("{:.1f} %", value);
  if (unit == "byte/s") return WithPrefix(value) + "B/s";
  if (unit == "op/s") return WithPrefix(value) + "op/s";
  if (unit == "byte") return WithPrefix(value) + "B";
  if (unit == "Hz") return fmt::format("{:.0f} MHz", value / 1e6);
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
  const std::string text = whole || std::abs(value) >= 1e4 ? WithCommas(value) : fmt::format("{:.2f}", value);
  return unit.empty() ? text : text + " " + unit;
}

}  // namespace heddle::report
