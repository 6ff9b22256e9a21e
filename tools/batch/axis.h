// One axis of a sweep: a field of the machine description and the values that it takes.
//
//   sm.count=132,144,192                    a list
//   sm.count=[132:192:12]                   132 to 192 in steps of 12; [1:4] in steps of 1
//   sm.l1.unified_size_bytes=[128Ki:512Ki:x2]  each twice the last. Where the first value times the factor is past the end,
//                                           so that it alone would be left, the number is the step: [132:192:x12]
//   sms_per_gpc=[18,18];[16,16]             values of a list, set apart by semicolons
//
// Fields, units and suffixes are those of `--set`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"

namespace heddle::batch {

struct Axis {
  std::string path;
  std::vector<std::string> values;  // as --set takes them, in the order of the sweep, each once
};

// Errors: no path, no values, a range that ends before it starts or does not move, more than kMostValues values.
inline constexpr size_t kMostValues = 100'000;
Result<Axis> ParseAxis(std::string_view text);
Result<std::vector<std::string>> ParseValues(const std::string& path, std::string_view text);

// The shortest text that --set reads as this number; whole numbers without a point.
std::string NumberText(double value);

}  // namespace heddle::batch
