// From what a user asks for to the jobs of a sweep: every design loaded and checked, every trace read and resolved for it,
// and the keys by which results know the launches. Everything that can be wrong is found here, before any job starts, and
// said at once.
#pragma once

#include <string>
#include <vector>

#include "sim/base/result.h"
#include "tools/batch/design.h"
#include "tools/batch/proxy.h"
#include "tools/replay/launch_set.h"

namespace heddle::batch {

struct SweepRequest {
  std::string arch;
  std::vector<std::string> overrides;  // "path=value", of all designs
  std::vector<std::string> axes;       // texts, see axis.h
  Shape shape = Shape::kGrid;
  uint32_t samples = 0;
  uint64_t seed = 1;
  std::vector<Assignments> designs;  // given one by one, after those of the axes
  std::vector<std::string> traces;   // paths
  trace::Symbols defines;
  replay::LaunchSetting launch_setting;
  bool allow_foreign_cubins = false;
  std::vector<Error>
      faults;  // of the texts that the request was read from: MakePlan states them with its own
  // Options of `heddle run` that say the same as the four above and more; each job repeats them.
  std::vector<std::string> run_options;
};

struct Design {
  Assignments values;    // of the axes
  Assignments followed;  // what had to move with them
  std::vector<std::string> overrides;
  std::string digest;  // of the resolved description
  Area area;
  double power_w = 0;
};

// One design with one trace.
struct Job {
  size_t design = 0;
  size_t trace = 0;
  std::vector<std::string> launch_keys;
  std::string key;  // of them all: content-addresses the job's results
};

struct Plan {
  std::vector<std::string> paths;    // of the axes, in order: columns
  std::vector<Design> designs;       // different ones; designs that resolve to the same machine are one
  std::vector<std::string> traces;   // paths
  std::vector<std::string> digests;  // of the traces
  std::vector<Job> jobs;             // by design, then by trace
  std::vector<std::string> notes;    // frozen launches, merged designs
};

// The error's message holds one line for each fault.
Result<Plan> MakePlan(const SweepRequest& request);

// "heddle"'s arguments for a job, without --db: what a user would type to run it alone.
std::vector<std::string> RunArguments(const SweepRequest& request, const Plan& plan, const Job& job);
// The same as a line for a shell.
std::string ShellLine(const std::vector<std::string>& arguments);

}  // namespace heddle::batch
