// Shapes of memory accesses: how far from its first active lane the others lie. A launch has few of them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/types.h"

namespace heddle::importer {

// Offsets of the active lanes from the first one, in the order of the lanes; the first is 0.
struct Shape {
  uint32_t lanes = 0;  // that `offset` is valid for
  std::array<uint64_t, kWarpLanes> offset{};
};

// Makes the table while a launch is recorded. A shape that is no stride gets its number when it is seen for the second
// time: those of scattered accesses never come back.
class ShapeTable {
 public:
  // Number + 1, or 0: to be stated where it is used. `lanes` of `shape` are given.
  uint32_t Find(const Shape& shape);

  // The table as bytes: for each shape a number, 0 for a stride or the number of lanes - 1, and the deltas.
  const std::string& bytes() const { return bytes_; }

 private:
  std::unordered_map<std::string, uint32_t> known_;
  std::unordered_set<uint64_t> seen_once_;
  std::string bytes_;
};

// Deltas from lane to lane.
void PutDeltas(const Shape& shape, uint32_t lanes, std::string* out);

Result<std::vector<Shape>> ReadShapes(std::string_view bytes, const std::string& place);

}  // namespace heddle::importer
