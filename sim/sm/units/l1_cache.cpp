#include "sim/sm/units/l1_cache.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace heddle::sm {

L1Cache::L1Cache(const config::L1& config)
    : sets_(config.sets),
      set_shift_(static_cast<uint32_t>(std::countr_zero(config.sets))),
      pending_limit_(config.pending_lines) {}

void L1Cache::Resize(uint64_t bytes) {
  ways_ = static_cast<uint32_t>(bytes / (uint64_t{sets_} * memory::kLineBytes));
  const size_t count = size_t{sets_} * ways_;
  tags_.assign(count, 0);
  found_.assign(sets_, 0);
  short_tags_.assign(count, 0);
  lines_.assign(count, Line{});
  ranks_.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    lines_[i].way = static_cast<uint16_t>(i % ways_);
    Rank(i);
  }
  for (Miss& miss : misses_) miss.line = kNone;
}

void L1Cache::Invalidate() {
  for (size_t i = 0; i < lines_.size(); ++i) {
    Line& line = lines_[i];
    // What is still on its way keeps its place for those that wait for it, but nobody else finds it.
    tags_[i] = 0;
    short_tags_[i] = 0;
    line.present = 0;
  }
}

size_t L1Cache::SetOf(uint64_t line_address) const {
  // Folding higher bits in spreads power-of-two strides over the sets.
  const uint64_t line = line_address / memory::kLineBytes;
  return (line ^ line >> set_shift_ ^ line >> set_shift_ >> set_shift_) & (sets_ - 1);
}

// The way that holds the line, or ways_. Neighbouring words are often asked for one after the other; otherwise tags are
// compared many at a time, by their lower half.
uint32_t L1Cache::WayOf(size_t set, uint64_t line_address) {
  const size_t start = set * ways_;
  const uint64_t tag = TagOf(line_address);
  if (ways_ > 0 && tags_[start + found_[set]] == tag) return found_[set];
  const auto short_tag = static_cast<uint32_t>(tag);
  const uint32_t* short_tags = short_tags_.data() + start;
  uint32_t way = ways_;
  for (uint32_t i = 0; i < ways_; ++i) way = short_tags[i] == short_tag ? i : way;
  if (way == ways_) return way;
  if (tags_[start + way] != tag)  // two lines whose lower halves are the same
    for (way = 0; way < ways_ && tags_[start + way] != tag;) ++way;
  if (way < ways_) found_[set] = static_cast<uint16_t>(way);
  return way;
}

L1Cache::Lookup L1Cache::Find(uint64_t line_address, uint8_t sectors) {
  Lookup found;
  found.missing = sectors;
  const size_t set = SetOf(line_address);
  const uint32_t way = WayOf(set, line_address);
  if (way == ways_) return found;
  found.line = static_cast<uint32_t>(set * ways_ + way);
  Line& line = lines_[found.line];
  line.used = ++clock_;
  Rank(found.line);
  found.unanswered = line.unanswered & sectors;
  found.missing = static_cast<uint8_t>(sectors & ~(line.present | line.unanswered));
  return found;
}

void L1Cache::Rank(uint32_t id) {
  const Line& line = lines_[id];
  ranks_[id] = line.unanswered != 0 ? kPinned : static_cast<int64_t>(line.used * kMaxWays + line.way);
}

// Replaces the line that was used longest ago of those that nothing is on its way to.
uint32_t L1Cache::Allocate(uint64_t line_address) {
  const size_t start = SetOf(line_address) * ways_;
  int64_t oldest = kPinned;
  for (uint32_t way = 0; way < ways_; ++way) oldest = std::min(oldest, ranks_[start + way]);
  if (oldest == kPinned) return kNone;
  const auto victim = static_cast<uint32_t>(start + static_cast<uint64_t>(oldest) % kMaxWays);
  tags_[victim] = TagOf(line_address);
  short_tags_[victim] = static_cast<uint32_t>(tags_[victim]);
  Line line;
  line.used = ++clock_;
  line.way = lines_[victim].way;
  lines_[victim] = line;
  Rank(victim);
  return victim;
}

void L1Cache::AddWaiter(uint32_t id, uint32_t waiter) {
  Miss& miss = misses_[id];
  const uint32_t before = std::exchange(miss.waiter, waiter);
  if (before == kNone) return;
  uint32_t node = free_waiter_;
  if (node == kNone) {
    node = static_cast<uint32_t>(waiters_.size());
    waiters_.emplace_back();
  } else {
    free_waiter_ = waiters_[node].next;
  }
  waiters_[node] = {before, miss.waiters};
  miss.waiters = node;
}

uint32_t L1Cache::Request(uint64_t line_address, uint8_t sectors, const Lookup& found, uint32_t waiter,
                          bool allocate) {
  if (free_misses_.empty()) {
    free_misses_.push_back(static_cast<uint32_t>(misses_.size()));
    misses_.emplace_back();
  }
  const uint32_t id = free_misses_.back();
  free_misses_.pop_back();
  Miss& miss = misses_[id];
  miss.sectors = sectors;
  miss.waiter = waiter;  // nobody waits for a new one yet
  miss.line = found.line != kNone || !allocate ? found.line : Allocate(line_address);
  if (miss.line != kNone) {
    Line& line = lines_[miss.line];
    miss.next_of_line = line.miss;
    line.miss = id;
    line.unanswered |= sectors;
    Rank(miss.line);
  }
  ++pending_;
  return id;
}

uint32_t L1Cache::Join(uint32_t line, uint8_t sectors, uint32_t waiter) {
  uint32_t joined = 0;
  for (uint32_t id = lines_[line].miss; id != kNone; id = misses_[id].next_of_line) {
    if ((misses_[id].sectors & sectors) == 0) continue;
    AddWaiter(id, waiter);
    ++joined;
  }
  return joined;
}

void L1Cache::Write(uint64_t line_address, uint8_t sectors) {
  uint32_t id = Find(line_address, sectors).line;
  if (id == kNone) id = Allocate(line_address);
  if (id != kNone) lines_[id].present |= sectors;
}

}  // namespace heddle::sm
