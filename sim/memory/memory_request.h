// What SMs and the memory system say to each other. An SM appends requests to its outbox during a window; at the
// window's edge the memory system serves them in the order (cycle, SM, sequence) and writes `reply_cycle` into the
// same record, where the SM reads it at the start of the next window. The outbox is the mailbox: nothing is copied.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/types.h"

namespace heddle::isa {
class WarpStream;
}

namespace heddle::memory {

inline constexpr uint32_t kLineBytes = 128;
inline constexpr uint32_t kSectorBytes = 32;

enum class RequestKind : uint8_t {
  kRead,         // data or constants or instructions: sectors come back
  kWrite,        // sectors travel to the slice; the reply is the acknowledgement that fences wait for
  kAtomic,       // performed at the slice; a value comes back
  kReduction,    // performed at the slice; acknowledged
};

struct MemoryRequest {
  Cycle cycle = 0;            // leaves the SM
  uint64_t line_address = 0;  // virtual, multiple of kLineBytes
  RequestKind kind = RequestKind::kRead;
  uint8_t sector_mask = 0;    // bit i: sector i of the line
  uint16_t payload_bytes = 0; // written bytes (partial sectors are possible)
  uint32_t sm = 0;
  uint32_t sequence = 0;      // within SM and window
  uint32_t tag = 0;           // the SM's own; the memory system does not look at it
  // Set when the slice must perform the access functionally: atomics, reductions, strong loads.
  isa::WarpStream* stream = nullptr;
  uint32_t token = 0;
  uint32_t lanes = 0;
  uint32_t launch = 0;        // LaunchHandle on this SM: whose statistics count the request

  Cycle reply_cycle = 0;      // written by the memory system: last sector at the SM, or acknowledgement
};

using Outbox = std::vector<MemoryRequest>;

}  // namespace heddle::memory
