#include "sim/isa/launch_limits.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace heddle::isa {
namespace {

constexpr uint32_t kKi = 1024;

// sm_version, threads and registers a CTA, CTAs a cluster, warps and CTAs an SM, shared memory an SM
constexpr std::array kLimits{
    LaunchLimits{75, 1024, 64 * kKi, 1, 32, 16, 64 * kKi},
    LaunchLimits{80, 1024, 64 * kKi, 1, 64, 32, 164 * kKi},
    LaunchLimits{86, 1024, 64 * kKi, 1, 48, 16, 100 * kKi},
    LaunchLimits{87, 1024, 64 * kKi, 1, 48, 16, 164 * kKi},
    LaunchLimits{89, 1024, 64 * kKi, 1, 48, 24, 100 * kKi},
    LaunchLimits{90, 1024, 64 * kKi, 16, 64, 32, 228 * kKi},
    LaunchLimits{100, 1024, 64 * kKi, 16, 64, 32, 228 * kKi},
    LaunchLimits{103, 1024, 64 * kKi, 16, 64, 32, 228 * kKi},
    LaunchLimits{120, 1024, 64 * kKi, 8, 48, 32, 100 * kKi},
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

const LaunchLimits& NearestLaunchLimits(uint32_t sm_version) {
  const auto newer = std::find_if(kLimits.begin() + 1, kLimits.end(),
                                  [&](const LaunchLimits& limits) { return limits.sm_version > sm_version; });
  return *(newer - 1);
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
        above(shape.shared_bytes_per_cta, limits->shared_bytes_per_sm,
              "bytes of shared memory a CTA with those reserved"),
        above(shape.cluster.Count(), limits->max_cluster_ctas, "CTAs a cluster")})
    if (!exceeded.empty()) return exceeded;
  return {};
}

}  // namespace heddle::isa
