#include "frontend/sass/disassembler.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

extern char** environ;

namespace heddle::sass {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHowToGet =
    "install it (pip install nvidia-cuda-nvdisasm, or the CUDA Toolkit) or set HEDDLE_NVDISASM to its path";

struct FileDescriptor {
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : fd(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~FileDescriptor() { Close(); }
  void Close() {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
  int fd = -1;
};

// A file of its own in the temporary directory, deleted at the end.
class TemporaryFile {
 public:
  static Result<TemporaryFile> Create(std::span<const std::byte> bytes) {
    std::error_code error;
    const fs::path directory = fs::temp_directory_path(error);
    TemporaryFile file;
    file.path_ = ((error ? fs::path("/tmp") : directory) / "heddle-XXXXXX").string();
    const FileDescriptor fd(::mkostemp(file.path_.data(), O_CLOEXEC));
    if (fd.fd < 0) {
      const std::string place = std::exchange(file.path_, "");
      return Error{ExitCode::kTrace, place,
                   fmt::format("cannot create a temporary file: {}", std::strerror(errno)),
                   "set TMPDIR to a directory that can be written"};
    }
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t written = ::write(fd.fd, bytes.data() + done, bytes.size() - done);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0)
        return Error{ExitCode::kTrace, file.path_, fmt::format("cannot write: {}", std::strerror(errno)),
                     "free some space in the temporary directory"};
      done += static_cast<size_t>(written);
    }
    return file;
  }
  TemporaryFile(TemporaryFile&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  TemporaryFile& operator=(TemporaryFile&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ~TemporaryFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  TemporaryFile() = default;
  std::string path_;
};

struct Pipe {
  FileDescriptor read_end;
  FileDescriptor write_end;
};

Result<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return Error{ExitCode::kTrace, "nvdisasm", fmt::format("cannot create a pipe: {}", std::strerror(errno)),
                 ""};
  return Pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// Reads both pipes to their ends, whichever has something.
void Drain(int out_fd, int err_fd, std::string& out, std::string& err) {
  std::array<pollfd, 2> polls{{{out_fd, POLLIN, 0}, {err_fd, POLLIN, 0}}};
  std::array<char, 1 << 16> buffer;
  while (polls[0].fd >= 0 || polls[1].fd >= 0) {
    if (::poll(polls.data(), polls.size(), -1) < 0 && errno != EINTR) return;
    for (pollfd& entry : polls) {
      if (entry.fd < 0 || entry.revents == 0) continue;
      const ssize_t count = ::read(entry.fd, buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        entry.fd = -1;
        continue;
      }
      (entry.fd == out_fd ? out : err).append(buffer.data(), static_cast<size_t>(count));
    }
  }
}

struct Output {
  int status = 0;
  std::string out;
  std::string err;
};

Result<Output> Run(const std::vector<std::string>& command) {
  HEDDLE_ASSIGN_OR_RETURN(Pipe out, MakePipe());
  HEDDLE_ASSIGN_OR_RETURN(Pipe err, MakePipe());
  std::vector<char*> arguments;
  for (const std::string& part : command) arguments.push_back(const_cast<char*>(part.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write_end.fd, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write_end.fd, STDERR_FILENO);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, command[0].c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return Error{ExitCode::kTrace, command[0], fmt::format("cannot be run: {}", std::strerror(error)),
                 kHowToGet};
  out.write_end.Close();
  err.write_end.Close();
  Output output;
  Drain(out.read_end.fd, err.read_end.fd, output.out, output.err);
  while (::waitpid(child, &output.status, 0) < 0 && errno == EINTR) {
  }
  return output;
}

bool IsExecutable(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::optional<std::string> FindOnPath(const std::string& program) {
  const std::string path = Environment("PATH");
  for (size_t start = 0; start <= path.size();) {
    const size_t end = std::min(path.find(':', start), path.size());
    const fs::path candidate = fs::path(path.substr(start, end - start)) / program;
    if (end > start && IsExecutable(candidate)) return candidate.string();
    start = end + 1;
  }
  return std::nullopt;
}

// <environment>/lib/python3.*/site-packages/nvidia/<cu13 or cuda_nvdisasm>/bin/nvdisasm
std::optional<std::string> FindInSitePackages(const fs::path& site_packages) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(site_packages / "nvidia", error)) {
    const fs::path candidate = entry.path() / "bin" / "nvdisasm";
    if (IsExecutable(candidate)) return candidate.string();
  }
  return std::nullopt;
}

std::optional<std::string> FindInVirtualEnvironment(const fs::path& environment) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(environment / "lib", error))
    if (auto found = FindInSitePackages(entry.path() / "site-packages")) return found;
  return std::nullopt;
}

// Asks python3 where its packages are.
std::optional<std::string> FindThroughPython() {
  const auto python = FindOnPath("python3");
  if (!python) return std::nullopt;
  const auto output =
      Run({*python, "-c",
           "import site, sys; print('\\n'.join(site.getsitepackages() + [site.getusersitepackages()]))"});
  if (!output.ok() || output->status != 0) return std::nullopt;
  for (size_t start = 0; start < output->out.size();) {
    const size_t end = std::min(output->out.find('\n', start), output->out.size());
    if (auto found = FindInSitePackages(output->out.substr(start, end - start))) return found;
    start = end + 1;
  }
  return std::nullopt;
}

}  // namespace

Result<std::string> FindDisassembler() {
  if (const std::string path = Environment("HEDDLE_NVDISASM"); !path.empty()) {
    if (IsExecutable(path)) return path;
    return Error{ExitCode::kUsage, "HEDDLE_NVDISASM=" + path, "not an executable file", kHowToGet};
  }
  if (auto found = FindOnPath("nvdisasm")) return *found;
  for (const std::string& root :
       {Environment("CUDA_HOME"), Environment("CUDA_PATH"), std::string("/usr/local/cuda")})
    if (!root.empty() && IsExecutable(fs::path(root) / "bin" / "nvdisasm"))
      return (fs::path(root) / "bin" / "nvdisasm").string();
  for (const std::string& root : {Environment("VIRTUAL_ENV"), std::string("build/venv")})
    if (!root.empty())
      if (auto found = FindInVirtualEnvironment(root)) return *found;
  if (auto found = FindThroughPython()) return *found;
  return Error{ExitCode::kUsage, "nvdisasm", "NVIDIA's disassembler was not found", kHowToGet};
}

Result<std::string> RunDisassembler(const std::string& nvdisasm, const std::vector<std::string>& options,
                                    std::span<const std::byte> bytes, const std::string& place) {
  HEDDLE_ASSIGN_OR_RETURN(const TemporaryFile file, TemporaryFile::Create(bytes));
  std::vector<std::string> command{nvdisasm};
  command.insert(command.end(), options.begin(), options.end());
  command.push_back(file.path());
  HEDDLE_ASSIGN_OR_RETURN(Output output, Run(command));
  if (WIFEXITED(output.status) && WEXITSTATUS(output.status) == 0) return std::move(output.out);
  // The message names the temporary file; the caller's name for it is what the user knows.
  std::string message = output.err.substr(0, 400);
  for (size_t at = 0; (at = message.find(file.path(), at)) != std::string::npos; at += place.size())
    message.replace(at, file.path().size(), place);
  while (!message.empty() && message.back() == '\n') message.pop_back();
  return Error{ExitCode::kTrace, place,
               fmt::format("{} failed ({}): {}", nvdisasm,
                           WIFEXITED(output.status) ? fmt::format("exit {}", WEXITSTATUS(output.status))
                                                    : fmt::format("signal {}", WTERMSIG(output.status)),
                           message),
               "check that this nvdisasm is as new as the architecture of the file"};
}

}  // namespace heddle::sass
