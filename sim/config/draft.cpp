#include "sim/config/draft.h"

#include <fmt/core.h>

#include <algorithm>

namespace heddle::config {
namespace {

// The path of the enclosing message: "sm.operations[3].op" -> "sm.operations[3]" -> "sm.operations" -> "sm"
// -> "".
std::string Parent(const std::string& path) {
  const size_t end = path.find_last_of(".[");
  return end == std::string::npos ? "" : path.substr(0, end);
}

// Whether `path` is `outer` or stands in it.
bool Within(std::string_view path, std::string_view outer) {
  if (!path.starts_with(outer)) return false;
  return path.size() == outer.size() || path[outer.size()] == '.' || path[outer.size()] == '[';
}

}  // namespace

std::string Location::ToString() const {
  return line == 0 ? file : fmt::format("{}:{}:{}", file, line, column);
}

std::string Join(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : path + "." + std::string(name);
}

std::string Element(const std::string& path, int index) { return fmt::format("{}[{}]", path, index); }

const Location& Draft::LocationOf(std::string path) const {
  for (;;) {
    if (const auto found = locations_.find(path); found != locations_.end()) return found->second;
    path = Parent(path);
  }
}

const Location& Draft::LatestLocation(std::span<const std::string> paths) const {
  const std::string& own_file = locations_.at("").file;
  const auto rank = [&](const Location& location) {
    return location.file.starts_with("--set ") ? 2 : (location.file == own_file ? 1 : 0);
  };
  const Location* latest = nullptr;
  for (const std::string& path : paths) {
    const Location& location = LocationOf(path);
    if (latest == nullptr || rank(location) > rank(*latest)) latest = &location;
  }
  return *latest;
}

void Draft::ForgetElements(const std::string& path) {
  const std::string first = path + "[";
  auto it = locations_.lower_bound(first);
  while (it != locations_.end() && it->first.starts_with(first)) it = locations_.erase(it);
}

void Draft::ReportAt(const Location& location, const std::string& path, const std::string& message) {
  broken_.insert(path);
  faults_.emplace_back(location, path.empty() ? message : path + ": " + message);
}

void Draft::ReportSyntaxError(const Location& location, const std::string& message) {
  faults_.clear();
  faults_.emplace_back(location, message);
  has_syntax_error_ = true;
}

bool Draft::IsBroken(const std::string& path) const {
  return std::any_of(broken_.begin(), broken_.end(), [&](const std::string& broken) {
    return !broken.empty() && (Within(path, broken) || Within(broken, path));
  });
}

std::string Draft::FaultsToString() const {
  constexpr size_t kMostShown = 100;
  auto sorted = faults_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string out;
  for (size_t i = 0; i < std::min(sorted.size(), kMostShown); ++i) {
    if (i > 0) out += '\n';
    out += sorted[i].first.ToString() + ": error: " + sorted[i].second;
  }
  if (sorted.size() > kMostShown) out += fmt::format("\nand {} more", sorted.size() - kMostShown);
  return out;
}

}  // namespace heddle::config
