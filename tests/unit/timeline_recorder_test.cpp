// A timeline's size has a limit, and what is left of it is still true: samples add up, CTAs are those of whole SMs.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/gpu/timeline_recorder.h"

namespace heddle::gpu {
namespace {

constexpr Dim3 kGrid{300, 100, 2};

TEST(TimelineRecorder, CtasAreNumberedXFirstAndSortedByStart) {
  TimelineRecorder recorder(kGrid, 100);
  recorder.StartCta(7, {1, 0, 0}, 300);
  recorder.StartCta(5, {2, 3, 1}, 200);
  recorder.FinishCta(7, {1, 0, 0}, 400);
  recorder.FinishCta(5, {2, 3, 1}, 500);
  const stats::Timeline timeline = recorder.Take(600, {});
  ASSERT_EQ(timeline.ctas.size(), 2u);
  EXPECT_EQ(timeline.ctas[0].cta, 2u + 300 * (3 + 100 * 1));
  EXPECT_EQ(timeline.ctas[0].start, 200u);
  EXPECT_EQ(timeline.ctas[0].end, 500u);
  EXPECT_EQ(timeline.ctas[0].sm, 5u);
  EXPECT_EQ(timeline.ctas[1].cta, 1u);
}

TEST(TimelineRecorder, ManyCtasLeaveThoseOfEverySecondSm) {
  TimelineRecorder recorder(kGrid, 0);
  uint32_t i = 0;
  for (; i < TimelineRecorder::kMostCtas + 2; ++i) {
    recorder.StartCta(i % 4, {i % 300, i / 300 % 100, i / 30000}, i);
    recorder.FinishCta(i % 4, {i % 300, i / 300 % 100, i / 30000}, i + 1);
  }
  const stats::Timeline timeline = recorder.Take(i + 1, {});
  EXPECT_EQ(timeline.ctas.size(), TimelineRecorder::kMostCtas / 2 + 1);
  for (const stats::CtaSpan& span : timeline.ctas) EXPECT_EQ(span.sm % 2, 0u);
}

TEST(TimelineRecorder, OneSmKeepsItsFirstCtas) {
  TimelineRecorder recorder({1u << 20, 1, 1}, 0);
  for (uint32_t i = 0; i < TimelineRecorder::kMostCtas + 10; ++i) {
    recorder.StartCta(0, {i, 0, 0}, i);
    recorder.FinishCta(0, {i, 0, 0}, i + 1);
  }
  const stats::Timeline timeline = recorder.Take(1u << 20, {});
  ASSERT_EQ(timeline.ctas.size(), TimelineRecorder::kMostCtas);
  EXPECT_EQ(timeline.ctas.back().cta, TimelineRecorder::kMostCtas - 1);
}

// A counter that is the cycle: whatever is thinned out, a sample must hold the cycles since the one before.
TEST(TimelineRecorder, SamplesAddUpHoweverManyThereWere) {
  constexpr Cycle kStart = 1000;
  for (const Cycle length : {Cycle{100}, Cycle{10'000}, Cycle{1'000'000}}) {
    TimelineRecorder recorder(kGrid, kStart);
    stats::Counters counters;
    Cycle now = kStart;
    while (now < kStart + length) {
      now += 172;
      counters.dram_read_bytes = now - kStart;
      if (recorder.IsDue(now)) recorder.Sample(now, counters);
    }
    const Cycle end = kStart + length - 10;  // the last window reached beyond it
    counters.dram_read_bytes = end - kStart;
    const stats::Timeline timeline = recorder.Take(end, counters);
    EXPECT_LE(timeline.samples.size(), TimelineRecorder::kMostSamples);
    EXPECT_EQ(timeline.samples.back().cycle, end);
    EXPECT_GE(timeline.samples.size(), std::min(length / 600 + 1, TimelineRecorder::kMostSamples / 4));
    Cycle before = kStart;
    for (const stats::CounterSample& sample : timeline.samples) {
      EXPECT_GT(sample.cycle, before);
      EXPECT_EQ(sample.counts[5], sample.cycle - before);
      before = sample.cycle;
    }
  }
}

}  // namespace
}  // namespace heddle::gpu
