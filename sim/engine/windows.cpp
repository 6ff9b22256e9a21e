#include "sim/engine/windows.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace heddle::engine {

Cycle ShortestReply(const config::Gpu& gpu) {
  return Cycle{gpu.interconnect.request_latency_cycles} + gpu.l2.hit_latency_cycles +
         gpu.interconnect.reply_latency_cycles;
}

Cycle WindowLength(const config::Gpu& gpu, double fraction) {
  HEDDLE_CHECK(fraction > 0 && fraction <= 1, "engine", 0, "window fraction");
  const double cycles = static_cast<double>(ShortestReply(gpu)) * fraction;
  return std::max<Cycle>(1, static_cast<Cycle>(std::floor(cycles)));
}

Cycle ClusterWindowLength(const config::Gpu& gpu, double fraction) {
  const Cycle whole = WindowLength(gpu, fraction);
  if (!gpu.cluster_network) return whole;
  const double cycles = static_cast<double>(gpu.cluster_network->latency_cycles) * fraction;
  return std::max<Cycle>(1, std::min(whole, static_cast<Cycle>(std::floor(cycles))));
}

}  // namespace heddle::engine
