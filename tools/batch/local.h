// A sweep on this machine: jobs in a pool of processes, each into a database of its own that is named after its key, and all of
// them merged into one. What the database or the cache holds is not run again.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "tools/batch/plan.h"

namespace heddle::batch {

struct LocalOptions {
  std::string program;   // path of heddle
  std::string database;  // results go there
  std::string
      cache;  // folder of KEY.db files; empty: "<database>.jobs", removed when all of it is in the database
  size_t slots = 1;    // jobs at a time
  size_t threads = 0;  // of a job; 0: the cores over the slots
};

struct Failure {
  size_t job = 0;
  int exit_code = 0;
  std::string command;    // to type
  std::string last_line;  // that it printed
};

struct Progress {
  size_t jobs = 0;  // in all
  size_t done = 0;  // what was there before included
  size_t found = 0;
  size_t running = 0;
  size_t failed = 0;
  double seconds_left = -1;  // below 0: not known yet
};

struct LocalReport {
  Progress progress;
  std::vector<Failure> failures;
  bool interrupted = false;
};

Result<LocalReport> RunLocal(const SweepRequest& request, const Plan& plan, const LocalOptions& options,
                             std::atomic<bool>* stop, const std::function<void(const Progress&)>& tell);

}  // namespace heddle::batch
