// A batch on Slurm: one array job whose tasks are `heddle batch task`, and a job that merges when all of them have ended,
// however they ended (afterany).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "tools/batch/task.h"

namespace heddle::batch {

struct SlurmOptions {
  std::string program;
  uint32_t at_a_time = 0;           // tasks that may run together (%N); 0: no cap
  uint32_t publish_every = 20;      // launches
  uint32_t threads = 1;             // of a task: cpus-per-task
  uint32_t warning_seconds = 120;   // before the time limit a task is told to stop
  std::string scratch;              // local folder of the nodes; empty: $TMPDIR, or /tmp
  std::vector<std::string> extras;  // "partition=gpu": more lines "#SBATCH --partition=gpu"
};

// The scripts, to be handed to sbatch.
std::string ArrayScript(const Batch& batch, const SlurmOptions& options);
std::string MergeScript(const Batch& batch, const SlurmOptions& options);

// What `scontrol show config` says an array may hold: its highest index is one less. 1001, Slurm's default, where it says nothing.
uint32_t MaxArraySize(const std::string& scontrol_output);
Result<std::string> ReadSlurmConfig();

// Writes the scripts into the batch's folder and submits both; the array's job id. FOLDER/slurm_job_id holds it from then on.
Result<std::string> SubmitSlurm(const Batch& batch, const SlurmOptions& options);

// Whether the array that the folder was submitted as still waits or runs.
bool StillQueued(const std::string& folder);

// Puts the running task of this process back into the queue, unless Slurm is ending the job anyway (scancel): called when a
// signal stopped it. Nothing outside of a Slurm job.
void RequeueThisTask();

}  // namespace heddle::batch
