// What was simulated beside what was measured, row by row and in sum.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/validate/plan.h"
#include "tools/validate/simulate.h"
#include "tools/validate/statistics.h"

namespace heddle::validate {

struct MetricResult {
  std::string name;
  std::string unit;
  Pair pair;
  double least = 0;  // over placements
  double most = 0;
};

struct RowResult {
  const PlannedRow* planned = nullptr;
  std::string skipped;                // why; empty: simulated
  std::string trace_file;             // of the candidate that counts
  std::vector<MetricResult> metrics;  // the first one stands for the row
  std::string launch_key;
};

struct SkipCount {
  std::string reason;
  size_t rows = 0;
};

struct Group {
  std::string category;
  std::string gpu;     // "all" for the whole category
  std::string metric;  // the first metric of the recipes, or the name of a further one
  size_t skipped = 0;
  std::map<KernelKind, size_t> kernels;  // rows simulated with them
  Summary summary;
};

struct Report {
  std::vector<RowResult> rows;
  std::vector<Group>
      categories;  // first metrics of exact, re-created and best kernels; every category and GPU that was selected
  std::vector<Group> metrics;  // their further metrics
  std::vector<Group>
      other_kernels;  // first metrics of rows that were simulated with another kernel than the one measured
  std::map<std::string, std::vector<SkipCount>> skipped;  // by category, most frequent first
};

// `measured`: as RunSimulations gave it. Lives no longer than the plan.
Report MakeReport(const Plan& plan, const std::vector<Measured>& measured, const Recipes& recipes);

}  // namespace heddle::validate
