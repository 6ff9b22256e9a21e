// The check of a launch description. Private to frontend/trace.
#pragma once

#include <string>
#include <vector>

#include "frontend/trace/launch.pb.h"
#include "frontend/trace/text_format.h"
#include "frontend/trace/trace.h"

namespace heddle::trace {

// The names of buffers and results that the operation reads.
std::vector<std::string> InputsOf(const pb::Operation& op);

// What Trace::check holds: names are checked, files are read in. Refuses a check all of whose inputs are
// constant.
Result<std::string> MakeCheck(const pb::Check& check, const Locator& at, const std::string& target,
                              const Trace& trace, const ResolvedTrace& resolved);

}  // namespace heddle::trace
