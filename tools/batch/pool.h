// Jobs as child processes, a few at a time: one that crashes takes nothing with it.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace heddle::batch {

struct Command {
  std::vector<std::string> arguments;  // arguments[0] is the program's path
  std::string log;                     // file that stdout and stderr go to
};

struct Ended {
  size_t index = 0;
  int exit_code = -1;  // 128 + n when signal n ended it; 127 when it could not be started
  double seconds = 0;
};

// Runs all commands, at most `slots` at a time, in order. `ended` is called from this thread after each one; `idle` every half
// second meanwhile. Once `stop` is set no further command starts and those that run get SIGTERM once.
void RunPool(const std::vector<Command>& commands, size_t slots, std::atomic<bool>* stop,
             const std::function<void(const Ended&)>& ended, const std::function<void(size_t running)>& idle);

// What a log of heddle says went wrong: the last line that begins so, or the last one at all. Without tabs.
std::string ErrorLine(const std::string& path);

// Runs one command and waits for it.
int RunOne(const Command& command, std::atomic<bool>* stop);

}  // namespace heddle::batch
