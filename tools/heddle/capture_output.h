// Record files of a capture become traces: shared by `heddle capture` and `heddle trace recover`.
#pragma once

#include <string>

#include "sim/base/result.h"
#include "tools/heddle/command.h"

namespace heddle::tools {

// `folder`: of one process, or of all processes of a capture. Writes `output`, or <output>.<pid>.htrace for each process
// where several launched something, and says on stderr what each holds and lacks. A process without launches is only spoken of.
Status WriteCapture(const std::string& folder, const std::string& output);

po::options_description RecoverOptions();
Status Recover(const po::variables_map& values, Arguments positional);
po::options_description MergeOptions();
Status Merge(const po::variables_map& values, Arguments positional);

}  // namespace heddle::tools
