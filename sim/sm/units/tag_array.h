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
        tags_(size_t{ways_} * sets_),
        entries_(size_t{ways_} * sets_) {}

  // The cycle at which the line arrives (in the past if it is here), or null. `line` is a line number, not
  // 0-based within a set. A line that is found becomes the most recently used.
  Cycle* Find(uint64_t line) {
    const size_t set = line % sets_ * ways_;
    // Without a way out in the middle, this compares several tags at a time.
    uint32_t way = ways_;
    for (uint32_t i = 0; i < ways_; ++i) way = tags_[set + i] == line + 1 ? i : way;
    if (way == ways_) return nullptr;
    entries_[set + way].used = ++clock_;
    return &entries_[set + way].arrival;
  }

  static constexpr uint64_t kNoLine = ~uint64_t{0};

  // Replaces the least recently used line that has arrived and returns it (kNoLine: none); when all are on their way,
  // the new line is not kept.
  uint64_t Insert(uint64_t line, Cycle arrival) {
    const size_t set = line % sets_ * ways_;
    size_t victim = entries_.size();
    for (size_t i = set; i < set + ways_; ++i)
      if (entries_[i].arrival != kOnItsWay &&
          (victim == entries_.size() || entries_[i].used < entries_[victim].used))
        victim = i;
    if (victim == entries_.size()) return kNoLine;
    const uint64_t replaced = tags_[victim] - 1;
    tags_[victim] = line + 1;
    entries_[victim] = {arrival, ++clock_};
    return replaced;
  }

  void Clear() {
    std::fill(tags_.begin(), tags_.end(), 0);
    std::fill(entries_.begin(), entries_.end(), Entry{});
  }

 private:
  struct Entry {
    Cycle arrival = 0;
    uint64_t used = 0;
  };

  uint32_t ways_;
  uint32_t sets_;
  uint64_t clock_ = 0;
  std::vector<uint64_t> tags_;  // line + 1, by set and way; 0: empty
  std::vector<Entry> entries_;
};

}  // namespace heddle::sm
