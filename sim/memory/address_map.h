// Where a line lies: virtual address -> physical line -> partition, slice, set, DRAM channel, bank and row.
//
// Slices and channels are dealt to *groups*: the slices that serve the same lines in every partition, with
// the channels behind them. A line touches one group only, so groups can be served in parallel.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "sim/config/gpu_description.h"
#include "sim/memory/memory_request.h"

namespace heddle::memory {

// n / divisor and n mod divisor for n < 2^40 and divisor < 2^24, without a division.
class FastDivider {
 public:
  FastDivider() : FastDivider(1) {}
  explicit FastDivider(uint32_t divisor)
      : reciprocal_(divisor == 1 ? 0 : ~uint64_t{0} / divisor + 1), divisor_(divisor) {}

  uint64_t Divide(uint64_t n) const {
    if (reciprocal_ == 0) return n;
    return static_cast<uint64_t>((static_cast<unsigned __int128>(n) * reciprocal_) >> 64);
  }
  uint32_t Modulo(uint64_t n) const { return static_cast<uint32_t>(n - Divide(n) * divisor_); }
  uint32_t divisor() const { return divisor_; }

 private:
  uint64_t reciprocal_;
  uint32_t divisor_;
};

// Mixes all bits; a bijection of 64-bit numbers (the finaliser of MurmurHash3, public domain).
constexpr uint64_t MixBits(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  x ^= x >> 33;
  return x;
}

struct Location {
  uint32_t group = 0;
  uint32_t home = 0;   // partition
  uint32_t slice = 0;  // of the group's slices in one partition
  uint64_t index = 0;  // of the line in its slice: the lines of a slice are 0, 1, 2, ...
};

class AddressMap {
 public:
  // placement_seed 0: physical pages in the order of virtual ones; else in another order.
  explicit AddressMap(const config::Gpu& gpu, uint64_t placement_seed = 0);

  // Virtual addresses that differ by a multiple of 4 TiB share their place.
  uint64_t PhysicalLine(uint64_t virtual_address) const {
    return (placement_seed_ == 0 ? virtual_address : Permuted(virtual_address)) >> kLineShift & kLineMask;
  }

  // Every run of as many consecutive lines as there are slices, from a multiple of that on, visits each slice
  // once.
  Location Locate(uint64_t physical_line) const {
    const uint64_t index = by_slices_.Divide(physical_line);
    uint32_t slice = static_cast<uint32_t>(physical_line - index * by_slices_.divisor());
    if (permute_) {
      const uint64_t hash = MixBits(index);
      const uint32_t step = steps_[((hash & 0xffff) * step_count_) >> 16];
      const uint32_t offset = static_cast<uint32_t>(((hash >> 32) * by_slices_.divisor()) >> 32);
      slice = by_slices_.Modulo(uint64_t{slice} * step + offset);
    }
    Location location = slice_place_[slice];
    location.index = index;
    return location;
  }

  uint32_t groups() const { return groups_; }
  uint32_t slices_per_group() const { return slices_per_group_; }      // in one partition
  uint32_t channels_per_group() const { return channels_per_group_; }  // in one partition
  uint32_t partitions() const { return partitions_; }
  uint32_t page_shift() const { return page_shift_; }

 private:
  static constexpr uint32_t kMaxSteps = 16;
  static constexpr uint32_t kLineShift = std::countr_zero(kLineBytes);
  static constexpr uint64_t kLineMask = (uint64_t{1} << 35) - 1;  // 4 TiB

  uint64_t Permuted(uint64_t virtual_address) const;

  uint32_t partitions_;
  uint32_t groups_;
  uint32_t slices_per_group_;
  uint32_t channels_per_group_;
  uint32_t page_shift_;
  uint64_t placement_seed_;
  bool permute_;
  FastDivider by_slices_;              // all slices
  std::vector<Location> slice_place_;  // group, home and slice, by number of the slice
  uint32_t step_count_ = 0;
  uint32_t steps_[kMaxSteps] = {};  // numbers without a common divisor with the number of slices
};

}  // namespace heddle::memory
