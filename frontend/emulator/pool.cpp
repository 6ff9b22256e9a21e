#include <cstring>
#include <limits>

#include "frontend/emulator/program.h"

namespace heddle::emulator {
namespace {

constexpr size_t kMaxPoolRows = std::numeric_limits<uint16_t>::max();

}  // namespace

uint16_t PoolLayout::Find(std::tuple<bool, uint64_t, uint64_t> key, std::span<const Entry> entries) {
  const auto [position, is_new] = index_.emplace(key, static_cast<uint16_t>(entries_.size()));
  if (!is_new) return position->second;
  if (entries_.size() + entries.size() > kMaxPoolRows) {
    overflowed_ = true;
    return 0;
  }
  entries_.insert(entries_.end(), entries.begin(), entries.end());
  return position->second;
}

uint16_t PoolLayout::Immediate(uint32_t value) {
  const Entry entry{.value = value};
  return Find({false, 1, value}, {&entry, 1});
}

uint16_t PoolLayout::ImmediatePair(uint64_t value) {
  const std::array<Entry, 2> entries{Entry{.value = Low(value)}, Entry{.value = High(value)}};
  return Find({false, 2, value}, entries);
}

uint16_t PoolLayout::Constant(uint8_t bank, uint32_t offset, uint32_t words) {
  std::vector<Entry> entries;
  for (uint32_t i = 0; i < words; ++i)
    entries.push_back({.constant = true, .bank = bank, .offset = offset + 4 * i});
  return Find({true, words, uint64_t{bank} << 32 | offset}, entries);
}

ConstantPool::ConstantPool(const PoolLayout& layout,
                           const std::array<std::span<const uint8_t>, kConstantBanks>& banks)
    : rows_(layout.entries_.size()) {
  for (size_t i = 0; i < rows_.size(); ++i) {
    const PoolLayout::Entry& entry = layout.entries_[i];
    uint32_t value = entry.value;
    if (entry.constant) {
      const size_t size = entry.bank < kConstantBanks ? banks[entry.bank].size() : 0;
      if (entry.offset + size_t{4} <= size) {
        std::memcpy(&value, banks[entry.bank].data() + entry.offset, sizeof value);
      } else {
        ++missing_words_;
      }
    }
    Splat(rows_[i], value);
  }
}

}  // namespace heddle::emulator
