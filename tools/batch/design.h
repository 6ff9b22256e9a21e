// The designs of a sweep: which values of its axes go together.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/result.h"
#include "tools/batch/axis.h"

namespace heddle::batch {

enum class Shape : uint8_t {
  kGrid,      // every combination, the last axis moves first
  kList,      // the i-th values of all axes together; they have equally many
  kRandom,    // `samples` different points of the grid, drawn with `seed`
  kOneByOne,  // the base, and each value of each axis with everything else as in the base
};

struct Space {
  std::vector<Axis> axes;
  Shape shape = Shape::kGrid;
  uint32_t samples = 0;
  uint64_t seed = 1;
};

using Assignments = std::vector<std::pair<std::string, std::string>>;  // path, value

inline constexpr size_t kMostDesigns = 1'000'000;

// In the order of the table. An empty list of assignments is the base itself.
Result<std::vector<Assignments>> Enumerate(const Space& space);

// "sm.count=144 l2.size_bytes=100Mi", "base" for none.
std::string Label(const Assignments& assignments);

}  // namespace heddle::batch
