#include "tools/replay/work_probe.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <vector>

#include "frontend/emulator/functional_runner.h"
#include "frontend/emulator/launch_program.h"

namespace heddle::replay {
namespace {

constexpr uint64_t kProbes = 24;
constexpr uint64_t kTwins = 12;        // of each period that is tried
constexpr double kEqual = 0.01;        // of the warp instructions of a CTA
constexpr uint64_t kLeastPeriods = 8;  // in a grid
constexpr uint64_t kMostInstructions = uint64_t{1} << 25;

using Work = std::map<uint64_t, uint64_t>;  // warp instructions by linear index

// Evenly spread whatever their number, and in step with no period: multiples of the golden section.
uint64_t Spread(uint64_t i, uint64_t size) {
  const double place = static_cast<double>(i) * 0.6180339887498949;
  return std::min(size - 1, static_cast<uint64_t>((place - std::floor(place)) * static_cast<double>(size)));
}

Result<Work> Count(const emulator::EmulatedLaunch& launch, const emulator::DeviceMemory& memory,
                   std::vector<uint64_t> ctas) {
  std::sort(ctas.begin(), ctas.end());
  ctas.erase(std::unique(ctas.begin(), ctas.end()), ctas.end());
  emulator::LaunchDescription description = launch.description();
  const std::unique_ptr<emulator::DeviceMemory> clone = memory.CloneOnTouch();
  description.memory = clone.get();
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<emulator::EmulatedLaunch> run,
                          emulator::EmulatedLaunch::Create(std::move(description)));
  emulator::RunnerOptions options;
  options.sms = launch.description().machine.sm_count;
  options.by_cta = true;
  options.only_ctas = std::move(ctas);
  options.max_warp_instructions = kMostInstructions;
  HEDDLE_ASSIGN_OR_RETURN(emulator::RunSummary summary, emulator::RunFunctionally(*run, options));
  return std::move(summary.cta_warp_instructions);
}

bool AreEqual(uint64_t a, uint64_t b) {
  const uint64_t more = std::max(a, b);
  return static_cast<double>(more - std::min(a, b)) <= kEqual * static_cast<double>(more);
}

// Each CTA against another one that many periods away.
Result<bool> RepeatsWith(const emulator::EmulatedLaunch& launch, const emulator::DeviceMemory& memory,
                         uint64_t period, const Work& known) {
  const uint64_t periods = launch.shape().grid.Count() / period;
  std::vector<uint64_t> twins;
  std::vector<uint64_t> of;
  for (const auto& [cta, work] : known) {
    if (twins.size() == kTwins) break;
    of.push_back(cta);
    twins.push_back(cta % period + Spread(twins.size() + 1, periods) * period);
  }
  HEDDLE_ASSIGN_OR_RETURN(const Work work, Count(launch, memory, twins));
  for (size_t i = 0; i < twins.size(); ++i)
    if (!AreEqual(work.at(twins[i]), known.at(of[i]))) return false;
  return true;
}

}  // namespace

Result<gpu::SamplingRequest> ProbeWork(const emulator::EmulatedLaunch& launch,
                                       const emulator::DeviceMemory& memory) {
  const Dim3& grid = launch.shape().grid;
  std::vector<uint64_t> probes;
  for (uint64_t i = 1; i <= kProbes; ++i) probes.push_back(Spread(i, grid.Count()));
  const Result<Work> known = Count(launch, memory, probes);
  if (!known.ok()) return gpu::SamplingRequest{1, "its CTAs could not be run alone to compare their work"};
  const uint64_t first = known->begin()->second;
  const bool equal = std::all_of(known->begin(), known->end(),
                                 [&](const auto& item) { return AreEqual(item.second, first); });
  if (equal) return gpu::SamplingRequest{1, ""};
  for (const uint64_t period : {uint64_t{grid.x}, uint64_t{grid.x} * grid.y}) {
    if (period == 1 || period * kLeastPeriods > grid.Count()) continue;
    HEDDLE_ASSIGN_OR_RETURN(const bool repeats, RepeatsWith(launch, memory, period, *known));
    if (repeats) return gpu::SamplingRequest{period, ""};
  }
  return gpu::SamplingRequest{1, "its CTAs do different amounts of work"};
}

}  // namespace heddle::replay
