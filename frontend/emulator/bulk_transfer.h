// The bytes of bulk copies: what happens when the simulator says that a row has been read or has arrived.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/emulator/async_port.h"
#include "frontend/emulator/memory_port.h"

namespace heddle::emulator {

class IssueLog;

// Address of the 16-byte unit that holds what an unswizzled box has at `address`. The pattern repeats every 1024 bytes
// of the window.
inline uint32_t Swizzled(uint32_t address, isa::TensorSwizzle swizzle) {
  const uint32_t mask = (1u << static_cast<uint32_t>(swizzle)) - 1;  // 0, 1, 3, 7
  return address ^ ((address >> 7 & mask) << 4);
}

// Rows [first, first + count) appear in the shared memory of `cta`, and count at its mbarrier. A CTA that has ended
// (nullptr, or not resident) is reported and left alone.
void MoveRowsToShared(BulkRecord& record, CtaMemory* cta, DeviceMemory& device, uint32_t first,
                      uint32_t count, IssueLog& issues, std::vector<uint32_t>* woken);

// Rows [first, first + count) are copied out of the shared memory of their CTA.
void ReadRowsOfSource(BulkRecord& record, uint32_t first, uint32_t count, IssueLog& issues);

// Bytes [offset, offset + bytes) of what row `piece` moves are stored to global memory, or combined with it.
void MoveRowToGlobal(BulkRecord& record, DeviceMemory& device, uint32_t piece, uint32_t offset,
                     uint32_t bytes);

}  // namespace heddle::emulator
