// The work of a launch, in the units of the resources that it needs: what bounds, rooflines and the speed-of-light table
// are made of. From a database (results_reader.h) or straight from a simulation.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/base/types.h"
#include "sim/config/gpu_description.h"
#include "sim/isa/instruction.h"
#include "sim/sm/kernel_timing.h"
#include "sim/stats/launch_stats.h"

namespace heddle::analysis {

// Arithmetic of one kind. Operations count as Nsight Compute's rooflines do: a multiply-add is two, and lanes that a guard
// switches off count (the simulator counts instructions per warp).
struct Arithmetic {
  std::string name;  // "bf16 tensor", "fp32", "int32", ...
  bool tensor = false;
  double ops = 0;  // of the launch
  double ops_per_cycle =
      0;  // that the whole machine can do: of the instructions that were executed, the fastest of the kind
};

struct LaunchWork {
  uint64_t cycles = 0;  // of the launch
  uint64_t ctas = 0;
  uint64_t warps = 0;
  stats::Counters counters;
  // Cycles for which issue ports are taken, summed over sub-cores, by sm::IssuePort. Of a matrix instruction of a
  // warpgroup that is the port kTensor.
  std::array<double, sm::kIssuePortCount> port_cycles{};
  std::array<bool, sm::kIssuePortCount> port_is_shared{};     // one port an SM
  std::array<uint64_t, isa::kPipeCount> pipe_instructions{};  // warp instructions by isa::Pipe
  double lsu_instructions = 0;                                // that pass the SM's LSU
  double matrix_shared_bytes = 0;  // operands that warpgroups' matrix instructions read from shared memory
  std::vector<Arithmetic> arithmetic;  // kinds that occur, by falling share of their ceiling
};

// `per_pc` by instruction index, as long as `instructions` or empty (then port_cycles and arithmetic are too).
LaunchWork WorkOf(const config::Gpu& gpu, std::span<const isa::Instruction> instructions,
                  std::span<const stats::PcStats> per_pc, const stats::Counters& counters, const Dim3& grid,
                  const Dim3& block, uint64_t cycles);

}  // namespace heddle::analysis
