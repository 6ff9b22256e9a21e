// The backward slice (slice.h) of code that ExpandCalls made of a kernel: more exact where functions are called from several places, which
// is what warp shuffles of divergent warps compile to. For analyses; nothing executes it.
#pragma once

#include <optional>
#include <vector>

#include "frontend/emulator/call_expansion.h"
#include "frontend/emulator/slice.h"

namespace heddle::emulator {

struct ExpandedSlice {
  ExpandedCode expanded;
  std::vector<bool> needed;  // by instruction of the expanded code; empty for kFull
};

// nullopt: the kernel's control flow is not known.
std::optional<ExpandedSlice> ComputeExpandedSlice(const isa::KernelCode& code,
                                                  const sass::CubinKernel& kernel, SliceKind kind);

}  // namespace heddle::emulator
