#include "sim/memory/address_map.h"

#include <bit>
#include <numeric>

#include "sim/base/check.h"

namespace heddle::memory {
namespace {

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
  for (uint32_t slice = 0; slice < gpu.l2.slices; ++slice) {
    const uint32_t in_partition = slice % slices;
    slice_place_.push_back({.group = in_partition % groups_,
                            .home = slice / slices,
                            .slice = in_partition / groups_,
                            .index = 0});
  }
  for (uint32_t step = 1; step <= gpu.l2.slices && step_count_ < kMaxSteps; ++step)
    if (std::gcd(step, gpu.l2.slices) == 1) steps_[step_count_++] = step;
}

uint64_t AddressMap::Permuted(uint64_t virtual_address) const {
  const uint64_t page = virtual_address >> page_shift_;
  const uint64_t moved = (page & ~uint64_t{0xffff}) | PermutePage(page & 0xffff, placement_seed_);
  return virtual_address ^ (page ^ moved) << page_shift_;
}

}  // namespace heddle::memory
