#include "sim/engine/calendar.h"

#include <bit>
#include <cmath>

#include "sim/base/check.h"

namespace heddle::engine {
namespace {
constexpr size_t kInitialBuckets = 64;
}  // namespace

Calendar::Calendar(double per_cycle, uint32_t bucket_cycles)
    : shift_(static_cast<uint32_t>(std::countr_zero(bucket_cycles))),
      per_cycle_(static_cast<uint64_t>(std::llround(per_cycle * kUnitScale))),
      reciprocal_(per_cycle_ == 0 ? 0 : ~uint64_t{0} / per_cycle_),
      capacity_(static_cast<uint32_t>(per_cycle_ << shift_)),
      mask_(kInitialBuckets - 1),
      used_(kInitialBuckets),
      full_(kInitialBuckets / 64) {
  HEDDLE_CHECK(std::has_single_bit(bucket_cycles) && bucket_cycles <= 1024, "engine.calendar", 0,
               "bucket length");
  HEDDLE_CHECK(per_cycle_ >= kUnitScale / 64 && (per_cycle_ << shift_) <= UINT32_MAX, "engine.calendar", 0,
               "capacity");
}

void Calendar::Reset() {
  std::fill(used_.begin(), used_.end(), 0);
  std::fill(full_.begin(), full_.end(), 0);
  base_ = end_ = 0;
}

void Calendar::Recycle(uint64_t new_base) {
  const uint64_t stop = std::min(new_base, end_);
  for (uint64_t bucket = base_; bucket < stop; ++bucket) {
    used_[bucket & mask_] = 0;
    full_[(bucket & mask_) >> 6] &= ~(uint64_t{1} << (bucket & 63));
  }
  base_ = new_base;
  end_ = std::max(end_, new_base);
}

uint64_t Calendar::NextNotFull(uint64_t bucket) const {
  const uint64_t limit = base_ + used_.size();
  while (bucket < limit) {
    const uint64_t open = ~full_[(bucket & mask_) >> 6] >> (bucket & 63);
    if (open != 0) return bucket + static_cast<uint64_t>(std::countr_zero(open));
    bucket += 64 - (bucket & 63);
  }
  return bucket;
}

void Calendar::Grow(uint64_t bucket) {
  const size_t new_size = std::bit_ceil(std::max<size_t>(bucket - base_ + 1, 2 * used_.size()));
  std::vector<uint32_t> used(new_size);
  std::vector<uint64_t> full(new_size / 64);
  for (uint64_t b = base_; b < end_; ++b) {
    const uint32_t units = used_[b & mask_];
    used[b & (new_size - 1)] = units;
    if (units == capacity_) full[(b & (new_size - 1)) >> 6] |= uint64_t{1} << (b & 63);
  }
  used_ = std::move(used);
  full_ = std::move(full);
  mask_ = new_size - 1;
}

Cycle Calendar::ReserveSlow(Cycle from, uint64_t need) {
  uint64_t bucket = from >> shift_;
  HEDDLE_CHECK(bucket >= base_, "engine.calendar", from, "reserved in the past");
  const Cycle alone = from + CeilCycles(need);
  if (need == 0) return alone;
  uint64_t reach =
      (((bucket + 1) << shift_) - from) * per_cycle_;  // of the first bucket, only what follows `from`
  for (;; ++bucket, reach = capacity_) {
    if (const uint64_t open = NextNotFull(bucket); open != bucket) {
      bucket = open;
      reach = capacity_;
    }
    if (bucket - base_ >= used_.size()) Grow(bucket);
    uint32_t& used = used_[bucket & mask_];
    const uint64_t take = std::min({need, reach, uint64_t{capacity_ - used}});
    used += static_cast<uint32_t>(take);
    need -= take;
    if (used == capacity_) MarkFull(bucket);
    end_ = std::max(end_, bucket + 1);
    if (need == 0) return std::max(alone, (bucket << shift_) + CeilCycles(used));
  }
}

}  // namespace heddle::engine
