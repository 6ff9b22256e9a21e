// What results say about a machine that launches are simulated on.
#pragma once

#include <string>

#include "sim/config/gpu_description.h"
#include "sim/results/results.h"

namespace heddle::replay {

struct MachineRecord {
  config::Gpu gpu;
  results::ConfigRecord record;
  std::string dependence;
};

// Peaks follow from the description: tensor operations by its fastest matrix instruction with 16-bit inputs and fp32
// accumulation, FP32 operations by the FMA pipe, DRAM bytes by the pins.
MachineRecord RecordMachine(config::Gpu gpu);

}  // namespace heddle::replay
