// SASS metrics: code is patched to count what each instruction executes. Counts are exact, times mean nothing.
#include <cstdlib>
#include <cstring>

#include "frontend/capture/inject/measure_kinds.h"
#include "frontend/capture/inject/settings.h"
#include "frontend/capture/inject/sink.h"

namespace heddle::capture {
namespace {

size_t IndexOf(const MeasuredContext& context, uint64_t metric) {
  size_t i = 0;
  while (i < context.metric_count && context.sass[i].metric != metric) ++i;
  return i;
}

// One record an instruction, with what all instances of its metrics add up to.
void WriteData(MeasuredContext* context, const abi::SassData* data, size_t records, size_t instances) {
  for (size_t i = 0; i < records; ++i) {
    for (size_t m = 0; m < context->metric_count; ++m) context->values[m] = 0;
    bool executed = false;
    for (size_t v = 0; v < instances * context->metric_count; ++v) {
      const abi::SassValue& value = data[i].values[v];
      const size_t m = IndexOf(*context, value.metric);
      if (m == context->metric_count) continue;
      context->values[m] += static_cast<double>(value.value);
      executed |= value.value != 0;
    }
    // Code that was patched and did not run is of other kernels.
    if (executed)
      WriteMeasured(0, data[i].pc_offset, context->metric_ids, context->values, context->metric_count);
  }
}

uint32_t Collect(const Profiler& profiler, MeasuredContext* context, bool keep) {
  abi::SassDataProperties properties{};
  properties.context = context->handle;
  uint32_t status = Call_cuptiSassMetricsGetDataProperties(profiler, &properties);
  if (status != 0 || properties.records == 0) return status;
  const size_t values = properties.instances * context->metric_count;
  auto* data = NewZeros<abi::SassData>(properties.records);
  auto* all = NewZeros<abi::SassValue>(properties.records * values);
  if (data == nullptr || all == nullptr) status = abi::kOutOfMemory;
  if (status == 0) {
    abi::SassFlush flush{};
    for (size_t i = 0; i < properties.records; ++i) {
      data[i].size = HEDDLE_SIZE_TO(abi::SassFlush, instances);  // as the header asks
      data[i].values = all + i * values;
    }
    flush.context = context->handle;
    flush.records = properties.records;
    flush.instances = properties.instances;
    flush.data = data;
    status = Call_cuptiSassMetricsFlushData(profiler, &flush);
    if (status == 0 && keep) WriteData(context, data, properties.records, properties.instances);
  }
  std::free(data);
  std::free(all);
  return status;
}

}  // namespace

uint32_t PrepareSass(const Profiler& profiler, MeasuredContext* context) {
  const char* chip = nullptr;
  uint32_t status = PrepareMetrics(profiler, context, &chip);
  if (status != 0) return status;
  abi::HostChips chips{};  // properties are known only behind this call
  status = Call_cuptiProfilerHostGetSupportedChips(profiler, &chips);
  if (status != 0) return status;
  ForEachMetric(TheSettings().metrics, [&](const char* name) {
    abi::SassProperties properties{};
    properties.chip = chip;
    properties.metric = name;
    if (const uint32_t refused = Call_cuptiSassMetricsGetProperties(profiler, &properties); refused != 0)
      return WriteNote(kCountersRefused, refused, name);
    context->sass[context->metric_count] = {properties.details.id, abi::kOfTheGpu};
    context->metric_ids[context->metric_count++] = MetricNumber(name, nullptr);
  });
  return context->metric_count == 0 ? abi::kNotSupported : 0;
}

// Configured and enabled for each launch: after one Enable only the first function is counted.
uint32_t BeginSass(const Profiler& profiler, MeasuredContext* context) {
  abi::SassSetConfig config{};
  config.count = context->metric_count;
  config.configs = context->sass;
  config.device = context->device;
  uint32_t status = Call_cuptiSassMetricsSetConfig(profiler, &config);
  if (status != 0) return status;
  abi::SassEnable enable{};
  enable.context = context->handle;
  enable.lazy = 1;
  return Call_cuptiSassMetricsEnable(profiler, &enable);
}

uint32_t EndSass(const Profiler& profiler, MeasuredContext* context, bool keep) {
  uint32_t status = Collect(profiler, context, keep);
  abi::SassDisable disable{};
  disable.context = context->handle;
  const uint32_t disabled = Call_cuptiSassMetricsDisable(profiler, &disable);
  abi::SassUnsetConfig unset{};
  unset.device = context->device;
  const uint32_t unset_status = Call_cuptiSassMetricsUnsetConfig(profiler, &unset);
  if (status == 0) status = disabled;
  return status != 0 ? status : unset_status;
}

}  // namespace heddle::capture
