#include "sim/sm/units/shared_memory.h"

#include <algorithm>
#include <array>
#include <bit>

#include "sim/base/check.h"

namespace heddle::sm {
namespace {

constexpr uint32_t kMaxBanks = 128;
constexpr uint32_t kVectorBanks = 32;  // banks whose use fits the mask of the vectorised test

using Chunks = std::array<uint32_t, kWarpLanes>;

// What the busiest group of banks has to give in one phase: different chunks, or lanes if `atomic`.
uint32_t PhaseWavefronts(const Chunks& chunks, uint32_t lanes, uint32_t group_mask, bool atomic) {
  std::array<uint32_t, kWarpLanes> sorted;
  uint32_t count = 0;
  for (uint32_t left = lanes; left != 0; left &= left - 1)
    sorted[count++] = chunks[static_cast<size_t>(std::countr_zero(left))];
  if (!atomic) {
    // Broadcasts come in runs of equal neighbours: less to sort.
    count = static_cast<uint32_t>(std::unique(sorted.begin(), sorted.begin() + count) - sorted.begin());
    std::sort(sorted.begin(), sorted.begin() + count);
    count = static_cast<uint32_t>(std::unique(sorted.begin(), sorted.begin() + count) - sorted.begin());
  }
  std::array<uint8_t, kMaxBanks> per_group{};
  uint32_t most = 0;
  for (uint32_t i = 0; i < count; ++i) most = std::max<uint32_t>(most, ++per_group[sorted[i] & group_mask]);
  return most;
}

}  // namespace

SharedMemory::SharedMemory(const config::SharedMemory& config)
    : bank_shift_(static_cast<uint32_t>(std::countr_zero(config.bank_bytes))),
      banks_(std::min(config.banks, kMaxBanks)),
      conflicts_(config.bank_conflicts) {
  HEDDLE_CHECK(std::has_single_bit(config.bank_bytes) && std::has_single_bit(banks_), "sm.shared_memory", 0,
               "banks and their bytes are powers of two");
}

// An access is aligned to its size, so the words of a lane lie in one aligned group of banks: chunks (as wide as an
// access, at least a word) conflict as words do, and there are fewer of them.
template <typename Address>
Wavefronts SharedMemory::WavefrontsOf(const Address* address, uint32_t lanes, uint32_t bytes_per_lane,
                                      bool atomic) const {
  const auto words_shift =
      static_cast<uint32_t>(std::countr_zero(std::max(1u, bytes_per_lane >> bank_shift_)));
  const uint32_t chunk_shift = bank_shift_ + words_shift;
  const uint32_t group_mask = std::max(1u, banks_ >> words_shift) - 1;
  const uint32_t turns = std::max(1u, (1u << words_shift) / banks_);  // of an access wider than all banks
  const uint32_t phase_shift = 5 - words_shift;                       // lanes of a phase: 32, 16, 8
  Chunks chunks;
  for (uint32_t lane = 0; lane < kWarpLanes; ++lane)
    chunks[lane] = static_cast<uint32_t>(address[lane]) >> chunk_shift;

  const uint32_t phase_lanes = static_cast<uint32_t>((uint64_t{1} << (1u << phase_shift)) - 1);
  Wavefronts wavefronts;
  for (uint32_t first = 0; first < kWarpLanes; first += 1u << phase_shift)
    wavefronts.ideal += (lanes & phase_lanes << first) != 0;

  if (!conflicts_) {
    wavefronts.count = turns * wavefronts.ideal;
    return wavefronts;
  }

  // The commonest case, tested without a branch for all lanes at once: every lane of a phase has a group of its own.
  if (banks_ == kVectorBanks) {
    uint32_t used = 0;
    for (uint32_t lane = 0; lane < kWarpLanes; ++lane)
      used |=
          (lanes >> lane & 1u) << ((chunks[lane] & group_mask) | (lane >> phase_shift) * (group_mask + 1));
    if (std::popcount(used) == std::popcount(lanes)) {
      wavefronts.count = wavefronts.ideal;
      return wavefronts;
    }
  }
  for (uint32_t first = 0; first < kWarpLanes; first += 1u << phase_shift)
    wavefronts.count += turns * PhaseWavefronts(chunks, lanes & phase_lanes << first, group_mask, atomic);
  return wavefronts;
}

template Wavefronts SharedMemory::WavefrontsOf(const uint32_t*, uint32_t, uint32_t, bool) const;
template Wavefronts SharedMemory::WavefrontsOf(const uint64_t*, uint32_t, uint32_t, bool) const;

}  // namespace heddle::sm
