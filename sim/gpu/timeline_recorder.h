// Keeps the timeline of one running launch. It only looks: what it is told and reads decides nothing.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "sim/base/types.h"
#include "sim/stats/timeline.h"

namespace heddle::gpu {

class TimelineRecorder {
 public:
  // Of CTAs and samples of a launch are kept at most so many. Half of the SMs are left out when there are more CTAs,
  // every other sample when there are more samples: an even number.
  static constexpr size_t kMostCtas = 8192;
  static constexpr size_t kMostSamples = 512;
  static constexpr uint32_t kMostStride = 1024;  // then the first CTAs are kept, the others are not
  static constexpr Cycle kFirstInterval = 256;   // no finer than windows are long

  TimelineRecorder(const Dim3& grid, Cycle start) : grid_(grid), next_sample_(start + kFirstInterval) {}

  void StartCta(uint32_t sm, const Dim3& cta, Cycle at);
  void FinishCta(uint32_t sm, const Dim3& cta, Cycle at);

  bool IsDue(Cycle now) const { return now >= next_sample_; }
  // `counters`: all that the launch has counted until `now`, which does not fall from call to call.
  void Sample(Cycle now, const stats::Counters& counters);

  // The launch has ended. `counters` are its final ones.
  stats::Timeline Take(Cycle end, const stats::Counters& counters);

 private:
  uint64_t NumberOf(const Dim3& cta) const {
    return cta.x + uint64_t{grid_.x} * (cta.y + uint64_t{grid_.y} * cta.z);
  }
  void Push(Cycle now, const stats::Counters& counters);

  Dim3 grid_;
  uint32_t sm_stride_ = 1;
  Cycle interval_ = kFirstInterval;
  Cycle next_sample_;
  std::unordered_map<uint64_t, Cycle> started_;  // by number of the CTA
  stats::Timeline timeline_;                     // its samples hold sums since the launch's start
};

}  // namespace heddle::gpu
