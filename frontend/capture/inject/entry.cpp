// What the driver calls: it loads the library that CUDA_INJECTION64_PATH names when the process first initialises CUDA.
#include <cstdlib>

#include "frontend/capture/inject/capture.h"
#include "frontend/capture/inject/measure.h"
#include "frontend/capture/inject/settings.h"
#include "frontend/capture/inject/sink.h"

namespace heddle::capture {
namespace {

Cupti g_cupti_table;
Driver g_driver_table;
Profiler g_profiler_table;

void Start() {
  ReadSettings();
  if (TheSettings().folder == nullptr || SinkIsOpen()) return;
  const char* why = "";
  const bool has_cupti = FindCupti(&g_cupti_table, &why);
  const bool has_driver = FindDriver(&g_driver_table);
  StartCapture(has_cupti ? &g_cupti_table : nullptr, has_driver ? &g_driver_table : nullptr);
  if (!has_cupti) WriteNote(kNoCupti, 0, why);
  if (has_cupti && TheSettings().measure != Measure::kNothing) {
    if (FindProfiler(&g_profiler_table, &why))
      StartMeasurements(g_profiler_table);
    else
      WriteNote(kCountersRefused, abi::kNotSupported, why);
  }
  static bool registered = false;
  if (!registered) std::atexit(StopCapture);
  registered = true;
}

}  // namespace
}  // namespace heddle::capture

// 1: done. A failure must not be reported: the driver would refuse to initialise, and the program would see it.
extern "C" __attribute__((visibility("default"))) int InitializeInjection(void) {
  heddle::capture::Start();
  return 1;
}
