// The rate and latency of matrix instructions, by shape and type.
#pragma once

#include <cstdint>

#include "sim/config/gpu_description.h"
#include "sim/isa/instruction.h"

namespace heddle::sm {

struct TensorTiming {
  double interval_cycles = 0;
  uint32_t latency_cycles = 0;
  uint32_t ops = 0;  // multiply-adds times two, of the dense shape; of one warp
  uint32_t shared_bytes =
      0;  // operands of a warpgroup's instruction in shared memory: A unless in registers, and B
  bool closes_group = false;  // likewise: gsb0
};

// Of HMMA, IMMA, DMMA, BMMA and QMMA, and of a warpgroup HGMMA, QGMMA, IGMMA and BGMMA. An exact entry of sm.tensor (op, shape, type, accumulator, sparsity)
// wins, then one without a type; else the nearest entry of the same op, or of HMMA, is scaled by
// multiply-adds and operand bits.
TensorTiming TensorTimingOf(const config::Gpu& gpu, const isa::Instruction& instruction);

}  // namespace heddle::sm
