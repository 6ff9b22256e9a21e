#include "tools/analysis/roofline.h"

#include <algorithm>

#include "sim/memory/memory_request.h"
#include "tools/analysis/bounds.h"

namespace heddle::analysis {
namespace {

constexpr MemoryLevel kLevels[] = {MemoryLevel::kDram, MemoryLevel::kL2, MemoryLevel::kL1};

double SharedBytesPerCycle(const config::Gpu& gpu) {
  return double(gpu.sm.shared_memory.banks) * gpu.sm.shared_memory.bank_bytes;
}

// DRAM bytes of a measurement, by the names of the simulator's counters.
std::optional<double> DramBytesOf(const Measurement& measurement) {
  const auto read = measurement.metrics.find("dram_read_bytes");
  const auto written = measurement.metrics.find("dram_write_bytes");
  if (read == measurement.metrics.end() || written == measurement.metrics.end()) return std::nullopt;
  return read->second + written->second;
}

std::vector<MeasuredPoint> MeasuredPoints(const std::vector<Measurement>& measurements, double ops) {
  std::vector<MeasuredPoint> points;
  for (const Measurement& measurement : measurements) {
    const auto duration = measurement.metrics.find("duration_ps");
    if (duration == measurement.metrics.end() || duration->second <= 0) continue;
    MeasuredPoint point;
    point.source = measurement.gpu + ", " + measurement.source;
    point.ops_per_second = ops / (duration->second / 1e12);
    if (const std::optional<double> bytes = DramBytesOf(measurement); bytes && *bytes > 0)
      point.ops_per_byte = ops / *bytes;
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace

std::string_view Name(MemoryLevel level) {
  constexpr std::string_view kNames[] = {"DRAM", "L2", "L1/shared"};
  return kNames[static_cast<size_t>(level)];
}

double BytesOf(MemoryLevel level, const LaunchWork& work) {
  const stats::Counters& c = work.counters;
  switch (level) {
    case MemoryLevel::kDram:
      return static_cast<double>(c.dram_read_bytes + c.dram_write_bytes);
    case MemoryLevel::kL2:
      return static_cast<double>(c.l1tex_m_read_bytes + c.l1tex_m_write_bytes);
    case MemoryLevel::kL1:
      return static_cast<double>(c.l1tex_lookups_sector) * memory::kSectorBytes +
             static_cast<double>(c.smem_wavefronts) * memory::kLineBytes + work.matrix_shared_bytes;
  }
  return 0;
}

double PeakBytesPerCycle(MemoryLevel level, const config::Gpu& gpu) {
  switch (level) {
    case MemoryLevel::kDram:
      return PeakPerCycle(gpu, Resource::kDram);
    case MemoryLevel::kL2:
      return std::min(PeakPerCycle(gpu, Resource::kL2), PeakPerCycle(gpu, Resource::kNetworkRead));
    case MemoryLevel::kL1:
      return std::max<double>(gpu.sm.l1.data_bytes_per_cycle, SharedBytesPerCycle(gpu)) * gpu.sm.count;
  }
  return 0;
}

Roofline RooflineOf(const Machine& machine, const LaunchInfo& launch, const LaunchWork& work,
                    const std::vector<Measurement>& measurements) {
  Roofline roofline;
  const double clock_hz = machine.gpu.clocks.sm_mhz * 1e6;
  const double seconds = launch.Seconds();
  const auto cycles = static_cast<double>(work.cycles);
  for (const Arithmetic& kind : work.arithmetic)
    roofline.rates.push_back({kind.name, kind.ops_per_cycle * clock_hz});
  std::stable_sort(roofline.rates.begin(), roofline.rates.end(),
                   [](const Roof& a, const Roof& b) { return a.per_second > b.per_second; });
  double rate_per_cycle = 0;
  if (!work.arithmetic.empty()) {
    const Arithmetic& kind = work.arithmetic[0];
    roofline.kind = kind.name;
    roofline.ops = kind.ops;
    rate_per_cycle = kind.ops_per_cycle;
    if (seconds > 0) roofline.ops_per_second = kind.ops / seconds;
    if (cycles > 0) roofline.rate_percent = 100 * kind.ops / cycles / rate_per_cycle;
  }
  for (const MemoryLevel level : kLevels) {
    const double peak = PeakBytesPerCycle(level, machine.gpu);
    const double bytes = BytesOf(level, work);
    roofline.bandwidths.push_back({std::string(Name(level)), peak * clock_hz});
    if (bytes <= 0 || cycles <= 0 || seconds <= 0) continue;
    RooflinePoint point{level, bytes, roofline.ops / bytes, bytes / seconds, 0};
    // Percentages are by cycles, as Nsight Compute's: a board that lowers its clock does not change them.
    const double by_bandwidth = bytes / cycles / peak;
    const double least_cycles =
        std::max(bytes / peak, rate_per_cycle > 0 ? roofline.ops / rate_per_cycle : 0.0);
    point.roof_percent = 100 * std::max(by_bandwidth, least_cycles / cycles);
    roofline.points.push_back(point);
  }
  roofline.measured = MeasuredPoints(measurements, roofline.ops);
  return roofline;
}

}  // namespace heddle::analysis
