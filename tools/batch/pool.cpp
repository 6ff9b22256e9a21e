#include "tools/batch/pool.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <optional>

namespace heddle::batch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kIdleMilliseconds = 500;
constexpr int kCannotStart = 127;
constexpr int kSignalBase = 128;

struct Child {
  size_t index = 0;
  pid_t pid = -1;
  int watch = -1;  // a pidfd: readable when the process has ended
  Clock::time_point started;
};

// In a process group of its own, so that a terminal's interrupt reaches this process alone, which passes it on.
std::optional<Child> Start(const Command& command, size_t index) {
  std::vector<char*> arguments;
  for (const std::string& argument : command.arguments)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return std::nullopt;
  if (pid == 0) {
    // Only what is safe between fork and exec.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(kCannotStart);
    const int log = open(command.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (log >= 0) {
      dup2(log, STDOUT_FILENO);
      dup2(log, STDERR_FILENO);
      close(log);
    }
    execv(arguments[0], arguments.data());
    _exit(kCannotStart);
  }
  const int watch = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  return Child{index, pid, watch, Clock::now()};
}

Ended Reap(const Child& child) {
  int status = 0;
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (child.watch >= 0) close(child.watch);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : kSignalBase + WTERMSIG(status);
  return {child.index, code, std::chrono::duration<double>(Clock::now() - child.started).count()};
}

// Waits until one of them ends, a signal arrives or time is up. Without pidfds (a kernel before 5.3) the first is waited for.
std::vector<size_t> Wait(const std::vector<Child>& children) {
  std::vector<pollfd> watches;
  for (const Child& child : children) watches.push_back({child.watch, POLLIN, 0});
  if (poll(watches.data(), watches.size(), kIdleMilliseconds) <= 0) watches.assign(watches.size(), {});
  std::vector<size_t> ready;
  for (size_t i = 0; i < children.size(); ++i)
    if (watches[i].revents != 0) ready.push_back(i);
  if (children.front().watch < 0 && ready.empty()) ready.push_back(0);
  return ready;
}

}  // namespace

void RunPool(const std::vector<Command>& commands, size_t slots, std::atomic<bool>* stop,
             const std::function<void(const Ended&)>& ended,
             const std::function<void(size_t running)>& idle) {
  std::vector<Child> children;
  size_t next = 0;
  bool told = false;
  while (true) {
    while (!*stop && next < commands.size() && children.size() < std::max<size_t>(slots, 1)) {
      const std::optional<Child> child = Start(commands[next], next);
      if (child)
        children.push_back(*child);
      else
        ended({next, kCannotStart, 0});
      ++next;
    }
    if (children.empty()) return;
    if (*stop && !told) {
      for (const Child& child : children) kill(child.pid, SIGTERM);
      told = true;
    }
    const std::vector<size_t> ready = Wait(children);
    for (auto it = ready.rbegin(); it != ready.rend(); ++it) {
      const Ended end = Reap(children[*it]);
      children.erase(children.begin() + static_cast<std::ptrdiff_t>(*it));
      ended(end);
    }
    if (ready.empty()) idle(children.size());
  }
}

std::string ErrorLine(const std::string& path) {
  std::ifstream in(path);
  std::string last, error;
  for (std::string line; std::getline(in, line);) {
    std::replace(line.begin(), line.end(), '\t', ' ');
    if (line.find_first_not_of(' ') != std::string::npos) last = line;
    if (line.starts_with("heddle: ")) error = line;
  }
  return error.empty() ? last : error;
}

int RunOne(const Command& command, std::atomic<bool>* stop) {
  int code = kCannotStart;
  RunPool(
      {command}, 1, stop, [&](const Ended& end) { code = end.exit_code; }, [](size_t) {});
  return code;
}

}  // namespace heddle::batch
