#include "sim/memory/address_map.h"

#include <bit>
#include <numeric>

#include "sim/base/check.h"
#include "sim/memory/memory_request.h"

namespace heddle::memory {
namespace {

constexpr uint32_t kLineShift = std::countr_zero(kLineBytes);
constexpr uint64_t kLineMask = (uint64_t{1} << 35) - 1;  // 4 TiB

// A bijection of 16-bit numbers for each seed.
uint64_t PermutePage(uint64_t low, uint64_t seed) {
  for (int round = 0; round < 3; ++round) {
    low = (low * (2 * (seed & 0x7fff) + 1) + (seed >> 15)) & 0xffff;
    low ^= low >> 7;
    seed = MixBits(seed);
  }
  return low;
}

}  // namespace

AddressMap::AddressMap(const config::Gpu& gpu, uint64_t placement_seed)
    : partitions_(gpu.l2.partitions),
      page_shift_(static_cast<uint32_t>(std::countr_zero(gpu.tlb.page_bytes))),
      placement_seed_(placement_seed),
      permute_(gpu.l2.address_hash == config::AddressHash::kPermutation),
      by_slices_(gpu.l2.slices) {
  const uint32_t slices = gpu.l2.slices / partitions_;
  const uint32_t channels = gpu.dram.channels / partitions_;
  HEDDLE_CHECK(slices * partitions_ == gpu.l2.slices && channels * partitions_ == gpu.dram.channels, "gpu.l2",
               0, "slices and channels must be the same in every partition");
  HEDDLE_CHECK(gpu.l2.line_bytes == kLineBytes && gpu.l2.sector_bytes == kSectorBytes, "gpu.l2", 0,
               "line or sector");
  groups_ = std::gcd(slices, channels);
  slices_per_group_ = slices / groups_;
  channels_per_group_ = channels / groups_;
  by_partition_ = FastDivider(slices);
  by_groups_ = FastDivider(groups_);
  for (uint32_t step = 1; step <= gpu.l2.slices && step_count_ < kMaxSteps; ++step)
    if (std::gcd(step, gpu.l2.slices) == 1) steps_[step_count_++] = step;
}

uint64_t AddressMap::PhysicalLine(uint64_t virtual_address) const {
  if (placement_seed_ != 0) {
    const uint64_t page = virtual_address >> page_shift_;
    const uint64_t moved = (page & ~uint64_t{0xffff}) | PermutePage(page & 0xffff, placement_seed_);
    virtual_address ^= (page ^ moved) << page_shift_;
  }
  return (virtual_address >> kLineShift) & kLineMask;
}

Location AddressMap::Locate(uint64_t physical_line) const {
  Location location;
  location.index = by_slices_.Divide(physical_line);
  uint32_t slice = static_cast<uint32_t>(physical_line - location.index * by_slices_.divisor());
  if (permute_) {
    const uint64_t hash = MixBits(location.index);
    const uint32_t step = steps_[((hash & 0xffff) * step_count_) >> 16];
    const uint32_t offset = static_cast<uint32_t>(((hash >> 32) * by_slices_.divisor()) >> 32);
    slice = by_slices_.Modulo(uint64_t{slice} * step + offset);
  }
  location.home = static_cast<uint32_t>(by_partition_.Divide(slice));
  const uint32_t in_partition = slice - location.home * by_partition_.divisor();
  location.slice = static_cast<uint32_t>(by_groups_.Divide(in_partition));
  location.group = in_partition - location.slice * groups_;
  return location;
}

}  // namespace heddle::memory
