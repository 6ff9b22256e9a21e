// Tags of a set-associative read-only cache with LRU replacement: which lines are here, or on their way and
// until when. Used for instructions and constants; the data cache has sectors and stands in l1_cache.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/prefetch.h"
#include "sim/base/types.h"
#include "sim/config/gpu_description.h"

namespace heddle::sm {

class TagArray {
 public:
  static constexpr Cycle kOnItsWay = ~Cycle{0};  // requested, arrival not known yet

  // `line_bytes`: what one entry stands for, if not the geometry's own line.
  // `clock`: where uses begin to be numbered.
  explicit TagArray(const config::CacheGeometry& geometry, uint32_t line_bytes = 0, uint32_t clock = 0)
      : ways_(std::max(1u, geometry.ways)),
        sets_(std::max(1u,
                       geometry.size_bytes / ((line_bytes != 0 ? line_bytes : geometry.line_bytes) * ways_))),
        clock_(clock),
        short_tags_(size_t{ways_} * sets_),
        used_(size_t{ways_} * sets_),
        entries_(size_t{ways_} * sets_) {}

  // The cycle at which the line arrives (in the past if it is here), or null. `line` is a line number, not
  // 0-based within a set. A line that is found becomes the most recently used.
  Cycle* Find(uint64_t line) {
    const size_t set = SetOf(line);
    uint16_t& found = found_[line % kHints];
    if (At(set, found).tag == line + 1) [[likely]] {
      used_[set * ways_ + found] = Tick();
      return &At(set, found).arrival;
    }
    // Without a way out in the middle, this compares several tags at a time.
    const auto short_tag = static_cast<uint32_t>(line + 1);
    const uint32_t* short_tags = short_tags_.data() + set * ways_;
    uint32_t way = ways_;
    for (uint32_t i = 0; i < ways_; ++i) way = short_tags[i] == short_tag ? i : way;
    if (way == ways_) return nullptr;
    if (At(set, way).tag != line + 1) {  // two lines whose lower halves are the same
      for (way = 0; way < ways_ && At(set, way).tag != line + 1;) ++way;
      if (way == ways_) return nullptr;
    }
    found = static_cast<uint16_t>(way);
    used_[set * ways_ + way] = Tick();
    return &At(set, way).arrival;
  }

  // Loads what Find will look at.
  void Prefetch(uint64_t line) const {
    heddle::Prefetch(&entries_[found_[line % kHints] * sets_ + SetOf(line)]);
  }

  static constexpr uint64_t kNoLine = ~uint64_t{0};

  // Replaces the least recently used line that has arrived and returns it (kNoLine: none); when all are on their way,
  // the new line is not kept.
  uint64_t Insert(uint64_t line, Cycle arrival) {
    const size_t set = SetOf(line);
    uint32_t way = LeastUsed(set);
    if (At(set, way).arrival == kOnItsWay) way = LeastUsedHere(set);
    if (way == ways_) return kNoLine;
    const uint64_t replaced = At(set, way).tag - 1;
    short_tags_[set * ways_ + way] = static_cast<uint32_t>(line + 1);
    used_[set * ways_ + way] = Tick();
    At(set, way) = {line + 1, arrival};
    return replaced;
  }

  void Clear() {
    std::fill(short_tags_.begin(), short_tags_.end(), 0);
    std::fill(used_.begin(), used_.end(), 0);
    std::fill(entries_.begin(), entries_.end(), Entry{});
  }

 private:
  struct Entry {
    uint64_t tag = 0;  // line + 1; 0: empty
    Cycle arrival = 0;
  };
  static constexpr uint64_t kHints = 64;

  Entry& At(size_t set, uint32_t way) { return entries_[way * sets_ + set]; }
  const Entry& At(size_t set, uint32_t way) const { return entries_[way * sets_ + set]; }

  size_t SetOf(uint64_t line) const {
    const bool power_of_two = (sets_ & (sets_ - 1)) == 0;  // a division takes as long as all else
    return power_of_two ? line & (sets_ - 1) : line % sets_;
  }

  // The first of a set's least recently used entries: as numbers side by side, so that it is found without a branch.
  uint32_t LeastUsed(size_t set) const {
    const uint32_t* used = used_.data() + set * ways_;
    uint32_t least = used[0];
    for (uint32_t i = 1; i < ways_; ++i) least = std::min(least, used[i]);
    uint32_t way = 0;
    for (uint32_t i = ways_; i-- > 0;) way = used[i] == least ? i : way;
    return way;
  }
  uint32_t LeastUsedHere(size_t set) const {  // ways_: none is here
    const uint32_t* used = used_.data() + set * ways_;
    uint32_t victim = ways_;
    for (uint32_t way = 0; way < ways_; ++way)
      if (At(set, way).arrival != kOnItsWay && (victim == ways_ || used[way] < used[victim])) victim = way;
    return victim;
  }

  uint32_t Tick() {
    if (clock_ == ~0u) [[unlikely]]
      Renumber();
    return ++clock_;
  }
  // Uses get the lowest numbers that keep their order.
  void Renumber() {
    std::vector<uint32_t> sorted = used_;
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    for (uint32_t& used : used_)
      used = static_cast<uint32_t>(std::lower_bound(sorted.begin(), sorted.end(), used) - sorted.begin());
    clock_ = static_cast<uint32_t>(sorted.size());
  }

  alignas(64)
      std::array<uint16_t, kHints> found_{};  // by the line's lowest bits: the way where it was found last
  uint32_t ways_;
  uint32_t sets_;
  uint32_t clock_;
  // By set and way. What a search looks at lies apart from what only the way that is found needs.
  std::vector<uint32_t> short_tags_;  // lower half of the tag
  std::vector<uint32_t> used_;        // when last, in ticks of clock_
  // By way and set: lines that follow each other, which mostly came one after the other, lie side by side.
  std::vector<Entry> entries_;
};

}  // namespace heddle::sm
