// What atomic instructions compute.
#pragma once

#include <cstdint>

namespace heddle::emulator {

enum class AtomicOp : uint8_t {
  kAdd,
  kMin,
  kMax,
  kInc,  // old >= operand ? 0 : old + 1
  kDec,  // old == 0 or old > operand ? operand : old - 1
  kAnd,
  kOr,
  kXor,
  kExch,
  kCas,
  kCast,  // compare and swap whose result is 1 when it swapped (ATOMS.CAST)
};

enum class AtomicType : uint8_t { kU32, kS32, kU64, kS64, kF32, kF32Ftz, kF64, kF16x2, kBF16x2, kB128 };

uint32_t BytesOf(AtomicType type);

// The value that replaces `old`. `swap` is what CAS stores when old == operand. 128 bits: only kExch and
// kCas, through the callers.
uint64_t ApplyAtomic(AtomicOp op, AtomicType type, uint64_t old, uint64_t operand, uint64_t swap);

}  // namespace heddle::emulator
