// A kernel with the functions that it calls copied to each of their calls, for analyses: what is known behind one call then stays
// apart from what is known behind another.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/emulator/control_flow_graph.h"
#include "sim/isa/instruction.h"

namespace heddle::emulator {

struct ExpandedCode {
  isa::KernelCode code;            // the kernel's instructions, and behind them the copies
  Successors successors;           // a copied return goes behind its call
  std::vector<uint32_t> original;  // of each instruction: its index in the kernel
};

// Direct calls alone are expanded, to a depth and a size: what is beyond keeps its shared body, as in `successors`.
ExpandedCode ExpandCalls(const isa::KernelCode& code, const Successors& successors);

}  // namespace heddle::emulator
