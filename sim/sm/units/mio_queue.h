// The memory instruction queue of one sub-core: a few entries, address generation at its head, and behind it
// the LSU that all sub-cores share. An entry is free again when the LSU has taken the request.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sim/config/gpu_description.h"
#include "sim/sm/units/cycle_port.h"

namespace heddle::sm {

class MioQueue {
 public:
  explicit MioQueue(const config::Mio& config)
      : address_interval_quarters_(static_cast<uint64_t>(std::lround(4 * config.address_interval_cycles))),
        issue_to_lsu_cycles_(config.issue_to_lsu_cycles),
        departures_(config.queue_entries, 0) {}

  Cycle FreeAt() const { return departures_[oldest_]; }

  // An instruction that issues at `at` (>= FreeAt()) and keeps the LSU busy for `lsu_cycles`. Returns the
  // cycle in which the LSU takes it: at + issue_to_lsu_cycles when nothing is in the way.
  Cycle Push(Cycle at, uint32_t lsu_cycles, CyclePort* lsu) {
    const uint64_t generated = std::max(4 * (at + issue_to_lsu_cycles_), next_address_quarters_);
    next_address_quarters_ = generated + address_interval_quarters_;
    // In order: a request never passes the one before it.
    const Cycle from = std::max((generated + 3) / 4, last_departure_);
    const Cycle taken = lsu->Reserve(from, lsu_cycles) - lsu_cycles;
    last_departure_ = taken;
    departures_[oldest_] = taken;
    oldest_ = oldest_ + 1 == departures_.size() ? 0 : oldest_ + 1;
    return taken;
  }

 private:
  uint64_t address_interval_quarters_;
  uint32_t issue_to_lsu_cycles_;
  uint64_t next_address_quarters_ = 0;
  Cycle last_departure_ = 0;
  size_t oldest_ = 0;
  std::vector<Cycle> departures_;  // ring: when the LSU took, or will take, the last queue_entries requests
};

}  // namespace heddle::sm
