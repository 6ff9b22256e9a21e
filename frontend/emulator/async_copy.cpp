// LDGSTS: global to shared memory without registers. The bytes appear in shared memory when the copy is
// completed.
#include "frontend/emulator/access.h"

namespace heddle::emulator {
namespace {

using isa::MemoryAccess;
using isa::Mod;

constexpr uint32_t kCopyBase64 = kBase64;

void RunAsyncCopy(Context& c, const Lowered& l) {
  MemoryAccess& access = BeginAccess(c, l, isa::MemorySpace::kGlobal, isa::AccessKind::kAsyncCopy);
  Addresses32(c, l, 2, 3, High(l.imm), access.shared_address.data());
  Addresses64(c, l, access.address.data());
  const uint32_t bytes = access.bytes_per_lane;
  const uint32_t lanes = CheckShared(c, l, c.executing, access.shared_address.data(), bytes);
  access.zero_fill_lanes = lanes & ~c.SourcePredicate(l, 0);
  const uint32_t reading = lanes & ~access.zero_fill_lanes;
  access.lanes = reading == 0 ? 0 : CheckGlobal(c, l, reading, access.address.data(), bytes);
  if (l.flags & kDataSkipped) return;
  PendingAccess& pending = c.memory->NewPending(&access.token);
  pending.kind = PendingAccess::Kind::kAsyncCopy;
  pending.bytes = static_cast<uint8_t>(bytes);
  pending.cta = &CtaOf(c);
  pending.warp = c.warp;
  pending.remaining.store(access.lanes, std::memory_order_relaxed);
  pending.zero_fill = access.zero_fill_lanes;
  pending.address = access.address;
  pending.shared_address = access.shared_address;
}

}  // namespace

void LowerLdgsts(Lowering& w) {
  w.Take(Mod::kE);
  w.Take(Mod::kACCESS);
  if (w.Take(Mod::kBYPASS)) w.out.flags |= kBypassesL1;
  TakeWidth(w);
  TakeCacheModifiers(w);
  w.out.flags &= ~static_cast<uint32_t>(kAtSlice);
  // The shared address comes first.
  TakeAddress(w);
  w.out.source[2] = w.out.source[0];
  w.out.source[3] = w.out.source[1];
  w.out.imm <<= 32;
  w.out.flags &= ~static_cast<uint32_t>(kBase64 | kUniformPair);
  const uint32_t scale = w.out.flags & kScaleMask;
  TakeAddress(w);
  w.out.flags = (w.out.flags & ~static_cast<uint32_t>(kScaleMask)) | scale;
  if (w.instruction.Has(Mod::kE) && !(w.out.flags & kUniformPair)) w.out.flags |= kCopyBase64;
  w.TakeSourcePredicate(0);
  w.out.run = &RunAsyncCopy;
}

}  // namespace heddle::emulator
