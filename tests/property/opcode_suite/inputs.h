// Inputs of the opcode suite: special values of every format among random ones.
#pragma once

#include <string_view>
#include <vector>

#include "tests/property/opcode_suite/common.h"

namespace suite {

// `family` is the name of a case list. The same every time.
std::vector<Input> MakeInputs(std::string_view family, uint32_t count);

}  // namespace suite
