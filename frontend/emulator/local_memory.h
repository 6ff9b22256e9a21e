// Local memory: every lane has its own, words of the same offset lie side by side.
#pragma once

#include "frontend/emulator/access.h"

namespace heddle::emulator {

// The lanes whose `offset` is aligned and inside the local memory of a thread; the others are reported.
uint32_t CheckLocal(Context& context, const Lowered& l, uint32_t lanes, const uint32_t* offset,
                    uint32_t bytes);
// Where the lanes' bytes lie in the address space.
void LocalAddresses(const Context& context, const uint32_t* offset, uint64_t* address);
void ReadLocal(Context& context, uint32_t lanes, const uint32_t* offset, uint32_t bytes, bool sign_extend,
               Row* rows);
void WriteLocal(Context& context, uint32_t lanes, const uint32_t* offset, uint32_t bytes, const Row* rows);

}  // namespace heddle::emulator
