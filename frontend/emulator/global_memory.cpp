// Loads and stores of global memory and of generic addresses: LDG, STG, LD, ST, QSPC, CCTL.
#include "frontend/emulator/bulk_issue.h"
#include "frontend/emulator/issue_log.h"
#include "frontend/emulator/local_memory.h"
#include "frontend/emulator/remote.h"

namespace heddle::emulator {
namespace {

using isa::AccessKind;
using isa::MemoryAccess;
using isa::MemorySpace;
using isa::Mod;

// Lanes of a generic access by the window that their address lies in.
struct Spaces {
  uint32_t shared = 0;
  uint32_t local = 0;
  uint32_t remote = 0;          // shared memory of another CTA of the cluster
  uint32_t offset[kWarpLanes];  // remote: with the rank above it
};

void SplitSpaces(const Context& c, const uint64_t* address, uint32_t lanes, Spaces& spaces) {
  const uint32_t own = c.cta->rank;
  spaces.shared = lanes & MaskOf([&](uint32_t i) { return High(address[i]) == kSharedWindowHigh; });
  if (spaces.shared != 0)
    spaces.remote = spaces.shared & MaskOf([&](uint32_t i) { return Low(address[i]) >> kRankShift != own; });
  spaces.shared &= ~spaces.remote;
  spaces.local = lanes & MaskOf([&](uint32_t i) { return High(address[i]) == kLocalWindowHigh; });
  const uint32_t rank_bits = own << kRankShift;
  for (uint32_t i = 0; i < kWarpLanes; ++i)
    spaces.offset[i] = Low(address[i]) ^ (spaces.shared >> i & 1 ? rank_bits : 0);
}

void LoadAtSlice(Context& c, const Lowered& l, MemoryAccess& access) {
  access.at_slice = true;
  if (l.flags & kDataSkipped || access.lanes == 0) return;
  PendingAccess& pending = c.memory->NewPending(&access.token);
  pending.kind = PendingAccess::Kind::kLoad;
  pending.bytes = access.bytes_per_lane;
  pending.sign_extend = (l.flags & kSignExtends) != 0;
  pending.address = access.address;
  pending.remaining.store(access.lanes, std::memory_order_relaxed);
  pending.destination = l.destination[0] == kDiscardRow ? nullptr : &c.Destination(l);
  pending.warp = c.warp;
  if (pending.destination != nullptr) {
    pending.scoreboards = ScoreboardsOf(l);
    c.memory->HoldUp(*c.warp, pending.scoreboards);
  }
}

// A generic access of local memory alone is one of local memory: its lanes and addresses are.
void NoteLocal(Context& c, const Spaces& spaces, uint32_t lanes, MemoryAccess& access) {
  if (spaces.local != c.executing) return;
  access.space = MemorySpace::kLocal;
  access.lanes = lanes;
  LocalAddresses(c, spaces.offset, access.address.data());
}

// The addresses of an access, and which of its lanes go to global memory; `windows` has performed the others.
template <bool kGeneric, typename Windows>
uint32_t GlobalLanes(Context& c, const Lowered& l, MemoryAccess& access, Windows windows) {
  Addresses64(c, l, access.address.data());
  if constexpr (kGeneric) {
    Spaces spaces;
    SplitSpaces(c, access.address.data(), c.executing, spaces);
    const uint32_t lanes = c.executing & ~(spaces.shared | spaces.local | spaces.remote);
    if (lanes != c.executing) windows(c, l, access, spaces);
    return lanes;
  }
  return c.executing;
}

// The part of a generic access that lies in shared and local memory.
void LoadWindows(Context& c, const Lowered& l, MemoryAccess& access, Spaces& spaces) {
  const bool wants_data = !(l.flags & kDataSkipped);
  const bool sign_extend = (l.flags & kSignExtends) != 0;
  if (spaces.remote != 0) LoadRemote(c, l, spaces.remote, spaces.offset);
  if (spaces.shared != 0) {
    access.shared_lanes = CheckShared(c, l, spaces.shared, spaces.offset, access.bytes_per_lane);
    std::copy_n(spaces.offset, kWarpLanes, access.shared_address.begin());
    if (wants_data)
      ReadShared(CtaOf(c).shared, access.shared_lanes, spaces.offset, access.bytes_per_lane, sign_extend,
                 &c.Destination(l));
  }
  if (spaces.local != 0) {
    const uint32_t lanes = CheckLocal(c, l, spaces.local, spaces.offset, access.bytes_per_lane);
    if (wants_data) ReadLocal(c, lanes, spaces.offset, access.bytes_per_lane, sign_extend, &c.Destination(l));
    NoteLocal(c, spaces, lanes, access);
  }
}

template <bool kGeneric>
void RunLoad(Context& c, const Lowered& l) {
  MemoryAccess& access = BeginAccess(c, l, MemorySpace::kGlobal, AccessKind::kLoad);
  const uint32_t lanes = GlobalLanes<kGeneric>(c, l, access, LoadWindows);
  if (kGeneric && lanes == 0) return;
  access.lanes = CheckGlobal(c, l, lanes, access.address.data(), access.bytes_per_lane);
  if (l.flags & kAtSlice) return LoadAtSlice(c, l, access);
  if (l.flags & kDataSkipped) return;
  ReadGlobal(c, access.lanes, access.address.data(), access.bytes_per_lane, (l.flags & kSignExtends) != 0,
             &c.Destination(l));
}

void StoreWindows(Context& c, const Lowered& l, MemoryAccess& access, Spaces& spaces) {
  const bool has_data = !(l.flags & kDataSkipped);
  if (spaces.remote != 0) StoreRemote(c, l, spaces.remote, spaces.offset);
  if (spaces.shared != 0) {
    access.shared_lanes = CheckShared(c, l, spaces.shared, spaces.offset, access.bytes_per_lane);
    std::copy_n(spaces.offset, kWarpLanes, access.shared_address.begin());
    if (has_data)
      WriteShared(CtaOf(c).shared, access.shared_lanes, spaces.offset, access.bytes_per_lane,
                  &c.Source(l, 2));
  }
  if (spaces.local != 0) {
    const uint32_t lanes = CheckLocal(c, l, spaces.local, spaces.offset, access.bytes_per_lane);
    if (has_data) WriteLocal(c, lanes, spaces.offset, access.bytes_per_lane, &c.Source(l, 2));
    NoteLocal(c, spaces, lanes, access);
  }
}

template <bool kGeneric>
void RunStore(Context& c, const Lowered& l) {
  MemoryAccess& access = BeginAccess(c, l, MemorySpace::kGlobal, AccessKind::kStore);
  const uint32_t lanes = GlobalLanes<kGeneric>(c, l, access, StoreWindows);
  if (kGeneric && lanes == 0) return;
  access.lanes = CheckGlobal(c, l, lanes, access.address.data(), access.bytes_per_lane);
  if (l.flags & kDataSkipped) {
    uint64_t run = ~uint64_t{0};  // what a lane stores lies in one
    ForLanes(access.lanes, [&](uint32_t i) {
      if (access.address[i] >> kStaleShift == run) return;
      run = access.address[i] >> kStaleShift;
      c.memory->device->MarkStale(access.address[i], access.bytes_per_lane);
    });
    return;
  }
  WriteGlobal(c, access.lanes, access.address.data(), access.bytes_per_lane, &c.Source(l, 2));
}

// The predicate says whether the address lies in the window that was asked for.
void RunQuerySpace(Context& c, const Lowered& l) {
  uint64_t address[kWarpLanes];
  Addresses64(c, l, address);
  Spaces spaces;
  SplitSpaces(c, address, kAllLanes, spaces);
  spaces.shared |= spaces.remote;
  const uint32_t mask = l.flags >> kOpShift == 0   ? spaces.shared
                        : l.flags >> kOpShift == 1 ? spaces.local
                                                   : ~(spaces.shared | spaces.local);
  c.WritePredicate(l, 0, mask);
}

}  // namespace

void LowerLoad(Lowering& w) {
  TakeAddressWidth(w);
  TakeWidth(w);
  TakeCacheModifiers(w);
  w.TakeDestinationPredicate(0);
  w.Destination(0);
  TakeAddress(w);
  w.out.run = w.instruction.op == isa::Op::kLD ? &RunLoad<true> : &RunLoad<false>;
}

void LowerStore(Lowering& w) {
  TakeAddressWidth(w);
  TakeWidth(w);
  TakeCacheModifiers(w);
  w.out.flags &= ~static_cast<uint32_t>(kAtSlice);  // a strong store travels like any other
  TakeAddress(w);
  StoreValue(w, 2);
  w.out.run = w.instruction.op == isa::Op::kST ? &RunStore<true> : &RunStore<false>;
}

void LowerQspc(Lowering& w) {
  TakeAddressWidth(w);
  const int space = w.TakeOneOf({Mod::kS, Mod::kL, Mod::kG});
  if (space < 0) return w.Fail("an unknown space");
  w.DestinationPredicate(0);
  w.Destination(0);
  TakeAddress(w);
  w.out.flags |= static_cast<uint32_t>(space) << kOpShift;
  w.out.run = &RunQuerySpace;
}

// Cache control has no functional effect: the emulated memory has no caches.
void LowerCacheControl(Lowering& w) {
  w.TakeAllModifiers();
  while (w.Peek() != nullptr) w.Next();
  w.out.run = &RunNothing;
}

}  // namespace heddle::emulator
