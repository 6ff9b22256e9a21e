#include "tools/batch/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "sim/config/describe.h"

namespace heddle::batch {
namespace {

Error Bad(const std::string& path, std::string_view text, const std::string& message) {
  return {ExitCode::kUsage, fmt::format("--axis {}={}", path, text), message,
          "write a list 1,2,4, steps [1:9:2] or factors [1:64:x2]"};
}

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = std::min(text.find(separator), text.size());
    std::string_view part = text.substr(0, end);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    parts.emplace_back(part);
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

struct Range {
  double first = 0;
  double last = 0;
  double step = 1;
  bool factor = false;

  // Computed from the first value each time, so that rounding does not add up.
  double At(size_t i) const {
    return factor ? first * std::pow(step, static_cast<double>(i)) : first + step * static_cast<double>(i);
  }
};

Result<std::vector<std::string>> Expand(const std::string& path, std::string_view text, Range range) {
  if (range.last < range.first) return Bad(path, text, "is empty: it ends before it starts");
  if (range.factor && range.first * range.step > range.last) range.factor = false;
  if (range.factor ? !(range.step > 1 && range.first > 0) : !(range.step > 0)) {
    return Bad(path, text, "never moves on: steps are above 0, factors above 1");
  }
  const double most = range.last + 1e-9 * std::max(std::abs(range.last), range.step);
  std::vector<std::string> values;
  for (size_t i = 0; range.At(i) <= most; ++i) {
    if (i == kMostValues) return Bad(path, text, fmt::format("has more than {} values", kMostValues));
    values.push_back(NumberText(range.At(i)));
  }
  return values;
}

Result<std::vector<std::string>> ParseRange(const std::string& path, std::string_view text) {
  const std::vector<std::string> parts = Split(text.substr(1, text.size() - 2), ':');
  if (parts.size() > 3) return Bad(path, text, "is no range: [first:last:step]");
  Range range;
  if (parts.size() == 3) range.factor = parts[2].starts_with('x');
  const std::array<std::pair<double*, std::string_view>, 3> numbers = {{
      {&range.first, parts[0]},
      {&range.last, parts[1]},
      {&range.step, parts.size() == 3 ? std::string_view(parts[2]).substr(range.factor ? 1 : 0) : "1"},
  }};
  for (const auto& [number, word] : numbers) {
    const std::optional<double> value = config::ParseNumber(word);
    if (!value) return Bad(path, text, fmt::format("'{}' is no number", word));
    *number = *value;
  }
  return Expand(path, text, range);
}

}  // namespace

std::string NumberText(double value) {
  const double near = std::round(value);
  if (std::abs(value - near) <= 1e-9 * std::max(1.0, std::abs(value)) && std::abs(near) < 0x1p63) {
    return fmt::format("{}", static_cast<int64_t>(near));
  }
  return fmt::format("{:.12g}", value);
}

Result<std::vector<std::string>> ParseValues(const std::string& path, std::string_view text) {
  const bool bracketed = text.starts_with('[') && text.ends_with(']');
  if (bracketed && text.find(':') != std::string_view::npos) return ParseRange(path, text);
  if (text.starts_with('[') && text.find(']') == std::string_view::npos)
    return Bad(path, text, "has no ] for its [");
  std::vector<std::string> values;
  for (std::string& value : Split(text, text.starts_with('[') ? ';' : ',')) {
    if (value.empty()) return Bad(path, text, "has an empty value");
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(std::move(value));
  }
  return values;
}

Result<Axis> ParseAxis(std::string_view text) {
  // Keys of list elements may hold anything but '='.
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return Error{ExitCode::kUsage, fmt::format("--axis {}", text), "is not PATH=VALUES",
                 "as in --axis 'sm.count=[132:192:12]'"};
  }
  Axis axis{std::string(text.substr(0, equals)), {}};
  HEDDLE_ASSIGN_OR_RETURN(axis.values, ParseValues(axis.path, text.substr(equals + 1)));
  axis.path = config::CanonicalPath(axis.path);
  return axis;
}

}  // namespace heddle::batch
