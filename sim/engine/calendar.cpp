#include "sim/engine/calendar.h"

#include <algorithm>
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
      reciprocal_(per_cycle_ <= 1 ? 0 : ~uint64_t{0} / per_cycle_ + 1),
      capacity_(static_cast<uint32_t>(per_cycle_ << shift_)),
      mask_(kInitialBuckets - 1),
      buckets_(kInitialBuckets) {
  HEDDLE_CHECK(std::has_single_bit(bucket_cycles) && bucket_cycles <= 1024, "engine.calendar", 0,
               "bucket length");
  HEDDLE_CHECK(per_cycle_ >= kUnitScale / 64 && (per_cycle_ << std::max(shift_, 1U)) <= UINT32_MAX,
               "engine.calendar", 0, "capacity");
}

void Calendar::Reset() {
  std::fill(buckets_.begin(), buckets_.end(), Bucket{});
  std::fill(full_.begin(), full_.end(), 0);
  few_full_ = 0;
  base_ = end_ = 0;
}

void Calendar::Recycle(uint64_t new_base) {
  const uint64_t stop = std::min(new_base, end_);
  for (uint64_t bucket = base_; bucket < stop;) {
    // A run of buckets that neither the ring nor a word of `full_` breaks.
    const uint64_t run = std::min(64 - (bucket & 63), stop - bucket);
    std::fill_n(buckets_.begin() + static_cast<std::ptrdiff_t>(bucket & mask_), run, Bucket{});
    FullWord(bucket) &= ~(~uint64_t{0} >> (64 - run) << (bucket & 63));
    bucket += run;
  }
  base_ = new_base;
  end_ = std::max(end_, new_base);
}

// The first bucket from `bucket` on, which has been touched, that is not full; at most end_.
inline uint64_t Calendar::NextNotFull(uint64_t bucket) const {
  do {
    const uint64_t open = ~FullWord(bucket) >> (bucket & 63);
    // What lies beyond the ring is empty; the bits there are those of its beginning.
    if (open != 0) [[likely]]
      return std::min(end_, bucket + static_cast<uint64_t>(std::countr_zero(open)));
    bucket += 64 - (bucket & 63);
  } while (bucket < end_);
  return end_;
}

void Calendar::Grow(uint64_t bucket) {
  const size_t new_size = std::bit_ceil(std::max<size_t>(bucket - base_ + 1, 2 * buckets_.size()));
  std::vector<Bucket> buckets(new_size);
  std::vector<uint64_t> full(new_size / 64);
  for (uint64_t b = base_; b < end_; ++b) {
    const Bucket& bucket = buckets_[b & mask_];
    buckets[b & (new_size - 1)] = bucket;
    if (bucket.used == capacity_) full[(b & (new_size - 1)) >> 6] |= uint64_t{1} << (b & 63);
  }
  buckets_ = std::move(buckets);
  full_ = std::move(full);
  mask_ = new_size - 1;
}

Cycle Calendar::ReserveSlow(Cycle from, uint64_t need) {
  uint64_t number = from >> shift_;
  HEDDLE_CHECK(number >= base_, "engine.calendar", from, "reserved in the past");
  uint64_t offset = (from - (number << shift_)) * per_cycle_;
  if (number >= end_ && offset != 0) {
    if (number - base_ > mask_) Grow(number);
    end_ = number + 1;
  }
  while (number < end_) {
    if (const uint64_t open = NextNotFull(number); open != number) {
      number = open;
      offset = 0;  // only the first bucket is not taken from its start
      if (number >= end_) break;
    }
    Bucket& bucket = buckets_[number & mask_];
    const uint64_t units = std::min(need, Available(bucket, offset));
    if (units != 0) {
      const uint64_t end = Take(&bucket, number, offset, units);
      need -= units;
      if (need == 0) return (number << shift_) + CeilCycles(end);
    }
    ++number;
    offset = 0;
  }
  // Nothing has been taken yet from the start of this bucket on.
  for (; need > capacity_; need -= capacity_) TakeUntouched(number++, capacity_);
  TakeUntouched(number, static_cast<uint32_t>(need));
  return (number << shift_) + CeilCycles(need);
}

inline void Calendar::TakeUntouched(uint64_t number, uint32_t units) {
  if (number - base_ > mask_) [[unlikely]]
    Grow(number);
  buckets_[number & mask_] = {units, units};
  if (units == capacity_) MarkFull(number);
  end_ = number + 1;
}

}  // namespace heddle::engine
