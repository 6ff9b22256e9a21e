// Source lines of a launch's instructions, where its cubin has line tables.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "frontend/trace/trace.h"

namespace heddle::explain {

// "softmax.py:23" by instruction index; empty where there is no table or it cannot be read.
std::map<uint32_t, std::string> SourceLinesOf(const trace::Trace& trace, uint32_t ordinal);

}  // namespace heddle::explain
