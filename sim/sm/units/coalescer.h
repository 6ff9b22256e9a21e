// From the addresses of a warp to the lines and sectors that it touches.
#pragma once

#include <array>
#include <cstdint>

#include "sim/base/types.h"
#include "sim/memory/memory_request.h"

namespace heddle::sm {

struct LineAccess {
  uint64_t line_address = 0;
  uint32_t lanes = 0;
  uint8_t sector_mask = 0;
  uint16_t bytes = 0;                     // asked for by the lanes, without merging
  std::array<uint8_t, 4> sector_bytes{};  // likewise, up to a sector; where they were asked for
};

// Lines in the order in which the lanes first touch them. An access that is not aligned to its size may touch
// two.
struct LineAccesses {
  uint32_t count = 0;
  std::array<LineAccess, 2 * kWarpLanes> lines;
};

// `address[lane]` for the lanes in `lanes`; `bytes_per_lane` up to 16. `by_sector`: LineAccess::sector_bytes is wanted.
void Coalesce(const uint64_t* address, uint32_t lanes, uint32_t bytes_per_lane, LineAccesses* out,
              bool by_sector = false);

}  // namespace heddle::sm
