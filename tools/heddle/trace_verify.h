// `heddle trace verify`.
#pragma once

#include "tools/heddle/command.h"

namespace heddle::tools {

po::options_description VerifyOptions();
// 0: every trace's output is right. 6 (gate failed): one is wrong, or has no check and may not lack one.
ExitCode RunVerify(const po::variables_map& values, Arguments traces);

}  // namespace heddle::tools
