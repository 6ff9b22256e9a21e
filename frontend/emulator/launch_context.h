// What the instructions of a launch can see beyond their own registers.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "sim/base/types.h"

namespace heddle::emulator {

inline constexpr uint32_t kConstantBanks =
    5;  // 0 launch and parameters, 2 literals, 3 __constant__, 4 addresses
inline constexpr uint32_t kCtaBarriers = 16;

// The same for every warp of a launch, read only while it runs.
struct LaunchContext {
  Dim3 grid;
  Dim3 block;
  Dim3 cluster;
  uint32_t sm_version = 80;
  uint32_t sm_count = 1;       // %nsmid
  uint32_t warps_per_sm = 64;  // %nwarpid
  uint64_t grid_id = 1;
  uint64_t code_address = 0;           // of instruction 0, for absolute calls
  double nanoseconds_per_cycle = 1.0;  // %globaltimer from the cycle
  uint32_t shared_window_high = 0;     // SR_SWINHI: high word of the generic shared window
  uint32_t shared_bytes = 0;           // %total_smem_size
  uint32_t dynamic_shared_bytes = 0;
  std::array<std::span<const uint8_t>, kConstantBanks> banks;
};

// What the warps of a CTA share. The memory part belongs to whoever derives from or holds this record.
struct CtaState {
  Dim3 cta;  // blockIdx
  uint32_t slot = 0;
  uint32_t sm = 0;
  uint32_t warps = 0;
  uint32_t rank = 0;           // in its cluster
  uint32_t cluster_ctas = 1;   // of its cluster
  uint32_t cluster_phases = 0;  // of the cluster barrier that are complete
  // BAR.RED: what has arrived at each barrier since its last release, and the result that B2R reads.
  struct Reduction {
    uint32_t true_threads = 0;
    uint32_t threads = 0;
    enum class Op : uint8_t { kPopc, kAnd, kOr } op = Op::kPopc;
  };
  std::array<Reduction, kCtaBarriers> reductions{};
  uint32_t barrier_result = 0;
};

// Barrier `id` of the CTA is complete: computes the result of BAR.RED and starts afresh. Called once per
// completion, before the warps go on.
void CompleteBarrier(CtaState& cta, uint8_t id);

}  // namespace heddle::emulator
