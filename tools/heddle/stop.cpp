#include "tools/heddle/stop.h"

#include <csignal>

namespace heddle::tools {
namespace {

std::atomic<bool> g_stop{false};

void OnSignal(int signal) {
  g_stop = true;
  std::signal(signal, SIG_DFL);
}

}  // namespace

void StopOnSignals() {
  std::signal(SIGINT, OnSignal);
  std::signal(SIGTERM, OnSignal);
  std::signal(SIGUSR1, OnSignal);
}

std::atomic<bool>& StopFlag() { return g_stop; }

}  // namespace heddle::tools
