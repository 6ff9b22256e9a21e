#include "tools/batch/slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace heddle::batch {
namespace {

constexpr uint32_t kDefaultMaxArraySize = 1001;

std::string Quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// What a command prints on stdout; an error where it fails.
Result<std::string> Output(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return Error{ExitCode::kUsage, command, "cannot be started", ""};
  std::string text;
  char buffer[4096];
  while (const size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, got);
  const int status = pclose(pipe);
  if (status == 0) return text;
  return Error{ExitCode::kUsage, command, fmt::format("failed: {}", text.empty() ? "no output" : text),
               "is this a host that submits to Slurm?"};
}

Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) return Error{ExitCode::kUsage, path, "cannot be written", ""};
  return Ok();
}

std::string Header(const Batch& batch, const SlurmOptions& options, const std::string& name) {
  std::string text = fmt::format("#!/bin/sh\n#SBATCH --job-name={}\n#SBATCH --output={}/log/%x.%a.out\n",
                                 name, batch.folder);
  for (const std::string& extra : options.extras) text += fmt::format("#SBATCH --{}\n", extra);
  return text;
}

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string ArrayScript(const Batch& batch, const SlurmOptions& options) {
  std::string text = Header(batch, options, "heddle-sweep");
  text += fmt::format("#SBATCH --array=0-{}{}\n", batch.tasks - 1,
                      options.at_a_time == 0 ? "" : fmt::format("%{}", options.at_a_time));
  text += fmt::format("#SBATCH --cpus-per-task={}\n", options.threads);
  // A node that dies gives its tasks back; what they wrote before is kept.
  text += "#SBATCH --requeue\n#SBATCH --open-mode=append\n";
  text += fmt::format("#SBATCH --signal=B:USR1@{}\n", options.warning_seconds);
  // exec: signals to the batch shell are heddle's.
  text += fmt::format(
      "exec {} batch task {} --task \"$SLURM_ARRAY_TASK_ID\" --scratch {} --publish-every {} --threads {}\n",
      Quoted(options.program), Quoted(batch.folder),
      options.scratch.empty() ? "\"${TMPDIR:-/tmp}\"" : Quoted(options.scratch), options.publish_every,
      options.threads);
  return text;
}

std::string MergeScript(const Batch& batch, const SlurmOptions& options) {
  return Header(batch, options, "heddle-merge") +
         fmt::format("exec {} batch merge {}\n", Quoted(options.program), Quoted(batch.folder));
}

uint32_t MaxArraySize(const std::string& scontrol_output) {
  const size_t name = scontrol_output.find("MaxArraySize");
  const size_t digits = scontrol_output.find_first_of("0123456789", std::min(name, scontrol_output.size()));
  uint32_t size = 0;
  if (digits != std::string::npos)
    std::from_chars(scontrol_output.data() + digits, scontrol_output.data() + scontrol_output.size(), size);
  return size == 0 ? kDefaultMaxArraySize : size;
}

Result<std::string> ReadSlurmConfig() { return Output("scontrol show config 2>/dev/null"); }

Result<std::string> SubmitSlurm(const Batch& batch, const SlurmOptions& options) {
  std::error_code error;
  std::filesystem::create_directories(batch.folder + "/log", error);
  const std::string array = batch.folder + "/array.sh", merge = batch.folder + "/merge.sh";
  HEDDLE_RETURN_IF_ERROR(WriteFile(array, ArrayScript(batch, options)));
  HEDDLE_RETURN_IF_ERROR(WriteFile(merge, MergeScript(batch, options)));
  HEDDLE_ASSIGN_OR_RETURN(std::string id, Output("sbatch --parsable " + Quoted(array)));
  id = id.substr(0, id.find_first_of(";\n"));
  HEDDLE_RETURN_IF_ERROR(WriteFile(batch.folder + "/slurm_job_id", id + "\n"));
  HEDDLE_RETURN_IF_ERROR(
      Output(fmt::format("sbatch --parsable --dependency=afterany:{} {}", id, Quoted(merge))));
  return id;
}

bool StillQueued(const std::string& folder) {
  std::ifstream in(folder + "/slurm_job_id");
  std::string id;
  if (!std::getline(in, id) || id.find_first_not_of("0123456789") != std::string::npos) return false;
  const Result<std::string> jobs = Output(fmt::format("squeue -h -j {} 2>/dev/null", id));
  return jobs.ok() && !jobs->empty();
}

void RequeueThisTask() {
  std::string id = Environment("SLURM_JOB_ID");
  const std::string array = Environment("SLURM_ARRAY_JOB_ID"), task = Environment("SLURM_ARRAY_TASK_ID");
  if (!array.empty() && !task.empty()) id = array + "_" + task;
  if (id.empty() || id.find_first_not_of("0123456789_") != std::string::npos) return;
  const Result<std::string> state = Output(fmt::format("squeue -h -j {} -o %T 2>/dev/null", id));
  if (!state.ok() || !state->starts_with("RUNNING")) return;
  (void)Output(fmt::format("scontrol requeue {} 2>&1", id));
}

}  // namespace heddle::batch
