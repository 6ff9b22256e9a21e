// From a launch's cycles to its time: boards lower their clock for power while their tensor cores or FP32 lanes work.
//
// Cycles are simulated at clocks.sm_mhz and stay what they are; only the time that is stated for them follows
// board.sustained_clocks, at the launch's own activity. What DRAM takes in nanoseconds was turned into cycles at
// clocks.sm_mhz, so that a launch bound by DRAM must not be active enough to lower the clock: the tables begin well above
// what such launches reach. `--set board.sustained_clock=off` leaves the clock alone.
#pragma once

#include "sim/config/gpu_description.h"
#include "sim/isa/instruction.h"
#include "sim/stats/launch_stats.h"

namespace heddle::replay {

// Shares of the launch's cycles, over all sub-cores of the GPU, in which pipes are busy: 0 to 1.
struct PipeActivity {
  double tensor_cores = 0;
  double fma_lanes = 0;  // FP32: FFMA, FADD, FMUL
};
PipeActivity ActivityOf(const config::Gpu& gpu, const isa::KernelCode& code, const stats::LaunchStats& stats);

// The clock that the board holds at this activity; clocks.sm_mhz where it does not lower it or must not.
double SustainedMhz(const config::Gpu& gpu, const PipeActivity& activity);

// The time of the launch at its sustained clock.
uint64_t SustainedPicoseconds(const config::Gpu& gpu, const isa::KernelCode& code,
                              const stats::LaunchStats& stats);

}  // namespace heddle::replay
