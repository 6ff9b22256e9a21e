// The measuring side of the stand-in for libcupti. What it "measures" of a launch follows from its number of CTAs, so that a test knows
// it: metric number m of a configuration is 1000 m + CTAs; the instruction at 16 i executed CTAs * (i + 1) times and has one sample of
// "long_scoreboard" more than i. The rules of CUPTI's headers and guide are kept: who breaks one is refused or aborted.
//
// DOUBLE_COUNTERS, DOUBLE_SASS, DOUBLE_PC: the status that enabling each gives. DOUBLE_NO_METRIC: a metric that the chip does not have.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "frontend/capture/inject/abi_profiler.h"
#include "tests/support/capture/double_cupti.h"

namespace heddle::capture::testing {
namespace {

constexpr uint32_t kInvalidParameter = 1, kInvalidOperation = 7, kNotCompatible = 14, kInvalidMetric = 17;
constexpr uint32_t kInstructions = 3;

uint32_t Setting(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

struct Ran {
  uint32_t correlation;
  uint32_t ctas;
};

struct State {
  std::mutex lock;
  bool initialized = false;
  bool range_enabled = false, range_configured = false, range_started = false;
  bool sass_configured = false, sass_enabled = false, pc_enabled = false, pc_configured = false;
  bool chips_asked = false;
  size_t metrics = 0;        // of the host's configuration
  size_t sass_metrics = 0;   // of the device's
  uint8_t* image = nullptr;  // of counter data: the number of ranges, and the CTAs of the first
  abi::PcSamples* leftover = nullptr;
  std::vector<Ran> ran;  // since the start of what is enabled
};
State& S() {
  static State* const state = new State;
  return *state;
}

template <typename P>
bool HasSize(const P* params, size_t size) {
  if (params->size == size && params->reserved == nullptr) return true;
  std::fprintf(stderr, "double: a structure of %zu bytes, not %zu\n", params->size, size);
  std::abort();
}
#define CHECK_SIZE(type, last) HasSize(p, HEDDLE_SIZE_TO(abi::type, last))

}  // namespace

void ProfiledKernel(uint32_t correlation, uint32_t ctas) {
  const std::lock_guard guard(S().lock);
  if (S().range_started || S().sass_enabled || S().pc_enabled) S().ran.push_back({correlation, ctas});
}

bool IsProfiling() {
  const std::lock_guard guard(S().lock);
  return S().range_enabled || S().sass_enabled;
}

}  // namespace heddle::capture::testing

using namespace heddle::capture;
using namespace heddle::capture::testing;

extern "C" {

uint32_t cuptiGetDeviceId(abi::Handle, uint32_t* device) {
  *device = 0;
  return 0;
}
uint32_t cuptiProfilerInitialize(abi::SizeOnly* p) {
  CHECK_SIZE(SizeOnly, reserved);
  S().initialized = true;
  return 0;
}
uint32_t cuptiProfilerDeInitialize(abi::SizeOnly* p) {
  CHECK_SIZE(SizeOnly, reserved);
  S().initialized = false;
  return 0;
}
uint32_t cuptiDeviceGetChipName(abi::ChipName* p) {
  CHECK_SIZE(ChipName, chip);
  p->chip = "GA100";
  return 0;
}
uint32_t cuptiProfilerHostGetSupportedChips(abi::HostChips* p) {
  CHECK_SIZE(HostChips, names);
  S().chips_asked = true;
  return 0;
}
uint32_t cuptiProfilerHostInitialize(abi::HostInitialize* p) {
  CHECK_SIZE(HostInitialize, host);
  p->host = &S();
  return std::strcmp(p->chip, "GA100") == 0 ? 0 : 46;
}
uint32_t cuptiProfilerHostDeinitialize(abi::HostObject* p) {
  CHECK_SIZE(HostObject, host);
  return 0;
}
uint32_t cuptiProfilerHostGetMetricProperties(abi::HostMetricProperties* p) {
  CHECK_SIZE(HostMetricProperties, type);
  const char* missing = std::getenv("DOUBLE_NO_METRIC");
  if (missing != nullptr && std::strcmp(p->metric, missing) == 0) return kInvalidMetric;
  p->unit = std::strstr(p->metric, "bytes") != nullptr ? "byte" : "instruction";
  return 0;
}
uint32_t cuptiProfilerHostConfigAddMetrics(abi::HostAddMetrics* p) {
  CHECK_SIZE(HostAddMetrics, count);
  S().metrics = p->count;
  return p->host == &S() ? 0 : kInvalidParameter;
}
uint32_t cuptiProfilerHostGetConfigImageSize(abi::HostImageSize* p) {
  CHECK_SIZE(HostImageSize, image_bytes);
  p->image_bytes = 64;
  return 0;
}
uint32_t cuptiProfilerHostGetConfigImage(abi::HostImage* p) {
  CHECK_SIZE(HostImage, image);
  std::memset(p->image, 0x5a, p->image_bytes);
  return p->image_bytes == 64 ? 0 : kInvalidParameter;
}
uint32_t cuptiRangeProfilerEnable(abi::RangeEnable* p) {
  CHECK_SIZE(RangeEnable, profiler);
  if (const uint32_t status = Setting("DOUBLE_COUNTERS"); status != 0) return status;
  if (!S().initialized || S().range_enabled) return kInvalidOperation;
  S().range_enabled = true;
  p->profiler = &S();
  return 0;
}
uint32_t cuptiRangeProfilerDisable(abi::RangeObject* p) {
  CHECK_SIZE(RangeObject, profiler);
  S().range_enabled = false;
  return 0;
}
uint32_t cuptiRangeProfilerGetCounterDataSize(abi::RangeDataSize* p) {
  CHECK_SIZE(RangeDataSize, data_bytes);
  if (p->most_ranges != 1 || p->most_nodes < 1) return kInvalidParameter;
  p->data_bytes = 16;
  return 0;
}
uint32_t cuptiRangeProfilerCounterDataImageInitialize(abi::RangeDataInitialize* p) {
  CHECK_SIZE(RangeDataInitialize, data);
  if (p->data_bytes != 16) return kInvalidParameter;
  std::memset(p->data, 0, p->data_bytes);
  return 0;
}
uint32_t cuptiRangeProfilerSetConfig(abi::RangeSetConfig* p) {
  CHECK_SIZE(RangeSetConfig, target_nesting_level);
  if (p->range != abi::kAutoRange || p->replay != abi::kKernelReplay || p->nesting_levels != 1 ||
      p->config_bytes != 64 || p->config[0] != 0x5a || S().range_started)
    return kInvalidParameter;
  S().range_configured = true;
  S().image = p->data;
  return 0;
}
uint32_t cuptiRangeProfilerStart(abi::RangeObject* p) {
  CHECK_SIZE(RangeObject, profiler);
  const std::lock_guard guard(S().lock);
  if (!S().range_enabled || !S().range_configured || S().range_started) return kInvalidOperation;
  S().range_started = true;
  S().ran.clear();
  return 0;
}
uint32_t cuptiRangeProfilerStop(abi::RangeStop* p) {
  CHECK_SIZE(RangeStop, all_passes);
  const std::lock_guard guard(S().lock);
  if (!S().range_started) return kInvalidOperation;
  S().range_started = false;
  p->all_passes = 1;
  return 0;
}
uint32_t cuptiRangeProfilerDecodeData(abi::RangeDecode* p) {
  CHECK_SIZE(RangeDecode, dropped);
  const std::lock_guard guard(S().lock);
  const uint64_t image[2] = {S().ran.size(), S().ran.empty() ? 0 : S().ran[0].ctas};
  std::memcpy(S().image, image, sizeof image);
  return 0;
}
uint32_t cuptiRangeProfilerGetCounterDataInfo(abi::RangeDataInfo* p) {
  CHECK_SIZE(RangeDataInfo, ranges);
  std::memcpy(&p->ranges, p->data, 8);
  return 0;
}
uint32_t cuptiProfilerHostEvaluateToGpuValues(abi::HostEvaluate* p) {
  CHECK_SIZE(HostEvaluate, values);
  if (p->count != S().metrics || p->range != 0) return kInvalidParameter;
  uint64_t ctas = 0;
  std::memcpy(&ctas, p->data + 8, 8);
  for (size_t i = 0; i < p->count; ++i) p->values[i] = static_cast<double>(1000 * i + ctas);
  return 0;
}

uint32_t cuptiSassMetricsGetProperties(abi::SassProperties* p) {
  CHECK_SIZE(SassProperties, details);
  if (!S().chips_asked) return 15;
  const char* missing = std::getenv("DOUBLE_NO_METRIC");
  if (missing != nullptr && std::strcmp(p->metric, missing) == 0) return kInvalidMetric;
  p->details.id = std::strlen(p->metric);  // tells the default ones apart
  return 0;
}
uint32_t cuptiSassMetricsSetConfig(abi::SassSetConfig* p) {
  CHECK_SIZE(SassSetConfig, device);
  if (S().sass_configured) return kInvalidOperation;
  S().sass_configured = true;
  S().sass_metrics = p->count;
  return 0;
}
uint32_t cuptiSassMetricsUnsetConfig(abi::SassUnsetConfig* p) {
  CHECK_SIZE(SassUnsetConfig, device);
  if (!S().sass_configured || S().sass_enabled) return kInvalidOperation;
  S().sass_configured = false;
  return 0;
}
uint32_t cuptiSassMetricsEnable(abi::SassEnable* p) {
  CHECK_SIZE(SassEnable, lazy);
  if (const uint32_t status = Setting("DOUBLE_SASS"); status != 0) return status;
  const std::lock_guard guard(S().lock);
  if (!S().sass_configured || S().sass_enabled) return kInvalidOperation;
  S().sass_enabled = true;
  S().ran.clear();
  return 0;
}
uint32_t cuptiSassMetricsDisable(abi::SassDisable* p) {
  CHECK_SIZE(SassDisable, dropped);
  const std::lock_guard guard(S().lock);
  if (!S().sass_enabled) return kInvalidOperation;
  S().sass_enabled = false;
  return 0;
}
uint32_t cuptiSassMetricsGetDataProperties(abi::SassDataProperties* p) {
  CHECK_SIZE(SassDataProperties, instances);
  p->records = S().ran.empty() ? 0 : kInstructions + 1;  // the last is of code that did not run
  p->instances = 1;
  return 0;
}
uint32_t cuptiSassMetricsFlushData(abi::SassFlush* p) {
  CHECK_SIZE(SassFlush, instances);
  // Metrics by their length: those of CaptureMeasure.* in the order of the configuration.
  const char* names[] = {"smsp__sass_inst_executed", "smsp__sass_thread_inst_executed_pred_on",
                         "smsp__sass_sectors_mem_global"};
  for (uint32_t i = 0; i < p->records; ++i) {
    if (p->data[i].size != HEDDLE_SIZE_TO(abi::SassFlush, instances)) return kInvalidParameter;
    p->data[i].function_name = "k";
    p->data[i].pc_offset = 16 * i;
    for (size_t m = 0; m < S().sass_metrics && m < 3; ++m)
      p->data[i].values[m] = {std::strlen(names[m]),
                              i == kInstructions ? 0 : (m == 0 ? 1 : 32) * S().ran[0].ctas * (i + 1)};
  }
  return 0;
}

uint32_t cuptiPCSamplingEnable(abi::PcContext* p) {
  CHECK_SIZE(PcContext, context);
  if (const uint32_t status = Setting("DOUBLE_PC"); status != 0) return status;
  if (S().initialized) return kNotCompatible;
  S().pc_enabled = true;
  return 0;
}
uint32_t cuptiPCSamplingSetConfigurationAttribute(abi::PcConfigure* p) {
  CHECK_SIZE(PcConfigure, configurations);
  for (size_t i = 0; i < p->count; ++i) {
    if (p->configurations[i].attribute == abi::kCollectionMode &&
        p->configurations[i].value.number != abi::kKernelSerialized)
      return kInvalidParameter;
    if (p->configurations[i].attribute == abi::kDataBuffer)
      S().leftover = static_cast<abi::PcSamples*>(p->configurations[i].value.pointer);
  }
  S().pc_configured = S().leftover != nullptr;
  return 0;
}
uint32_t cuptiPCSamplingGetNumStallReasons(abi::PcReasonCount* p) {
  CHECK_SIZE(PcReasonCount, count);
  *p->count = 2;
  return S().pc_enabled ? 0 : kInvalidOperation;
}
uint32_t cuptiPCSamplingGetStallReasons(abi::PcReasons* p) {
  CHECK_SIZE(PcReasons, names);
  p->indices[0] = 3;
  std::strcpy(p->names[0], "smsp__pcsamp_warps_issue_stalled_long_scoreboard");
  p->indices[1] = 9;
  std::strcpy(p->names[1], "smsp__pcsamp_warps_issue_stalled_barrier");
  return 0;
}

// The samples of all launches but the newest: that one's come later, as on a GPU.
static void Samples(abi::PcSamples* out, size_t launches) {
  out->pcs = 0;
  for (size_t l = 0; l < launches; ++l)
    for (uint32_t i = 0; i < kInstructions; ++i) {
      abi::PcData& pc = out->data[out->pcs++];
      if (pc.size != sizeof(abi::PcData)) std::abort();
      pc.pc_offset = 16 * i;
      pc.function_name = strdup("k");
      pc.correlation_id = S().ran[l].correlation;
      pc.stall_count = 2;
      pc.stalls[0] = {3, i + 1};
      pc.stalls[1] = {9, 0};
    }
  S().ran.erase(S().ran.begin(), S().ran.begin() + static_cast<std::ptrdiff_t>(launches));
}

uint32_t cuptiPCSamplingGetData(abi::PcGetData* p) {
  CHECK_SIZE(PcGetData, samples);
  const std::lock_guard guard(S().lock);
  if (!S().pc_enabled || !S().pc_configured) return kInvalidOperation;
  Samples(static_cast<abi::PcSamples*>(p->samples), S().ran.empty() ? 0 : S().ran.size() - 1);
  return 0;
}
uint32_t cuptiPCSamplingDisable(abi::PcContext* p) {
  CHECK_SIZE(PcContext, context);
  const std::lock_guard guard(S().lock);
  S().pc_enabled = false;
  Samples(S().leftover, S().ran.size());
  return 0;
}
}
