#include "sim/sm/units/constant_cache.h"

#include <algorithm>
#include <bit>

namespace heddle::sm {

ConstantCache::ConstantCache(const config::ConstantCaches& config, uint32_t sub_cores)
    : config_(config),
      l0_(sub_cores, TagArray(config.l0)),
      l0_shift_(static_cast<uint32_t>(std::countr_zero(config.l0.line_bytes))),
      newest_(sub_cores),
      l1_(config.l1),
      l1_5_(config.l1_5, memory::kLineBytes) {}

Cycle ConstantCache::Operand(uint32_t sub_core, uint64_t address, Cycle now, RequestPort* port) {
  TagArray& l0 = l0_[sub_core];
  const uint64_t line = address >> l0_shift_;
  Newest& newest = newest_[sub_core];
  if (newest.line == line) return std::max(now, newest.arrival);
  if (const Cycle* arrival = l0.Find(line); arrival != nullptr && *arrival != TagArray::kOnItsWay) {
    newest = {line, *arrival};
    return std::max(now, *arrival);
  }
  const Cycle loaded = Load(address, now, port);
  if (loaded == TagArray::kOnItsWay) return loaded;  // asks again when woken, and then finds it in L1
  const Cycle arrival = std::max(loaded, now) + config_.l0.miss_latency_cycles;
  l0.Insert(line, arrival);
  newest.line = TagArray::kNoLine;
  return arrival;
}

Cycle ConstantCache::Load(uint64_t address, Cycle now, RequestPort* port) {
  const uint64_t line = address / config_.l1.line_bytes;
  if (const Cycle* arrival = l1_.Find(line); arrival != nullptr) return std::max(now, *arrival);
  const Cycle loaded = FromL15(address, now, port);
  if (loaded == TagArray::kOnItsWay) return loaded;
  const Cycle arrival = loaded + config_.l1.miss_latency_cycles;
  l1_.Insert(line, arrival);
  return arrival;
}

Cycle ConstantCache::FromL15(uint64_t address, Cycle now, RequestPort* port) {
  const uint64_t line = address / memory::kLineBytes;
  if (const Cycle* arrival = l1_5_.Find(line); arrival != nullptr)
    return *arrival == TagArray::kOnItsWay ? *arrival : std::max(now, *arrival);
  // Its lines may be longer than the memory's: all of one line are asked for.
  const uint64_t per_line = std::max<uint64_t>(1, config_.l1_5.line_bytes / memory::kLineBytes);
  for (uint64_t each = line / per_line * per_line; each < (line / per_line + 1) * per_line; ++each) {
    if (l1_5_.Find(each) != nullptr) continue;
    ++misses_;
    l1_5_.Insert(each, TagArray::kOnItsWay);
    port->ReadLine(each * memory::kLineBytes, now + config_.l1_5.miss_latency_cycles, RequestPort::kConstant);
  }
  return TagArray::kOnItsWay;
}

void ConstantCache::Answer(uint64_t line_address, Cycle arrival) {
  if (Cycle* line = l1_5_.Find(line_address / memory::kLineBytes); line != nullptr) *line = arrival;
}

void ConstantCache::Warm(uint64_t address, uint64_t bytes) {
  for (uint64_t line = address / memory::kLineBytes; line * memory::kLineBytes < address + bytes; ++line)
    if (l1_5_.Find(line) == nullptr) l1_5_.Insert(line, 0);
}

void ConstantCache::Clear() {
  for (TagArray& l0 : l0_) l0.Clear();
  std::fill(newest_.begin(), newest_.end(), Newest{});
  l1_.Clear();
  l1_5_.Clear();
}

}  // namespace heddle::sm
