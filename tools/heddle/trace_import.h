// `heddle trace import`.
#pragma once

#include "sim/base/result.h"
#include "tools/heddle/command.h"

namespace heddle::tools {

po::options_description ImportOptionsTable();
Status Import(const po::variables_map& values, Arguments positional);

}  // namespace heddle::tools
