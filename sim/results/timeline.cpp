// Timelines of launches in the results database.
#include <fmt/format.h>

#include <algorithm>

#include "sim/results/results.h"

namespace heddle::results {
namespace {

// The id in stat_def of each sampled counter.
Result<std::array<int64_t, stats::kSampledCounters.size()>> SampledIds(sqlite::Database* database) {
  std::array<int64_t, stats::kSampledCounters.size()> ids{};
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement find,
                          database->Prepare("SELECT stat_id FROM stat_def WHERE name = ?"));
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto& defs = stats::CounterDefs();
    const auto def = std::find_if(defs.begin(), defs.end(), [&](const stats::CounterDef& each) {
      return each.member == stats::kSampledCounters[i];
    });
    HEDDLE_RETURN_IF_ERROR(find.Bind(def->name).Step());
    ids[i] = find.Integer(0);
    find.Reset();
  }
  return ids;
}

}  // namespace

Result<bool> Writer::HasTimeline(const std::string& key) {
  HEDDLE_ASSIGN_OR_RETURN(
      sqlite::Statement find,
      database_.Prepare("SELECT 1 FROM launch JOIN counter_sample USING (launch_id) WHERE key = ? LIMIT 1"));
  return find.Bind(key).Step();
}

Status Writer::AddTimeline(const std::string& key, const stats::Timeline& timeline, Cycle start) {
  HEDDLE_ASSIGN_OR_RETURN(const bool there, HasTimeline(key));
  if (there) return Ok();
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Transaction transaction, sqlite::Transaction::Begin(&database_));
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement launch,
                          database_.Prepare("SELECT launch_id, start_cycle FROM launch WHERE key = ?"));
  HEDDLE_ASSIGN_OR_RETURN(const bool found, launch.Bind(key).Step());
  if (!found)
    return Error{ExitCode::kInternal, path_, fmt::format("holds no launch {} for its timeline", key), ""};
  const int64_t launch_id = launch.Integer(0);
  const auto stored = static_cast<Cycle>(launch.Integer(1));
  const auto moved = [&](Cycle cycle) { return cycle - start + stored; };
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement cta, database_.Prepare("INSERT INTO cta VALUES (?, ?, ?, ?, ?)"));
  for (const stats::CtaSpan& span : timeline.ctas) {
    cta.Bind(launch_id).Bind(span.cta).Bind(span.sm).Bind(moved(span.start));
    HEDDLE_RETURN_IF_ERROR(cta.Bind(moved(span.end)).Run());
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto stat_ids, SampledIds(&database_));
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement insert,
                          database_.Prepare("INSERT INTO counter_sample VALUES (?, ?, ?, ?)"));
  for (const stats::CounterSample& sample : timeline.samples) {
    for (size_t i = 0; i < stat_ids.size(); ++i) {
      insert.Bind(launch_id).Bind(moved(sample.cycle)).Bind(stat_ids[i]);
      HEDDLE_RETURN_IF_ERROR(insert.Bind(sample.counts[i]).Run());
    }
  }
  return transaction.Commit();
}

}  // namespace heddle::results
