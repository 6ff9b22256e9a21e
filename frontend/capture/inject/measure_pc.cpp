// PC sampling, kernels one at a time: where warps stood, and what they waited for. Samples name their launch by its correlation, so
// that it does not matter when CUPTI hands them out.
#include <cstdlib>
#include <cstring>

#include "frontend/capture/inject/measure_kinds.h"
#include "frontend/capture/inject/settings.h"
#include "frontend/capture/inject/sink.h"

namespace heddle::capture {
namespace {

constexpr size_t kPcs = 4096;
constexpr size_t kMostReasons = 256;
constexpr int kMostRounds = 1000;

abi::PcSamples* NewSamples(size_t reasons) {
  auto* samples = NewZeros<abi::PcSamples>(1);
  auto* data = NewZeros<abi::PcData>(kPcs);
  auto* stalls = NewZeros<abi::PcStall>(kPcs * reasons);
  if (samples == nullptr || data == nullptr || stalls == nullptr) return nullptr;
  samples->size = sizeof(abi::PcSamples);
  samples->most_pcs = kPcs;
  samples->data = data;
  for (size_t i = 0; i < kPcs; ++i) {
    data[i].size = sizeof(abi::PcData);
    data[i].stalls = stalls + i * reasons;
  }
  return samples;
}

// The names of the stall reasons; they are metric names ("smsp__pcsamp_warps_issue_stalled_long_scoreboard").
uint32_t ReadReasons(const Profiler& profiler, MeasuredContext* context) {
  size_t count = 0;
  abi::PcReasonCount ask{};
  ask.context = context->handle;
  ask.count = &count;
  uint32_t status = Call_cuptiPCSamplingGetNumStallReasons(profiler, &ask);
  if (status != 0) return status;
  if (count == 0 || count > kMostReasons) return abi::kNotSupported;
  auto* indices = NewZeros<uint32_t>(count);
  auto* text = NewZeros<char>(count * abi::kReasonNameBytes);
  auto** names = NewZeros<char*>(count);
  context->reasons = NewZeros<uint32_t>(kMostReasons);
  if (indices == nullptr || text == nullptr || names == nullptr || context->reasons == nullptr)
    return abi::kOutOfMemory;
  for (size_t i = 0; i < count; ++i) names[i] = text + i * abi::kReasonNameBytes;
  abi::PcReasons reasons{};
  reasons.context = context->handle;
  reasons.count = count;
  reasons.indices = indices;
  reasons.names = names;
  status = Call_cuptiPCSamplingGetStallReasons(profiler, &reasons);
  for (size_t i = 0; status == 0 && i < count; ++i) {
    names[i][abi::kReasonNameBytes - 1] = 0;
    if (indices[i] < kMostReasons) context->reasons[indices[i]] = MetricNumber(names[i], "samples") + 1;
  }
  context->reason_count = count;
  std::free(indices);
  std::free(text);
  std::free(names);
  return status;
}

uint32_t Configure(const Profiler& profiler, MeasuredContext* context) {
  abi::PcConfiguration attributes[2] = {};
  attributes[0].attribute = abi::kCollectionMode;
  attributes[0].value.number = abi::kKernelSerialized;
  attributes[1].attribute = abi::kDataBuffer;
  attributes[1].value.pointer = context->leftover;
  abi::PcConfigure configure{};
  configure.context = context->handle;
  configure.count = 2;
  configure.configurations = attributes;
  return Call_cuptiPCSamplingSetConfigurationAttribute(profiler, &configure);
}

void WriteSamples(MeasuredContext* context, abi::PcSamples* samples) {
  for (size_t i = 0; i < samples->pcs && i < kPcs; ++i) {
    abi::PcData& pc = samples->data[i];
    uint32_t metrics[kMostReasons];
    double values[kMostReasons];
    size_t count = 0;
    for (size_t s = 0; s < pc.stall_count && s < context->reason_count; ++s) {
      const uint32_t reason = pc.stalls[s].reason;
      if (reason >= kMostReasons || context->reasons[reason] == 0 || pc.stalls[s].samples == 0) continue;
      metrics[count] = context->reasons[reason] - 1;
      values[count++] = pc.stalls[s].samples;
    }
    if (count != 0) WriteMeasured(pc.correlation_id, pc.pc_offset, metrics, values, count);
    std::free(pc.function_name);
    pc.function_name = nullptr;
  }
  if (samples->dropped_samples != 0) WriteNote(kDroppedRecords, 0, "PC samples", samples->dropped_samples);
}

}  // namespace

uint32_t PreparePcSamples(const Profiler& profiler, MeasuredContext* context) {
  // Enabled first: before that CUPTI answers no question about the context.
  abi::PcContext enable{};
  enable.context = context->handle;
  uint32_t status = Call_cuptiPCSamplingEnable(profiler, &enable);
  if (status != 0) return status;
  status = ReadReasons(profiler, context);
  if (status != 0) return status;
  context->samples = NewSamples(context->reason_count);
  context->leftover = NewSamples(context->reason_count);
  if (context->samples == nullptr || context->leftover == nullptr) return abi::kOutOfMemory;
  return Configure(profiler, context);
}

uint32_t EndPcSamples(const Profiler& profiler, MeasuredContext* context) {
  for (int round = 0; round < kMostRounds; ++round) {
    abi::PcGetData get{};
    get.context = context->handle;
    get.samples = context->samples;
    context->samples->pcs = context->samples->remaining_pcs = 0;
    const uint32_t status = Call_cuptiPCSamplingGetData(profiler, &get);
    if (status != 0) return status;
    WriteSamples(context, context->samples);
    if (context->samples->remaining_pcs == 0) break;
  }
  return 0;
}

void FinishPcSamples(const Profiler& profiler, MeasuredContext* context) {
  EndPcSamples(profiler, context);
  context->leftover->pcs = 0;
  abi::PcContext disable{};
  disable.context = context->handle;
  if (Call_cuptiPCSamplingDisable(profiler, &disable) == 0) WriteSamples(context, context->leftover);
}

}  // namespace heddle::capture
