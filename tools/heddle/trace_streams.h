// `heddle trace streams`: the emulator's warps beside those of a GPU, access by access.
#pragma once

#include "tools/heddle/command.h"

namespace heddle::tools {

po::options_description StreamsOptions();
ExitCode Streams(const po::variables_map& values, Arguments positional);

}  // namespace heddle::tools
