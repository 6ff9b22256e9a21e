// How many CTAs an SM holds, and which warp slots and how much L1 they get.
#include <algorithm>

#include "sim/sm/machine.h"

namespace heddle::sm {
namespace {

template <typename T>
T RoundUp(T value, T unit) {
  return CeilDiv(value, unit) * unit;
}

uint64_t RegistersPerWarp(const config::Sm& sm, const isa::LaunchShape& shape) {
  const uint32_t registers = std::max(1u, shape.registers_per_thread) * kWarpLanes;
  return RoundUp(registers, std::max(1u, sm.register_allocation_unit));
}

uint64_t RegistersPerCta(const config::Sm& sm, const isa::LaunchShape& shape) {
  return RegistersPerWarp(sm, shape) * shape.WarpsPerCta();
}

uint64_t SharedPerCta(const config::Sm& sm, const isa::LaunchShape& shape) {
  return RoundUp(uint64_t{shape.shared_bytes_per_cta},
                 uint64_t{std::max(1u, sm.shared_memory.allocation_unit_bytes)});
}

uint64_t LargestCarveOut(const config::Sm& sm) {
  uint64_t largest = 0;
  for (const uint32_t capacity : sm.shared_memory.capacities_bytes)
    largest = std::max<uint64_t>(largest, capacity);
  return largest;
}

// Each sub-core has its share of the registers, in which whole warps must fit: warp_allocation_unit.
uint32_t WarpsByRegisters(const config::Sm& sm, const isa::LaunchShape& shape) {
  const auto warps = static_cast<uint32_t>(sm.registers / RegistersPerWarp(sm, shape));
  return warps / sm.warp_allocation_unit * sm.warp_allocation_unit;
}

uint32_t ResidentCtas(const config::Sm& sm, const isa::LaunchShape& shape) {
  const uint32_t warps = shape.WarpsPerCta();
  if (warps == 0 || warps > sm.max_warps || shape.ThreadsPerCta() > sm.max_threads_per_cta) return 0;
  if (shape.registers_per_thread > sm.max_registers_per_thread ||
      shape.barriers_per_cta > sm.barriers_per_cta)
    return 0;
  if (shape.shared_bytes_per_cta >
      sm.shared_memory.max_per_cta_bytes + sm.shared_memory.reserved_per_cta_bytes)
    return 0;
  uint64_t ctas = std::min(sm.max_ctas, sm.max_warps / warps);
  ctas = std::min<uint64_t>(ctas, WarpsByRegisters(sm, shape) / warps);
  const uint64_t shared = SharedPerCta(sm, shape);
  if (shared != 0) ctas = std::min(ctas, LargestCarveOut(sm) / shared);
  return static_cast<uint32_t>(ctas);
}

}  // namespace

uint32_t MaxResidentCtas(const config::Gpu& gpu, const isa::LaunchShape& shape) {
  return ResidentCtas(gpu.sm, shape);
}

bool Sm::Machine::CanHost(const isa::LaunchShape& shape) const {
  if (ctas_used == 0) return ResidentCtas(config, shape) > 0;
  return ctas_used < config.max_ctas && warps_used + shape.WarpsPerCta() <= config.max_warps &&
         registers_used + RegistersPerCta(config, shape) <=
             uint64_t{WarpsByRegisters(config, shape)} * RegistersPerWarp(config, shape) &&
         shared_used + SharedPerCta(config, shape) <= shared_capacity;
}

// The smallest carve-out that holds as many CTAs of this launch as the SM could; L1 gets the rest.
void Sm::Machine::ChooseCarveOut(const isa::LaunchShape& shape) {
  const uint64_t wanted = SharedPerCta(config, shape) * ResidentCtas(config, shape);
  uint64_t chosen = LargestCarveOut(config);
  for (const uint64_t capacity : config.shared_memory.capacities_bytes)
    if (capacity >= wanted) chosen = std::min(chosen, capacity);
  if (chosen == shared_capacity && l1_sized) return;
  l1_sized = true;
  shared_capacity = chosen;
  l1.Resize(config.l1.unified_size_bytes - std::min<uint64_t>(chosen, config.l1.unified_size_bytes));
}

void Sm::Machine::TakeResources(const isa::LaunchShape& shape) {
  warps_used += shape.WarpsPerCta();
  ++ctas_used;
  registers_used += RegistersPerCta(config, shape);
  shared_used += SharedPerCta(config, shape);
}

void Sm::Machine::ChooseSlots(Cta* cta, const isa::LaunchShape& shape) {
  const uint32_t count = shape.WarpsPerCta();
  cta->resident = true;
  cta->warps.clear();
  // The first run of free slots that is long enough; where the free slots lie scattered, the first free ones.
  uint32_t first = 0;
  for (uint32_t slot = 0, run = 0; slot < warp_in_use.size(); ++slot) {
    run = warp_in_use[slot] != 0 ? 0 : run + 1;
    if (run < count) continue;
    first = slot + 1 - count;
    break;
  }
  for (uint32_t slot = first; cta->warps.size() < count; ++slot) {
    if (warp_in_use[slot] != 0) continue;
    warp_in_use[slot] = 1;
    cta->warps.push_back(slot);
  }
}

void Sm::Machine::FreeResources(Cta* cta, const isa::LaunchShape& shape) {
  for (const uint32_t slot : cta->warps) warp_in_use[slot] = 0;
  cta->resident = false;
  warps_used -= shape.WarpsPerCta();
  --ctas_used;
  registers_used -= RegistersPerCta(config, shape);
  shared_used -= SharedPerCta(config, shape);
}

}  // namespace heddle::sm
