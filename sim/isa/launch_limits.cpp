#include "sim/isa/launch_limits.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace heddle::isa {
namespace {

constexpr uint32_t kKi = 1024;

constexpr std::array kLimits{
    LaunchLimits{75, 1024, 64 * kKi, 64 * kKi, 1},    LaunchLimits{80, 1024, 64 * kKi, 163 * kKi, 1},
    LaunchLimits{86, 1024, 64 * kKi, 99 * kKi, 1},    LaunchLimits{87, 1024, 64 * kKi, 163 * kKi, 1},
    LaunchLimits{89, 1024, 64 * kKi, 99 * kKi, 1},    LaunchLimits{90, 1024, 64 * kKi, 227 * kKi, 16},
    LaunchLimits{100, 1024, 64 * kKi, 227 * kKi, 16}, LaunchLimits{103, 1024, 64 * kKi, 227 * kKi, 16},
    LaunchLimits{120, 1024, 64 * kKi, 99 * kKi, 8},
};

// Registers are given to whole warps, eight a thread at a time.
uint64_t RegistersPerCta(const LaunchShape& shape) {
  return uint64_t{CeilDiv(shape.registers_per_thread, 8u) * 8} * kWarpLanes * shape.WarpsPerCta();
}

}  // namespace

const LaunchLimits* FindLaunchLimits(uint32_t sm_version) {
  const auto found = std::find_if(kLimits.begin(), kLimits.end(), [&](const LaunchLimits& limits) {
    return limits.sm_version == sm_version;
  });
  return found == kLimits.end() ? nullptr : &*found;
}

std::string ExceededLimit(uint32_t sm_version, const LaunchShape& shape) {
  const LaunchLimits* limits = FindLaunchLimits(sm_version);
  if (limits == nullptr) return {};
  const auto above = [&](uint64_t asked, uint64_t allowed, std::string_view what) {
    return asked <= allowed ? std::string()
                            : fmt::format("{} {}, sm_{} allows {}", asked, what, sm_version, allowed);
  };
  for (const std::string& exceeded :
       {above(shape.block.Count(), limits->max_threads_per_cta, "threads a CTA"),
        above(RegistersPerCta(shape), limits->max_registers_per_cta, "registers a CTA"),
        above(shape.shared_bytes_per_cta,
              limits->max_shared_bytes_per_cta + (sm_version < 80 ? 0 : kReservedSharedBytes),
              "bytes of shared memory a CTA with those reserved"),
        above(shape.cluster.Count(), limits->max_cluster_ctas, "CTAs a cluster")})
    if (!exceeded.empty()) return exceeded;
  return {};
}

}  // namespace heddle::isa
