// What a launch did over time: where each of its CTAs ran and when, and how its counters grew. A sample: the longer the
// launch, the coarser, so that its size has a limit.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/types.h"
#include "sim/stats/launch_stats.h"

namespace heddle::stats {

struct CtaSpan {
  uint32_t sm = 0;
  uint64_t cta = 0;  // number in the grid, x first
  Cycle start = 0;
  Cycle end = 0;  // its last warp has exited and its loads and copies have arrived
};

// Counters that are followed over time.
inline constexpr std::array kSampledCounters = {
    &Counters::smsp_inst_executed, &Counters::sm_pipe_tensor_cycles_active,
    &Counters::l1tex_m_read_bytes, &Counters::l1tex_m_write_bytes,
    &Counters::lts_t_bytes,        &Counters::dram_read_bytes,
    &Counters::dram_write_bytes};

// What was counted between the sample before, or the launch's start, and `cycle`.
struct CounterSample {
  Cycle cycle = 0;
  std::array<uint64_t, kSampledCounters.size()> counts{};
};

struct Timeline {
  std::vector<CtaSpan> ctas;           // by start, then SM; of long grids those of every 2nd, 4th, ... SM
  std::vector<CounterSample> samples;  // by cycle; they add up to the launch's counters
};

}  // namespace heddle::stats
