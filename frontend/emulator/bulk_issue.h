// What the issue of tensor and plain bulk copies has in common.
#pragma once

#include <cstdint>

#include "frontend/emulator/access.h"
#include "frontend/emulator/async_port.h"

namespace heddle::emulator {

inline constexpr uint32_t kSharedOffsetMask = 0xffffff;  // of an address in the cluster's shared window
inline constexpr uint32_t kRankShift = 24;

// flags of the lowered record beyond AccessFlag
enum BulkFlag : uint32_t {
  kMulticasts = 1 << 23,  // source 2 holds ranks in its upper half
  kBulkKindShift = 24,    // isa::BulkKind, 3 bits
  kCombines = 1 << 27,
  kDimensionShift = 28,  // 3 bits
};

inline isa::BulkKind BulkKindOf(const Lowered& l) {
  return static_cast<isa::BulkKind>(l.flags >> kBulkKindShift & 7);
}
// Word `offset` of a list of uniform registers.
inline uint32_t UniformWord(const Context& c, const Lowered& l, size_t source, uint32_t offset = 0) {
  return c.Source(l, source, offset).lane[0];
}

// A new operation of the warp, with kind and what skeleton mode leaves out.
BulkRecord& BeginBulk(Context& context, const Lowered& l);

// Names the destinations of what arrives in shared memory: the rank in `address`, or the mask of a multicast. False,
// with a report, when one is not in the cluster.
bool SetDestinations(Context& context, const Lowered& l, BulkRecord& record, uint32_t address,
                     uint32_t mbarrier);

// True when `bytes` at offset `address` lie in the CTA's window, aligned; reports otherwise.
bool CheckBulkShared(Context& context, const Lowered& l, uint32_t address, uint64_t bytes,
                     uint32_t alignment);

// Clips what row pieces move to the buffers that exist; reports what lies outside.
void ClipToBuffers(Context& context, const Lowered& l, BulkRecord& record);

// Hands the operation to the step; one that moves nothing is taken back.
void IssueBulk(Context& context, BulkRecord& record);
// Takes back an operation that was found to be malformed.
void DropBulk(Context& context, BulkRecord& record);

// Lowering: the next operand, [UR] or UR, becomes a source of uniform registers.
void TakeUniformList(Lowering& w, size_t source);
// desc[UR]: a cache policy, without functional meaning.
void SkipCachePolicy(Lowering& w);

}  // namespace heddle::emulator
