// Turns the text of nvdisasm and the bytes of the code into isa::Instruction records, once per kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "frontend/sass/cubin.h"
#include "sim/base/result.h"
#include "sim/isa/instruction.h"

namespace heddle::sass {

// Of the records that decoding gives: traces keep them, and those of another version are decoded again.
inline constexpr uint32_t kDecoderVersion = 1;

// `json`: what `nvdisasm -json` prints for the module that holds `kernel`. Opcodes and operands come from the
// text; control bits, guards, raw immediates and branch targets from kernel.code. An opcode, modifier or
// operand that is not known is an error that states the kernel, its pc and the text. `place` is the module's.
Result<isa::KernelCode> DecodeListing(std::string_view json, const CubinKernel& kernel, uint32_t sm_version,
                                      std::string_view place);

// Runs nvdisasm on the whole cubin (0.3 to 0.5 s plus about 20 us per instruction) and decodes one kernel of
// it.
Result<isa::KernelCode> DecodeKernel(std::span<const std::byte> cubin_bytes, const Cubin& cubin,
                                     std::string_view kernel_name, const std::string& nvdisasm);

}  // namespace heddle::sass
