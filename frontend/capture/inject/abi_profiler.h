// CUPTI's interfaces for counters, as abi.h has the rest: Range Profiler (cupti_range_profiler.h, cupti_profiler_host.h), SASS metrics
// (cupti_sass_metrics.h) and PC sampling (cupti_pcsampling.h) of CUPTI 13.0. Every parameter structure begins with its size: up to the
// end of the last field that is known, without padding behind it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "frontend/capture/inject/abi.h"

namespace heddle::capture::abi {

// What CUPTI calls STRUCT_SIZE(type, last_field).
#define HEDDLE_SIZE_TO(type, last_field) (offsetof(type, last_field) + sizeof(type::last_field))

struct SizeOnly {  // cuptiProfilerInitialize, cuptiProfilerDeInitialize
  size_t size;
  void* reserved;
};
struct ChipName {
  size_t size;
  void* reserved;
  size_t device;
  const char* chip;  // out
};

// ---- Host side: metric names to a configuration, counter data to values ------------------------------------------------

enum ProfilerType : uint32_t { kRangeProfilerType = 0 };

struct HostInitialize {
  size_t size;
  void* reserved;
  uint32_t type;
  const char* chip;
  const uint8_t* availability;
  void* host;  // out
};
struct HostObject {  // cuptiProfilerHostDeinitialize
  size_t size;
  void* reserved;
  void* host;
};
struct HostMetricProperties {
  size_t size;
  void* reserved;
  void* host;
  const char* metric;
  const char* description;  // out, as the following
  const char* hardware_unit;
  const char* unit;
  uint32_t type;
};
struct HostAddMetrics {
  size_t size;
  void* reserved;
  void* host;
  const char** metrics;
  size_t count;
};
struct HostImageSize {
  size_t size;
  void* reserved;
  void* host;
  size_t image_bytes;  // out
};
struct HostImage {
  size_t size;
  void* reserved;
  void* host;
  size_t image_bytes;
  uint8_t* image;
};
struct HostEvaluate {
  size_t size;
  void* reserved;
  void* host;
  const uint8_t* data;
  size_t data_bytes;
  size_t range;
  const char** metrics;
  size_t count;
  double* values;
};
struct HostChips {
  size_t size;
  void* reserved;
  size_t count;
  const char* const* names;
};

// ---- Range Profiler ----------------------------------------------------------------------------------------------------

enum ProfilerRange : uint32_t { kAutoRange = 1 };
enum ProfilerReplay : uint32_t { kKernelReplay = 2 };

struct RangeEnable {
  size_t size;
  void* reserved;
  Handle context;
  void* profiler;  // out
};
struct RangeObject {  // Disable, Start
  size_t size;
  void* reserved;
  void* profiler;
};
struct RangeSetConfig {
  size_t size;
  void* reserved;
  void* profiler;
  size_t config_bytes;
  const uint8_t* config;
  size_t data_bytes;
  uint8_t* data;
  uint32_t range;
  uint32_t replay;
  size_t most_ranges;
  uint16_t nesting_levels;
  uint16_t least_nesting_level;
  size_t pass;
  uint16_t target_nesting_level;
};
struct RangeStop {
  size_t size;
  void* reserved;
  void* profiler;
  size_t pass;  // out, as the following
  size_t target_nesting_level;
  uint8_t all_passes;
};
struct RangeDecode {
  size_t size;
  void* reserved;
  void* profiler;
  size_t dropped;  // out
};
struct RangeDataSize {
  size_t size;
  void* reserved;
  void* profiler;
  const char** metrics;
  size_t count;
  size_t most_ranges;
  uint32_t most_nodes;
  size_t data_bytes;  // out
};
struct RangeDataInitialize {
  size_t size;
  void* reserved;
  void* profiler;
  size_t data_bytes;
  uint8_t* data;
};
struct RangeDataInfo {
  size_t size;
  void* reserved;
  const uint8_t* data;
  size_t data_bytes;
  size_t ranges;  // out
};

// ---- SASS metrics ------------------------------------------------------------------------------------------------------

enum SassGranularity : uint8_t { kOfTheGpu = 0 };

struct SassMetric {
  uint64_t id;
  const char* name;
  const char* description;
};
struct SassProperties {
  size_t size;
  void* reserved;
  const char* chip;
  const char* metric;
  SassMetric details;  // out
};
struct SassConfig {
  uint64_t metric;
  uint8_t granularity;
};
struct SassSetConfig {
  size_t size;
  void* reserved;
  size_t count;
  SassConfig* configs;
  uint32_t device;
};
struct SassUnsetConfig {
  size_t size;
  void* reserved;
  uint32_t device;
};
struct SassEnable {
  size_t size;
  void* reserved;
  Handle context;
  uint8_t lazy;
};
struct SassDisable {
  size_t size;
  void* reserved;
  Handle context;
  size_t dropped;  // out
};
struct SassDataProperties {
  size_t size;
  void* reserved;
  Handle context;
  size_t records;  // out, as the following
  size_t instances;
};
struct SassValue {
  uint64_t metric;
  uint64_t value;
};
struct SassData {
  size_t size;
  void* reserved;
  uint32_t cubin_crc;
  uint32_t function_index;
  const char* function_name;
  uint32_t pc_offset;
  SassValue* values;  // a metric's instances
};
struct SassFlush {
  size_t size;
  void* reserved;
  Handle context;
  size_t records;
  size_t instances;
  SassData* data;
};

// ---- PC sampling -------------------------------------------------------------------------------------------------------

enum PcCollection : uint32_t { kKernelSerialized = 2 };
enum PcAttribute : uint32_t { kSamplingPeriod = 1, kCollectionMode = 5, kDataBuffer = 8 };

struct PcStall {
  uint32_t reason;
  uint32_t samples;
};
struct __attribute__((packed, aligned(8))) PcData {
  size_t size;
  uint64_t cubin_crc;
  uint64_t pc_offset;
  uint32_t function_index;
  uint32_t padding;
  char* function_name;  // the reader frees it
  size_t stall_count;
  PcStall* stalls;
  uint32_t correlation_id;
};
struct __attribute__((packed, aligned(8))) PcSamples {
  size_t size;
  size_t most_pcs;
  uint64_t total_samples;
  uint64_t dropped_samples;
  size_t pcs;
  size_t remaining_pcs;
  uint64_t range;
  PcData* data;
  uint64_t other_samples;
  uint8_t buffer_is_full;
};
struct PcConfiguration {
  uint32_t attribute;
  uint32_t status;
  union {
    uint64_t words[3];
    uint32_t number;
    void* pointer;
  } value;
};
struct PcConfigure {
  size_t size;
  void* reserved;
  Handle context;
  size_t count;
  PcConfiguration* configurations;
};
struct PcContext {  // Enable, Disable
  size_t size;
  void* reserved;
  Handle context;
};
struct PcGetData {
  size_t size;
  void* reserved;
  Handle context;
  void* samples;  // PcSamples
};
struct PcReasonCount {
  size_t size;
  void* reserved;
  Handle context;
  size_t* count;
};
struct PcReasons {
  size_t size;
  void* reserved;
  Handle context;
  size_t count;
  uint32_t* indices;
  char** names;  // each of 128 bytes, the caller's
};
inline constexpr size_t kReasonNameBytes = 128;

// Status codes that a measurement tells apart; the rest is passed on to the reader (cupti_status.def).
inline constexpr uint32_t kOutOfMemory = 8;
inline constexpr uint32_t kNotSupported = 27;

}  // namespace heddle::capture::abi
