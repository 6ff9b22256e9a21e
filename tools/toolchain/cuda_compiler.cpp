#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "frontend/sass/cubin.h"
#include "tools/toolchain/toolchain.h"

extern char** environ;

namespace heddle::toolchain {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostOutput = 4000;  // of nvcc's messages, in an error

// A folder of its own that goes away with it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "heddle-nvcc-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ec;
    if (!path_.empty()) fs::remove_all(path_, ec);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string FindNvcc() {
  const auto runs = [](const fs::path& path) {
    return access(path.c_str(), X_OK) == 0 && fs::is_regular_file(path);
  };
  if (const std::string named = Environment("HEDDLE_NVCC"); !named.empty()) return runs(named) ? named : "";
  const std::string path = Environment("PATH");
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    if (const fs::path candidate = fs::path(path.substr(begin, end - begin)) / "nvcc";
        end > begin && runs(candidate))
      return candidate.string();
    begin = end + 1;
  }
  for (const std::string& home : {Environment("CUDA_HOME"), std::string("/usr/local/cuda")})
    if (const fs::path candidate = fs::path(home) / "bin" / "nvcc"; !home.empty() && runs(candidate))
      return candidate.string();
  return "";
}

std::string Contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The exit status, output going to `log`; -1 when it cannot be run.
int Run(const std::vector<std::string>& command, const std::string& log) {
  std::vector<char*> arguments;
  for (const std::string& part : command) arguments.push_back(const_cast<char*>(part.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int error = posix_spawn(&child, command[0].c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

Result<std::vector<std::byte>> CompileCuda(const trace::CudaCompilation& compilation,
                                           const std::string& place) {
  std::error_code ec;
  if (!fs::is_regular_file(compilation.file, ec))
    return Error{ExitCode::kTrace, place, fmt::format("there is no file '{}'", compilation.file),
                 "relative paths start at the description's folder"};
  const std::string nvcc = FindNvcc();
  if (nvcc.empty())
    return Error{ExitCode::kTrace, place, "the description has a CUDA source, and there is no nvcc",
                 "install the CUDA Toolkit, or set HEDDLE_NVCC to nvcc's path"};
  const TemporaryFolder folder;
  if (folder.path().empty())
    return Error{ExitCode::kTrace, place, "no temporary folder can be made",
                 "set TMPDIR to a folder that can be written"};
  const std::string cubin = (folder.path() / "out.cubin").string();
  const std::string log = (folder.path() / "log").string();
  std::vector<std::string> command = {nvcc, "-cubin", "-arch=" + compilation.target, "-o", cubin};
  command.insert(command.end(), compilation.flags.begin(), compilation.flags.end());
  command.push_back(compilation.file);
  const int status = Run(command, log);
  if (status != 0) {
    std::string printed = Contents(log);
    if (printed.size() > kMostOutput) printed.resize(kMostOutput);
    return Error{ExitCode::kTrace, place,
                 fmt::format("nvcc could not compile it for {}:\n{}", compilation.target, printed),
                 "correct the source, the flags or the target"};
  }
  return sass::ReadFileBytes(cubin);
}

}  // namespace heddle::toolchain
