// The timeline of a results database: tracks and what happens on them, in the terms of trace viewers.
//
// Each trace that ran on a machine is a process: its time begins at 0, at the machine's clock. Under it:
//   streams     a slice a launch, in it its phases where all CTAs are known: launch overhead, CTAs, drain
//   counters    DRAM, L2, network, tensor pipes in percent of what the machine can do, and instructions per cycle and SM
//   SMs         a slice a CTA; CTAs that share an SM lie on slots
// CTAs and counters are there for launches that were run with `heddle run --timeline`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "tools/analysis/results_reader.h"

namespace heddle::timeline {

struct Track {
  enum class Kind : uint8_t { kProcess, kGroup, kSlices, kCounter };
  Kind kind = Kind::kSlices;
  uint32_t parent = 0;  // index of the track; of processes their own
  uint32_t rank = 0;    // among the tracks of its parent
  std::string name;
  std::string unit;  // of counters
};

struct Event {
  enum class Kind : uint8_t { kBegin, kBeginLaunch, kBeginCta, kEnd, kValue };
  uint64_t at_ns = 0;
  uint32_t track = 0;
  uint32_t name = 0;  // index; of slices that begin
  Kind kind{};
  double value =
      0;  // kValue: the counter's, from now on. kBeginLaunch: index in `launches`. kBeginCta: number of the CTA
};

struct LaunchText {
  int64_t launch_id = 0;
  std::string grid;
  std::string block;
  uint64_t cycles = 0;
  double duration_us = 0;  // at the clock that the board sustains
};

struct Tracks {
  std::vector<Track> tracks;  // a parent before its children
  std::vector<std::string> names;
  std::vector<LaunchText> launches;
  std::vector<Event> events;  // by time; where times are equal, in an order in which slices nest
  uint64_t launches_without_samples = 0;
  uint64_t ctas = 0;  // that the launches with samples had
  uint64_t ctas_shown = 0;
  uint32_t sample_stride = 1;  // counters: so many samples became one
};

// About how many bytes an event takes in a file, everything included. A test holds them against what is written.
inline constexpr uint64_t kBytesOfLaunch = 420;
inline constexpr uint64_t kBytesOfCta = 80;
inline constexpr uint64_t kBytesOfSample = 190;  // of all counters

// Of the launches that the reader selects. What does not fit in `most_bytes` is left out: first CTAs, of every other SM,
// then every other sample. kUsage: not even the launches fit. kTrace: the database's rows do not fit together.
Result<Tracks> BuildTracks(analysis::ResultsReader* reader, uint64_t most_bytes);

}  // namespace heddle::timeline
