#include "sim/sm/units/l1_cache.h"

namespace heddle::sm {

L1Cache::L1Cache(const config::L1& config) : sets_(config.sets), pending_limit_(config.pending_lines) {}

void L1Cache::Resize(uint64_t bytes) {
  ways_ = static_cast<uint32_t>(bytes / (uint64_t{sets_} * memory::kLineBytes));
  tags_.assign(size_t{sets_} * ways_, 0);
  lines_.assign(size_t{sets_} * ways_, Line{});
  for (Miss& miss : misses_) miss.line = kNone;
}

void L1Cache::Invalidate() {
  for (size_t i = 0; i < lines_.size(); ++i) {
    Line& line = lines_[i];
    // What is still on its way keeps its place for those that wait for it, but nobody else finds it.
    tags_[i] = 0;
    line.present = 0;
  }
}

size_t L1Cache::SetStart(uint64_t line_address) const {
  // Folding higher bits in spreads power-of-two strides over the sets.
  const uint64_t line = line_address / memory::kLineBytes;
  return ((line ^ line / sets_ ^ line / sets_ / sets_) & (sets_ - 1)) * ways_;
}

L1Cache::Lookup L1Cache::Find(uint64_t line_address, uint8_t sectors) {
  Lookup found;
  found.missing = sectors;
  const size_t start = SetStart(line_address);
  uint32_t way = ways_;
  for (uint32_t i = 0; i < ways_; ++i) way = tags_[start + i] == line_address + 1 ? i : way;
  if (way == ways_) return found;
  found.line = static_cast<uint32_t>(start + way);
  Line& line = lines_[found.line];
  line.used = ++clock_;
  found.unanswered = line.unanswered & sectors;
  found.missing = static_cast<uint8_t>(sectors & ~(line.present | line.unanswered));
  return found;
}

uint32_t L1Cache::Allocate(uint64_t line_address) {
  const size_t start = SetStart(line_address);
  uint32_t victim = kNone;
  uint64_t oldest = ~uint64_t{0};
  for (uint32_t way = 0; way < ways_; ++way) {
    const Line& line = lines_[start + way];
    if (line.unanswered != 0 || line.used >= oldest) continue;
    victim = static_cast<uint32_t>(start + way);
    oldest = line.used;
  }
  if (victim == kNone) return kNone;
  tags_[victim] = line_address + 1;
  lines_[victim] = Line{};
  lines_[victim].used = ++clock_;
  return victim;
}

void L1Cache::AddWaiter(uint32_t miss, uint32_t waiter) {
  uint32_t node = free_waiter_;
  if (node == kNone) {
    node = static_cast<uint32_t>(waiters_.size());
    waiters_.emplace_back();
  } else {
    free_waiter_ = waiters_[node].next;
  }
  waiters_[node] = {waiter, misses_[miss].waiters};
  misses_[miss].waiters = node;
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
  miss.line = found.line != kNone || !allocate ? found.line : Allocate(line_address);
  if (miss.line != kNone) {
    Line& line = lines_[miss.line];
    miss.next_of_line = line.miss;
    line.miss = id;
    line.unanswered |= sectors;
  }
  if (waiter != kNone) AddWaiter(id, waiter);
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
