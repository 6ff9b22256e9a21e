// The sections of Nsight Compute's details page, with its names: what a simulated launch would show there. docs/analysis.md
// has the formula of each number.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/analysis/results_reader.h"
#include "tools/analysis/work.h"

namespace heddle::analysis {

struct Metric {
  std::string label;  // as Nsight Compute prints it
  std::string name;   // its metric, where there is one: "sm__throughput.avg.pct_of_peak_sustained_elapsed"
  std::string unit;   // "%", "cycle", "byte/s", "inst/cycle", ...; empty: a number or a word
  double value = 0;
  std::string text;                // instead of a value
  std::optional<double> measured;  // by a measurement of the same launch
};

struct Section {
  std::string title;  // "GPU Speed Of Light Throughput", ...
  std::vector<Metric> metrics;
};

// GPU Speed Of Light Throughput, Compute Workload Analysis, Memory Workload Analysis, Scheduler Statistics, Warp State
// Statistics, Launch Statistics, Occupancy.
std::vector<Section> SpeedOfLight(const Machine& machine, const Kernel& kernel, const LaunchInfo& launch,
                                  const LaunchCounts& counts, const LaunchWork& work,
                                  const std::vector<Measurement>& measurements);

// CTAs of one SM by what limits them; ~0u where it does not.
struct OccupancyLimits {
  uint32_t ctas = 0;  // the least
  uint32_t by_sm = 0;
  uint32_t by_registers = 0;
  uint32_t by_shared_memory = 0;
  uint32_t by_warps = 0;
};
OccupancyLimits OccupancyOf(const config::Gpu& gpu, const Dim3& block, uint32_t registers_per_thread,
                            uint32_t shared_bytes_per_cta);

}  // namespace heddle::analysis
