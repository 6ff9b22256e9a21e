// The L1 data cache: 128-byte lines of four sectors, LRU, and the misses on their way.
//
// A miss is on its way from its request until Answer, which is called at the cycle of its arrival. A load that finds
// its sectors on their way joins them: it waits for the same answer and asks nobody again.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/base/prefetch.h"
#include "sim/base/types.h"
#include "sim/config/gpu_description.h"
#include "sim/memory/memory_request.h"

namespace heddle::sm {

class L1Cache {
 public:
  static constexpr uint32_t kNone = ~0u;

  explicit L1Cache(const config::L1& config);

  // What shared memory leaves. Forgets all lines; what is on its way arrives for those that wait for it.
  void Resize(uint64_t bytes);
  void Invalidate();

  struct Lookup {
    uint8_t missing = 0;     // sectors that must be asked for
    uint8_t unanswered = 0;  // on their way: Join; the others are here
    uint32_t line = kNone;   // handle for Request and Join; kNone when absent
  };
  // `sectors` of a line, which becomes the most recently used.
  Lookup Find(uint64_t line_address, uint8_t sectors);

  // Registers a request for `sectors` that Find reported missing, of which `waiter` waits (kNone: nobody
  // does), and with `allocate` gives it a line if a way can be had. Returns the miss, the tag of the request.
  uint32_t Request(uint64_t line_address, uint8_t sectors, const Lookup& found, uint32_t waiter,
                   bool allocate);
  // Lets `waiter` wait for the unanswered misses of the line that hold any of `sectors`; returns how many.
  uint32_t Join(uint32_t line, uint8_t sectors, uint32_t waiter);
  // The answer to a miss: its sectors are here. Calls answer(waiter) for each that waited.
  template <typename Callback>
  void Answer(uint32_t miss, Callback answer);

  // Loads what Answer will look at, in two steps; the second returns a waiter, if there is one.
  void PrefetchMiss(uint32_t miss) const { Prefetch(&misses_[miss]); }
  uint32_t PrefetchLine(uint32_t miss) const {
    if (const uint32_t line = misses_[miss].line; line != kNone) {
      Prefetch(&lines_[line]);
      Prefetch(&ranks_[line]);
    }
    return misses_[miss].waiter;
  }

  // A store under write-through-with-allocation (local memory): the sectors are here afterwards.
  void Write(uint64_t line_address, uint8_t sectors);

  // A further miss may be sent: fewer than pending_lines are on their way.
  bool MissFree() const { return pending_ < pending_limit_; }

 private:
  struct Line {
    uint64_t used = 0;
    uint8_t present = 0;
    uint8_t unanswered = 0;
    uint16_t way = 0;
    uint32_t miss = kNone;  // newest unanswered miss of the line
  };
  struct Miss {
    uint32_t line = kNone;
    uint32_t next_of_line = kNone;
    uint32_t waiter = kNone;   // the last that came; mostly the only one
    uint32_t waiters = kNone;  // those before it, the last first
    uint8_t sectors = 0;
  };
  struct Waiter {
    uint32_t id = 0;
    uint32_t next = kNone;
  };

  size_t SetOf(uint64_t line_address) const;
  uint32_t WayOf(size_t set, uint64_t line_address);
  uint32_t Allocate(uint64_t line_address);
  void Rank(uint32_t line);
  static uint64_t TagOf(uint64_t line_address) { return line_address / memory::kLineBytes + 1; }
  void AddWaiter(uint32_t miss, uint32_t waiter);

  static constexpr uint64_t kMaxWays = 1 << 16;
  static constexpr int64_t kPinned = std::numeric_limits<int64_t>::max();

  uint32_t sets_;
  uint32_t set_shift_;
  uint32_t ways_ = 0;
  uint32_t pending_limit_;
  uint64_t clock_ = 0;
  std::vector<uint16_t> found_;  // by set: the way that was found last
  // By set and way.
  std::vector<uint64_t> tags_;        // line number + 1; 0: empty
  std::vector<uint32_t> short_tags_;  // their lower halves
  std::vector<int64_t>
      ranks_;  // who is replaced: the least, last use above way; kPinned while something comes
  std::vector<Line> lines_;
  std::vector<Miss> misses_;
  std::vector<uint32_t> free_misses_;
  std::vector<Waiter> waiters_;
  uint32_t free_waiter_ = kNone;
  uint32_t pending_ = 0;  // misses on their way
};

template <typename Callback>
void L1Cache::Answer(uint32_t id, Callback answer) {
  Miss& miss = misses_[id];
  if (miss.line != kNone) {
    Line& line = lines_[miss.line];
    line.unanswered = static_cast<uint8_t>(line.unanswered & ~miss.sectors);
    line.present |= miss.sectors;
    Rank(miss.line);
    uint32_t* link = &line.miss;
    while (*link != id) link = &misses_[*link].next_of_line;
    *link = miss.next_of_line;
  }
  if (miss.waiter != kNone) answer(miss.waiter);
  for (uint32_t waiter = miss.waiters; waiter != kNone;) {
    const uint32_t next = waiters_[waiter].next;
    answer(waiters_[waiter].id);
    waiters_[waiter].next = free_waiter_;
    free_waiter_ = waiter;
    waiter = next;
  }
  miss = Miss{};
  free_misses_.push_back(id);
  --pending_;
}

}  // namespace heddle::sm
