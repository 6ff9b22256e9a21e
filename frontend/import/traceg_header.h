// The header of a trace, which text and `.tracez` have in common, and the words that it shares with blocks.
#pragma once

#include <optional>
#include <string_view>

#include "frontend/import/faults.h"
#include "frontend/import/line_reader.h"
#include "frontend/import/traceg.h"
#include "sim/base/result.h"

namespace heddle::importer {

// Reads "-key = value" lines up to and with the first one that starts with '#', or to the end. Lines that cannot be read
// are noted in `faults`; an error (kTrace) says what a launch lacks, or why no GPU could start it.
Result<TracegHeader> ReadTracegHeader(LineReader* lines, std::string_view file, FaultLog* faults);

// The next line that can be looked at, others noted in `faults`; false at the end.
Result<bool> NextReadable(LineReader* lines, std::string_view file, FaultLog* faults, std::string_view* line);

// "x,y,z", with or without parentheses.
bool ParseDim(std::string_view text, Dim3* out);

// "key = value" behind a prefix; nothing where the line is another one.
std::optional<std::string_view> ValueOf(std::string_view line, std::string_view key);

}  // namespace heddle::importer
