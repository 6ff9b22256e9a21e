#include "tools/validate/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace heddle::validate {
namespace {

constexpr size_t kFewestPairs = 3;  // of which a correlation or a high percentile says something

double Percentile(const std::vector<double>& sorted, double fraction) {
  const double rank = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(rank);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (rank - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

// Two pairs lie on a line whatever they are, and a constant goes along with nothing.
std::optional<double> Correlation(const std::vector<Pair>& pairs) {
  const auto is_constant = [&](double Pair::*side) {
    return std::all_of(pairs.begin(), pairs.end(),
                       [&](const Pair& pair) { return pair.*side == pairs.front().*side; });
  };
  if (pairs.size() < kFewestPairs || is_constant(&Pair::measured) || is_constant(&Pair::simulated))
    return std::nullopt;
  const auto count = static_cast<double>(pairs.size());
  double mean_x = 0, mean_y = 0;
  for (const Pair& pair : pairs) {
    mean_x += std::log(pair.measured) / count;
    mean_y += std::log(std::max(pair.simulated, 1e-300)) / count;
  }
  double xx = 0, yy = 0, xy = 0;
  for (const Pair& pair : pairs) {
    const double x = std::log(pair.measured) - mean_x,
                 y = std::log(std::max(pair.simulated, 1e-300)) - mean_y;
    xx += x * x, yy += y * y, xy += x * y;
  }
  const double correlation = xy / std::sqrt(xx * yy);
  return std::isfinite(correlation) ? std::optional(correlation) : std::nullopt;
}

}  // namespace

Summary Summarise(const std::vector<Pair>& pairs) {
  Summary summary;
  summary.count = pairs.size();
  if (pairs.empty()) return summary;
  std::vector<double> sizes;
  for (const Pair& pair : pairs) {
    const double error = pair.ErrorPercent();
    sizes.push_back(std::fabs(error));
    summary.mape_percent += std::fabs(error) / static_cast<double>(pairs.size());
    summary.mean_error_percent += error / static_cast<double>(pairs.size());
  }
  std::sort(sizes.begin(), sizes.end());
  summary.median_abs_error_percent = Percentile(sizes, 0.5);
  if (sizes.size() >= kFewestPairs) summary.p90_abs_error_percent = Percentile(sizes, 0.9);
  summary.correlation = Correlation(pairs);
  return summary;
}

std::string StatisticText(const std::optional<double>& value, int digits, std::string_view unit) {
  return value ? fmt::format("{:.{}f}{}", *value, digits, unit) : "-";
}

}  // namespace heddle::validate
