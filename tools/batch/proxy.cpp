#include "tools/batch/proxy.h"

#include <algorithm>

#include "sim/base/types.h"

namespace heddle::batch {
namespace {

namespace coefficient {
#define COEFFICIENT(name, value, unit, source) constexpr double name = value;
#include "tools/batch/coefficients.def"
#undef COEFFICIENT
}  // namespace coefficient

constexpr uint32_t kFirst5nmVersion = 89;
constexpr double kBitsPerByte = 8;
constexpr double kSquareMicrometre = 1e-6;  // in mm2

struct Process {
  double transistors_per_mm2;  // millions
  double bit_mm2;
};

Process ProcessOf(const config::Gpu& gpu) {
  if (gpu.sm_version >= kFirst5nmVersion)
    return {coefficient::density_5nm, coefficient::bit_cell_5nm * kSquareMicrometre};
  return {coefficient::density_7nm, coefficient::bit_cell_7nm * kSquareMicrometre};
}

double Units(const config::Gpu& gpu, const config::PipeTiming& pipe) {
  const double pipes = pipe.shared_by_sub_cores ? 1 : gpu.sm.sub_core_count;
  return pipes * kWarpLanes / pipe.initiation_interval_cycles;
}

// Multiply-adds of 16-bit inputs that the SM's tensor cores do in a cycle.
double TensorUnits(const config::Gpu& gpu) {
  double best = 0;
  for (const config::TensorTiming& timing : gpu.sm.tensor) {
    const bool half = timing.type.empty() || timing.type == "f16" || timing.type == "bf16";
    if (!half || timing.accumulator != "f32" || timing.sparse) continue;
    const double rate = double(timing.m) * timing.n * timing.k / timing.initiation_interval_cycles;
    if (timing.op == "HMMA") best = std::max(best, rate * gpu.sm.sub_core_count);
    if (timing.op == "HGMMA") best = std::max(best, rate);  // a warpgroup's is on all sub-cores
  }
  return best;
}

double SmMm2(const config::Gpu& gpu) {
  const Process process = ProcessOf(gpu);
  const config::Pipes& pipes = gpu.sm.pipes;
  double transistors = coefficient::crossbar_per_sm;
  transistors += coefficient::control_per_lane * kWarpLanes * gpu.sm.sub_core_count;
  transistors += coefficient::per_register * gpu.sm.registers;
  transistors += coefficient::fp32_unit * Units(gpu, pipes.fma);
  transistors += coefficient::fp64_unit * Units(gpu, pipes.fp64);
  transistors += coefficient::int32_unit * Units(gpu, pipes.fma_heavy);
  transistors += coefficient::fp16_unit * TensorUnits(gpu);
  const double l1 =
      gpu.sm.l1.unified_size_bytes * kBitsPerByte * process.bit_mm2 / coefficient::l1_array_efficiency;
  return transistors / process.transistors_per_mm2 + l1;
}

struct Memory {
  double link_gb_s;
  double phy_mm2;
  double controller;  // millions of transistors
  double picojoules_per_bit;
};

Memory MemoryOf(config::DramKind kind) {
  using config::DramKind;
  namespace c = coefficient;
  switch (kind) {
    case DramKind::kHbm2:
      return {c::hbm2_stack, c::hbm_phy, c::hbm_controller, c::hbm_energy};
    case DramKind::kHbm2e:
      return {c::hbm2e_stack, c::hbm_phy, c::hbm_controller, c::hbm_energy};
    case DramKind::kHbm3:
      return {c::hbm3_stack, c::hbm_phy, c::hbm_controller, c::hbm_energy};
    case DramKind::kHbm3e:
      return {c::hbm3e_stack, c::hbm_phy, c::hbm_controller, c::hbm_energy};
    case DramKind::kGddr6:
      return {c::gddr6_chip, c::gddr_phy, c::gddr_controller, c::gddr_energy};
    case DramKind::kGddr6x:
      return {c::gddr6x_chip, c::gddr_phy, c::gddr_controller, c::gddr_energy};
    case DramKind::kGddr7:
      break;
  }
  return {c::gddr7_chip, c::gddr_phy, c::gddr_controller, c::gddr_energy};
}

double DramWatts(const config::Gpu& gpu) {
  return gpu.dram.bandwidth_gb_s * 1e9 * kBitsPerByte * MemoryOf(gpu.dram.kind).picojoules_per_bit * 1e-12;
}

}  // namespace

Area AreaOf(const config::Gpu& gpu) {
  const Process process = ProcessOf(gpu);
  const double per_mm2 = process.transistors_per_mm2;
  Area area;
  area.sms_mm2 = gpu.sm.count * SmMm2(gpu);
  area.l2_mm2 = static_cast<double>(gpu.l2.size_bytes) * kBitsPerByte * process.bit_mm2 /
                coefficient::l2_array_efficiency;
  const Memory memory = MemoryOf(gpu.dram.kind);
  area.dram_mm2 = gpu.dram.bandwidth_gb_s / memory.link_gb_s * (memory.phy_mm2 + memory.controller / per_mm2);
  area.links_mm2 = coefficient::pcie_phy + coefficient::pcie_controller / per_mm2;
  if (gpu.nvlink) {
    area.links_mm2 +=
        gpu.nvlink->links * (coefficient::nvlink_phy + coefficient::nvlink_controller / per_mm2);
  }
  return area;
}

double PowerOf(const config::Gpu& gpu, const config::Gpu& base) {
  const auto chip = [](const config::Gpu& machine) {
    const Area area = AreaOf(machine);
    return area.sms_mm2 + area.l2_mm2;
  };
  const double chip_watts = std::max(0.0, base.board.power_limit_w - DramWatts(base));
  const double fixed = coefficient::static_share;
  const double clock = gpu.clocks.sm_mhz / base.clocks.sm_mhz;
  return DramWatts(gpu) + chip_watts * chip(gpu) / chip(base) * (fixed + (1 - fixed) * clock);
}

}  // namespace heddle::batch
