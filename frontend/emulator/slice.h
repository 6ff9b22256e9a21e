// Which instructions a kernel must execute so that every warp takes the same way and touches the same addresses: the
// backward slice of branches, barriers, guards of memory operations and addresses. Skeleton mode executes these only.
//
// The slice is a liveness analysis on the control-flow graph over registers, predicates, convergence barriers and the
// stack's words. A value may be live under a guard only (its users are predicated); a definition under the same guard
// then ends its life, which is what keeps if-converted code from making everything needed.
//
// What flows through memory is decided by SliceKind. No kind follows plain stores to global memory: a kernel that
// reads back its own output to form addresses is told by the issue "skipped_data" (device_memory.h, MarkStale).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "frontend/sass/cubin.h"
#include "sim/isa/instruction.h"

namespace heddle::emulator {

enum class SliceKind : uint8_t {
  kOptimistic,  // what shared memory holds steers nothing, unless an atomic computed it
  kSound,       // if a shared load is needed, so are all shared stores, asynchronous copies and atomics
  kFull,        // everything is executed
};

std::string_view Name(SliceKind kind);  // "optimistic", ...

struct Slice {
  SliceKind kind = SliceKind::kFull;
  std::vector<bool>
      needed;  // by instruction: executed, or for memory operations: moves data. Empty for kFull
  // Branches whose only other way leads to a call of a compiler-generated slow path ($__internal_*: division,
  // reciprocal, square root of unusual operands). They are assumed to avoid it; `taken` says which way that is.
  struct AssumedBranch {
    uint32_t index = 0;
    bool taken = false;
  };
  std::vector<AssumedBranch> assumed;
  uint32_t needed_count = 0;
};

// A kernel whose indirect branches cannot be resolved gets kFull.
Slice ComputeSlice(const isa::KernelCode& code, const sass::CubinKernel& kernel, SliceKind kind);

}  // namespace heddle::emulator
