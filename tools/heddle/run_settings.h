// The options of `heddle run` as plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/gpu/gpu.h"
#include "tools/heddle/command.h"
#include "tools/replay/launch_set.h"
#include "tools/replay/replay.h"

namespace heddle::tools {

// Launch ordinals such as "0-3,7,12-"; everything when empty.
class OrdinalSet {
 public:
  static Result<OrdinalSet> Parse(const std::string& text);
  bool Contains(uint32_t ordinal) const;

 private:
  struct Range {
    uint32_t first = 0;
    uint32_t last = 0;
  };
  std::vector<Range> ranges_;
};

struct RunSettings {
  std::vector<std::string> traces;
  std::vector<std::string> archs;
  std::vector<std::string> overrides;  // "path=value"
  trace::Symbols defines;
  replay::LaunchSetting launch_setting;
  replay::Mode mode = replay::Mode::kSkeleton;
  gpu::CachePolicy cache_policy = gpu::CachePolicy::kCold;
  uint32_t threads = 1;
  Cycle max_cycles = 0;
  bool allow_foreign_cubins = false;
  bool lenient = false;
  bool timeline = false;
  std::string database;
  std::string publish;  // file that copies go to; empty: none
  uint32_t publish_every = 1;
  bool json = false;
  bool quiet = false;
  bool table = true;
};

// "NAME=INTEGER", each.
Result<trace::Symbols> ParseDefines(const std::vector<std::string>& words);

po::options_description RunOptionsDescription();
// What is wrong is appended to `faults`, and the settings are then not to be used; or it is all in one error.
RunSettings ParseRunSettings(const po::variables_map& values, Arguments traces, std::vector<Error>* faults);
Result<RunSettings> ParseRunSettings(const po::variables_map& values, Arguments traces);

}  // namespace heddle::tools
