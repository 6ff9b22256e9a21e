#include "tools/timeline/samples.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/results/results.h"
#include "tools/timeline/tracks.h"

namespace heddle::timeline {
namespace {

using analysis::LaunchInfo;

constexpr std::string_view kSelected = "SELECT launch_id FROM temp.timeline_launch";

// The reader's launches as a table that queries can join.
Status NoteSelection(analysis::ResultsReader* reader) {
  sqlite::Database& database = reader->database();
  HEDDLE_RETURN_IF_ERROR(
      database.Execute("CREATE TEMP TABLE IF NOT EXISTS timeline_launch (launch_id INTEGER PRIMARY KEY)"));
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement insert,
                          database.Prepare("INSERT OR IGNORE INTO temp.timeline_launch VALUES (?)"));
  // A plain BEGIN: the database itself is read only.
  HEDDLE_RETURN_IF_ERROR(database.Execute("BEGIN"));
  for (const LaunchInfo& launch : reader->launches())
    HEDDLE_RETURN_IF_ERROR(insert.Bind(launch.launch_id).Run());
  return database.Execute("COMMIT");
}

Result<bool> HasSamples(sqlite::Database* database) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t version, database->QueryInteger("PRAGMA user_version"));
  if (version < results::kTimelineVersion) return false;
  HEDDLE_ASSIGN_OR_RETURN(const int64_t any,
                          database->QueryInteger("SELECT EXISTS (SELECT 1 FROM counter_sample)"));
  return any != 0;
}

}  // namespace

Result<Sizes> ChooseSizes(analysis::ResultsReader* reader, uint64_t most_bytes) {
  const uint64_t launches = reader->launches().size();
  if (launches * kBytesOfLaunch > most_bytes) {
    return Error{ExitCode::kUsage, reader->path(),
                 fmt::format("{} launches do not fit in {} bytes", launches, most_bytes),
                 "choose some by --kernel, --machine or --run-id, or raise --max-mb"};
  }
  Sizes sizes;
  HEDDLE_ASSIGN_OR_RETURN(const bool has_samples, HasSamples(&reader->database()));
  if (!has_samples) return sizes;
  HEDDLE_RETURN_IF_ERROR(NoteSelection(reader));
  sqlite::Database& database = reader->database();
  HEDDLE_ASSIGN_OR_RETURN(
      const int64_t ctas,
      database.QueryInteger(fmt::format(
          "SELECT COALESCE(SUM(grid_x * grid_y * grid_z), 0) FROM launch WHERE launch_id IN ({}) AND "
          "launch_id IN (SELECT DISTINCT launch_id FROM counter_sample)",
          kSelected)));
  sizes.ctas = static_cast<uint64_t>(ctas);
  HEDDLE_ASSIGN_OR_RETURN(const int64_t samples, database.QueryInteger(fmt::format(
                                                     "SELECT COUNT(*) FROM (SELECT DISTINCT launch_id, cycle "
                                                     "FROM counter_sample WHERE launch_id IN ({}))",
                                                     kSelected)));
  const uint64_t left = most_bytes - launches * kBytesOfLaunch;
  while (static_cast<uint64_t>(samples) / sizes.sample_stride * kBytesOfSample > left)
    sizes.sample_stride *= 2;
  const uint64_t for_ctas = left - static_cast<uint64_t>(samples) / sizes.sample_stride * kBytesOfSample;
  constexpr uint32_t kMostSms = 4096;
  for (; sizes.sm_stride <= kMostSms; sizes.sm_stride *= 2) {
    HEDDLE_ASSIGN_OR_RETURN(
        const int64_t rows,
        database.QueryInteger(fmt::format("SELECT COUNT(*) FROM cta WHERE launch_id IN ({}) AND sm % {} = 0",
                                          kSelected, sizes.sm_stride)));
    if (static_cast<uint64_t>(rows) * kBytesOfCta <= for_ctas) return sizes;
  }
  sizes.sm_stride = 0;
  return sizes;
}

Result<SampleReader> SampleReader::Open(analysis::ResultsReader* reader, const Sizes& sizes) {
  SampleReader samples(reader->path(), sizes);
  HEDDLE_ASSIGN_OR_RETURN(const bool has_samples, HasSamples(&reader->database()));
  if (!has_samples) return samples;
  if (sizes.sm_stride != 0) {
    HEDDLE_ASSIGN_OR_RETURN(
        samples.ctas_,
        reader->database().Prepare(
            fmt::format("SELECT sm, cta, start_cycle, end_cycle FROM cta WHERE launch_id = ? AND sm % {} = 0 "
                        "ORDER BY start_cycle, sm, cta",
                        sizes.sm_stride)));
  }
  std::string counters;
  for (const auto member : stats::kSampledCounters) {
    for (const stats::CounterDef& def : stats::CounterDefs())
      if (def.member == member) counters += fmt::format(", SUM(value) FILTER (WHERE name = '{}')", def.name);
  }
  HEDDLE_ASSIGN_OR_RETURN(samples.counters_,
                          reader->database().Prepare(
                              fmt::format("SELECT cycle{} FROM counter_sample JOIN stat_def USING (stat_id) "
                                          "WHERE launch_id = ? GROUP BY cycle ORDER BY cycle",
                                          counters)));
  return samples;
}

Result<LaunchSamples> SampleReader::Read(const LaunchInfo& launch) {
  LaunchSamples samples;
  HEDDLE_RETURN_IF_ERROR(ReadCtas(launch, &samples));
  HEDDLE_RETURN_IF_ERROR(ReadCounters(launch, &samples));
  samples.complete = samples.ctas.size() == launch.grid.Count();
  return samples;
}

Status SampleReader::ReadCtas(const LaunchInfo& launch, LaunchSamples* out) {
  if (!ctas_) return Ok();
  ctas_->Bind(launch.launch_id);
  while (true) {
    HEDDLE_ASSIGN_OR_RETURN(const bool row, ctas_->Step());
    if (!row) break;
    const int64_t sm = ctas_->Integer(0), start = ctas_->Integer(2), end = ctas_->Integer(3);
    if (sm < 0 || sm > 0xffff || start < static_cast<int64_t>(launch.start_cycle) || end < start ||
        end > static_cast<int64_t>(launch.end_cycle)) {
      return Error{ExitCode::kTrace, path_,
                   fmt::format("a CTA of launch {} lies outside the launch", launch.launch_id),
                   "the database is damaged: run it again into a new one"};
    }
    out->ctas.push_back({launch.launch_id, static_cast<uint32_t>(sm),
                         static_cast<uint64_t>(ctas_->Integer(1)), static_cast<uint64_t>(start),
                         static_cast<uint64_t>(end)});
  }
  ctas_->Reset();
  return Ok();
}

Status SampleReader::ReadCounters(const LaunchInfo& launch, LaunchSamples* out) {
  if (!counters_) return Ok();
  counters_->Bind(launch.launch_id);
  stats::CounterSample sum;
  uint32_t count = 0;
  while (true) {
    HEDDLE_ASSIGN_OR_RETURN(const bool row, counters_->Step());
    if (!row) break;
    const int64_t cycle = counters_->Integer(0);
    if (cycle <=
            static_cast<int64_t>(out->counters.empty() ? launch.start_cycle : out->counters.back().cycle) ||
        cycle > static_cast<int64_t>(launch.end_cycle)) {
      return Error{ExitCode::kTrace, path_,
                   fmt::format("a sample of launch {} lies outside the launch", launch.launch_id),
                   "the database is damaged: run it again into a new one"};
    }
    sum.cycle = static_cast<uint64_t>(cycle);
    for (size_t i = 0; i < sum.counts.size(); ++i)
      sum.counts[i] += static_cast<uint64_t>(counters_->Integer(static_cast<int>(i) + 1));
    if (++count % sizes_.sample_stride != 0) continue;
    out->counters.push_back(sum);
    sum = {};
  }
  if (sum.cycle != 0) out->counters.push_back(sum);
  counters_->Reset();
  return Ok();
}

void CounterSums::Add(const std::vector<stats::CounterSample>& samples, uint64_t start) {
  for (const stats::CounterSample& sample : samples) {
    auto& rate = rates_.emplace_back();
    for (size_t i = 0; i < rate.size(); ++i)
      rate[i] = static_cast<double>(sample.counts[i]) / static_cast<double>(sample.cycle - start);
    steps_.push_back({start, true, rates_.size() - 1});
    steps_.push_back({sample.cycle, false, rates_.size() - 1});
    start = sample.cycle;
  }
}

std::vector<RateChange> CounterSums::Changes() const {
  std::vector<Step> steps = steps_;
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step& a, const Step& b) { return a.cycle < b.cycle; });
  std::vector<RateChange> changes;
  std::vector<size_t> active;  // few: launches that overlap
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].begins)
      active.push_back(steps[i].rate);
    else
      std::erase(active, steps[i].rate);
    if (i + 1 < steps.size() && steps[i + 1].cycle == steps[i].cycle) continue;
    RateChange& change = changes.emplace_back();
    change.cycle = steps[i].cycle;
    // Summed anew: nothing is left of rounding when the last launch ends.
    for (const size_t rate : active)
      for (size_t k = 0; k < change.per_cycle.size(); ++k) change.per_cycle[k] += rates_[rate][k];
  }
  return changes;
}

}  // namespace heddle::timeline
