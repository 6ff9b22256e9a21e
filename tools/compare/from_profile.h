// A trace for a profile that came without cubins: its kernels are looked for, by name, grid and block, among traces that
// are at hand.
//
// A described trace has its shapes as definitions, and its grid follows from them. Where the name fits and the grid does
// not, one definition is changed so that grid and block do; that is said, since other shapes may give the same grid.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontend/profile/profile.h"
#include "frontend/trace/build.h"
#include "frontend/trace/trace.h"
#include "sim/base/result.h"
#include "sim/config/gpu_description.h"

namespace heddle::compare {

struct ProfiledKernel {
  std::string kernel;
  std::optional<Dim3> grid, block;
  size_t launches = 0;
  double total_ps = 0;
  std::string trace;   // file that it was found in; empty: none
  std::string reason;  // why none, or how it was made to fit
};

struct FromProfile {
  trace::Trace trace;
  std::vector<ProfiledKernel> kernels;  // by falling total_ps
  size_t launches = 0, matched_launches = 0;
  double total_ps = 0, matched_ps = 0;
  std::vector<std::string> notes;  // what could not be built

  double CoveredPercent() const { return total_ps > 0 ? 100 * matched_ps / total_ps : 0; }
};

struct FromProfileOptions {
  std::vector<std::string> traces;  // files, or folders with .htrace files
  // Kernels that those lack are built from the launch descriptions below this folder, where `cache` keeps them (built_kernels.h).
  // Empty: nothing is built.
  std::string kernels;
  std::string cache;
  trace::Toolchain toolchain;
  bool every_launch = false;  // the whole sequence; otherwise each kernel and shape once, with its mean time
};

// Errors: what cannot be read; kTrace where nothing matched.
Result<FromProfile> TraceFromProfile(const std::string& profile_path, const config::Gpu& gpu,
                                     const FromProfileOptions& options);

}  // namespace heddle::compare
