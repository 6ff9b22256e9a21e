// How a signal ends a command that takes long: what runs is finished and committed, then heddle exits with kInterrupted.
#pragma once

#include <atomic>

namespace heddle::tools {

// SIGINT and SIGTERM set StopFlag() from now on; a second one ends the process at once.
void StopOnSignals();
std::atomic<bool>& StopFlag();

}  // namespace heddle::tools
