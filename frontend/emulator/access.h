// What loads, stores and atomics have in common: how they are lowered, and how addresses are formed and
// checked.
//
// Lowered fields of a memory instruction:
//   source 0        base register of the address; source 1 its uniform register; imm (low word) its offset
//   source 2        the value stored or combined; for LDGSTS the base of the shared address
//   source 3        the value swapped in by CAS; for LDGSTS the uniform register of the shared address
//   imm (high word) LDGSTS: offset of the shared address
//   destination 0   first register of the result
//   flags           AccessFlag, the low bits hold log2 of the bytes per lane
#pragma once

#include <cstdint>

#include "frontend/emulator/lowered.h"
#include "frontend/emulator/lowering.h"
#include "frontend/emulator/memory_port.h"

namespace heddle::emulator {

enum AccessFlag : uint32_t {
  kLogBytesMask = 7,
  kSignExtends = 1 << 3,
  kBase64 = 1 << 4,       // the base is a register pair, else zero-extended
  kUniformPair = 1 << 5,  // the uniform register is a pair, else sign-extended
  kAtSlice = 1 << 6,      // strong: performed at the L2 slice
  kBypassesL1 = 1 << 7,
  kScaleShift = 8,  // two bits wide in steps: base << (flags >> 8 & 7)
  kScaleMask = 7u << kScaleShift,
  kOpShift = 11,    // AtomicOp, 4 bits
  kTypeShift = 15,  // AtomicType, 4 bits
  kGenericSpace = 1 << 19,
  kDataSkipped = 1 << 20,  // skeleton mode: only addresses matter
  kTransposes = 1 << 21,   // LDSM, STSM
  kLocalSpace = 1 << 22,
};

inline uint32_t BytesPerLane(const Lowered& l) { return 1u << (l.flags & kLogBytesMask); }
inline uint32_t WordsPerLane(const Lowered& l) {
  const uint32_t log = l.flags & kLogBytesMask;
  return log <= 2 ? 1 : 1u << (log - 2);
}

CtaMemory& CtaOf(const Context& context);

// Addresses of all lanes, active or not.
void Addresses64(const Context& context, const Lowered& l, uint64_t* address);
void Addresses32(const Context& context, const Lowered& l, size_t base, size_t uniform, uint32_t offset,
                 uint32_t* address);

// The lanes of `lanes` whose accesses are aligned and lie in a buffer; the others are reported.
uint32_t CheckGlobal(Context& context, const Lowered& l, uint32_t lanes, const uint64_t* address,
                     uint32_t bytes);
uint32_t CheckShared(Context& context, const Lowered& l, uint32_t lanes, const uint32_t* address,
                     uint32_t bytes);

// Begins the record of a memory step.
isa::MemoryAccess& BeginAccess(Context& context, const Lowered& l, isa::MemorySpace space,
                               isa::AccessKind kind);

// Moves `bytes` per lane between memory and register rows; narrow loads fill the register.
void ReadGlobal(Context& context, uint32_t lanes, const uint64_t* address, uint32_t bytes, bool sign_extend,
                Row* rows);
void WriteGlobal(Context& context, uint32_t lanes, const uint64_t* address, uint32_t bytes, const Row* rows);
void ReadShared(const uint8_t* shared, uint32_t lanes, const uint32_t* address, uint32_t bytes,
                bool sign_extend, Row* rows);
void WriteShared(uint8_t* shared, uint32_t lanes, const uint32_t* address, uint32_t bytes, const Row* rows);

uint32_t Extend(uint32_t value, uint32_t bytes, bool sign_extend);

// The scoreboards by which the warp waits for the result. A result without one is waited for through a later
// one: every wait then counts.
inline uint8_t ScoreboardsOf(const Lowered& l) {
  return l.write_barrier < kScoreboards ? static_cast<uint8_t>(1u << l.write_barrier)
                                        : uint8_t{(1u << kScoreboards) - 1};
}

// Lowering of what stands in the text of several opcodes.
void TakeAddress(Lowering& w);         // the next operand: sources 0 and 1, imm, address flags
void TakeAddressWidth(Lowering& w);    // .E: the address is a register pair unless the operand says otherwise
void TakeWidth(Lowering& w);           // .U8 .S8 .U16 .S16 .32 .64 .128
void TakeCacheModifiers(Lowering& w);  // .STRONG, scopes, cache hints
void StoreValue(Lowering& w, size_t slot);  // R of the width
AtomicType TakeAtomicType(Lowering& w);
int TakeAtomicOp(Lowering& w);  // -1 when there is none

}  // namespace heddle::emulator
