// Successors of every instruction of a kernel, functions that it calls included.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "frontend/sass/cubin.h"
#include "sim/isa/instruction.h"

namespace heddle::emulator {

using Successors = std::vector<std::vector<uint32_t>>;  // by instruction index

// nullopt when an indirect branch has no known targets. A return goes to every instruction behind a call.
std::optional<Successors> BuildControlFlow(const isa::KernelCode& code, const sass::CubinKernel& kernel);

// Where a direct branch or call goes, or nullopt.
std::optional<uint32_t> TargetOf(const isa::KernelCode& code, const isa::Instruction& instruction);

}  // namespace heddle::emulator
