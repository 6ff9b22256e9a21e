#include "tools/replay/sustained_clock.h"

#include <algorithm>
#include <cmath>

namespace heddle::replay {
namespace {

bool IsFloatMultiplyAdd(isa::Op op) {
  return op == isa::Op::kFFMA || op == isa::Op::kFADD || op == isa::Op::kFMUL;
}

// The table of one pipe, which rises in activity; clocks.sm_mhz where it has none.
double ClockAt(const config::Gpu& gpu, config::PowerPipe pipe, double activity) {
  const config::SustainedClock* below = nullptr;
  for (const config::SustainedClock& entry : gpu.board.sustained_clocks) {
    if (entry.pipe != pipe) continue;
    if (entry.activity >= activity) {
      if (below == nullptr) return entry.sm_mhz;
      const double share = (activity - below->activity) / (entry.activity - below->activity);
      return below->sm_mhz + share * (entry.sm_mhz - below->sm_mhz);
    }
    below = &entry;
  }
  return below == nullptr ? gpu.clocks.sm_mhz : below->sm_mhz;
}

}  // namespace

PipeActivity ActivityOf(const config::Gpu& gpu, const isa::KernelCode& code,
                        const stats::LaunchStats& stats) {
  const auto cycles = static_cast<double>(stats.end_cycle - stats.start_cycle);
  if (cycles == 0) return {};
  uint64_t multiply_adds = 0;
  for (size_t i = 0; i < std::min(stats.per_pc.size(), code.instructions.size()); ++i) {
    if (IsFloatMultiplyAdd(code.instructions[i].op)) multiply_adds += stats.per_pc[i].issued;
  }
  const double pipe_cycles = cycles * gpu.sm.count * gpu.sm.sub_core_count;
  return {.tensor_cores = static_cast<double>(stats.counters.sm_pipe_tensor_cycles_active) / pipe_cycles,
          .fma_lanes =
              static_cast<double>(multiply_adds) * gpu.sm.pipes.fma.initiation_interval_cycles / pipe_cycles};
}

double SustainedMhz(const config::Gpu& gpu, const PipeActivity& activity) {
  if (gpu.board.sustained_clock == config::Switch::kOff) return gpu.clocks.sm_mhz;
  return std::min({gpu.clocks.sm_mhz, ClockAt(gpu, config::PowerPipe::kTensorCores, activity.tensor_cores),
                   ClockAt(gpu, config::PowerPipe::kFmaLanes, activity.fma_lanes)});
}

uint64_t SustainedPicoseconds(const config::Gpu& gpu, const isa::KernelCode& code,
                              const stats::LaunchStats& stats) {
  const auto cycles = static_cast<double>(stats.end_cycle - stats.start_cycle);
  return static_cast<uint64_t>(std::llround(cycles * 1e6 / SustainedMhz(gpu, ActivityOf(gpu, code, stats))));
}

}  // namespace heddle::replay
