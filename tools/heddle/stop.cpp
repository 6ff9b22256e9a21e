#include "tools/heddle/stop.h"

#include <csignal>

namespace heddle::tools {
namespace {

std::atomic<bool> g_stop{false};

// Schedulers repeat their warnings (scancel does where the controller is busy), so only a user's second interrupt ends at once.
void OnSignal(int signal) {
  g_stop = true;
  if (signal == SIGINT) std::signal(SIGINT, SIG_DFL);
}

}  // namespace

void StopOnSignals() {
  std::signal(SIGINT, OnSignal);
  std::signal(SIGTERM, OnSignal);
  std::signal(SIGUSR1, OnSignal);
}

std::atomic<bool>& StopFlag() { return g_stop; }

}  // namespace heddle::tools
