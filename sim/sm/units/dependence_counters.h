// The six dependence barriers (SB0 to SB5) of one warp.
//
// Hardware counts up at issue and down at operand read or write-back. What a waiting instruction asks is when
// the count is 0: the latest of the known decrements, or not known yet while a memory request is unanswered.
// DEPBAR.LE SBx, n asks when it is at most n; the decrements of a barrier that a kernel uses that way are
// kept in order.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "sim/base/types.h"
#include "sim/stats/launch_stats.h"

namespace heddle::sm {

inline constexpr uint32_t kBarriers = 6;
inline constexpr Cycle kUnknown = ~Cycle{0};

struct DependenceCounters {
  std::array<Cycle, kBarriers> zero_at{};        // latest known decrement
  std::array<uint16_t, kBarriers> unanswered{};  // increments whose decrement is not known yet
  std::array<stats::Stall, kBarriers> reason{};  // what a wait for it is called

  void Increment(uint32_t barrier, Cycle decrement_at, stats::Stall why) {
    zero_at[barrier] = std::max(zero_at[barrier], decrement_at);
    reason[barrier] = why;
  }
  void IncrementUnanswered(uint32_t barrier, stats::Stall why) {
    ++unanswered[barrier];
    reason[barrier] = why;
  }
  void Answer(uint32_t barrier, Cycle decrement_at) {
    --unanswered[barrier];
    zero_at[barrier] = std::max(zero_at[barrier], decrement_at);
  }
  Cycle ZeroAt(uint32_t barrier) const { return unanswered[barrier] != 0 ? kUnknown : zero_at[barrier]; }
};

// The decrements of one barrier in issue order; at most 63 are counted, as in the hardware's 6 bits.
class CountedBarrier {
 public:
  static constexpr uint32_t kCapacity = 64;

  // `decrement_at` may be kUnknown. Returns a ticket for Answer.
  uint32_t Push(Cycle decrement_at, Cycle now) {
    while (size_ > 0 && at_[first_ % kCapacity] <= now) ++first_, --size_;
    if (size_ == kCapacity) ++first_, --size_;
    const uint32_t ticket = first_ + size_++;
    at_[ticket % kCapacity] = decrement_at;
    return ticket;
  }
  void Answer(uint32_t ticket, Cycle decrement_at) {
    if (ticket - first_ < size_) at_[ticket % kCapacity] = decrement_at;
  }
  // When at most `count` are left; decrements happen in order.
  Cycle AtMost(uint32_t count) const {
    Cycle at = 0;
    for (uint32_t i = 0; i + count < size_; ++i) at = std::max(at, at_[(first_ + i) % kCapacity]);
    return at;
  }
  void Clear() { first_ = size_ = 0; }

 private:
  uint32_t first_ = 0;
  uint32_t size_ = 0;
  std::array<Cycle, kCapacity> at_{};
};

}  // namespace heddle::sm
