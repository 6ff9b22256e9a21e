// The hierarchical roofline of Williams et al. (CACM 2009) and Yang et al. (arXiv 2009.05257): one point a memory level, at
// operations per byte of that level; roofs are the levels' bandwidths and the pipes' rates.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/analysis/results_reader.h"
#include "tools/analysis/work.h"

namespace heddle::analysis {

enum class MemoryLevel : uint8_t { kDram, kL2, kL1 };
inline constexpr int kMemoryLevels = 3;
std::string_view Name(MemoryLevel level);  // "DRAM", "L2", "L1/shared"

struct Roof {
  std::string name;       // "bf16 tensor", "DRAM", ...
  double per_second = 0;  // operations, or bytes
};

struct RooflinePoint {
  MemoryLevel level{};
  double bytes = 0;
  double ops_per_byte = 0;
  double bytes_per_second = 0;
  double roof_percent = 0;  // of the roof at this intensity: the lesser of bandwidth and rate
};

struct MeasuredPoint {
  std::string source;                  // of the hardware_run, with its GPU
  double ops_per_second = 0;           // the simulated operations over the measured time
  std::optional<double> ops_per_byte;  // of DRAM, where its bytes were measured
};

struct Roofline {
  std::string kind;  // of the arithmetic that the point stands for: that nearest to its ceiling
  double ops = 0;
  double ops_per_second = 0;
  double rate_percent = 0;            // of that kind's ceiling
  std::vector<Roof> rates;            // ceilings of the kinds that the launch used, highest first
  std::vector<Roof> bandwidths;       // by MemoryLevel
  std::vector<RooflinePoint> points;  // of levels that moved anything
  std::vector<MeasuredPoint> measured;
};

// Ceilings are those of the machine's clock; achieved rates are over the launch's time, at the clock that its board
// sustains, which may be lower.
Roofline RooflineOf(const Machine& machine, const LaunchInfo& launch, const LaunchWork& work,
                    const std::vector<Measurement>& measurements);

// Bytes that a level moved, and what it can move in a cycle.
double BytesOf(MemoryLevel level, const LaunchWork& work);
double PeakBytesPerCycle(MemoryLevel level, const config::Gpu& gpu);

}  // namespace heddle::analysis
