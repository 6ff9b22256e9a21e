// Accesses to the shared memory of other CTAs of the cluster: issued here, performed at the CTA's stream.
#pragma once

#include <cstdint>

#include "frontend/emulator/access.h"
#include "frontend/emulator/async_port.h"

namespace heddle::emulator {

// Lanes of `lanes` whose address in the cluster's shared window (rank << 24 | offset) lies in another CTA. Their offsets
// and ranks are written to a new record, which is handed to the step's access; nullptr when there are none. What does
// not exist is reported and left out.
RemoteRecord* BeginRemote(Context& context, const Lowered& l, uint32_t lanes, const uint32_t* address,
                          uint32_t bytes);
// After BeginRemote and all fields: the record may be performed from now on.
void IssueRemote(RemoteRecord& record);

// Performs the lanes of the given rank on the shared memory of its CTA. One that has ended (nullptr, or not resident)
// is reported and left alone; values are zeros then.
void PerformRemoteAt(RemoteRecord& record, CtaMemory* cta, uint32_t rank, IssueLog& issues,
                     std::vector<uint32_t>* woken);

// Of a generic load, store or atomic: the lanes in other CTAs' shared memory.
void LoadRemote(Context& context, const Lowered& l, uint32_t lanes, const uint32_t* address);
void StoreRemote(Context& context, const Lowered& l, uint32_t lanes, const uint32_t* address);
void AtomicRemote(Context& context, const Lowered& l, uint32_t lanes, const uint32_t* address, AtomicOp op,
                  AtomicType type, bool returns);

}  // namespace heddle::emulator
