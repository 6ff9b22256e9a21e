// `heddle batch`: what the jobs of a sweep on a cluster run, and a look at how far they are.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "tools/batch/publish.h"
#include "tools/batch/slurm.h"
#include "tools/batch/task.h"
#include "tools/heddle/commands.h"
#include "tools/heddle/stop.h"

namespace heddle::tools {
namespace {

constexpr auto kWaitInterval = std::chrono::seconds(10);
constexpr auto kStopInterval = std::chrono::milliseconds(200);

Result<batch::Batch> Read(Arguments folders) {
  if (folders.size() != 1)
    return Error{ExitCode::kUsage, "heddle batch", "takes one folder", "`heddle sweep --backend` wrote it"};
  return batch::ReadBatch(folders.front());
}

po::options_description TaskOptions() {
  po::options_description options("options");
  options.add_options()("task", po::value<uint32_t>()->required(), "which task of the batch")(
      "scratch", po::value<std::string>()->default_value(""),
      "local folder to work in; default: $TMPDIR, or /tmp")(
      "publish-every", po::value<uint32_t>()->default_value(20),
      "launches after which the database is copied to the batch's folder")(
      "threads,t", po::value<uint32_t>()->default_value(1), "threads");
  return options;
}

Status Task(const po::variables_map& values, Arguments folders) {
  HEDDLE_ASSIGN_OR_RETURN(const batch::Batch read, Read(folders));
  batch::TaskOptions options;
  options.program = std::filesystem::read_symlink("/proc/self/exe").string();
  options.scratch = values["scratch"].as<std::string>();
  const char* folder = std::getenv("TMPDIR");
  if (options.scratch.empty()) options.scratch = folder != nullptr && *folder != '\0' ? folder : "/tmp";
  options.task = values["task"].as<uint32_t>();
  options.publish_every = std::max(1u, values["publish-every"].as<uint32_t>());
  options.threads = std::max(1u, values["threads"].as<uint32_t>());
  Status status = batch::RunTask(read, options, &StopFlag());
  if (!status.ok() && status.error().code == ExitCode::kInterrupted) batch::RequeueThisTask();
  return status;
}

po::options_description MergeOptions() {
  po::options_description options("options");
  options.add_options()("wait", "wait until every task has been through its jobs");
  return options;
}

Status Merge(const po::variables_map& values, Arguments folders) {
  HEDDLE_ASSIGN_OR_RETURN(const batch::Batch read, Read(folders));
  HEDDLE_ASSIGN_OR_RETURN(batch::BatchState state, batch::StateOf(read));
  auto next = std::chrono::steady_clock::now() + kWaitInterval;
  while (values.count("wait") != 0 && !state.unfinished.empty()) {
    if (StopFlag())
      return Error{ExitCode::kInterrupted, read.folder, "stopped by a signal while waiting", "run it again"};
    std::this_thread::sleep_for(kStopInterval);
    if (std::chrono::steady_clock::now() < next) continue;
    next += kWaitInterval;
    HEDDLE_ASSIGN_OR_RETURN(state, batch::StateOf(read));
  }
  HEDDLE_RETURN_IF_ERROR(batch::MergeBatch(read, state));
  fmt::print(stderr, "{} launches in {}\n", batch::LaunchCount(read.database), read.database);
  if (state.unfinished.empty() && state.failures.empty()) return Ok();
  std::string text;
  if (!state.unfinished.empty())
    text += fmt::format("{} of {} tasks have not been through their jobs: {}", state.unfinished.size(),
                        read.tasks, fmt::join(state.unfinished, ","));
  for (const std::string& failure : state.failures)
    text += fmt::format("{}failed: {}", text.empty() ? "" : "\n", failure);
  return Error{ExitCode::kDidNotFinish, read.folder, text,
               "what is there is merged; run the sweep again for the rest"};
}

po::options_description NoOptions() { return po::options_description("options"); }

Status Show(const po::variables_map&, Arguments folders) {
  HEDDLE_ASSIGN_OR_RETURN(const batch::Batch read, Read(folders));
  HEDDLE_ASSIGN_OR_RETURN(const batch::BatchState state, batch::StateOf(read));
  fmt::print(
      "jobs                {}\ntasks               {}\ntasks through       {}\ndatabases published {}\n",
      read.jobs.size(), read.tasks, read.tasks - state.unfinished.size(), state.published.size());
  for (const std::string& failure : state.failures) fmt::print("failed              {}\n", failure);
  return Ok();
}

template <auto kFunction>
ExitCode Run(const po::variables_map& values, Arguments arguments) {
  StopOnSignals();
  const Status status = kFunction(values, arguments);
  return status.ok() ? ExitCode::kOk : Report(status.error());
}

}  // namespace

Command BatchCommand() {
  return {.name = "batch",
          .summary = "What jobs of a sweep on a cluster run",
          .subcommands = {
              {"task", "Run the jobs of one task, publish what they find", TaskOptions, "FOLDER", Run<Task>},
              {"merge", "Merge what the tasks published into the sweep's database", MergeOptions, "FOLDER",
               Run<Merge>},
              {"show", "Print how far a batch is", NoOptions, "FOLDER", Run<Show>},
          }};
}

}  // namespace heddle::tools
