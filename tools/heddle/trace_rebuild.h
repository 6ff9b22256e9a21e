// `heddle trace rebuild`: launches whose grid was computed for the device of a capture get expressions of the machine, so that
// another machine runs what the framework would have launched on it.
#pragma once

#include "sim/base/result.h"
#include "tools/heddle/command.h"

namespace heddle::tools {

po::options_description RebuildOptions();
Status Rebuild(const po::variables_map& values, Arguments positional);

}  // namespace heddle::tools
