// `heddle capture [options] -- COMMAND...`: what a process launched on its GPU becomes traces.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "frontend/capture/assemble.h"
#include "frontend/capture/counter_sets.h"
#include "tools/heddle/capture_output.h"
#include "tools/heddle/commands.h"
#include "tools/toolchain/toolchain.h"

namespace heddle::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExample = "heddle capture -o run.htrace -- python serve.py";

Error Usage(std::string place, std::string message, std::string next_step) {
  return {ExitCode::kUsage, std::move(place), std::move(message), std::move(next_step)};
}

po::options_description CaptureOptions() {
  po::options_description options("options");
  options.add_options()("output,o",
                        po::value<std::string>()->value_name("FILE")->default_value("capture.htrace"),
                        "the trace to write; of several processes FILE.<pid>.htrace");
  options.add_options()("kernels,k", po::value<std::string>()->value_name("REGEX"),
                        "launches of kernels whose mangled name contains a match (extended POSIX)");
  options.add_options()("skip", po::value<uint64_t>()->value_name("N"),
                        "leave out the first N such launches of a process");
  options.add_options()("count", po::value<uint64_t>()->value_name("N"),
                        "record N launches of a process at most");
  options.add_options()("range", po::value<std::string>()->value_name("nvtx:NAME"),
                        "only launches inside NVTX ranges of this name");
  options.add_options()(
      "snapshot", po::value<std::string>()->value_name("index|all|none")->default_value("none"),
      "memory contents to keep: index: what steers addresses and control flow, and short copies "
      "from the host; all: everything that the launches can reach");
  options.add_options()("plan", po::value<std::string>()->value_name("FILE"),
                        "what `heddle trace plan` made of a first capture; needed by --snapshot index");
  options.add_options()("nccl", po::bool_switch(), "record the arguments of NCCL's collectives");
  options.add_options()(
      "counters", po::value<std::string>()->value_name("SET"),
      "run the command again and take counters of each launch: cycles, instructions, memory, "
      "occupancy, tensor, stalls, all, or CUPTI's names of metrics, with commas");
  options.add_options()("sass-metrics", po::bool_switch(),
                        "run it again and count what each instruction executes");
  options.add_options()("pc-sampling", po::bool_switch(),
                        "run it again and sample what warps wait for, and where");
  options.add_options()("keep-records", po::bool_switch(), "leave the record files beside the trace");
  return options;
}

// $HEDDLE_CAPTURE_LIBRARY, else beside the program: ../lib or ../../lib.
Result<std::string> FindLibrary() {
  if (const char* named = std::getenv("HEDDLE_CAPTURE_LIBRARY"); named != nullptr && *named != 0)
    return std::string(named);
  std::error_code ec;
  const fs::path program = fs::read_symlink("/proc/self/exe", ec);
  for (const char* folder : {"../lib", "../../lib"}) {
    const fs::path library = (program.parent_path() / folder / "libheddle_capture.so").lexically_normal();
    if (fs::exists(library, ec)) return library.string();
  }
  return Error{ExitCode::kUsage, "heddle capture", "libheddle_capture.so was not found",
               "name it in HEDDLE_CAPTURE_LIBRARY"};
}

using Environment = std::vector<std::pair<std::string, std::string>>;

std::string Joined(const char* variable, const std::string& first) {
  const char* old = std::getenv(variable);
  return old == nullptr || *old == 0 ? first : first + ":" + old;
}

Result<Environment> CaptureEnvironment(const po::variables_map& values, const std::string& folder) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string library, FindLibrary());
  Environment environment = {{"CUDA_INJECTION64_PATH", library}, {"HEDDLE_CAPTURE_FOLDER", folder}};
  const auto add = [&](const char* option, const char* variable) {
    if (values.count(option) != 0) environment.emplace_back(variable, values[option].as<std::string>());
  };
  const auto add_number = [&](const char* option, const char* variable) {
    if (values.count(option) != 0)
      environment.emplace_back(variable, fmt::format("{}", values[option].as<uint64_t>()));
  };
  add("kernels", "HEDDLE_CAPTURE_KERNELS");
  add_number("skip", "HEDDLE_CAPTURE_SKIP");
  add_number("count", "HEDDLE_CAPTURE_COUNT");
  if (values.count("range") != 0) {
    const std::string range = values["range"].as<std::string>();
    if (!range.starts_with("nvtx:") || range.size() == 5)
      return Usage("--range " + range, "names no range", "for example --range nvtx:decode");
    environment.emplace_back("HEDDLE_CAPTURE_RANGE", range.substr(5));
    environment.emplace_back("NVTX_INJECTION64_PATH", library);
  }
  const std::string snapshot = values["snapshot"].as<std::string>();
  if (snapshot != "none" && snapshot != "index" && snapshot != "all")
    return Usage("--snapshot " + snapshot, "is not known", "choose index, all or none");
  environment.emplace_back("HEDDLE_CAPTURE_SNAPSHOT", snapshot);
  if (values.count("plan") != 0) {
    std::error_code ec;
    const fs::path plan = fs::absolute(values["plan"].as<std::string>(), ec);
    if (!fs::is_regular_file(plan, ec))
      return Usage("--plan " + plan.string(), "there is no such file", "make it with `heddle trace plan`");
    environment.emplace_back("HEDDLE_CAPTURE_PLAN", plan.string());
  }
  if (values["nccl"].as<bool>() || snapshot != "none")
    environment.emplace_back("LD_PRELOAD", Joined("LD_PRELOAD", library));
  return environment;
}

// A run of the command for one kind of measurement.
struct MeasuringRun {
  std::string kind;  // of HEDDLE_CAPTURE_MEASURE, and the name of its folder of records
  std::string metrics;
};

Result<std::vector<MeasuringRun>> MeasuringRuns(const po::variables_map& values) {
  std::vector<MeasuringRun> runs;
  if (values.count("counters") != 0) {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> metrics,
                            capture::CountersOf(values["counters"].as<std::string>()));
    runs.push_back({"counters", fmt::format("{}", fmt::join(metrics, ","))});
  }
  if (values["sass-metrics"].as<bool>())
    runs.push_back({"sass", fmt::format("{}", fmt::join(capture::SassMetrics(), ","))});
  if (values["pc-sampling"].as<bool>()) runs.push_back({"pc", ""});
  return runs;
}

// Measuring functions must not be called in CUPTI's callbacks: the library also stands in front of the launch functions.
void Measure(const MeasuringRun& run, const std::string& folder, Environment* environment) {
  const std::string library = environment->front().second;
  std::erase_if(*environment, [](const auto& each) {
    return each.first == "HEDDLE_CAPTURE_SNAPSHOT" || each.first == "LD_PRELOAD" ||
           each.first == "HEDDLE_CAPTURE_FOLDER";
  });
  environment->emplace_back("HEDDLE_CAPTURE_FOLDER", folder);
  environment->emplace_back("HEDDLE_CAPTURE_MEASURE", run.kind);
  environment->emplace_back("HEDDLE_CAPTURE_METRICS", run.metrics);
  environment->emplace_back("LD_PRELOAD", Joined("LD_PRELOAD", library));
}

pid_t g_child = 0;
void PassOn(int signal) {
  if (g_child > 0) kill(g_child, signal);
}

// The command's exit status, 128 + n where signal n ended it. A terminal's interrupt reaches the command by itself.
Result<int> RunCommandLine(Arguments command, const Environment& environment) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0)
    return Error{ExitCode::kInternal, "heddle capture", std::strerror(errno), "free some files"};
  const pid_t child = fork();
  if (child == 0) {
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    execvp(words[0], words.data());
    const int why = errno;
    if (write(report[1], &why, sizeof why) < 0) _exit(126);
    _exit(127);
  }
  close(report[1]);
  if (child < 0)
    return Error{ExitCode::kInternal, "heddle capture", std::strerror(errno), "free some memory"};
  g_child = child;
  const auto old_int = std::signal(SIGINT, SIG_IGN);
  const auto old_term = std::signal(SIGTERM, PassOn);
  int why = 0;
  const bool failed = read(report[0], &why, sizeof why) == sizeof why;
  close(report[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  g_child = 0;
  std::signal(SIGINT, old_int);
  std::signal(SIGTERM, old_term);
  if (failed) return Usage(command[0], std::strerror(why), "check the command behind `--`");
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// The runs behind the first. One that fails leaves the trace as it is.
void RunMeasurements(const std::vector<MeasuringRun>& runs, const std::string& folder,
                     const Environment& environment, Arguments command) {
  std::error_code ec;
  for (const MeasuringRun& run : runs) {
    const fs::path records = fs::path(folder) / run.kind;
    fs::create_directories(records, ec);
    Environment measuring = environment;
    Measure(run, records.string(), &measuring);
    fmt::print(stderr, "heddle: running the command again for {}\n", run.kind);
    const Result<int> status = RunCommandLine(command, measuring);
    if (!status.ok()) fmt::print(stderr, "{}\n", status.error().ToString());
    if (status.ok() && *status != 0)
      fmt::print(stderr, "heddle: the command ended with status {} while it was measured\n", *status);
    if (status.ok() && *status >= 128) return;  // ended from outside
  }
}

Status Capture(const po::variables_map& values, Arguments command) {
  if (command.empty()) return Usage("heddle capture", "no command is given", kExample);
  const std::string output = values["output"].as<std::string>();
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<MeasuringRun> runs, MeasuringRuns(values));
  std::error_code ec;
  const fs::path folder = fs::absolute(output + ".records", ec);
  if (fs::exists(folder, ec))
    return Usage(folder.string(), "is there already, from an earlier capture",
                 fmt::format("`heddle trace recover {} -o X.htrace` makes a trace of it; then remove it",
                             folder.string()));
  if (!fs::create_directories(folder, ec))
    return Usage(folder.string(), "cannot be made", "choose another -o");
  Result<Environment> environment = CaptureEnvironment(values, folder.string());
  Result<int> status =
      environment.ok() ? RunCommandLine(command, *environment) : Result<int>(environment.error());
  if (!status.ok()) {
    fs::remove_all(folder, ec);
    return status.error();
  }
  if (*status != 0) fmt::print(stderr, "heddle: the command ended with status {}\n", *status);
  if (fs::is_empty(folder, ec)) {
    fs::remove_all(folder, ec);
    return Error{
        ExitCode::kTrace, command[0], "no process of the command initialised CUDA with the capture library",
        "check that it uses a GPU, and that nothing replaces CUDA_INJECTION64_PATH (nsys and ncu do)"};
  }
  if (*status < 128 && !runs.empty() && HoldsLaunches(folder.string()))
    RunMeasurements(runs, folder.string(), *environment, command);
  HEDDLE_ASSIGN_OR_RETURN(const bool written, WriteCapture(folder.string(), output));
  if (!values["keep-records"].as<bool>()) fs::remove_all(folder, ec);
  return written ? Ok() : Status(NothingLaunched(output));
}

}  // namespace

Command CaptureCommand() {
  return {"capture",
          "Run a command and record what it launches on its GPU",
          CaptureOptions,
          "-- COMMAND...",
          [](const po::variables_map& values, Arguments command) {
            const Status status = Capture(values, command);
            return status.ok() ? ExitCode::kOk : Report(status.error());
          },
          {}};
}

}  // namespace heddle::tools
