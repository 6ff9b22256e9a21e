// One DRAM channel: banks with one open row each, a data bus, write batches and refresh.
//
// Row hits follow from time alone: a request finds its row open when it arrives between the row's activation
// and the activation that closes it, which is what a first-ready scheduler gives it. Under load activations
// queue up in the banks' calendars, rows stay open longer, and hits rise. Writes gather in a buffer and go
// out in batches, each of which costs the bus one turn-around. Refresh closes the bus for a while at a fixed
// interval: the bus is reserved in time that leaves refreshes out.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/types.h"
#include "sim/config/gpu_description.h"
#include "sim/engine/calendar.h"
#include "sim/memory/address_map.h"
#include "sim/stats/launch_stats.h"

namespace heddle::memory {

class DramChannel {
 public:
  // `index` staggers refreshes between channels.
  DramChannel(const config::Gpu& gpu, uint32_t index);

  // `line`: number of the line in this channel. `at`: the request leaves the slice. Returns the arrival of
  // the last of `sectors` at the slice.
  Cycle Read(uint64_t line, uint32_t sectors, Cycle at, stats::Counters* counters);
  void Write(uint64_t line, uint32_t sectors, Cycle at, stats::Counters* counters);

  // No later call will have `at` before `cycle`.
  void AdvanceTo(Cycle cycle) { horizon_ = cycle; }
  void Reset();

 private:
  struct OpenRow {
    uint64_t row = ~uint64_t{0};
    Cycle ready = 0;   // its columns can be read
    Cycle closed = 0;  // the next activation of the bank starts
  };
  struct Bank {
    explicit Bank(double per_cycle) : busy(per_cycle, 64) {}
    engine::Calendar busy;
    std::array<OpenRow, 4> rows;  // the latest first
  };

  // The cycle at which the column can be accessed.
  Cycle OpenRowFor(uint64_t line, Cycle at, stats::Counters* counters);
  Cycle ReserveBus(Cycle from, uint32_t bytes);
  // Cycles up to `cycle` in which no refresh closes the bus.
  uint64_t OpenCyclesUntil(Cycle cycle) const;

  uint32_t lines_per_row_shift_;
  uint32_t bank_shift_;
  uint32_t burst_bytes_;
  uint32_t request_cycles_;  // slice to channel
  uint32_t reply_cycles_;    // channel to slice
  uint32_t open_cycles_;     // activation to column
  uint32_t row_cycle_;       // activation to activation of a bank: the precharge lies within
  uint32_t batch_sectors_;
  uint32_t turnaround_bytes_;  // what the bus could have moved in a turn-around
  FastDivider refresh_interval_;
  uint64_t refresh_cycles_;
  FastDivider open_interval_;  // what a refresh leaves of an interval
  uint64_t refresh_offset_;
  Cycle horizon_ = 0;
  uint32_t pending_write_sectors_ = 0;
  engine::Calendar bus_;
  std::vector<Bank> banks_;
};

}  // namespace heddle::memory
