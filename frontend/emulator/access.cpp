#include "frontend/emulator/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "frontend/emulator/issue_log.h"

namespace heddle::emulator {
namespace {

using isa::Mod;

[[gnu::noinline]] uint32_t CheckGlobalSlowly(Context& c, const Lowered& l, uint32_t lanes,
                                             const uint64_t* address, uint32_t bytes) {
  DeviceMemory::Range& site = c.memory->sites[l.index];
  uint32_t good = 0;
  ForLanes(lanes, [&](uint32_t i) {
    if (address[i] & (bytes - 1)) {
      c.issues->Report("misaligned_address", l.index, fmt::format("lane {}, address 0x{:x}", i, address[i]));
      return;
    }
    if (!site.contains(address[i], address[i] + bytes)) {
      const DeviceMemory::Range range = c.memory->device->RangeAround(address[i]);
      if (!range.contains(address[i], address[i] + bytes)) {
        const Buffer* last = c.memory->device->Find(site.begin);
        c.issues->Report(
            "out_of_bounds", l.index,
            fmt::format("lane {}, address 0x{:x}{}", i, address[i],
                        last == nullptr ? std::string()
                                        : fmt::format("; last in buffer {} of {} bytes at 0x{:x}", last->name,
                                                      last->size_bytes, last->address)));
        return;
      }
      site = range;
    }
    good |= 1u << i;
  });
  return good;
}

// Skeleton runs, and unknown values: what a load must say about the bytes that it read.
[[gnu::noinline]] void InspectLoaded(Context& c, uint32_t lanes, const uint64_t* address, uint32_t bytes) {
  DeviceMemory& device = *c.memory->device;
  const bool may_be_stale = c.memory->skips_data && device.AnyStale();
  uint64_t run = ~uint64_t{0};  // runs are stale as a whole
  bool stale = false;
  ForLanes(lanes, [&](uint32_t i) {
    if (c.warp->unknown != nullptr && !device.IsKnown(address[i], bytes)) {
      for (uint32_t word = 0; word * 4 < bytes; ++word)
        if (!device.IsKnown(address[i] + word * 4, std::min(bytes, 4u))) c.unknown_result[word] |= 1u << i;
    }
    if (may_be_stale && address[i] >> kStaleShift != run) {
      run = address[i] >> kStaleShift;
      stale = device.IsStale(address[i]);
    }
    if (stale) c.issues->Report("skipped_data", c.step->index, fmt::format("address 0x{:x}", address[i]));
  });
}

template <uint32_t kWords>
void Scatter(const uint8_t* bytes, uint32_t lane, Row* rows) {
  uint32_t words[kWords];
  std::memcpy(words, bytes, sizeof words);
  for (uint32_t k = 0; k < kWords; ++k) rows[k].lane[lane] = words[k];
}

// One or two bytes.
uint32_t Narrow(const uint8_t* bytes, uint32_t count, bool sign_extend) {
  const uint32_t value = count == 1 ? bytes[0] : bytes[0] | uint32_t{bytes[1]} << 8;
  return Extend(value, count, sign_extend);
}

inline void ToRegisters(const uint8_t* data, uint32_t bytes, bool sign_extend, uint32_t lane, Row* rows) {
  switch (bytes) {
    case 4:
      return Scatter<1>(data, lane, rows);
    case 8:
      return Scatter<2>(data, lane, rows);
    case 16:
      return Scatter<4>(data, lane, rows);
    default:
      rows[0].lane[lane] = Narrow(data, bytes, sign_extend);
  }
}

inline void FromRegisters(const Row* rows, uint32_t words, uint32_t lane, uint32_t* out) {
  for (uint32_t k = 0; k < words; ++k) out[k] = rows[k].lane[lane];
}

}  // namespace

CtaMemory& CtaOf(const Context& context) { return static_cast<CtaMemory&>(*context.cta); }

uint32_t Extend(uint32_t value, uint32_t bytes, bool sign_extend) {
  if (bytes >= 4) return value;
  const uint32_t shift = 32 - 8 * bytes;
  return sign_extend ? static_cast<uint32_t>(static_cast<int32_t>(value << shift) >> shift)
                     : value << shift >> shift;
}

void Addresses64(const Context& c, const Lowered& l, uint64_t* address) {
  const uint32_t uniform_low = c.Source(l, 1).lane[0];
  const uint64_t uniform = l.flags & kUniformPair
                               ? Pair(uniform_low, c.Source(l, 1, 1).lane[0])
                               : static_cast<uint64_t>(int64_t{static_cast<int32_t>(uniform_low)});
  const uint64_t offset = uniform + static_cast<uint64_t>(int64_t{static_cast<int32_t>(Low(l.imm))});
  const Row& low = c.Source(l, 0);
  if (l.flags & kBase64) {
    const Row& high = c.Source(l, 0, 1);
    for (uint32_t i = 0; i < kWarpLanes; ++i) address[i] = Pair(low.lane[i], high.lane[i]) + offset;
  } else {
    for (uint32_t i = 0; i < kWarpLanes; ++i) address[i] = low.lane[i] + offset;
  }
}

void Addresses32(const Context& c, const Lowered& l, size_t base, size_t uniform, uint32_t offset,
                 uint32_t* address) {
  const Row& row = c.Source(l, base);
  const uint32_t add = offset + c.Source(l, uniform).lane[0];
  const uint32_t shift = (l.flags & kScaleMask) >> kScaleShift;
  for (uint32_t i = 0; i < kWarpLanes; ++i) address[i] = (row.lane[i] << shift) + add;
  // Addresses in the cluster's window carry the rank of the CTA.
  if (const uint32_t rank = c.cta->rank; rank != 0) [[unlikely]]
    for (uint32_t i = 0; i < kWarpLanes; ++i)
      if (address[i] >> 24 == rank) address[i] &= 0xffffff;
}

uint32_t CheckGlobal(Context& c, const Lowered& l, uint32_t lanes, const uint64_t* address, uint32_t bytes) {
  const DeviceMemory::Range site = c.memory->sites[l.index];
  const uint64_t size = site.end - site.begin;
  if (size >= bytes) [[likely]] {
    uint64_t wrong = 0;  // bits that must be zero, over all lanes; inactive ones may send us the slow way
    for (uint32_t i = 0; i < kWarpLanes; ++i)
      wrong |= (address[i] - site.begin > size - bytes ? ~uint64_t{0} : 0) | (address[i] & (bytes - 1));
    if (wrong == 0) return lanes;
  }
  return CheckGlobalSlowly(c, l, lanes, address, bytes);
}

uint32_t CheckShared(Context& c, const Lowered& l, uint32_t lanes, const uint32_t* address, uint32_t bytes) {
  const uint32_t size = CtaOf(c).shared_bytes;
  if (size >= bytes) [[likely]] {
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < kWarpLanes; ++i)
      wrong |= (address[i] > size - bytes ? ~0u : 0) | (address[i] & (bytes - 1));
    if (wrong == 0) return lanes;
  }
  uint32_t good = 0;
  ForLanes(lanes, [&](uint32_t i) {
    if (address[i] & (bytes - 1))
      c.issues->Report("misaligned_address", l.index,
                       fmt::format("lane {}, shared address 0x{:x}", i, address[i]));
    else if (uint64_t{address[i]} + bytes > size)
      c.issues->Report("out_of_bounds", l.index,
                       fmt::format("lane {}, shared address 0x{:x} of 0x{:x} bytes", i, address[i], size));
    else
      good |= 1u << i;
  });
  return good;
}

isa::MemoryAccess& BeginAccess(Context& c, const Lowered& l, isa::MemorySpace space, isa::AccessKind kind) {
  isa::MemoryAccess& access = c.step->memory;
  c.step->kind = isa::StepKind::kMemory;
  access.Begin(space, kind, static_cast<uint8_t>(BytesPerLane(l)));
  access.bypass_l1 = (l.flags & kBypassesL1) != 0;
  access.token = kNoToken;
  return access;
}

void ReadGlobal(Context& c, uint32_t lanes, const uint64_t* address, uint32_t bytes, bool sign_extend,
                Row* rows) {
  DeviceMemory& device = *c.memory->device;
  const StorePort* own =
      c.memory->stores != nullptr && !c.memory->stores->empty() ? c.memory->stores : nullptr;
  uint64_t page = ~uint64_t{0};
  const uint8_t* data = nullptr;
  ForLanes(lanes, [&](uint32_t i) {
    if (address[i] >> kPageShift != page) {
      page = address[i] >> kPageShift;
      data = device.PageBytes(address[i]);
    }
    const uint8_t* at = data + (address[i] & (kPageBytes - 1));
    uint8_t patched[16];
    if (own != nullptr && !own->Misses(address[i], address[i] + bytes)) [[unlikely]] {
      std::memcpy(patched, at, bytes);
      own->Overlay(address[i], patched, bytes);
      at = patched;
    }
    ToRegisters(at, bytes, sign_extend, i, rows);
  });
  if (c.warp->unknown != nullptr || c.memory->skips_data) InspectLoaded(c, lanes, address, bytes);
}

void WriteGlobal(Context& c, uint32_t lanes, const uint64_t* address, uint32_t bytes, const Row* rows) {
  const uint32_t words = bytes <= 4 ? 1 : bytes / 4;
  ForLanes(lanes, [&](uint32_t i) {
    uint32_t value[4];
    FromRegisters(rows, words, i, value);
    const auto* data = reinterpret_cast<const uint8_t*>(value);
    if (c.memory->stores != nullptr)
      c.memory->stores->Append(c.now, address[i], data, bytes);
    else
      c.memory->device->Store(address[i], data, bytes);
  });
}

void ReadShared(const uint8_t* shared, uint32_t lanes, const uint32_t* address, uint32_t bytes,
                bool sign_extend, Row* rows) {
  ForLanes(lanes, [&](uint32_t i) { ToRegisters(shared + address[i], bytes, sign_extend, i, rows); });
}

void WriteShared(uint8_t* shared, uint32_t lanes, const uint32_t* address, uint32_t bytes, const Row* rows) {
  const uint32_t words = bytes <= 4 ? 1 : bytes / 4;
  ForLanes(lanes, [&](uint32_t i) {
    uint32_t value[4];
    FromRegisters(rows, words, i, value);
    std::memcpy(shared + address[i], value, bytes);
  });
}

void TakeAddress(Lowering& w) {
  const isa::Operand& operand = w.Next();
  if (operand.kind != isa::OperandKind::kMemory) return w.Fail("an operand is no address");
  w.out.source[0].row = operand.reg == isa::kNoRegister ? kZeroRow : w.layout.ReadRow(operand.reg);
  w.out.source[1].row =
      operand.uniform_reg == isa::kNoRegister ? kZeroRow : w.layout.UniformReadRow(operand.uniform_reg);
  w.out.imm |= Low(static_cast<uint64_t>(operand.value));
  if (operand.Has(isa::kAddress64)) w.out.flags |= kBase64;
  if (operand.Has(isa::kUniform64)) w.out.flags |= kUniformPair;
  w.out.flags |= static_cast<uint32_t>(std::countr_zero(uint32_t{operand.scale} | 0x80u)) << kScaleShift;
}

void TakeAddressWidth(Lowering& w) {
  if (!w.Take(Mod::kE)) return;
  for (uint32_t i = 0; i < w.instruction.operand_count; ++i) {
    const isa::Operand& operand = w.instruction.operands[i];
    // Atomics print [R2] for a pair.
    if (operand.kind == isa::OperandKind::kMemory && !operand.Has(isa::kUnsigned32) &&
        !operand.Has(isa::kUniform64))
      w.out.flags |= kBase64;
  }
}

void TakeWidth(Lowering& w) {
  const int narrow = w.TakeOneOf({Mod::kU8, Mod::kS8, Mod::kU16, Mod::kS16});
  const int wide = w.TakeOneOf({Mod::k32, Mod::k64, Mod::k128});
  if (narrow >= 0)
    w.out.flags |= static_cast<uint32_t>(narrow / 2) | (narrow % 2 ? kSignExtends : 0u);
  else
    w.out.flags |= static_cast<uint32_t>(wide < 0 ? 2 : 2 + wide);
  w.out.width = static_cast<uint8_t>(WordsPerLane(w.out));
}

void TakeCacheModifiers(Lowering& w) {
  const bool strong = w.Take(Mod::kSTRONG);
  const int scope = w.TakeOneOf({Mod::kCTA, Mod::kSM, Mod::kGPU, Mod::kSYS});
  if (strong && scope >= 2) w.out.flags |= kAtSlice | kBypassesL1;
  for (const Mod hint : {Mod::kCONSTANT, Mod::kEF, Mod::kEL, Mod::kLU, Mod::kEU, Mod::kNA, Mod::kLTC128B,
                         Mod::kLTC256B, Mod::k64B, Mod::k128B, Mod::k256B, Mod::kPRIVATE, Mod::kENL2,
                         Mod::kCI, Mod::kCL, Mod::kCV, Mod::kL2, Mod::kDEEP})
    w.Take(hint);
}

void StoreValue(Lowering& w, size_t slot) { w.Source(slot, w.out.width); }

AtomicType TakeAtomicType(Lowering& w) {
  const bool bits64 = w.Take(Mod::k64);
  const bool bits128 = w.Take(Mod::k128);
  w.Take(Mod::k32);
  w.Take(Mod::kRN);
  const bool ftz = w.Take(Mod::kFTZ);
  if (bits128) return AtomicType::kB128;
  if (w.Take(Mod::kF16x2)) return AtomicType::kF16x2;
  if (w.Take(Mod::kBF16x2) || w.Take(Mod::kBF16_V2)) return AtomicType::kBF16x2;
  if (w.Take(Mod::kF64)) return AtomicType::kF64;
  if (w.Take(Mod::kF32)) return ftz ? AtomicType::kF32Ftz : AtomicType::kF32;
  if (w.Take(Mod::kS64)) return AtomicType::kS64;
  if (w.Take(Mod::kU64)) return AtomicType::kU64;
  if (w.Take(Mod::kS32)) return bits64 ? AtomicType::kS64 : AtomicType::kS32;
  w.Take(Mod::kU32);
  return bits64 ? AtomicType::kU64 : AtomicType::kU32;
}

int TakeAtomicOp(Lowering& w) {
  const bool popc = w.Take(Mod::kPOPC);  // POPC.INC: one for every lane that names the address
  const int op = w.TakeOneOf({Mod::kADD, Mod::kMIN, Mod::kMAX, Mod::kINC, Mod::kDEC, Mod::kAND, Mod::kOR,
                              Mod::kXOR, Mod::kEXCH, Mod::kCAS, Mod::kCAST});
  w.Take(Mod::kSPIN);
  if (popc && op != static_cast<int>(AtomicOp::kInc)) return -1;
  return op;
}

}  // namespace heddle::emulator
