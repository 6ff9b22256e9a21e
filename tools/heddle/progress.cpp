#include "tools/heddle/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace heddle::tools {
namespace {

constexpr int kBarWidth = 24;
constexpr auto kTerminalInterval = std::chrono::milliseconds(100);
constexpr auto kLineInterval = std::chrono::seconds(10);

}  // namespace

ProgressBar::ProgressBar(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO) == 1) {
  if (!terminal_) next_ = started_ + kLineInterval;
}

ProgressBar::~ProgressBar() { Clear(); }

bool ProgressBar::Due() {
  const Clock::time_point now = Clock::now();
  if (quiet_ || now < next_) return false;
  next_ = now + (terminal_ ? Clock::duration(kTerminalInterval) : Clock::duration(kLineInterval));
  return true;
}

void ProgressBar::Update(const std::string& what, uint64_t done, uint64_t total, uint64_t cycle) {
  if (quiet_) return;
  if (what != what_) {
    what_ = what;
    started_ = Clock::now();
  }
  if (!Due()) return;
  const double share = total == 0 ? 0.0 : static_cast<double>(done) / static_cast<double>(total);
  const double seconds = std::chrono::duration<double>(Clock::now() - started_).count();
  std::string remaining = "";
  if (share > 0.02 && share < 1) remaining = fmt::format(", {:.0f} s left", seconds * (1 - share) / share);
  Draw(fmt::format("{} {:3.0f}% of {} CTAs, cycle {}{}", what, 100 * share, total, cycle, remaining), share);
}

void ProgressBar::Show(const std::string& words, uint64_t done, uint64_t total) {
  if (Due()) Draw(words, total == 0 ? 0.0 : static_cast<double>(done) / static_cast<double>(total));
}

void ProgressBar::Draw(const std::string& words, double share) {
  if (!terminal_) {
    fmt::print(stderr, "{}\n", words);
    return;
  }
  const int filled = static_cast<int>(share * kBarWidth);
  fmt::print(stderr, "\r\033[K[{}{}] {}", std::string(static_cast<size_t>(filled), '#'),
             std::string(static_cast<size_t>(kBarWidth - filled), '.'), words);
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressBar::Clear() {
  if (!drawn_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace heddle::tools
