// Reservation of a shared resource: a port, a data array, a bank, a DRAM channel.
//
// Time is cut into buckets of 2^k cycles. Each bucket offers the same number of units (bytes, operations) and a
// reservation takes them from the first buckets, from a given cycle on, that have any left. Unlike one "next
// free" time, a reservation far ahead does not block the gap before it: replies and far hops come in any order,
// and what they get depends little on the order in which they ask.
//
// A bucket knows how much of it is taken and where that ends, and takes the taken part for one piece. So what
// asks in order is served to the cycle as by a queue, what asks out of order is off by less than a bucket, and
// no capacity is ever lost or given twice.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/base/types.h"

namespace heddle::engine {

class Calendar {
 public:
  // Units are fixed-point: a capacity of 17.16 bytes a cycle is kept to 1/1024.
  static constexpr uint32_t kUnitScale = 1024;

  // `per_cycle`: capacity, at least 1/64. `bucket_cycles`: a power of two, up to 1024.
  explicit Calendar(double per_cycle, uint32_t bucket_cycles = 4);

  // No later reservation will ask for a cycle before `cycle`: older buckets are recycled.
  void AdvanceTo(Cycle cycle) {
    if ((cycle >> shift_) > base_) Recycle(cycle >> shift_);
  }

  // Takes `amount` whole units from `from` on; returns the cycle at which the last of them is through: with
  // nothing in the way ceil(from + amount / per_cycle). `amount` is not 0. `from` is not before the last AdvanceTo.
  Cycle Reserve(Cycle from, uint32_t amount) {
    const uint64_t number = from >> shift_;
    const uint64_t need = uint64_t{amount} * kUnitScale;
    if (number - base_ <= mask_) [[likely]] {
      Bucket& bucket = buckets_[number & mask_];
      const uint64_t offset = (from - (number << shift_)) * per_cycle_;
      if (need <= Available(bucket, offset)) [[likely]] {  // almost always
        end_ = std::max(end_, number + 1);
        return (number << shift_) + CeilCycles(Take(&bucket, number, offset, need));
      }
    }
    return ReserveSlow(from, need);
  }

  double per_cycle() const { return static_cast<double>(per_cycle_) / kUnitScale; }

  // Forgets every reservation; time may start again at 0.
  void Reset();

 private:
  struct Bucket {
    uint32_t used = 0;  // units
    uint32_t end = 0;   // where the last of them ends, in units from the bucket's start; used <= end
  };

  // units / per_cycle_, rounded up, for units <= capacity_: exact, because (units + per_cycle_) * the reciprocal's
  // error is less than 2^64.
  Cycle CeilCycles(uint64_t units) const {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(units + per_cycle_ - 1) * reciprocal_) >>
                                 64);
  }
  // Units that can be taken at or after `offset`.
  uint64_t Available(const Bucket& bucket, uint64_t offset) const {
    const uint64_t after = bucket.end > offset ? std::min<uint64_t>(bucket.used, bucket.end - offset) : 0;
    return capacity_ - offset - after;
  }
  // Takes what is available, and returns where it ends.
  uint64_t Take(Bucket* bucket, uint64_t number, uint64_t offset, uint64_t units) {
    uint64_t end = offset + units;
    if (offset < bucket->end && end > bucket->end - bucket->used)
      end = std::min<uint64_t>(capacity_, bucket->end + units);
    bucket->used += static_cast<uint32_t>(units);
    bucket->end = std::max(bucket->end, static_cast<uint32_t>(end));
    if (bucket->used == capacity_) MarkFull(number);
    return end;
  }
  // Of as few buckets as there mostly are, one word says which are full, and it lies in the object itself.
  uint64_t& FullWord(uint64_t bucket) { return mask_ < 64 ? few_full_ : full_[(bucket & mask_) >> 6]; }
  uint64_t FullWord(uint64_t bucket) const { return mask_ < 64 ? few_full_ : full_[(bucket & mask_) >> 6]; }
  void MarkFull(uint64_t bucket) { FullWord(bucket) |= uint64_t{1} << (bucket & 63); }
  uint64_t NextNotFull(uint64_t bucket) const;
  void TakeUntouched(uint64_t number, uint32_t units);
  void Recycle(uint64_t new_base);
  void Grow(uint64_t bucket);
  Cycle ReserveSlow(Cycle from, uint64_t need);

  uint32_t shift_;
  uint64_t per_cycle_;   // in 1/kUnitScale
  uint64_t reciprocal_;  // ceil(2^64 / per_cycle_)
  uint32_t capacity_;    // of a bucket
  uint64_t base_ = 0;    // first bucket that can still be asked for
  uint64_t end_ = 0;     // beyond the last bucket that was ever touched
  uint64_t mask_;
  std::vector<Bucket> buckets_;  // ring, by number & mask_
  uint64_t few_full_ = 0;        // one bit a bucket, of at most 64 buckets
  std::vector<uint64_t> full_;   // of more
};

}  // namespace heddle::engine
