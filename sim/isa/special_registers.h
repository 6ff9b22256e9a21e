// The special registers of SASS by number. The table is special_registers.def.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace heddle::isa {

// The enumerators are the named ones; every value from 0 to 255 occurs in the encoding.
enum class SpecialRegister : uint8_t {
#define HEDDLE_SPECIAL_REGISTER(index, name, text) k##name = index,
#include "sim/isa/special_registers.def"
#undef HEDDLE_SPECIAL_REGISTER
};

std::string Name(SpecialRegister reg);  // "SR_TID.X", "SR134"
std::optional<SpecialRegister> SpecialRegisterFromName(std::string_view text);

// Its value changes while a warp runs: clocks, timers, performance counters, error states.
bool IsVolatile(SpecialRegister reg);

}  // namespace heddle::isa
