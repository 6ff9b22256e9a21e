// Progress on stderr: a bar that is redrawn on a terminal, a line every ten seconds elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace heddle::tools {

class ProgressBar {
 public:
  // quiet: nothing is ever printed.
  explicit ProgressBar(bool quiet);
  ~ProgressBar();  // clears the bar
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `what` names the work at hand, done of total are its steps, `cycle` the simulated time. Cheap when called often.
  void Update(const std::string& what, uint64_t done, uint64_t total, uint64_t cycle);
  // The same for work that is not CTAs: `words` stand behind the bar as they are.
  void Show(const std::string& words, uint64_t done, uint64_t total);
  // Removes the bar so that something else can be printed; the next Update draws it again.
  void Clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool Due();
  void Draw(const std::string& words, double share);

  bool quiet_;
  bool terminal_;
  bool drawn_ = false;
  std::string what_;
  Clock::time_point started_ = Clock::now();
  Clock::time_point next_ = Clock::now();
};

}  // namespace heddle::tools
