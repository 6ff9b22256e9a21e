// mbarriers: 64-bit words of shared memory, and the warps that wait for them.
//
// Layout, as ptxas writes and reads it (mbarrier.init, mbarrier.pending_count): bits 1-20 hold 2^20 less the arrivals
// that a phase expects, bits 43-62 2^20 less those still pending, so that the last arrival carries into bit 63, the
// parity of the phase. Bits 21-42, which no code looks at, hold the transaction count, signed.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/types.h"

namespace heddle::emulator {

struct Warp;
struct CtaMemory;

inline constexpr uint32_t kMbarrierBytes = 8;

// What one arrival does. Order as on hardware: expected transactions first, then the arrival.
struct MbarrierArrival {
  uint32_t arrivals = 0;
  int32_t transactions = 0;  // added: expected bytes are positive, completed ones negative
  bool drops = false;        // also expected no more in later phases
};

// The word after the arrival. `completed` is set when it ended the phase.
uint64_t Arrive(uint64_t word, const MbarrierArrival& arrival, bool* completed);
inline bool PhaseParity(uint64_t word) { return word >> 63 != 0; }

// Lanes of a warp that wait with SYNCS..TRYWAIT until the phase of `parity` is complete at every address.
struct MbarrierWait {
  Warp* warp = nullptr;
  uint32_t lanes = 0;
  uint32_t parity = 0;                         // bit per lane
  uint32_t blocked_on = 0;                     // address of the first lane whose phase is incomplete
  uint8_t predicate = 0;                       // of the warp, that becomes true
  std::array<uint32_t, kWarpLanes> address{};  // offsets in the CTA's window
};

// Lanes of `lanes` whose phase is complete: the parity of the barrier differs from the one asked for.
uint32_t CompleteLanes(const CtaMemory& cta, uint32_t lanes, uint32_t parity, const uint32_t* address);

// Arrives at the mbarrier at offset `address` of the CTA, which has been checked to lie inside. When that ends the
// phase, waiting warps go on: those that could not run at all before are appended to `woken`, but for `running`, whose
// step is being executed. Returns the word as it was.
uint64_t ArriveAt(CtaMemory& cta, uint32_t address, const MbarrierArrival& arrival, const Warp* running,
                  std::vector<uint32_t>* woken);

// Ends the wait of the warp's lanes: their predicate says which of them saw the phase complete. False: it waits for
// none.
bool FailMbarrierWaits(CtaMemory& cta, Warp& warp);

}  // namespace heddle::emulator
