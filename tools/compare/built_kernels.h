// Kernels that heddle can build itself, for profiles that name them.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "frontend/trace/build.h"

namespace heddle::compare {

struct BuiltKernels {
  std::vector<std::string> files;  // traces, from the cache or new
  std::vector<std::string> notes;  // descriptions that fit and could not be built, and why
};

// Launch descriptions (*.launch.textproto) below `folder` whose kernel is one of `names` (FunctionName) are built for a GPU of
// `sm_version` into `cache`, where each stays under the hash of its text, its source and its target: what is there is not built again.
// Descriptions of benchmark sizes (*.bench.*) are left alone: shapes follow the profile's grid.
BuiltKernels BuildKernels(const std::string& folder, const std::string& cache,
                          const std::set<std::string>& names, uint32_t sm_version,
                          const trace::Toolchain& toolchain);

// The kernel that a description launches, as its text says it: `kernel: "..."`, or the name of a Triton kernel's file. Empty: it does not.
std::string KernelOfDescription(const std::string& text);

// $HEDDLE_KERNELS, else kernels/ of the sources.
std::string KernelFolder();
// heddle/traces in $XDG_CACHE_HOME or ~/.cache.
std::string TraceCacheFolder();

}  // namespace heddle::compare
