#include "tools/batch/task.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "sim/results/results.h"
#include "tools/batch/plan.h"
#include "tools/batch/pool.h"
#include "tools/batch/publish.h"

namespace heddle::batch {
namespace {

namespace fs = std::filesystem;

constexpr int kInterruptedCode = static_cast<int>(ExitCode::kInterrupted);
constexpr std::string_view kMagic = "heddle-batch";

Error Bad(const std::string& place, const std::string& message) {
  return {ExitCode::kUsage, place, message, "`heddle sweep --backend` writes such folders"};
}

std::vector<std::string> SplitTabs(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream in(line);
  for (std::string word; std::getline(in, word, '\t');) words.push_back(word);
  return words;
}

// Complete or not there.
Status WriteWhole(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".tmp";
  std::ofstream out(temporary, std::ios::binary);
  out << text;
  out.close();
  std::error_code error;
  if (out) fs::rename(temporary, path, error);
  if (!out || error) return Bad(path, "cannot be written");
  return Ok();
}

std::string TaskName(uint32_t task) { return fmt::format("{:05}", task); }

class Task {
 public:
  Task(const Batch& batch, const TaskOptions& options, std::atomic<bool>* stop)
      : batch_(batch), options_(options), stop_(stop) {}

  Status Run() {
    HEDDLE_RETURN_IF_ERROR(MakeScratch());
    const Status status = RunJobs();
    std::error_code ignored;
    fs::remove_all(local_, ignored);
    return status;
  }

 private:
  Status MakeScratch() {
    std::string pattern = options_.scratch + "/heddle.XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr)
      return Error{ExitCode::kUsage, options_.scratch, "no folder can be made in it",
                   "choose another --scratch"};
    local_ = pattern;
    std::random_device random;
    target_ = fmt::format("{}/{}.{:08x}{:08x}.db", batch_.out(), TaskName(options_.task), random(), random());
    return Ok();
  }

  // What earlier attempts published.
  Status Seed() {
    HEDDLE_ASSIGN_OR_RETURN(const BatchState state, StateOf(batch_));
    std::vector<std::string> sources;
    for (const std::string& path : state.published) {
      if (fs::path(path).filename().string().starts_with(TaskName(options_.task) + "."))
        sources.push_back(path);
    }
    if (!sources.empty()) HEDDLE_RETURN_IF_ERROR(results::Merge(Local(), sources));
    published_ = LaunchCount(WorkingFile(Local()));
    return Ok();
  }

  // Through before, and nothing failed: started again after that, it has nothing to do.
  bool Through() const {
    std::error_code error;
    const std::string done = batch_.out() + "/" + TaskName(options_.task) + ".done";
    return fs::exists(done, error) && fs::file_size(done, error) == 0;
  }

  Status RunJobs() {
    if (Through()) return Ok();
    HEDDLE_RETURN_IF_ERROR(Seed());
    for (size_t i = options_.task; i < batch_.jobs.size() && !interrupted_; i += batch_.tasks) {
      if (*stop_) interrupted_ = true;
      if (!interrupted_) HEDDLE_RETURN_IF_ERROR(RunJob(batch_.jobs[i]));
    }
    HEDDLE_RETURN_IF_ERROR(PublishWhatIsNew(1));
    if (interrupted_)
      return Error{ExitCode::kInterrupted, batch_.folder,
                   "stopped by a signal; what was finished is published", "run the task again to go on"};
    HEDDLE_RETURN_IF_ERROR(WriteWhole(batch_.out() + "/" + TaskName(options_.task) + ".done", failures_));
    if (failures_.empty()) return Ok();
    return Error{ExitCode::kDidNotFinish, batch_.folder, "jobs failed:\n" + failures_,
                 "`heddle batch merge` lists them once more"};
  }

  Status RunJob(const BatchJob& job) {
    // A finished database would be copied before it is continued; under its working name it is continued in place.
    std::error_code error;
    if (fs::exists(Local(), error)) fs::rename(Local(), Local() + ".partial", error);
    Command command{job.arguments, local_ + "/log"};
    command.arguments.insert(command.arguments.begin(), options_.program);
    for (std::string word :
         {std::string("--db"), Local(), std::string("--publish"), target_, std::string("--publish-every"),
          fmt::format("{}", options_.publish_every), std::string("-t"), fmt::format("{}", options_.threads),
          std::string("-q"), std::string("--no-table")})
      command.arguments.push_back(std::move(word));
    const int code = RunOne(command, stop_);
    if (code == kInterruptedCode || (code != 0 && *stop_)) {
      interrupted_ = true;
    } else if (code != 0) {
      failures_ += fmt::format("{}\t{}\t{}\n", code, ErrorLine(command.log), ShellLine(job.arguments));
    }
    return PublishWhatIsNew(options_.publish_every);
  }

  Status PublishWhatIsNew(uint64_t at_least) {
    const std::string file = WorkingFile(Local());
    const uint64_t there = LaunchCount(file);
    published_ = std::max(published_, LaunchCount(target_));
    if (there < published_ + at_least) return Ok();
    HEDDLE_RETURN_IF_ERROR(Publish(file, target_));
    published_ = there;
    return Ok();
  }

  std::string Local() const { return local_ + "/task.db"; }

  const Batch& batch_;
  const TaskOptions& options_;
  std::atomic<bool>* stop_;
  std::string local_;
  std::string target_;
  uint64_t published_ = 0;  // launches, by earlier attempts or this one
  std::string failures_;
  bool interrupted_ = false;
};

}  // namespace

Status WriteBatch(const Batch& batch) {
  std::error_code error;
  fs::create_directories(batch.out(), error);
  if (error) return Bad(batch.folder, "cannot be made: " + error.message());
  std::string text = fmt::format("{}\t1\t{}\t{}\n", kMagic, batch.tasks, batch.database);
  for (const BatchJob& job : batch.jobs) {
    text += job.key;
    for (const std::string& argument : job.arguments) {
      if (argument.empty() || argument.find_first_of("\t\n") != std::string::npos)
        return Bad(argument, "cannot be handed to a cluster: it is empty or holds a tab or a line's end");
      text += '\t' + argument;
    }
    text += '\n';
  }
  return WriteWhole(batch.folder + "/jobs.tsv", text);
}

Result<Batch> ReadBatch(const std::string& folder) {
  const std::string path = folder + "/jobs.tsv";
  std::ifstream in(path);
  std::string line;
  if (!in || !std::getline(in, line)) return Bad(path, "cannot be read");
  const std::vector<std::string> head = SplitTabs(line);
  Batch batch;
  batch.folder = folder;
  if (head.size() != 4 || head[0] != kMagic || head[1] != "1") return Bad(path, "is no list of jobs");
  const char* end = head[2].data() + head[2].size();
  if (std::from_chars(head[2].data(), end, batch.tasks).ptr != end || batch.tasks == 0)
    return Bad(path, "states no number of tasks");
  batch.database = head[3];
  while (std::getline(in, line)) {
    std::vector<std::string> words = SplitTabs(line);
    if (words.size() < 2) return Bad(path, "has a line without arguments");
    batch.jobs.push_back({words[0], {words.begin() + 1, words.end()}});
  }
  return batch;
}

Status RunTask(const Batch& batch, const TaskOptions& options, std::atomic<bool>* stop) {
  if (options.task >= batch.tasks)
    return Bad(batch.folder, fmt::format("has tasks 0 to {}, not {}", batch.tasks - 1, options.task));
  return Task(batch, options, stop).Run();
}

Result<BatchState> StateOf(const Batch& batch) {
  BatchState state;
  std::error_code error;
  std::vector<bool> done(batch.tasks);
  for (fs::directory_iterator it(batch.out(), error), end; !error && it != end; it.increment(error)) {
    const fs::path path = it->path();
    if (path.extension() == ".db") state.published.push_back(path.string());
    if (path.extension() != ".done") continue;
    uint32_t task = batch.tasks;
    const std::string stem = path.stem().string();
    std::from_chars(stem.data(), stem.data() + stem.size(), task);
    if (task < batch.tasks) done[task] = true;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) state.failures.push_back(line);
  }
  if (error) return Bad(batch.out(), "cannot be listed: " + error.message());
  std::sort(state.published.begin(), state.published.end());
  std::sort(state.failures.begin(), state.failures.end());
  for (uint32_t task = 0; task < batch.tasks; ++task)
    if (!done[task]) state.unfinished.push_back(task);
  return state;
}

Status MergeBatch(const Batch& batch, const BatchState& state) {
  return state.published.empty() ? Ok() : results::Merge(batch.database, state.published);
}

}  // namespace heddle::batch
