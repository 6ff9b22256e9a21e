// Everything that this library says of one group of launches, by its representative.
#pragma once

#include <vector>

#include "tools/analysis/bounds.h"
#include "tools/analysis/results_reader.h"
#include "tools/analysis/roofline.h"
#include "tools/analysis/speed_of_light.h"
#include "tools/analysis/stalls.h"
#include "tools/analysis/work.h"

namespace heddle::analysis {

struct KernelAnalysis {
  LaunchGroup group;
  LaunchInfo launch;                 // the representative
  const Machine* machine = nullptr;  // of the reader, as is `kernel`
  const Kernel* kernel = nullptr;
  LaunchCounts counts;
  LaunchWork work;
  LowerBound bound;
  Roofline roofline;
  std::vector<Section> sections;
  std::vector<StallShare> ladder;
  std::vector<Measurement> measurements;
};

Result<KernelAnalysis> Analyse(ResultsReader* reader, const LaunchGroup& group);

}  // namespace heddle::analysis
