// What `heddle run --timeline` left in a results database, read back within a size limit.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/result.h"
#include "sim/stats/timeline.h"
#include "tools/analysis/results_reader.h"

namespace heddle::timeline {

// Positions in stats::kSampledCounters.
enum : size_t { kInstructions, kTensor, kRead, kWrite, kL2, kDramRead, kDramWrite };
static_assert(kDramWrite + 1 == stats::kSampledCounters.size());

// What is read so that everything fits.
struct Sizes {
  uint64_t ctas = 0;           // that launches with samples had, in all
  uint32_t sm_stride = 1;      // CTAs of SMs whose number is a multiple; 0: none
  uint32_t sample_stride = 1;  // so many samples become one
};

// kUsage: not even the launches fit into `most_bytes`.
Result<Sizes> ChooseSizes(analysis::ResultsReader* reader, uint64_t most_bytes);

struct Cta {
  int64_t launch_id = 0;
  uint32_t sm = 0;
  uint64_t number = 0;
  uint64_t start = 0, end = 0;  // cycles
};

struct LaunchSamples {
  std::vector<Cta> ctas;
  std::vector<stats::CounterSample> counters;  // empty: the launch was run without --timeline
  bool complete = false;                       // all of the launch's CTAs are there
};

class SampleReader {
 public:
  static Result<SampleReader> Open(analysis::ResultsReader* reader, const Sizes& sizes);
  // kTrace: rows that end before they start, or lie outside the launch.
  Result<LaunchSamples> Read(const analysis::LaunchInfo& launch);

 private:
  SampleReader(std::string path, const Sizes& sizes) : path_(std::move(path)), sizes_(sizes) {}
  Status ReadCtas(const analysis::LaunchInfo& launch, LaunchSamples* out);
  Status ReadCounters(const analysis::LaunchInfo& launch, LaunchSamples* out);

  std::string path_;
  Sizes sizes_;
  std::optional<sqlite::Statement> ctas_;  // none: the database has no such tables yet
  std::optional<sqlite::Statement> counters_;
};

// Rates of launches that may overlap, added up.
struct RateChange {
  uint64_t cycle = 0;
  std::array<double, stats::kSampledCounters.size()> per_cycle{};  // from now on
};

class CounterSums {
 public:
  // Samples of one launch; the first one begins at `start`.
  void Add(const std::vector<stats::CounterSample>& samples, uint64_t start);
  std::vector<RateChange> Changes() const;  // by cycle; 0 after the last

 private:
  struct Step {
    uint64_t cycle = 0;
    bool begins = false;
    size_t rate = 0;  // in rates_
  };
  std::vector<Step> steps_;
  std::vector<std::array<double, stats::kSampledCounters.size()>> rates_;
};

}  // namespace heddle::timeline
