// The Range Profiler of CUPTI 13: each launch is a range of its own, replayed until all metrics are taken.
#include <cstdlib>
#include <cstring>

#include "frontend/capture/inject/measure_kinds.h"
#include "frontend/capture/inject/settings.h"
#include "frontend/capture/inject/sink.h"

namespace heddle::capture {
namespace {

// The metrics that the chip has; the others are said once.
uint32_t ChooseMetrics(const Profiler& profiler, MeasuredContext* context) {
  ForEachMetric(TheSettings().metrics, [&](const char* asked) {
    char* name = strdup(asked);
    if (name == nullptr) return;
    abi::HostMetricProperties properties{};
    properties.host = context->host;
    properties.metric = name;
    const uint32_t status = Call_cuptiProfilerHostGetMetricProperties(profiler, &properties);
    if (status != 0) {
      WriteNote(kCountersRefused, status, name);
      std::free(name);
      return;
    }
    context->metric_ids[context->metric_count] = MetricNumber(name, properties.unit);
    context->metrics[context->metric_count++] = name;
  });
  return context->metric_count == 0 ? abi::kNotSupported : 0;
}

uint32_t MakeConfig(const Profiler& profiler, MeasuredContext* context) {
  abi::HostAddMetrics add{};
  add.host = context->host;
  add.metrics = context->metrics;
  add.count = context->metric_count;
  uint32_t status = Call_cuptiProfilerHostConfigAddMetrics(profiler, &add);
  if (status != 0) return status;
  abi::HostImageSize size{};
  size.host = context->host;
  status = Call_cuptiProfilerHostGetConfigImageSize(profiler, &size);
  if (status != 0) return status;
  context->config_bytes = size.image_bytes;
  context->config = NewZeros<uint8_t>(size.image_bytes);
  if (context->config == nullptr) return abi::kOutOfMemory;
  abi::HostImage image{};
  image.host = context->host;
  image.image_bytes = context->config_bytes;
  image.image = context->config;
  return Call_cuptiProfilerHostGetConfigImage(profiler, &image);
}

}  // namespace

uint32_t PrepareCounters(const Profiler& profiler, MeasuredContext* context) {
  const char* chip = nullptr;
  uint32_t status = PrepareMetrics(profiler, context, &chip);
  if (status != 0) return status;
  abi::HostInitialize host{};
  host.type = abi::kRangeProfilerType;
  host.chip = chip;
  status = Call_cuptiProfilerHostInitialize(profiler, &host);
  if (status != 0) return status;
  context->host = host.host;
  // Before the metrics: a refusal says that they are not permitted, not that each of them is unknown.
  abi::RangeEnable enable{};
  enable.context = context->handle;
  status = Call_cuptiRangeProfilerEnable(profiler, &enable);
  if (status != 0) return status;
  context->profiler = enable.profiler;
  status = ChooseMetrics(profiler, context);
  if (status != 0) return status;
  status = MakeConfig(profiler, context);
  if (status != 0) return status;
  abi::RangeDataSize size{};
  size.profiler = context->profiler;
  size.metrics = context->metrics;
  size.count = context->metric_count;
  size.most_ranges = 1;
  size.most_nodes = 1;
  status = Call_cuptiRangeProfilerGetCounterDataSize(profiler, &size);
  if (status != 0) return status;
  context->data_bytes = size.data_bytes;
  context->data = NewZeros<uint8_t>(size.data_bytes);
  return context->data == nullptr ? abi::kOutOfMemory : 0;
}

uint32_t BeginCounters(const Profiler& profiler, MeasuredContext* context) {
  abi::RangeDataInitialize data{};
  data.profiler = context->profiler;
  data.data_bytes = context->data_bytes;
  data.data = context->data;
  uint32_t status = Call_cuptiRangeProfilerCounterDataImageInitialize(profiler, &data);
  if (status != 0) return status;
  abi::RangeSetConfig config{};
  config.profiler = context->profiler;
  config.config_bytes = context->config_bytes;
  config.config = context->config;
  config.data_bytes = context->data_bytes;
  config.data = context->data;
  config.range = abi::kAutoRange;
  config.replay = abi::kKernelReplay;
  config.most_ranges = 1;
  config.nesting_levels = 1;
  config.least_nesting_level = 1;
  status = Call_cuptiRangeProfilerSetConfig(profiler, &config);
  if (status != 0) return status;
  abi::RangeObject start{};
  start.profiler = context->profiler;
  return Call_cuptiRangeProfilerStart(profiler, &start);
}

uint32_t EndCounters(const Profiler& profiler, MeasuredContext* context, bool keep) {
  abi::RangeStop stop{};
  stop.profiler = context->profiler;
  uint32_t status = Call_cuptiRangeProfilerStop(profiler, &stop);
  if (status != 0) return status;
  abi::RangeDecode decode{};
  decode.profiler = context->profiler;
  status = Call_cuptiRangeProfilerDecodeData(profiler, &decode);
  if (status != 0 || !keep) return status;
  abi::RangeDataInfo info{};
  info.data = context->data;
  info.data_bytes = context->data_bytes;
  status = Call_cuptiRangeProfilerGetCounterDataInfo(profiler, &info);
  if (status != 0) return status;
  if (info.ranges != 1 || decode.dropped != 0) {
    WriteNote(kLaunchNotMeasured, 0, "counters", info.ranges + decode.dropped);
    return 0;
  }
  abi::HostEvaluate evaluate{};
  evaluate.host = context->host;
  evaluate.data = context->data;
  evaluate.data_bytes = context->data_bytes;
  evaluate.metrics = context->metrics;
  evaluate.count = context->metric_count;
  evaluate.values = context->values;
  status = Call_cuptiProfilerHostEvaluateToGpuValues(profiler, &evaluate);
  if (status == 0)
    WriteMeasured(0, kWholeLaunch, context->metric_ids, context->values, context->metric_count);
  return status;
}

}  // namespace heddle::capture
