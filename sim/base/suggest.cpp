#include "sim/base/suggest.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace heddle {

size_t EditDistance(std::string_view from, std::string_view to) {
  std::vector<size_t> before(to.size() + 1), last(to.size() + 1), row(to.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= from.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= to.size(); ++j) {
      const size_t replaced = last[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[to.size()];
}

std::string Suggest(std::string_view name, std::span<const std::string> candidates) {
  // Longer than any name there is: not a slip of the fingers, and not worth a quadratic comparison.
  constexpr size_t kLongestName = 200;
  if (name.empty() || name.size() > kLongestName) return "";
  std::string best;
  size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const bool begins = name.size() >= 3 && candidate.starts_with(name);
    const size_t distance = begins ? 1 : EditDistance(name, candidate);
    if (distance < best_distance && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string DidYouMean(std::string_view name, std::span<const std::string> candidates) {
  const std::string best = Suggest(name, candidates);
  return best.empty() ? "" : "; did you mean \"" + best + "\"?";
}

}  // namespace heddle
