// How a signal ends a command that takes long: what runs is finished and committed, then heddle exits with kInterrupted.
#pragma once

#include <atomic>

namespace heddle::tools {

// SIGINT, SIGTERM and SIGUSR1 (batch systems before a time limit) set StopFlag() from now on, however often they come; only a
// second SIGINT ends the process at once.
void StopOnSignals();
std::atomic<bool>& StopFlag();

}  // namespace heddle::tools
