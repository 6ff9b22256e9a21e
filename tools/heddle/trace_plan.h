// `heddle trace plan`: which buffers a second capture should keep.
#pragma once

#include "sim/base/result.h"
#include "tools/heddle/command.h"

namespace heddle::tools {

po::options_description PlanOptions();
Status Plan(const po::variables_map& values, Arguments positional);

}  // namespace heddle::tools
