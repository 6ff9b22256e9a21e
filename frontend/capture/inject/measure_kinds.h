// The three ways of measuring a launch, for measure.cpp. All are called with the context idle, one launch at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "frontend/capture/inject/measure.h"

namespace heddle::capture {

struct MeasuredContext {
  abi::Handle handle = nullptr;
  uint32_t device = 0;
  bool refused = false;  // said so already: its launches run unmeasured

  // Counters.
  void* host = nullptr;
  void* profiler = nullptr;
  const char** metrics = nullptr;  // that this chip has
  uint32_t* metric_ids = nullptr;
  double* values = nullptr;
  size_t metric_count = 0;
  uint8_t* config = nullptr;
  size_t config_bytes = 0;
  uint8_t* data = nullptr;
  size_t data_bytes = 0;

  // SASS metrics.
  abi::SassConfig* sass = nullptr;

  // PC samples.
  abi::PcSamples* samples = nullptr;   // given to each call
  abi::PcSamples* leftover = nullptr;  // filled when sampling ends
  uint32_t* reasons = nullptr;         // index of a stall reason -> number of its metric's name
  size_t reason_count = 0;
};

// A structure of parameters with its size; what is not stated is 0.
#define HEDDLE_PROFILER(name, parameters, last)                               \
  inline uint32_t Call_##name(const Profiler& profiler, abi::parameters* p) { \
    p->size = HEDDLE_SIZE_TO(abi::parameters, last);                          \
    return profiler.name(p);                                                  \
  }
#include "frontend/capture/inject/profiler.def"
#undef HEDDLE_PROFILER

// The number under which a metric's name was written to the records.
uint32_t MetricNumber(const char* name, const char* unit);

// Writes `count` values of one launch: that with this correlation, or 0: the latest that this thread recorded. `pc` is an
// offset in the kernel's code; kWholeLaunch: values of the launch.
inline constexpr uint64_t kWholeLaunch = UINT64_MAX;
void WriteMeasured(uint32_t correlation, uint64_t pc, const uint32_t* metrics, const double* values,
                   size_t count);

// Freed by std::free; null where there is no memory.
template <typename T>
T* NewZeros(size_t count) {
  return static_cast<T*>(std::calloc(count == 0 ? 1 : count, sizeof(T)));
}

// Splits the names of TheSettings().metrics: calls use(name) for each that is no longer than CUPTI's are.
template <typename Function>
void ForEachMetric(const char* names, Function use) {
  while (names != nullptr && *names != 0) {
    size_t length = 0;
    while (names[length] != 0 && names[length] != ',') ++length;
    char name[256] = {};
    if (length != 0 && length < sizeof name) {
      std::memcpy(name, names, length);
      use(static_cast<const char*>(name));
    }
    names += length + (names[length] == ',' ? 1 : 0);
  }
}

// The first steps of counters and SASS metrics: CUPTI's profiler, the chip's name, and room for what TheSettings().metrics names.
uint32_t PrepareMetrics(const Profiler& profiler, MeasuredContext* context, const char** chip);

// Each gives CUPTI's status. Prepare is called once a context, before its first measured launch.
uint32_t PrepareCounters(const Profiler& profiler, MeasuredContext* context);
uint32_t BeginCounters(const Profiler& profiler, MeasuredContext* context);
uint32_t EndCounters(const Profiler& profiler, MeasuredContext* context, bool keep);

uint32_t PrepareSass(const Profiler& profiler, MeasuredContext* context);
uint32_t BeginSass(const Profiler& profiler, MeasuredContext* context);
uint32_t EndSass(const Profiler& profiler, MeasuredContext* context, bool keep);

uint32_t PreparePcSamples(const Profiler& profiler, MeasuredContext* context);
uint32_t EndPcSamples(const Profiler& profiler, MeasuredContext* context);
void FinishPcSamples(const Profiler& profiler, MeasuredContext* context);

}  // namespace heddle::capture
