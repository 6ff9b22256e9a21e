// What the numbers of a trace say of barriers and of the generic windows.
#pragma once

#include <cstdint>

#include "sim/isa/instruction.h"
#include "sim/isa/warp_stream.h"

namespace heddle::importer {

inline constexpr uint64_t kWindowBytes = uint64_t{1} << 24;  // of shared and of local memory

inline bool InWindow(uint64_t address, uint64_t base) { return base != 0 && address - base < kWindowBytes; }

// Traces give local addresses as offsets or in the generic window.
inline uint32_t LocalOffset(uint64_t address, uint64_t base) {
  return static_cast<uint32_t>((InWindow(address, base) ? address - base : address) & (kWindowBytes - 1));
}

// A line holds the last immediate of its instruction: the barrier's number, or where there is a count, the count. Counts
// are multiples of a warp, numbers less than one. Which barrier has the count does not stand there: barriers of one
// count are taken for one, those of different counts for different ones.
isa::BarrierAccess BarrierOf(const isa::Instruction& instruction);

}  // namespace heddle::importer
