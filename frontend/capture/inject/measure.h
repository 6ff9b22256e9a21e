// Measuring runs: counters of each launch by the Range Profiler, executed counts of each instruction by SASS metrics, or PC samples.
// One kind a run, since they exclude each other and kernel times.
//
// The shim (shim.cpp) puts a MeasuredLaunch around each launch call: outside of CUPTI's callbacks, where its measuring functions may
// hang or collect nothing. One launch of the process is measured at a time, with the context idle before and behind it. What was measured
// belongs to the launch that the thread recorded in between.
#pragma once

#include <cstdint>

#include "frontend/capture/inject/seam.h"
#include "frontend/capture/inject/snapshot.h"

namespace heddle::capture {

// What the settings ask for, from now on. `profiler` stays where it is.
void StartMeasurements(const Profiler& profiler);
bool MeasurementsAreOn();
// At exit: what CUPTI still holds.
void EndMeasurements();
void AbandonMeasurements();  // in a forked child

class MeasuredLaunch {
 public:
  // `driver` is asked for only where something is measured. Launches into a graph, of a thread that is inside our own calls, or
  // that the settings leave out are not measured.
  MeasuredLaunch(const SnapshotDriver& (*driver)(), abi::Handle stream);
  ~MeasuredLaunch();
  MeasuredLaunch(const MeasuredLaunch&) = delete;
  MeasuredLaunch& operator=(const MeasuredLaunch&) = delete;

 private:
  void Begin(abi::Handle stream);
  void End();

  const SnapshotDriver* driver_ = nullptr;  // null: nothing is measured
  struct MeasuredContext* context_ = nullptr;
  uint64_t recorded_before_ = 0;
  bool locked_ = false;
};

// CUPTI measures a graph as a whole: said once.
void NoteUnmeasuredGraph();

}  // namespace heddle::capture
