#include "tools/timeline/tracks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "tools/analysis/bounds.h"
#include "tools/timeline/samples.h"

namespace heddle::timeline {
namespace {

using analysis::LaunchInfo;

// Slices that may overlap, dealt to lanes in which they do not.
class Lanes {
 public:
  // `begin` does not fall from call to call.
  uint32_t Place(uint64_t begin, uint64_t end) {
    for (uint32_t lane = 0; lane < free_at_.size(); ++lane) {
      if (free_at_[lane] > begin) continue;
      free_at_[lane] = end;
      return lane;
    }
    free_at_.push_back(end);
    return static_cast<uint32_t>(free_at_.size()) - 1;
  }

 private:
  std::vector<uint64_t> free_at_;
};

// One trace on one machine in one run: its launches share a time axis.
struct Process {
  const analysis::Machine* machine = nullptr;
  std::vector<const LaunchInfo*> launches;  // by start
};

class Builder {
 public:
  Builder(analysis::ResultsReader* reader, Tracks* out) : reader_(reader), out_(*out) {}

  Status Build(uint64_t most_bytes) {
    HEDDLE_ASSIGN_OR_RETURN(sizes_, ChooseSizes(reader_, most_bytes));
    out_.ctas = sizes_.ctas;
    out_.sample_stride = sizes_.sample_stride;
    std::map<std::tuple<int64_t, int64_t, std::string>, Process> processes;
    for (const LaunchInfo& launch : reader_->launches())
      processes[{launch.run_id, launch.config_id, launch.trace_digest}].launches.push_back(&launch);
    for (auto& [key, process] : processes) {
      HEDDLE_ASSIGN_OR_RETURN(process.machine, reader_->MachineOf(std::get<1>(key)));
      std::stable_sort(
          process.launches.begin(), process.launches.end(),
          [](const LaunchInfo* a, const LaunchInfo* b) { return a->start_cycle < b->start_cycle; });
      HEDDLE_RETURN_IF_ERROR(AddProcess(process));
    }
    std::stable_sort(out_.events.begin(), out_.events.end(),
                     [](const Event& a, const Event& b) { return a.at_ns < b.at_ns; });
    return Ok();
  }

 private:
  Status AddProcess(const Process& process) {
    const LaunchInfo& first = *process.launches.front();
    ns_per_cycle_ = 1e3 / process.machine->gpu.clocks.sm_mhz;
    const uint32_t id =
        AddTrack(Track::Kind::kProcess, 0,
                 fmt::format("{}: {} (run {})", process.machine->name, first.trace_name, first.run_id));
    out_.tracks[id].parent = id;
    streams_.clear();
    sms_.clear();
    CounterSums sums;
    HEDDLE_ASSIGN_OR_RETURN(SampleReader samples, SampleReader::Open(reader_, sizes_));
    for (const LaunchInfo* launch : process.launches) {
      HEDDLE_ASSIGN_OR_RETURN(const LaunchSamples of_launch, samples.Read(*launch));
      if (of_launch.counters.empty()) ++out_.launches_without_samples;
      AddLaunch(id, *launch, of_launch);
      sums.Add(of_launch.counters, launch->start_cycle);
      ctas_.insert(ctas_.end(), of_launch.ctas.begin(), of_launch.ctas.end());
    }
    AddCounters(id, *process.machine, sums);
    AddCtas(id);
    return Ok();
  }

  void AddLaunch(uint32_t process, const LaunchInfo& launch, const LaunchSamples& samples) {
    auto [group, is_new] = streams_.try_emplace(launch.stream);
    const uint64_t begin = Ns(launch.start_cycle), end = Ns(launch.end_cycle);
    const uint32_t lane = group->second.lanes.Place(begin, end);
    if (lane == group->second.tracks.size()) {
      // Launches that overlap in a stream: programmatic dependent ones.
      group->second.tracks.push_back(AddTrack(Track::Kind::kSlices, process,
                                              lane == 0
                                                  ? fmt::format("stream {}", launch.stream)
                                                  : fmt::format("stream {} ({})", launch.stream, lane + 1)));
    }
    const uint32_t track = group->second.tracks[lane];
    const uint32_t name = NameOf(reader_->KernelName(launch.kernel_id));
    Push(begin, track, Event::Kind::kBeginLaunch, name, static_cast<double>(out_.launches.size()));
    out_.launches.push_back({launch.launch_id, Text(launch.grid), Text(launch.block), launch.Cycles(),
                             static_cast<double>(launch.duration_ps) / 1e6});
    if (samples.complete && !samples.ctas.empty()) AddPhases(track, launch, samples);
    Push(end, track, Event::Kind::kEnd);
    cta_name_[launch.launch_id] = name;
  }

  void AddPhases(uint32_t track, const LaunchInfo& launch, const LaunchSamples& samples) {
    uint64_t first = launch.end_cycle, last = launch.start_cycle;
    for (const Cta& cta : samples.ctas) {
      first = std::min(first, cta.start);
      last = std::max(last, cta.end);
    }
    const std::array<std::tuple<const char*, uint64_t, uint64_t>, 3> phases = {
        {{"launch overhead", launch.start_cycle, first},
         {"CTAs", first, last},
         {"drain", last, launch.end_cycle}}};
    for (const auto& [name, begin, end] : phases) {
      if (Ns(begin) == Ns(end)) continue;
      Push(Ns(begin), track, Event::Kind::kBegin, NameOf(name));
      Push(Ns(end), track, Event::Kind::kEnd);
    }
  }

  void AddCounters(uint32_t process, const analysis::Machine& machine, const CounterSums& sums) {
    const std::vector<RateChange> changes = sums.Changes();
    if (changes.empty()) return;
    const config::Gpu& gpu = machine.gpu;
    const auto percent_of = [&](analysis::Resource resource) {
      return 100 / analysis::PeakPerCycle(gpu, resource);
    };
    struct Counter {
      const char* name;
      const char* unit;
      std::vector<size_t> parts;  // of stats::kSampledCounters
      double scale;
    };
    const std::vector<Counter> counters = {
        {"DRAM", "%", {kDramRead, kDramWrite}, percent_of(analysis::Resource::kDram)},
        {"L2", "%", {kL2}, percent_of(analysis::Resource::kL2)},
        {"L2 to SMs", "%", {kRead}, percent_of(analysis::Resource::kNetworkRead)},
        {"SMs to L2", "%", {kWrite}, percent_of(analysis::Resource::kNetworkWrite)},
        {"tensor pipes", "%", {kTensor}, percent_of(analysis::Resource::kTensor)},
        {"instructions", "per cycle and SM", {kInstructions}, 1.0 / gpu.sm.count},
    };
    for (const Counter& counter : counters) {
      const uint32_t track = AddTrack(Track::Kind::kCounter, process, counter.name);
      out_.tracks[track].unit = counter.unit;
      double last = -1;
      for (const RateChange& change : changes) {
        double value = 0;
        for (const size_t part : counter.parts) value += change.per_cycle[part] * counter.scale;
        value = std::round(value * 1e4) / 1e4;
        if (value == last) continue;
        last = value;
        Push(Ns(change.cycle), track, Event::Kind::kValue, 0, value);
      }
    }
  }

  void AddCtas(uint32_t process) {
    std::stable_sort(ctas_.begin(), ctas_.end(), [](const Cta& a, const Cta& b) {
      return std::tuple(a.sm, a.start, a.end, a.number) < std::tuple(b.sm, b.start, b.end, b.number);
    });
    uint32_t all = 0;
    for (const Cta& cta : ctas_) {
      if (all == 0) all = AddTrack(Track::Kind::kGroup, process, "SMs");
      auto [slots, is_new] = sms_.try_emplace(cta.sm);
      if (is_new)
        slots->second.group = AddTrack(Track::Kind::kGroup, all, fmt::format("SM {}", cta.sm), cta.sm);
      const uint64_t begin = Ns(cta.start), end = Ns(cta.end);
      const uint32_t lane = slots->second.lanes.Place(begin, end);
      if (lane == slots->second.tracks.size())
        slots->second.tracks.push_back(
            AddTrack(Track::Kind::kSlices, slots->second.group, fmt::format("slot {}", lane), lane));
      const uint32_t track = slots->second.tracks[lane];
      Push(begin, track, Event::Kind::kBeginCta, cta_name_.at(cta.launch_id),
           static_cast<double>(cta.number));
      Push(end, track, Event::Kind::kEnd);
    }
    out_.ctas_shown += ctas_.size();
    ctas_.clear();
  }

  static std::string Text(const Dim3& size) { return fmt::format("{}x{}x{}", size.x, size.y, size.z); }

  uint64_t Ns(uint64_t cycle) const {
    return static_cast<uint64_t>(std::llround(static_cast<double>(cycle) * ns_per_cycle_));
  }

  uint32_t AddTrack(Track::Kind kind, uint32_t parent, std::string name, uint32_t rank = ~0U) {
    const auto index = static_cast<uint32_t>(out_.tracks.size());
    out_.tracks.push_back({kind, parent, rank == ~0U ? index : rank, std::move(name), ""});
    return index;
  }

  uint32_t NameOf(const std::string& name) {
    const auto [it, is_new] = name_ids_.try_emplace(name, static_cast<uint32_t>(out_.names.size()));
    if (is_new) out_.names.push_back(name);
    return it->second;
  }

  void Push(uint64_t at_ns, uint32_t track, Event::Kind kind, uint32_t name = 0, double value = 0) {
    out_.events.push_back({at_ns, track, name, kind, value});
  }

  struct Laned {
    Lanes lanes;
    uint32_t group = 0;
    std::vector<uint32_t> tracks;  // by lane
  };

  analysis::ResultsReader* reader_;
  Tracks& out_;
  Sizes sizes_;
  double ns_per_cycle_ = 1;
  std::map<std::string, uint32_t> name_ids_;
  std::map<int64_t, uint32_t> cta_name_;  // by launch
  // Of the current process.
  std::map<uint32_t, Laned> streams_;
  std::map<uint32_t, Laned> sms_;
  std::vector<Cta> ctas_;
};

}  // namespace

Result<Tracks> BuildTracks(analysis::ResultsReader* reader, uint64_t most_bytes) {
  Tracks tracks;
  HEDDLE_RETURN_IF_ERROR(Builder(reader, &tracks).Build(most_bytes));
  return tracks;
}

}  // namespace heddle::timeline
