// A sweep in a folder that machines share: jobs dealt to tasks, each of which works in its own local scratch and publishes whole
// databases. A task that dies is run again and goes on from what was published; every attempt publishes under its own name, so
// that one that was thought dead spoils nothing, and the merge counts each launch once by its key.
//
//   FOLDER/jobs.tsv             "heddle-batch 1 TASKS DATABASE", then a job a line: its key and the arguments of heddle
//   FOLDER/out/TASK.ATTEMPT.db  what an attempt has published
//   FOLDER/out/TASK.done        the task has been through its jobs: failed ones, a line each (exit code, last line, command)
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/result.h"

namespace heddle::batch {

struct BatchJob {
  std::string key;
  std::vector<std::string> arguments;  // of heddle, without --db
};

struct Batch {
  std::string folder;
  std::string database;  // that all of it is merged into
  uint32_t tasks = 1;
  std::vector<BatchJob> jobs;  // job i belongs to task i mod tasks

  std::string out() const { return folder + "/out"; }
};

// Makes the folder. Arguments that hold a tab or a line's end are refused.
Status WriteBatch(const Batch& batch);
Result<Batch> ReadBatch(const std::string& folder);

struct TaskOptions {
  std::string program;  // path of heddle
  std::string scratch;  // local folder; a new one is made in it
  uint32_t task = 0;
  uint32_t publish_every = 20;  // launches
  uint32_t threads = 1;
};

// Runs the jobs of one task that are not published yet. kInterrupted when `stop` ended it; kDidNotFinish when jobs failed.
Status RunTask(const Batch& batch, const TaskOptions& options, std::atomic<bool>* stop);

struct BatchState {
  std::vector<uint32_t> unfinished;    // tasks without a .done
  std::vector<std::string> failures;   // lines of .done
  std::vector<std::string> published;  // databases
};
Result<BatchState> StateOf(const Batch& batch);
// Merges everything published into the batch's database; nothing is removed.
Status MergeBatch(const Batch& batch, const BatchState& state);

}  // namespace heddle::batch
