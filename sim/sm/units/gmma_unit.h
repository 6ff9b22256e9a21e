// The order in which matrix instructions of warpgroups (wgmma) begin and end.
//
// Four warps of a warpgroup issue the same instructions, each on its own sub-core; an instruction begins on the four
// tensor cores together when the last of them has issued it, in the order of issue. A few of each warp may have
// issued and not begun. What a warp waits for are groups: an instruction with gsb0 closes one, which ends with that
// instruction; WARPGROUP.DEPBAR.LE gsb0, n waits until at most n groups are left.
//
// State only: when an instruction begins is the stage's decision (stages/warpgroup.cpp).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/types.h"
#include "sim/sm/units/dependence_counters.h"

namespace heddle::sm {

inline constexpr uint32_t kWarpgroupWarps = 4;

// Issues of one warp: `entries` of them may wait for their beginning.
class GmmaQueue {
 public:
  explicit GmmaQueue(uint32_t entries) : begins_(entries, 0) {}

  // kUnknown while the oldest entry waits for other warps.
  Cycle FreeAt() const { return begins_[next_ % begins_.size()]; }
  uint32_t Push() {
    begins_[next_ % begins_.size()] = kUnknown;
    return next_++;
  }
  void Begin(uint32_t ticket, Cycle at) { begins_[ticket % begins_.size()] = at; }
  void Clear() { begins_.assign(begins_.size(), 0); }

 private:
  uint32_t next_ = 0;
  std::vector<Cycle> begins_;  // ring, by ticket
};

class Warpgroup {
 public:
  static constexpr uint32_t kWindow = 64;  // instructions by which its warps may be apart

  void Start(uint32_t warps) {
    *this = Warpgroup{};
    warps_ = warps;
  }
  // Member `m` issues its next instruction; returns its number.
  uint32_t Issue(uint32_t m, Cycle at, uint32_t queue_ticket, uint32_t group_ticket) {
    const uint32_t number = issued_[m]++;
    HEDDLE_CHECK(number - begun_ < kWindow, "gmma", at, "warps of a warpgroup are too far apart");
    Entry& entry = entries_[number % kWindow];
    if (entry.arrived == 0) entry.last = 0;
    entry.last = std::max(entry.last, at);
    entry.queue_ticket[m] = queue_ticket;
    entry.group_ticket[m] = group_ticket;
    ++entry.arrived;
    return number;
  }
  struct Entry {
    uint32_t arrived = 0;
    Cycle last = 0;  // issue
    std::array<uint32_t, kWarpgroupWarps> queue_ticket{};
    std::array<uint32_t, kWarpgroupWarps> group_ticket{};
  };
  // The next one to begin, when all warps have issued it; else null.
  const Entry* Ready() const {
    const Entry& entry = entries_[begun_ % kWindow];
    return warps_ != 0 && entry.arrived == warps_ ? &entry : nullptr;
  }
  void Begin() { entries_[begun_++ % kWindow].arrived = 0; }
  uint32_t warps() const { return warps_; }
  uint32_t Lag(uint32_t m) const { return issued_[m] - begun_; }  // issued, not begun

 private:
  uint32_t warps_ = 0;
  uint32_t begun_ = 0;
  std::array<uint32_t, kWarpgroupWarps> issued_{};
  std::array<Entry, kWindow> entries_{};
};

}  // namespace heddle::sm
