#include "frontend/capture/inject/measure.h"

#include <pthread.h>
#include <cstdlib>
#include <cstring>

#include "frontend/capture/inject/capture.h"
#include "frontend/capture/inject/measure_kinds.h"
#include "frontend/capture/inject/settings.h"
#include "frontend/capture/inject/sink.h"

namespace heddle::capture {
namespace {

constexpr size_t kMostContexts = 16;
constexpr size_t kMostMetrics = 512;

const Profiler* g_profiler = nullptr;
// From before a launch until behind it. No callback of ours takes it, so that it may be held across calls of CUPTI.
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
MeasuredContext g_contexts[kMostContexts];
size_t g_context_count = 0;
bool g_graph_is_noted = false;
char* g_metric_names[kMostMetrics];
uint32_t g_metric_count = 0;

const char* Subject() {
  switch (TheSettings().measure) {
    case Measure::kSass:
      return "executed counts of instructions";
    case Measure::kPcSamples:
      return "PC samples";
    default:
      return "counters";
  }
}

void Refuse(MeasuredContext* context, uint32_t status) {
  context->refused = true;
  WriteNote(kCountersRefused, status, Subject());
}

uint32_t Prepare(MeasuredContext* context) {
  const uint32_t status = g_profiler->cuptiGetDeviceId(context->handle, &context->device);
  if (status != 0) return status;
  switch (TheSettings().measure) {
    case Measure::kCounters:
      return PrepareCounters(*g_profiler, context);
    case Measure::kSass:
      return PrepareSass(*g_profiler, context);
    case Measure::kPcSamples:
      return PreparePcSamples(*g_profiler, context);
    default:
      return abi::kNotSupported;
  }
}

// Null: there are too many.
MeasuredContext* ContextOf(abi::Handle handle) {
  for (size_t i = 0; i < g_context_count; ++i)
    if (g_contexts[i].handle == handle) return &g_contexts[i];
  if (g_context_count == kMostContexts) return nullptr;
  MeasuredContext* context = &g_contexts[g_context_count++];
  *context = {};
  context->handle = handle;
  if (const uint32_t status = Prepare(context); status != 0) Refuse(context, status);
  return context;
}

}  // namespace

void StartMeasurements(const Profiler& profiler) { g_profiler = &profiler; }
bool MeasurementsAreOn() { return g_profiler != nullptr && SinkIsOpen(); }

uint32_t MetricNumber(const char* name, const char* unit) {
  for (uint32_t i = 0; i < g_metric_count; ++i)
    if (std::strcmp(g_metric_names[i], name) == 0) return i;
  if (g_metric_count == kMostMetrics) return kMostMetrics;
  char* copy = strdup(name);
  if (copy == nullptr) return kMostMetrics;
  g_metric_names[g_metric_count] = copy;
  const size_t length = std::strlen(name), unit_length = unit == nullptr ? 0 : std::strlen(unit);
  if (Record record(kMetricNameRecord, length + unit_length + 64); record) {
    record->Varint(1, g_metric_count);
    record->Bytes(2, name, length);
    record->Bytes(3, unit, unit_length);
  }
  return g_metric_count++;
}

void WriteMeasured(uint32_t correlation, uint64_t pc, const uint32_t* metrics, const double* values,
                   size_t count) {
  if (Record record(kMeasuredRecord, 24 * count + 128); record) {
    record->Varint(1, ThisThread().number);
    record->Varint(2, correlation);
    record->Varint(3, pc + 1);  // kWholeLaunch: 0
    record->Packed(4, metrics, count);
    record->PackedDoubles(5, values, count);
  }
}

uint32_t PrepareMetrics(const Profiler& profiler, MeasuredContext* context, const char** chip) {
  abi::SizeOnly initialize{};
  uint32_t status = Call_cuptiProfilerInitialize(profiler, &initialize);
  if (status != 0) return status;
  abi::ChipName name{};
  name.device = context->device;
  status = Call_cuptiDeviceGetChipName(profiler, &name);
  if (status != 0) return status;
  *chip = name.chip;
  size_t asked = 0;
  ForEachMetric(TheSettings().metrics, [&](const char*) { ++asked; });
  context->metrics = NewZeros<const char*>(asked);
  context->sass = NewZeros<abi::SassConfig>(asked);
  context->metric_ids = NewZeros<uint32_t>(asked);
  context->values = NewZeros<double>(asked);
  const bool has_room = context->metrics != nullptr && context->sass != nullptr &&
                        context->metric_ids != nullptr && context->values != nullptr;
  return has_room ? 0 : abi::kOutOfMemory;
}

MeasuredLaunch::MeasuredLaunch(const SnapshotDriver& (*driver)(), abi::Handle stream) {
  if (!MeasurementsAreOn() || ThisThread().outside) return;
  driver_ = &driver();
  Begin(stream);
}

MeasuredLaunch::~MeasuredLaunch() {
  if (context_ != nullptr) End();
  if (locked_) pthread_mutex_unlock(&g_lock);
}

void MeasuredLaunch::Begin(abi::Handle stream) {
  // Launches that are not measured wait too: they would run inside the range of another thread's.
  pthread_mutex_lock(&g_lock);
  locked_ = true;
  const Outside outside;
  uint32_t capturing = 0;
  if (!WouldAdmitLaunch() || driver_->context_current == nullptr || driver_->context_synchronize == nullptr ||
      driver_->stream_is_capturing == nullptr || driver_->stream_is_capturing(stream, &capturing) != 0 ||
      capturing != 0)
    return;
  abi::Handle handle = nullptr;
  if (driver_->context_current(&handle) != 0 || handle == nullptr) return;
  MeasuredContext* context = ContextOf(handle);
  if (context == nullptr || context->refused) return;
  driver_->context_synchronize();
  const uint32_t status = TheSettings().measure == Measure::kCounters ? BeginCounters(*g_profiler, context)
                          : TheSettings().measure == Measure::kSass   ? BeginSass(*g_profiler, context)
                                                                      : 0;
  if (status != 0) return Refuse(context, status);
  context_ = context;
  recorded_before_ = ThisThread().recorded_launches;
}

void MeasuredLaunch::End() {
  const Outside outside;
  driver_->context_synchronize();
  // The launch may have failed, or be of a kernel that was not asked for.
  const bool keep = ThisThread().recorded_launches == recorded_before_ + 1;
  const uint32_t status = TheSettings().measure == Measure::kCounters
                              ? EndCounters(*g_profiler, context_, keep)
                          : TheSettings().measure == Measure::kSass ? EndSass(*g_profiler, context_, keep)
                                                                    : EndPcSamples(*g_profiler, context_);
  if (status != 0) Refuse(context_, status);
}

void NoteUnmeasuredGraph() {
  if (!MeasurementsAreOn() || __atomic_exchange_n(&g_graph_is_noted, true, __ATOMIC_RELAXED)) return;
  WriteNote(kGraphsNotMeasured, 0, Subject());
}

void EndMeasurements() {
  if (!MeasurementsAreOn() || TheSettings().measure != Measure::kPcSamples) return;
  pthread_mutex_lock(&g_lock);
  const Outside outside;
  for (size_t i = 0; i < g_context_count; ++i)
    if (!g_contexts[i].refused) FinishPcSamples(*g_profiler, &g_contexts[i]);
  g_profiler = nullptr;
  pthread_mutex_unlock(&g_lock);
}

void AbandonMeasurements() {
  g_lock = PTHREAD_MUTEX_INITIALIZER;
  g_profiler = nullptr;
  g_context_count = 0;
  g_metric_count = 0;
}

}  // namespace heddle::capture
