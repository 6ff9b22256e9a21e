#include "sim/sm/units/shared_memory.h"

#include <algorithm>
#include <array>
#include <bit>

namespace heddle::sm {
namespace {
constexpr uint32_t kMaxBanks = 128;
constexpr uint32_t kMaxWords = 32;
}  // namespace

SharedMemory::SharedMemory(const config::SharedMemory& config)
    : bank_shift_(static_cast<uint32_t>(std::countr_zero(config.bank_bytes))),
      bank_mask_(std::min(config.banks, kMaxBanks) - 1) {}

// `words` are word numbers (address / bank_bytes) of one phase.
uint32_t SharedMemory::PhaseWavefronts(const uint32_t* words, uint32_t count, bool atomic) const {
  // First pass: every bank asked for one word only, by far the most frequent case.
  std::array<uint32_t, kMaxBanks> word_of;
  std::array<uint64_t, kMaxBanks / 64> seen{};
  bool conflict = false;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t bank = words[i] & bank_mask_;
    uint64_t& word = seen[bank >> 6];
    const uint64_t bit = uint64_t{1} << (bank & 63);
    if ((word & bit) == 0) {
      word |= bit;
      word_of[bank] = words[i];
    } else {
      conflict |= atomic || word_of[bank] != words[i];
    }
  }
  if (!conflict) return count == 0 ? 0 : 1;

  std::array<uint32_t, kMaxWords> sorted;
  std::copy_n(words, count, sorted.begin());
  std::sort(sorted.begin(), sorted.begin() + count);
  const uint32_t distinct =
      atomic ? count
             : static_cast<uint32_t>(std::unique(sorted.begin(), sorted.begin() + count) - sorted.begin());
  std::array<uint8_t, kMaxBanks> per_bank{};
  uint32_t most = 0;
  for (uint32_t i = 0; i < distinct; ++i) most = std::max<uint32_t>(most, ++per_bank[sorted[i] & bank_mask_]);
  return most;
}

template <typename Address>
Wavefronts SharedMemory::WavefrontsOf(const Address* address, uint32_t lanes, uint32_t bytes_per_lane,
                                      bool atomic) const {
  const uint32_t words_per_lane = std::max(1u, bytes_per_lane >> bank_shift_);
  const uint32_t lanes_per_phase = std::max(1u, kWarpLanes / words_per_lane);
  Wavefronts wavefronts;
  std::array<uint32_t, kMaxWords> words;
  for (uint32_t first = 0; first < kWarpLanes; first += lanes_per_phase) {
    uint32_t count = 0;
    const uint32_t phase = static_cast<uint32_t>((uint64_t{1} << lanes_per_phase) - 1) << first;
    for (uint32_t left = lanes & phase; left != 0; left &= left - 1) {
      const auto word = static_cast<uint32_t>(address[std::countr_zero(left)] >> bank_shift_);
      for (uint32_t i = 0; i < words_per_lane && count < kMaxWords; ++i) words[count++] = word + i;
    }
    if (count == 0) continue;
    wavefronts.count += PhaseWavefronts(words.data(), count, atomic);
    wavefronts.ideal += 1;
  }
  return wavefronts;
}

template Wavefronts SharedMemory::WavefrontsOf(const uint32_t*, uint32_t, uint32_t, bool) const;
template Wavefronts SharedMemory::WavefrontsOf(const uint64_t*, uint32_t, uint32_t, bool) const;

}  // namespace heddle::sm
