#include "tools/analysis/kernel_analysis.h"

namespace heddle::analysis {

Result<KernelAnalysis> Analyse(ResultsReader* reader, const LaunchGroup& group) {
  KernelAnalysis a;
  a.group = group;
  a.launch = reader->launches()[group.representative];
  HEDDLE_ASSIGN_OR_RETURN(a.machine, reader->MachineOf(a.launch.config_id));
  HEDDLE_ASSIGN_OR_RETURN(a.kernel, reader->KernelOf(a.launch.kernel_id));
  HEDDLE_ASSIGN_OR_RETURN(a.counts, reader->CountsOf(a.launch));
  HEDDLE_ASSIGN_OR_RETURN(a.measurements, reader->MeasurementsOf(a.launch));
  a.work = WorkOf(a.machine->gpu, a.kernel->instructions, a.counts.per_pc, a.counts.counters, a.launch.grid,
                  a.launch.block, a.launch.Cycles());
  a.bound = LowerBoundOf(a.machine->gpu, a.work);
  a.roofline = RooflineOf(*a.machine, a.launch, a.work, a.measurements);
  a.sections = SpeedOfLight(*a.machine, *a.kernel, a.launch, a.counts, a.work, a.measurements);
  a.ladder = StallLadder(a.launch, a.counts);
  return a;
}

}  // namespace heddle::analysis
