#include "tools/batch/design.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>

namespace heddle::batch {
namespace {

Error Bad(const std::string& message, const std::string& next) {
  return {ExitCode::kUsage, "--axis", message, next};
}

// How many points the grid has; kMostDesigns + 1 for anything beyond 2^62.
uint64_t GridSize(const std::vector<Axis>& axes) {
  uint64_t size = 1;
  for (const Axis& axis : axes) {
    if (size > (uint64_t{1} << 62) / axis.values.size()) return uint64_t{1} << 62;
    size *= axis.values.size();
  }
  return size;
}

Assignments GridPoint(const std::vector<Axis>& axes, uint64_t index) {
  Assignments point(axes.size());
  for (size_t i = axes.size(); i-- > 0;) {
    point[i] = {axes[i].path, axes[i].values[index % axes[i].values.size()]};
    index /= axes[i].values.size();
  }
  return point;
}

Result<std::vector<Assignments>> Grid(const Space& space) {
  const uint64_t size = GridSize(space.axes);
  if (size > kMostDesigns) {
    return Bad(fmt::format("the grid has more than {} designs", kMostDesigns),
               "draw some of them: --shape random --samples N");
  }
  std::vector<Assignments> designs;
  for (uint64_t i = 0; i < size; ++i) designs.push_back(GridPoint(space.axes, i));
  return designs;
}

Result<std::vector<Assignments>> List(const Space& space) {
  std::vector<Assignments> designs(space.axes.empty() ? 0 : space.axes.front().values.size());
  for (const Axis& axis : space.axes) {
    if (axis.values.size() != designs.size()) {
      return Bad(fmt::format("{} has {} values, {} has {}: in a list they go together, one by one", axis.path,
                             axis.values.size(), space.axes.front().path, designs.size()),
                 "give each axis as many values, or leave --shape list out for all combinations");
    }
    for (size_t i = 0; i < designs.size(); ++i) designs[i].emplace_back(axis.path, axis.values[i]);
  }
  return designs;
}

// Drawn by rejection: mt19937_64's numbers are the same everywhere, the standard library's distributions are not.
Result<std::vector<Assignments>> Random(const Space& space) {
  const uint64_t size = GridSize(space.axes);
  if (space.samples == 0) return Bad("--shape random draws 0 designs", "say how many: --samples N");
  if (space.samples > kMostDesigns) return Bad(fmt::format("more than {} designs", kMostDesigns), "");
  if (space.samples >= size) return Grid(space);
  std::mt19937_64 generator(space.seed);
  std::set<uint64_t> seen;
  std::vector<Assignments> designs;
  while (designs.size() < space.samples) {
    const uint64_t index = generator() % size;
    if (seen.insert(index).second) designs.push_back(GridPoint(space.axes, index));
  }
  return designs;
}

std::vector<Assignments> OneByOne(const Space& space) {
  std::vector<Assignments> designs = {{}};
  for (const Axis& axis : space.axes)
    for (const std::string& value : axis.values) designs.push_back({{axis.path, value}});
  return designs;
}

}  // namespace

Result<std::vector<Assignments>> Enumerate(const Space& space) {
  std::set<std::string> paths;
  for (const Axis& axis : space.axes) {
    if (!paths.insert(axis.path).second) {
      return Bad(fmt::format("{} is an axis twice", axis.path), "join their values in one --axis");
    }
  }
  switch (space.shape) {
    case Shape::kList:
      return List(space);
    case Shape::kRandom:
      return Random(space);
    case Shape::kOneByOne:
      return OneByOne(space);
    case Shape::kGrid:
      break;
  }
  return Grid(space);
}

std::string Label(const Assignments& assignments) {
  std::string label;
  for (const auto& [path, value] : assignments)
    label += fmt::format("{}{}={}", label.empty() ? "" : " ", path, value);
  return label.empty() ? "base" : label;
}

}  // namespace heddle::batch
