// Tags of a set-associative read-only cache with LRU replacement: which lines are here, or on their way and
// until when. Used for instructions and constants; the data cache has sectors and stands in l1_cache.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/base/types.h"
#include "sim/config/gpu_description.h"

namespace heddle::sm {

class TagArray {
 public:
  static constexpr Cycle kOnItsWay = ~Cycle{0};  // requested, arrival not known yet

  // `line_bytes`: what one entry stands for, if not the geometry's own line.
  explicit TagArray(const config::CacheGeometry& geometry, uint32_t line_bytes = 0)
      : ways_(std::max(1u, geometry.ways)),
        sets_(std::max(1u,
                       geometry.size_bytes / ((line_bytes != 0 ? line_bytes : geometry.line_bytes) * ways_))),
        entries_(size_t{ways_} * sets_) {}

  // The cycle at which the line arrives (in the past if it is here), or null. `line` is a line number, not
  // 0-based within a set. A line that is found becomes the most recently used.
  Cycle* Find(uint64_t line) {
    Entry* set = SetOf(line);
    for (uint32_t i = 0; i < ways_; ++i) {
      if (set[i].line_plus_1 == line + 1) {
        set[i].used = ++clock_;
        return &set[i].arrival;
      }
    }
    return nullptr;
  }

  // Replaces the least recently used line that has arrived; when all are on their way, the line is not kept.
  void Insert(uint64_t line, Cycle arrival) {
    Entry* set = SetOf(line);
    Entry* victim = nullptr;
    for (uint32_t i = 0; i < ways_; ++i)
      if (set[i].arrival != kOnItsWay && (victim == nullptr || set[i].used < victim->used)) victim = &set[i];
    if (victim != nullptr) *victim = {line + 1, arrival, ++clock_};
  }

  void Clear() { std::fill(entries_.begin(), entries_.end(), Entry{}); }

 private:
  struct Entry {
    uint64_t line_plus_1 = 0;
    Cycle arrival = 0;
    uint64_t used = 0;
  };
  Entry* SetOf(uint64_t line) { return &entries_[line % sets_ * ways_]; }

  uint32_t ways_;
  uint32_t sets_;
  uint64_t clock_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace heddle::sm
