#include "frontend/emulator/local_memory.h"

#include <fmt/format.h>

#include <cstring>

#include "frontend/emulator/issue_log.h"

namespace heddle::emulator {
namespace {

uint8_t* LocalOf(const Context& c) {
  const CtaMemory& cta = CtaOf(c);
  return cta.local + uint64_t{c.warp->id_in_cta} * cta.local_bytes_per_lane * kWarpLanes;
}

void RunLoadLocal(Context& c, const Lowered& l) {
  uint32_t offset[kWarpLanes];
  Addresses32(c, l, 0, 1, Low(l.imm), offset);
  isa::MemoryAccess& access = BeginAccess(c, l, isa::MemorySpace::kLocal, isa::AccessKind::kLoad);
  access.lanes = CheckLocal(c, l, c.executing, offset, access.bytes_per_lane);
  LocalAddresses(c, offset, access.address.data());
  if (!(l.flags & kDataSkipped))
    ReadLocal(c, access.lanes, offset, access.bytes_per_lane, (l.flags & kSignExtends) != 0,
              &c.Destination(l));
}

void RunStoreLocal(Context& c, const Lowered& l) {
  uint32_t offset[kWarpLanes];
  Addresses32(c, l, 0, 1, Low(l.imm), offset);
  isa::MemoryAccess& access = BeginAccess(c, l, isa::MemorySpace::kLocal, isa::AccessKind::kStore);
  access.lanes = CheckLocal(c, l, c.executing, offset, access.bytes_per_lane);
  LocalAddresses(c, offset, access.address.data());
  if (!(l.flags & kDataSkipped)) WriteLocal(c, access.lanes, offset, access.bytes_per_lane, &c.Source(l, 2));
}

}  // namespace

uint32_t CheckLocal(Context& c, const Lowered& l, uint32_t lanes, const uint32_t* offset, uint32_t bytes) {
  const uint32_t size = CtaOf(c).local_bytes_per_lane;
  uint32_t good = 0;
  ForLanes(lanes, [&](uint32_t i) {
    if (offset[i] & (bytes - 1))
      c.issues->Report("misaligned_address", l.index,
                       fmt::format("lane {}, local address 0x{:x}", i, offset[i]));
    else if (uint64_t{offset[i]} + bytes > size)
      c.issues->Report("out_of_bounds", l.index,
                       fmt::format("lane {}, local address 0x{:x} of 0x{:x} bytes", i, offset[i], size));
    else
      good |= 1u << i;
  });
  return good;
}

void LocalAddresses(const Context& c, const uint32_t* offset, uint64_t* address) {
  const CtaMemory& cta = CtaOf(c);
  const uint64_t base =
      cta.local_address + uint64_t{c.warp->id_in_cta} * cta.local_bytes_per_lane * kWarpLanes;
  for (uint32_t i = 0; i < kWarpLanes; ++i) address[i] = base + isa::InterleavedLocal(offset[i], i);
}

void ReadLocal(Context& c, uint32_t lanes, const uint32_t* offset, uint32_t bytes, bool sign_extend,
               Row* rows) {
  const uint8_t* local = LocalOf(c);
  ForLanes(lanes, [&](uint32_t i) {
    for (uint32_t k = 0; 4 * k < bytes; ++k) {
      uint32_t word = 0;
      std::memcpy(&word, local + isa::InterleavedLocal(offset[i] + 4 * k, i), bytes < 4 ? bytes : 4);
      rows[k].lane[i] = Extend(word, bytes, sign_extend);
    }
  });
}

void WriteLocal(Context& c, uint32_t lanes, const uint32_t* offset, uint32_t bytes, const Row* rows) {
  uint8_t* local = LocalOf(c);
  ForLanes(lanes, [&](uint32_t i) {
    for (uint32_t k = 0; 4 * k < bytes; ++k)
      std::memcpy(local + isa::InterleavedLocal(offset[i] + 4 * k, i), &rows[k].lane[i],
                  bytes < 4 ? bytes : 4);
  });
}

void LowerLdl(Lowering& w) {
  TakeWidth(w);
  TakeCacheModifiers(w);
  w.Destination(0);
  TakeAddress(w);
  w.out.run = &RunLoadLocal;
}

void LowerStl(Lowering& w) {
  TakeWidth(w);
  TakeCacheModifiers(w);
  TakeAddress(w);
  StoreValue(w, 2);
  w.out.run = &RunStoreLocal;
}

}  // namespace heddle::emulator
