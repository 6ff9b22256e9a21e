#include "frontend/capture/address_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace heddle::capture {
namespace {

// A fill of a part of a buffer is kept as bytes up to this length; a rule covers a buffer to its end.
constexpr uint64_t kMostFillBytes = uint64_t{1} << 24;

std::string Repeat(uint32_t value, uint32_t element_bytes, uint64_t bytes) {
  std::string data(bytes, '\0');
  for (uint64_t i = 0; i < bytes; ++i) data[i] = static_cast<char>(value >> 8 * (i % element_bytes));
  return data;
}

trace::ContentRule BytesRule(const std::string& data) {
  trace::ContentRule rule;
  rule.kind = trace::RuleKind::kBytes;
  rule.bytes.resize(data.size());
  std::memcpy(rule.bytes.data(), data.data(), data.size());
  return rule;
}

trace::ContentRule FillRule(uint32_t value, uint32_t element_bytes) {
  trace::ContentRule rule;
  rule.kind = value == 0 ? trace::RuleKind::kZeros : trace::RuleKind::kConstant;
  rule.type = element_bytes == 1   ? trace::DType::kU8
              : element_bytes == 2 ? trace::DType::kU16
                                   : trace::DType::kU32;
  if (value != 0) rule.a = fmt::format("{}", value);
  return rule;
}

using RangeList = std::vector<std::pair<uint64_t, uint64_t>>;  // start, bytes; sorted and apart

RangeList::const_iterator Around(const RangeList& ranges, uint64_t address) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), std::make_pair(address, UINT64_MAX));
  if (after == ranges.begin() || address - std::prev(after)->first >= std::prev(after)->second)
    return ranges.end();
  return std::prev(after);
}

}  // namespace

void AddressSpace::Allocate(uint64_t address, uint64_t bytes, uint64_t pool) {
  if (address == 0 || bytes == 0 || address + bytes < address) return;
  uint64_t& known = allocations_[address];
  known = std::max(known, bytes);
  if (pool != 0) pool_of_[address] = pools_.try_emplace(pool, pools_.size() + 1).first->second;
}

bool AddressSpace::IsAllocated(uint64_t address) const {
  auto after = allocations_.upper_bound(address);
  // Ranges may overlap: a few steps back find the one that reaches over the last.
  for (int steps = 0; after != allocations_.begin() && steps < 16; ++steps) {
    --after;
    if (address - after->first < after->second) return true;
  }
  return false;
}

void AddressSpace::Write(uint64_t address, std::string bytes, Moment when) {
  if (address == 0 || bytes.empty()) return;
  const uint64_t size = bytes.size();
  written_.push_back({Kind::kBytes, address, size, when, std::move(bytes), 0, 0, 0});
}

void AddressSpace::Fill(uint64_t address, uint32_t value, uint32_t element_bytes, uint64_t count,
                        Moment when) {
  uint64_t bytes = 0;
  if (address == 0 || count == 0 || (element_bytes != 1 && element_bytes != 2 && element_bytes != 4) ||
      __builtin_mul_overflow(count, uint64_t{element_bytes}, &bytes))
    return;
  written_.push_back({Kind::kFill, address, bytes, when, {}, value, element_bytes, 0});
}

void AddressSpace::Copy(uint64_t address, uint64_t source, uint64_t bytes, Moment when) {
  if (address == 0 || source == 0 || bytes == 0) return;
  written_.push_back({Kind::kCopy, address, bytes, when, {}, 0, 0, source});
}

void AddressSpace::Forget(uint64_t address, uint64_t bytes, Moment when) {
  if (address == 0 || bytes == 0) return;
  written_.push_back({Kind::kUnknown, address, bytes, when, {}, 0, 0, 0});
}

void AddressSpace::DropCovered() {
  const auto overlaps = [](uint64_t a, const Written& each, uint64_t bytes) {
    return a < each.address + each.bytes && each.address < a + bytes;
  };
  for (size_t i = 0; i < written_.size(); ++i) {
    const Written& unknown = written_[i];
    if (unknown.kind != Kind::kUnknown || unknown.when.launch != 0) continue;
    bool changes = false;
    for (size_t j = 0; j < i; ++j) {
      Written& each = written_[j];
      if (each.bytes == 0 || each.when.launch != 0 || !overlaps(each.address, unknown, each.bytes)) continue;
      const bool covered =
          each.address >= unknown.address && each.address + each.bytes <= unknown.address + unknown.bytes;
      const bool is_source =
          std::any_of(written_.begin() + static_cast<std::ptrdiff_t>(j),
                      written_.begin() + static_cast<std::ptrdiff_t>(i), [&](const Written& copy) {
                        return copy.kind == Kind::kCopy && overlaps(copy.copied_from, each, copy.bytes);
                      });
      if (covered && !is_source)
        each.bytes = 0;
      else
        changes = true;
    }
    if (!changes) written_[i].bytes = 0;
  }
  std::erase_if(written_, [](const Written& each) { return each.bytes == 0; });
}

std::vector<std::pair<uint64_t, uint64_t>> AddressSpace::Ranges() const {
  std::vector<std::pair<uint64_t, uint64_t>> ranges(allocations_.begin(), allocations_.end());
  for (const Written& each : written_)
    if (each.kind != Kind::kUnknown && !IsAllocated(each.address))
      ranges.emplace_back(each.address, each.bytes);
  std::sort(ranges.begin(), ranges.end());
  std::vector<std::pair<uint64_t, uint64_t>> merged;
  for (const auto& [address, bytes] : ranges) {
    if (merged.empty() || address >= merged.back().first + merged.back().second)
      merged.emplace_back(address, bytes);
    else
      merged.back().second = std::max(merged.back().second, address + bytes - merged.back().first);
  }
  return merged;
}

uint64_t AddressSpace::MoveTo(trace::Trace* trace, uint32_t launches, const std::vector<uint32_t>& places) {
  for (Written& each : written_)
    if (each.when.transfer < places.size()) each.when.launch = places[each.when.transfer];
  DropCovered();
  const auto ranges = Ranges();
  const auto first = static_cast<uint32_t>(trace->buffers.size());
  for (const auto& [address, bytes] : ranges) {
    trace::Buffer buffer;
    const auto pool = pool_of_.lower_bound(address);
    const bool is_of_pool = pool != pool_of_.end() && pool->first < address + bytes;
    buffer.name =
        is_of_pool ? fmt::format("pool{}_at_{:x}", pool->second, address) : fmt::format("at_{:x}", address);
    buffer.shape = {trace::Expr(static_cast<int64_t>(bytes))};
    buffer.address = address;
    trace->buffers.push_back(std::move(buffer));
  }
  uint64_t left_out = 0;
  for (const Written& each : written_) {
    if (each.when.launch >= launches && each.when.launch != 0) continue;
    const auto range = Around(ranges, each.address);
    if (range == ranges.end()) continue;
    const uint64_t offset = each.address - range->first;
    const uint64_t bytes = std::min(each.bytes, range->second - offset);
    trace::Content content;
    content.buffer = first + static_cast<uint32_t>(range - ranges.begin());
    content.offset_bytes = static_cast<int64_t>(offset);
    content.before_launch = each.when.launch;
    if (each.kind == Kind::kUnknown) {
      content.rule.copy_bytes = bytes;
    } else if (each.kind == Kind::kCopy) {
      const auto source = Around(ranges, each.copied_from);
      if (source == ranges.end()) continue;
      content.rule.kind = trace::RuleKind::kCopy;
      content.rule.copy_buffer = first + static_cast<uint32_t>(source - ranges.begin());
      content.rule.copy_offset_bytes = each.copied_from - source->first;
      content.rule.copy_bytes = std::min(bytes, source->second - content.rule.copy_offset_bytes);
    } else if (each.kind == Kind::kBytes) {
      content.rule = BytesRule(each.data.substr(0, bytes));
    } else if (offset + bytes == range->second) {
      content.rule = FillRule(each.value, each.element_bytes);
    } else if (bytes <= kMostFillBytes) {
      content.rule = BytesRule(Repeat(each.value, each.element_bytes, bytes));
    } else {
      left_out += bytes;
      continue;
    }
    trace->contents.push_back(std::move(content));
  }
  written_.clear();
  return left_out;
}

}  // namespace heddle::capture
