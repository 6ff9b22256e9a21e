#include "frontend/import/shapes.h"

#include <functional>

#include "frontend/import/recorded_format.h"

namespace heddle::importer {
namespace {

constexpr size_t kMostSeenOnce = size_t{1} << 20;

bool IsStride(const Shape& shape) {
  for (uint32_t i = 2; i < shape.lanes; ++i)
    if (shape.offset[i] != shape.offset[i - 1] + shape.offset[1]) return false;
  return true;
}

}  // namespace

void PutDeltas(const Shape& shape, uint32_t lanes, std::string* out) {
  for (uint32_t i = 1; i < lanes; ++i) PutNumber(Zigzag(shape.offset[i] - shape.offset[i - 1]), out);
}

uint32_t ShapeTable::Find(const Shape& shape) {
  std::string key;
  const bool stride = IsStride(shape);
  if (stride) {
    PutNumber(0, &key);
    PutDeltas(shape, 2, &key);
  } else {
    PutNumber(shape.lanes - 1, &key);
    PutDeltas(shape, shape.lanes, &key);
  }
  if (const auto found = known_.find(key); found != known_.end()) return found->second + 1;
  if (known_.size() >= kMostShapes) return 0;
  if (!stride) {
    const uint64_t hash = std::hash<std::string>()(key);
    const auto once = seen_once_.find(hash);
    if (once == seen_once_.end()) {
      if (seen_once_.size() < kMostSeenOnce) seen_once_.insert(hash);
      return 0;
    }
    seen_once_.erase(once);
  }
  const auto number = static_cast<uint32_t>(known_.size());
  bytes_ += key;
  known_.emplace(std::move(key), number);
  return number + 1;
}

Result<std::vector<Shape>> ReadShapes(std::string_view bytes, const std::string& place) {
  std::vector<Shape> shapes;
  NumberReader reader(bytes);
  while (reader.good() && !reader.AtEnd() && shapes.size() <= kMostShapes) {
    const uint64_t further = reader.Next();
    if (further >= kWarpLanes) break;
    Shape& shape = shapes.emplace_back();
    const bool is_stride = further == 0;  // and holds for any number of lanes
    shape.lanes = is_stride ? kWarpLanes : static_cast<uint32_t>(further) + 1;
    const uint64_t stride = is_stride ? reader.NextSigned() : 0;
    for (uint32_t i = 1; i < shape.lanes; ++i)
      shape.offset[i] = shape.offset[i - 1] + (is_stride ? stride : reader.NextSigned());
  }
  if (reader.good() && reader.AtEnd()) return shapes;
  return Error{ExitCode::kTrace, place, "the table of access shapes cannot be read",
               "the file is damaged: copy it again, or import the trace again"};
}

}  // namespace heddle::importer
