#include "sim/memory/tlb.h"

#include <algorithm>

namespace heddle::memory {

Tlb::Tlb(const config::TlbLevel& level)
    : ways_(std::min(level.ways, level.entries)), sets_(level.entries / ways_), entries_(sets_ * ways_) {}

Tlb::Entry* Tlb::FindSlow(uint64_t page) {
  Entry* set = &entries_[page % sets_ * ways_];
  for (Entry* entry = set; entry != set + ways_; ++entry) {
    if (entry->page == page) {
      entry->used = ++clock_;
      return last_ = entry;
    }
  }
  return nullptr;
}

bool Tlb::HasRoom(uint64_t page) const {
  const Entry* set = &entries_[page % sets_ * ways_];
  return std::any_of(set, set + ways_, [](const Entry& each) { return each.used == 0; });
}

Tlb::Entry* Tlb::Peek(uint64_t page) {
  Entry* set = &entries_[page % sets_ * ways_];
  Entry* entry = std::find_if(set, set + ways_, [&](const Entry& each) { return each.page == page; });
  return entry == set + ways_ ? nullptr : entry;
}

Tlb::Entry* Tlb::Insert(uint64_t page, Cycle ready) {
  Entry* set = &entries_[page % sets_ * ways_];
  Entry* victim =
      std::min_element(set, set + ways_, [](const Entry& a, const Entry& b) { return a.used < b.used; });
  *victim = {page, ready, ++clock_};
  return last_ = victim;
}

void Tlb::Reset() {
  std::fill(entries_.begin(), entries_.end(), Entry{});
  clock_ = 0;
  last_ = nullptr;
}

}  // namespace heddle::memory
