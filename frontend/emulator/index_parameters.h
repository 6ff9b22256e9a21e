// Which parameters of a kernel are addresses of memory that steers it: block tables, sequence lengths, expert ids.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/emulator/slice.h"
#include "frontend/sass/cubin.h"
#include "sim/isa/instruction.h"

namespace heddle::emulator {

// Offsets among the parameter bytes, multiples of 8, sorted: words to which indices are added to make the address of a load from global
// memory whose value the backward slice of this kind needs. The optimistic one misses buffers that reach addresses through shared memory, the sound
// one names all that pass through it. What reaches an address only through memory (a pointer to a pointer) is found for the
// first step. A word that is
// added to an index without being multiplied may be among them: whether a value is an address shows at run time.
std::vector<uint32_t> IndexParameters(const isa::KernelCode& code, const sass::CubinKernel& kernel,
                                      SliceKind kind);

}  // namespace heddle::emulator
