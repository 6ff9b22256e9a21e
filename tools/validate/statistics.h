// Errors of many rows in a few numbers.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::validate {

struct Pair {
  double measured = 0;
  double simulated = 0;

  double ErrorPercent() const { return 100 * (simulated / measured - 1); }
};

struct Summary {
  size_t count = 0;
  double median_abs_error_percent = 0;
  // By linear interpolation between ranks, as numpy.percentile; none below three pairs, of which it would say no more than the
  // largest error does.
  std::optional<double> p90_abs_error_percent;
  double mape_percent = 0;
  double mean_error_percent = 0;  // with its sign
  std::optional<double>
      correlation;  // Pearson's, of the logarithms; none below three pairs or where one side is constant
};

// Of no pairs: `count` is 0, and the others mean nothing.
Summary Summarise(const std::vector<Pair>& pairs);

// With so many digits behind the point, and the unit behind it; "-" for none.
std::string StatisticText(const std::optional<double>& value, int digits, std::string_view unit = {});

// null for none. Json: nlohmann::json or ordered_json.
template <typename Json>
Json StatisticJson(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace heddle::validate
