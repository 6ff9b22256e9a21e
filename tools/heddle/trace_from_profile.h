// `heddle trace from-profile`.
#pragma once

#include "sim/base/result.h"
#include "tools/heddle/command.h"

namespace heddle::tools {

po::options_description FromProfileOptionsTable();
Status FromProfile(const po::variables_map& values, Arguments positional);

}  // namespace heddle::tools
