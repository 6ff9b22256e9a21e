// Bank conflicts of shared memory.
//
// Shared memory has `banks` banks of `bank_bytes`; in one wavefront each bank gives one of its words to any
// number of lanes. An access of 32 bits a lane or less is one phase of 32 lanes; 64 bits are two phases of
// half a warp, 128 bits four phases of a quarter (LDSM and STSM: one phase for each 8x8 matrix, whose rows
// are 16 bytes). A phase takes as many wavefronts as the busiest bank has different words to give; an atomic
// as many as that bank has lanes. A machine without bank conflicts takes one wavefront a phase.
#pragma once

#include <cstdint>

#include "sim/base/types.h"
#include "sim/config/gpu_description.h"
#include "sim/isa/warp_stream.h"

namespace heddle::sm {

struct Wavefronts {
  uint32_t count = 0;
  uint32_t ideal = 0;  // what the same lanes need without conflicts
};

class SharedMemory {
 public:
  explicit SharedMemory(const config::SharedMemory& config);

  // Of the lanes in `lanes`, whose byte offsets are `address[lane]` (an array of 32), aligned to `bytes_per_lane`.
  template <typename Address>
  Wavefronts WavefrontsOf(const Address* address, uint32_t lanes, uint32_t bytes_per_lane, bool atomic) const;

 private:
  uint32_t bank_shift_;
  uint32_t banks_;
  bool conflicts_;
};

}  // namespace heddle::sm
