// Read ports and reuse cache of one sub-core's register file.
//
// Each bank gives a few warp-wide registers a cycle. An instruction of fixed latency reads its operands in a
// window behind its issue and is held back until all of its reads fit; others read whenever a port is free.
// The reuse cache keeps, for each operand slot and bank, the register of the last instruction that asked for
// it with .reuse, until the next read of that slot and bank (Huerta et al., MICRO 2025).
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "sim/config/gpu_description.h"
#include "sim/sm/kernel_timing.h"

namespace heddle::sm {

class RegisterFile {
 public:
  explicit RegisterFile(const config::SubCore& config)
      : banks_(config.register_banks),
        ports_(config.read_ports_per_bank),
        window_cycles_(config.operand_read_cycles),
        reuse_enabled_(config.reuse_cache) {
    kept_.fill(kNothing);
  }

  // Reserves the reads of an instruction that issues at `at` or later and returns by how many cycles it is
  // held back. With `fixed` false it is never held back.
  uint32_t Reserve(const InstructionTiming& timing, uint32_t warp, Cycle at, bool fixed) {
    uint32_t reads = timing.other_reads;
    if (timing.slot_reads[0] | timing.slot_reads[1] | timing.slot_reads[2])
      reads += ReadsOfSlots(timing, warp);
    if (reads == 0) return 0;
    AdvanceTo(at);
    const uint32_t window = std::max(window_cycles_, timing.interval_quarters / 4u);
    uint32_t hold = 0;
    if (fixed)
      while (hold < kMaxHold && !Fits(reads, hold, window)) ++hold;
    for (uint32_t bank = 0; bank < banks_; ++bank) Take(bank, Need(reads, bank), hold);
    return hold;
  }

  void Forget(uint32_t warp) {  // registers of a new warp in this slot are not those of the old one
    for (uint32_t& kept : kept_)
      if (kept >> 8 == warp) kept = kNothing;
  }

 private:
  static constexpr uint32_t kNothing = ~0u;
  static constexpr uint32_t kMaxHold = 24;

  uint32_t Need(uint32_t reads, uint32_t bank) const {
    return ((reads >> 4 * bank & 15) + ports_ - 1) / ports_;
  }

  uint32_t ReadsOfSlots(const InstructionTiming& timing, uint32_t warp) {
    uint32_t reads = 0;
    for (uint32_t slot = 0; slot < kOperandSlots; ++slot) {
      if (timing.slot_reads[slot] == 0) continue;
      const uint32_t reg = timing.slot_register[slot];
      uint32_t& kept = kept_[slot * kMaxRegisterBanks + reg % banks_];
      const uint32_t key = warp << 8 | reg;
      if (kept != key) reads += timing.slot_reads[slot];
      kept = reuse_enabled_ && (timing.reuse >> slot & 1) != 0 ? key : kNothing;
    }
    return reads;
  }

  bool Fits(uint32_t reads, uint32_t hold, uint32_t window) const {
    for (uint32_t bank = 0; bank < banks_; ++bank) {
      const uint32_t need = Need(reads, bank);
      const uint32_t length = std::max(window, need);
      const uint64_t free = ~busy_[bank] >> hold & ((uint64_t{1} << length) - 1);
      if (static_cast<uint32_t>(std::popcount(free)) < need) return false;
    }
    return true;
  }

  void Take(uint32_t bank, uint32_t need, uint32_t hold) {
    uint64_t free = ~busy_[bank] >> hold << hold;
    for (; need > 0 && free != 0; --need, free &= free - 1) busy_[bank] |= free & (~free + 1);
  }

  void AdvanceTo(Cycle at) {
    if (at <= base_) return;
    const Cycle by = at - base_;
    for (uint64_t& busy : busy_) busy = by < 64 ? busy >> by : 0;
    base_ = at;
  }

  uint32_t banks_;
  uint32_t ports_;
  uint32_t window_cycles_;
  bool reuse_enabled_;
  Cycle base_ = 0;                                  // cycle of bit 0
  std::array<uint64_t, kMaxRegisterBanks> busy_{};  // bit i: the port is taken in cycle base_ + i
  std::array<uint32_t, kOperandSlots * kMaxRegisterBanks> kept_;
};

}  // namespace heddle::sm
