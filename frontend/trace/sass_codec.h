// Decoded SASS as bytes, and back.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/result.h"
#include "sim/isa/instruction.h"

namespace heddle::trace {

// Protobuf bytes (StoredSass); the same for equal code.
std::string EncodeSass(const isa::KernelCode& code);

// Everything is checked: counts, registers, names. A mnemonic or modifier that this build does not know is an
// error.
Result<isa::KernelCode> DecodeSass(std::string_view bytes, const std::string& place);

}  // namespace heddle::trace
