// What a sweep found: times of its designs out of the results database, and which designs are worth a look.
#pragma once

#include <string>
#include <vector>

#include "sim/base/result.h"
#include "tools/batch/plan.h"

namespace heddle::batch {

struct DesignResult {
  uint64_t cycles = 0;                // of all launches of all traces
  uint64_t picoseconds = 0;           // the same
  std::vector<uint64_t> by_trace_ps;  // of each trace's launches
  size_t missing = 0;                 // launches that the database lacks: then the sums mean nothing
  bool pareto = false;                // no other design is better in one objective and no worse in the others

  double time_us() const { return static_cast<double>(picoseconds) / 1e6; }
};

enum class Objective : uint8_t { kTime, kArea, kPower, kEnergy };  // less is better; energy is time x power

// "time,area". Two or more different ones.
Result<std::vector<Objective>> ParseObjectives(const std::string& text);
double Value(Objective objective, const Design& design, const DesignResult& result);

// One result a design, in the plan's order. A database that does not exist holds nothing.
Result<std::vector<DesignResult>> Collect(const std::string& database, const Plan& plan);
// Launch keys that the database holds, of those of the plan's jobs: one flag a job, true when all of its launches are there.
Result<std::vector<bool>> JobsDone(const std::string& database, const Plan& plan);

void MarkPareto(const std::vector<Objective>& objectives, const Plan& plan,
                std::vector<DesignResult>* results);

// How much the time of the designs that have a value differs from that of all designs, as the ratio of geometric means; for
// one-at-a-time sweeps against the base.
struct Sensitivity {
  std::string path;
  std::string value;
  double time_ratio = 1;
};
std::vector<Sensitivity> Sensitivities(const Plan& plan, const std::vector<DesignResult>& results);

// One offline HTML file: cards, a plot of the first two objectives, sensitivity bars, the table of all designs.
std::string Html(const SweepRequest& request, const Plan& plan, const std::vector<DesignResult>& results,
                 const std::vector<Objective>& objectives);

}  // namespace heddle::batch
