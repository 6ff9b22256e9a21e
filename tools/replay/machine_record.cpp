#include "tools/replay/machine_record.h"

#include <algorithm>
#include <cmath>

#include "sim/config/load.h"

namespace heddle::replay {
namespace {

constexpr double kOpsPerMultiplyAdd = 2;

double TensorOpsPerSecond(const config::Gpu& gpu) {
  double best_per_cycle = 0;
  for (const config::TensorTiming& timing : gpu.sm.tensor) {
    const bool half = timing.type.empty() || timing.type == "f16" || timing.type == "bf16";
    if (timing.op != "HMMA" || !half || timing.accumulator != "f32" || timing.sparse) continue;
    best_per_cycle =
        std::max(best_per_cycle, double(timing.m) * timing.n * timing.k / timing.initiation_interval_cycles);
  }
  return kOpsPerMultiplyAdd * best_per_cycle * gpu.sm.sub_core_count * gpu.sm.count * gpu.clocks.sm_mhz * 1e6;
}

double FmaOpsPerSecond(const config::Gpu& gpu) {
  return kOpsPerMultiplyAdd * kWarpLanes / gpu.sm.pipes.fma.initiation_interval_cycles *
         gpu.sm.sub_core_count * gpu.sm.count * gpu.clocks.sm_mhz * 1e6;
}

uint64_t Rounded(double value) { return static_cast<uint64_t>(std::llround(value)); }

}  // namespace

MachineRecord RecordMachine(config::Gpu gpu) {
  MachineRecord machine;
  machine.record.digest = config::Digest(gpu);
  machine.record.name = gpu.name;
  machine.record.text = config::CanonicalText(gpu);
  machine.record.sm_count = gpu.sm.count;
  machine.record.sm_clock_hz = Rounded(gpu.clocks.sm_mhz * 1e6);
  machine.record.dram_bytes_per_second = Rounded(gpu.dram.bandwidth_gb_s * 1e9);
  machine.record.tensor_ops_per_second = Rounded(TensorOpsPerSecond(gpu));
  machine.record.fma_ops_per_second = Rounded(FmaOpsPerSecond(gpu));
  machine.dependence = config::Name(gpu.dependence);
  machine.gpu = std::move(gpu);
  return machine;
}

}  // namespace heddle::replay
