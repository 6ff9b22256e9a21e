// What SMs and the memory system say to each other. An SM appends requests to its outbox during a window; at the
// window's edge the memory system serves them in the order (cycle, SM, sequence) and writes `reply_cycle` into the
// same record, where the SM reads it at the start of the next window. The outbox is the mailbox: nothing is copied.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/types.h"

namespace heddle::isa {
class WarpStream;
struct BulkOperation;
}  // namespace heddle::isa

namespace heddle::memory {

inline constexpr uint32_t kLineBytes = 128;
inline constexpr uint32_t kSectorBytes = 32;

enum class RequestKind : uint8_t {
  kRead,       // data or constants or instructions: sectors come back
  kWrite,      // sectors travel to the slice; the reply is the acknowledgement that fences wait for
  kAtomic,     // performed at the slice; a value comes back
  kReduction,  // performed at the slice; acknowledged
  kPrefetch,   // as a read, but the sectors stay in L2
};

inline constexpr uint32_t kMulticastSms = 16;

// What the requests of one bulk operation share where memory must know of it: stores and reductions, whose rows the slice
// performs, and loads whose data go to several SMs of a GPC, which are read from L2 once and copied where the ways part.
struct BulkContext {
  isa::BulkOperation* operation = nullptr;
  uint16_t destinations = 0;  // loads: bit i: to sm[i]
  uint32_t unanswered = 0;    // loads: requests without an answer, those not yet sent included
  std::array<uint32_t, kMulticastSms> sm{};
  std::array<Cycle, kMulticastSms> arrival{};  // of the last sector so far
  uint32_t owner_sm = 0;
  uint32_t owner_work = 0;  // the owner's own
};

// One cache line: every stage of a window reads or writes each request of it.
struct alignas(64) MemoryRequest {
  Cycle cycle = 0;            // leaves the SM
  uint64_t line_address = 0;  // virtual, multiple of kLineBytes
  Cycle reply_cycle = 0;      // written by the memory system: last sector at the SM, or acknowledgement
  // Set when the slice must perform the access functionally: atomics, reductions, strong loads, bulk copies to memory.
  isa::WarpStream* stream = nullptr;
  // kWrite, kReduction: a bulk copy, `token` is its row, `lanes` the offset there of payload_bytes bytes. kRead: for
  // several SMs.
  BulkContext* bulk = nullptr;
  uint32_t token = 0;
  uint32_t lanes = 0;
  uint32_t tag = 0;  // the SM's own; the memory system does not look at it
  uint16_t sm = 0;
  uint16_t launch = 0;         // LaunchHandle on this SM: whose statistics count the request
  uint16_t payload_bytes = 0;  // written bytes (partial sectors are possible)
  RequestKind kind = RequestKind::kRead;
  uint8_t sector_mask = 0;  // bit i: sector i of the line
  // kWrite: what is written of each sector, where the SM knows: those written whole, and of the others pairs of bytes,
  // four bits a sector. Both 0: payload_bytes, spread evenly.
  uint8_t complete_sectors = 0;
  uint16_t written_pairs = 0;
};
static_assert(sizeof(MemoryRequest) == 64);

// In the order in which the SM sent them, which decides between requests of one cycle.
using Outbox = std::vector<MemoryRequest>;

}  // namespace heddle::memory
