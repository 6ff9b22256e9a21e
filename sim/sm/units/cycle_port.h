// A port that serves one thing a cycle, reserved ahead: which of its cycles are taken, as bits.
//
// The same as an engine::Calendar of one unit and bucket a cycle, but a reservation of many cycles is a few
// operations on words.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/types.h"

namespace heddle::sm {

class CyclePort {
 public:
  // No later reservation will ask for a cycle before `cycle`.
  void AdvanceTo(Cycle cycle) {
    const uint64_t word = cycle / 64;
    for (uint64_t i = base_; i < std::min(word, end_); ++i) busy_[i & mask_] = 0;
    base_ = std::max(base_, word);
  }

  // Takes the first `cycles` (> 0) free ones from `from` on, not necessarily adjacent; returns the cycle behind the
  // last.
  Cycle Reserve(Cycle from, uint32_t cycles) {
    uint64_t word = from / 64;
    HEDDLE_CHECK(word >= base_, "sm.cycle_port", from, "reserved in the past");
    uint64_t allowed = ~uint64_t{0} << from % 64;
    for (;; ++word, allowed = ~uint64_t{0}) {
      if (word >= end_) Extend(word);
      uint64_t& busy = busy_[word & mask_];
      const uint64_t free = ~busy & allowed;
      const auto count = static_cast<uint32_t>(std::popcount(free));
      if (count < cycles) {
        busy |= free;
        cycles -= count;
        continue;
      }
      uint64_t left = free;
      for (; cycles > 0; --cycles) left &= left - 1;
      busy |= free ^ left;
      return word * 64 + static_cast<uint64_t>(std::bit_width(free ^ left));
    }
  }

 private:
  void Extend(uint64_t word) {
    if (word - base_ >= busy_.size()) {
      std::vector<uint64_t> larger(std::bit_ceil(2 * (word - base_ + 1)));
      for (uint64_t i = base_; i < end_; ++i) larger[i & (larger.size() - 1)] = busy_[i & mask_];
      busy_ = std::move(larger);
      mask_ = busy_.size() - 1;
    }
    end_ = word + 1;
  }

  uint64_t base_ = 0;  // word of the earliest cycle that may be asked for
  uint64_t end_ = 0;   // words from here on are empty
  uint64_t mask_ = 15;
  std::vector<uint64_t> busy_ = std::vector<uint64_t>(16);  // ring of words
};

}  // namespace heddle::sm
