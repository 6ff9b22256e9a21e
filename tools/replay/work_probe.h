// Whether the CTAs of a launch do equal work: some of them are run without timing, and their warp instructions counted.
#pragma once

#include "sim/base/result.h"
#include "sim/gpu/gpu.h"

namespace heddle::emulator {
class DeviceMemory;
class EmulatedLaunch;
}  // namespace heddle::emulator

namespace heddle::replay {

// CTAs spread over the grid must execute equally many warp instructions, within 1 %: period 1. Where they do not, but
// every one as many as others of the same blockIdx.x (or of the same x and y), the period is a row (or a plane) of the
// grid. Otherwise the launch must be simulated whole. Runs on clones of `memory`: what the launch will find.
Result<gpu::SamplingRequest> ProbeWork(const emulator::EmulatedLaunch& launch,
                                       const emulator::DeviceMemory& memory);

}  // namespace heddle::replay
