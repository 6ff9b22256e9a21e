// Read ports and reuse cache of one sub-core's register file.
//
// Each bank gives a few warp-wide registers a cycle. An instruction of fixed latency reads its operands in a
// window behind its issue and is held back until all of its reads fit; others read whenever a port is free.
// The reuse cache keeps, for each operand slot and bank, the register of the last instruction that asked for
// it with .reuse, until the next read of that slot and bank (Huerta et al., MICRO 2025).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "sim/base/types.h"
#include "sim/config/gpu_description.h"
#include "sim/sm/kernel_timing.h"

namespace heddle::sm {

class RegisterFile {
 public:
  explicit RegisterFile(const config::SubCore& config)
      : banks_(config.register_banks),
        bank_mask_(config.register_banks - 1),
        window_cycles_(config.operand_read_cycles),
        reuse_enabled_(config.reuse_cache) {
    kept_.fill(kNothing);
    for (uint32_t reads = 0; reads < need_.size(); ++reads)
      need_[reads] = static_cast<uint8_t>(CeilDiv(reads, config.read_ports_per_bank));
  }

  // Reserves the reads of an instruction that issues at `at` or later and returns by how many cycles it is
  // held back. With `fixed` false it is never held back.
  uint32_t Reserve(const InstructionTiming& timing, uint32_t warp, Cycle at, bool fixed) {
    uint32_t reads = timing.reads;
    if (reads == 0) return 0;
    if ((kept_slots_ | timing.reuse) != 0) reads = WithoutKept(timing, warp);
    if (reads == 0) return 0;
    return banks_ == 2 ? ReserveIn<2>(reads, timing, at, fixed)
                       : ReserveIn<kMaxRegisterBanks>(reads, timing, at, fixed);
  }

  void Forget(uint32_t warp) {  // registers of a new warp in this slot are not those of the old one
    for (uint32_t i = 0; i < kept_.size(); ++i)
      if (kept_[i] >> 8 == warp) Keep(i, kNothing);
  }

 private:
  static constexpr uint32_t kNothing = ~0u;
  static constexpr uint32_t kMaxHold = 24;

  void Keep(uint32_t index, uint32_t key) {
    kept_[index] = key;
    kept_slots_ = key == kNothing ? kept_slots_ & ~(1u << index) : kept_slots_ | 1u << index;
  }

  // What is to be read from the banks. Of what the slots ask for, some may be kept, and is kept or not from now on.
  uint32_t WithoutKept(const InstructionTiming& timing, uint32_t warp) {
    uint32_t reads = timing.reads;
    for (uint32_t slot = 0; slot < kOperandSlots; ++slot) {
      if (timing.slot_reads[slot] == 0) continue;
      const uint32_t reg = timing.slot_register[slot];
      const uint32_t index = slot * kMaxRegisterBanks + (reg & bank_mask_);
      const uint32_t key = warp << 8 | reg;
      if (kept_[index] == key) reads -= timing.slot_reads[slot];
      Keep(index, reuse_enabled_ && (timing.reuse >> slot & 1) != 0 ? key : kNothing);
    }
    return reads;
  }

  // For a known number of banks the loops over them disappear. Banks beyond the machine's own are never read.
  template <uint32_t kBanks>
  uint32_t ReserveIn(uint32_t reads, const InstructionTiming& timing, Cycle at, bool fixed) {
    std::array<uint32_t, kBanks> need;
    for (uint32_t bank = 0; bank < kBanks; ++bank) need[bank] = need_[reads >> 4 * bank & 15];
    const Cycle by = at > base_ ? at - base_ : 0;
    base_ += by;
    uint64_t any = 0;
    for (uint32_t bank = 0; bank < kBanks; ++bank) any |= busy_[bank] = by < 64 ? busy_[bank] >> by : 0;
    if (any == 0) {  // nothing in the way
      for (uint32_t bank = 0; bank < kBanks; ++bank) busy_[bank] = (uint64_t{1} << need[bank]) - 1;
      return 0;
    }
    const uint32_t window = std::max(window_cycles_, timing.interval_quarters / 4u);
    uint32_t hold = 0;
    if (fixed)
      while (hold < kMaxHold && !Fits<kBanks>(need, hold, window)) ++hold;
    for (uint32_t bank = 0; bank < kBanks; ++bank) Take(&busy_[bank], need[bank], hold);
    return hold;
  }

  template <uint32_t kBanks>
  bool Fits(const std::array<uint32_t, kBanks>& need, uint32_t hold, uint32_t window) const {
    bool fits = true;
    for (uint32_t bank = 0; bank < kBanks; ++bank) {
      const uint32_t length = std::max(window, need[bank]);
      const uint64_t free = ~busy_[bank] >> hold & ((uint64_t{1} << length) - 1);
      fits &= static_cast<uint32_t>(std::popcount(free)) >= need[bank];
    }
    return fits;
  }

  static void Take(uint64_t* busy, uint32_t need, uint32_t hold) {
    uint64_t taken = *busy;
    for (uint64_t free = ~taken >> hold << hold; need > 0 && free != 0; --need, free &= free - 1)
      taken |= free & (~free + 1);
    *busy = taken;
  }

  uint32_t banks_;
  uint32_t bank_mask_;
  uint32_t window_cycles_;
  bool reuse_enabled_;
  uint32_t kept_slots_ = 0;                         // entries of kept_ that hold something
  Cycle base_ = 0;                                  // cycle of bit 0
  std::array<uint64_t, kMaxRegisterBanks> busy_{};  // bit i: the port is taken in cycle base_ + i
  std::array<uint32_t, kOperandSlots * kMaxRegisterBanks> kept_;
  std::array<uint8_t, 16> need_;  // cycles that so many reads of a bank take
};

}  // namespace heddle::sm
