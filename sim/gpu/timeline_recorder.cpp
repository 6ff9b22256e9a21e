#include "sim/gpu/timeline_recorder.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace heddle::gpu {

void TimelineRecorder::StartCta(uint32_t sm, const Dim3& cta, Cycle at) {
  if (sm % sm_stride_ == 0) started_[NumberOf(cta)] = at;
}

void TimelineRecorder::FinishCta(uint32_t sm, const Dim3& cta, Cycle at) {
  if (sm % sm_stride_ != 0) return;
  const auto started = started_.find(NumberOf(cta));
  timeline_.ctas.push_back({sm, started->first, started->second, at});
  started_.erase(started);
  while (timeline_.ctas.size() > kMostCtas && sm_stride_ < kMostStride) {
    sm_stride_ *= 2;
    std::erase_if(timeline_.ctas, [&](const stats::CtaSpan& span) { return span.sm % sm_stride_ != 0; });
  }
  if (timeline_.ctas.size() > kMostCtas) timeline_.ctas.pop_back();
}

void TimelineRecorder::Push(Cycle now, const stats::Counters& counters) {
  stats::CounterSample& sample = timeline_.samples.emplace_back();
  sample.cycle = now;
  for (size_t i = 0; i < sample.counts.size(); ++i) sample.counts[i] = counters.*stats::kSampledCounters[i];
}

void TimelineRecorder::Sample(Cycle now, const stats::Counters& counters) {
  Push(now, counters);
  if (timeline_.samples.size() >= kMostSamples) {
    // Sums since the start: leaving one out loses resolution only. The last one stays.
    size_t kept = 0;
    for (size_t i = 1; i < timeline_.samples.size(); i += 2) timeline_.samples[kept++] = timeline_.samples[i];
    timeline_.samples.resize(kept);
    interval_ *= 2;
  }
  next_sample_ = now + interval_;
}

stats::Timeline TimelineRecorder::Take(Cycle end, const stats::Counters& counters) {
  std::vector<stats::CounterSample>& samples = timeline_.samples;
  // The last window may reach beyond the launch's end.
  while (!samples.empty() && samples.back().cycle >= end) samples.pop_back();
  Push(end, counters);
  for (size_t i = samples.size() - 1; i > 0; --i)
    for (size_t k = 0; k < samples[i].counts.size(); ++k) samples[i].counts[k] -= samples[i - 1].counts[k];
  std::sort(timeline_.ctas.begin(), timeline_.ctas.end(),
            [](const stats::CtaSpan& a, const stats::CtaSpan& b) {
              return std::tuple(a.start, a.sm, a.cta) < std::tuple(b.start, b.sm, b.cta);
            });
  return std::move(timeline_);
}

}  // namespace heddle::gpu
