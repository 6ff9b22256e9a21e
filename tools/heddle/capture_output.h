// Record files of a capture become traces: shared by `heddle capture` and `heddle trace recover`.
#pragma once

#include <string>

#include "sim/base/result.h"
#include "tools/heddle/command.h"

namespace heddle::tools {

// `folder`: of one process, or of all processes of a capture. Writes `output`, or <output>.<pid>.htrace for each process
// where several launched something, and says on stderr what each holds and lacks. A process without launches is only spoken of: where
// none has any, nothing is written and the result is false.
Result<bool> WriteCapture(const std::string& folder, const std::string& output);
Error NothingLaunched(const std::string& folder);

// Whether the records below `folder` have a launch that a trace can hold.
bool HoldsLaunches(const std::string& folder);

po::options_description RecoverOptions();
Status Recover(const po::variables_map& values, Arguments positional);
po::options_description MergeOptions();
Status Merge(const po::variables_map& values, Arguments positional);

}  // namespace heddle::tools
