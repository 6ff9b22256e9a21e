// What `heddle run` writes about a machine, and which launches it shows at its end.
#pragma once

#include <string>
#include <vector>

#include "sim/config/gpu_description.h"
#include "sim/results/results.h"

namespace heddle::tools {

struct MachineRecord {
  config::Gpu gpu;
  results::ConfigRecord record;
  std::string dependence;

  uint64_t Picoseconds(Cycle cycles) const;
};

// Peaks follow from the description: tensor operations by its fastest matrix instruction with 16-bit inputs and fp32
// accumulation, FP32 operations by the FMA pipe, DRAM bytes by the pins.
MachineRecord RecordMachine(config::Gpu gpu);

// An SQL condition on v_launch: launches of the traces with these digests on these machines.
std::string LaunchesOf(const std::vector<MachineRecord>& machines,
                       const std::vector<std::string>& trace_digests);

}  // namespace heddle::tools
