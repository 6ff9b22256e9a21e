// Source lines of SASS: .debug_line of a cubin (ptxas -lineinfo, Triton by default), DWARF version 2 to 4.
//
// Of inlined code it is the innermost line. Any bytes may be handed in: what cannot be read is an error, never a crash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"

namespace heddle::sass {

struct SourceLine {
  std::string file;  // with its folder, as the compiler wrote it; empty: not known
  uint32_t line = 0;
  bool operator==(const SourceLine&) const = default;
};

// By instruction index in the code section (".text.<kernel>"), as long as the section; empty without a line table.
// Errors have ExitCode::kTrace and state `place` @ offset.
Result<std::vector<SourceLine>> ReadLineTable(std::span<const std::byte> cubin, std::string place,
                                              std::string_view code_section);

}  // namespace heddle::sass
