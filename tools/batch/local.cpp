#include "tools/batch/local.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "tools/batch/pool.h"
#include "tools/batch/summary.h"

namespace heddle::batch {
namespace {

namespace fs = std::filesystem;

constexpr int kInterruptedCode = static_cast<int>(ExitCode::kInterrupted);

class LocalSweep {
 public:
  LocalSweep(const SweepRequest& request, const Plan& plan, const LocalOptions& options,
             std::atomic<bool>* stop, const std::function<void(const Progress&)>& tell)
      : request_(request), plan_(plan), options_(options), stop_(stop), tell_(tell) {
    folder_ = options.cache.empty() ? options.database + ".jobs" : options.cache;
  }

  Result<LocalReport> Run() {
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error)
      return Error{ExitCode::kUsage, folder_, "cannot be made: " + error.message(),
                   "choose another --cache-dir"};
    HEDDLE_RETURN_IF_ERROR(FindWhatIsThere());
    std::vector<Command> commands;
    for (const size_t job : to_run_) commands.push_back(CommandOf(job));
    trace_seconds_.resize(plan_.traces.size());
    trace_jobs_.resize(plan_.traces.size());
    RunPool(
        commands, options_.slots, stop_, [this](const Ended& end) { OnEnded(end); },
        [this](size_t running) {
          report_.progress.running = running;
          Tell();
        });
    HEDDLE_RETURN_IF_ERROR(MergeAll());
    report_.interrupted = report_.interrupted || *stop_;
    report_.progress.running = 0;
    report_.progress.seconds_left = -1;
    return std::move(report_);
  }

 private:
  std::string FileOf(size_t job) const { return folder_ + "/" + plan_.jobs[job].key + ".db"; }

  Status FindWhatIsThere() {
    report_.progress.jobs = plan_.jobs.size();
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<bool> done, JobsDone(options_.database, plan_));
    for (size_t i = 0; i < plan_.jobs.size(); ++i) {
      if (done[i]) {
        ++report_.progress.found;
        continue;
      }
      std::error_code error;
      if (fs::exists(FileOf(i), error) && results::OpenForReading(FileOf(i)).ok()) {
        ++report_.progress.found;
        to_merge_.push_back(i);
      } else {
        to_run_.push_back(i);
      }
    }
    report_.progress.done = report_.progress.found;
    return Ok();
  }

  Command CommandOf(size_t job) const {
    std::vector<std::string> arguments = RunArguments(request_, plan_, plan_.jobs[job]);
    arguments.insert(arguments.begin(), options_.program);
    const size_t cores = std::max(1u, std::thread::hardware_concurrency());
    const size_t threads = options_.threads != 0
                               ? options_.threads
                               : std::max<size_t>(1, cores / std::max<size_t>(1, options_.slots));
    for (std::string word : {std::string("--db"), FileOf(job), std::string("-t"), fmt::format("{}", threads),
                             std::string("-q"), std::string("--no-table")})
      arguments.push_back(std::move(word));
    return {std::move(arguments), folder_ + "/" + plan_.jobs[job].key + ".log"};
  }

  void OnEnded(const Ended& end) {
    const size_t index = to_run_[end.index];
    const Job& job = plan_.jobs[index];
    const std::string log = folder_ + "/" + job.key + ".log";
    if (end.exit_code == 0) {
      ++report_.progress.done;
      to_merge_.push_back(index);
      trace_seconds_[job.trace] += end.seconds;
      ++trace_jobs_[job.trace];
      std::error_code ignored;
      fs::remove(log, ignored);
    } else if (end.exit_code == kInterruptedCode) {
      report_.interrupted = true;
    } else {
      ++report_.progress.failed;
      report_.failures.push_back(
          {index, end.exit_code, ShellLine(RunArguments(request_, plan_, job)), ErrorLine(log)});
    }
    Tell();
  }

  // What is left, at the mean of each trace's jobs so far.
  void Tell() {
    double mean = 0;
    size_t jobs = 0;
    for (size_t i = 0; i < trace_seconds_.size(); ++i) {
      mean += trace_seconds_[i];
      jobs += trace_jobs_[i];
    }
    report_.progress.seconds_left = -1;
    if (jobs != 0) {
      double left = 0;
      for (size_t i = report_.progress.done - report_.progress.found + report_.progress.failed;
           i < to_run_.size(); ++i) {
        const size_t trace = plan_.jobs[to_run_[i]].trace;
        left += trace_jobs_[trace] != 0 ? trace_seconds_[trace] / static_cast<double>(trace_jobs_[trace])
                                        : mean / static_cast<double>(jobs);
      }
      report_.progress.seconds_left = left / static_cast<double>(std::max<size_t>(1, options_.slots));
    }
    tell_(report_.progress);
  }

  Status MergeAll() {
    if (!to_merge_.empty()) {
      std::sort(to_merge_.begin(), to_merge_.end());
      std::vector<std::string> files;
      for (const size_t job : to_merge_) files.push_back(FileOf(job));
      HEDDLE_RETURN_IF_ERROR(results::Merge(options_.database, files));
    }
    std::error_code ignored;
    if (!options_.cache.empty()) return Ok();
    for (const size_t job : to_merge_) fs::remove(FileOf(job), ignored);
    fs::remove(folder_, ignored);  // stays where it is not empty: unfinished jobs and logs of failed ones
    return Ok();
  }

  const SweepRequest& request_;
  const Plan& plan_;
  const LocalOptions& options_;
  std::atomic<bool>* stop_;
  const std::function<void(const Progress&)>& tell_;
  std::string folder_;
  std::vector<size_t> to_run_, to_merge_;
  std::vector<double> trace_seconds_;
  std::vector<size_t> trace_jobs_;
  LocalReport report_;
};

}  // namespace

Result<LocalReport> RunLocal(const SweepRequest& request, const Plan& plan, const LocalOptions& options,
                             std::atomic<bool>* stop, const std::function<void(const Progress&)>& tell) {
  return LocalSweep(request, plan, options, stop, tell).Run();
}

}  // namespace heddle::batch
