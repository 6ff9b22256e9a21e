#include "frontend/capture/inject/settings.h"

#include <regex.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace heddle::capture {
namespace {

Settings g_settings;
regex_t g_kernels;
bool g_has_kernels = false;
uint64_t g_selected = 0;    // launches so far
int32_t g_range_depth = 0;  // open ranges of the name, of all threads

const char* Text(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == 0 ? nullptr : text;
}
uint64_t Number(const char* name, uint64_t otherwise) {
  const char* text = Text(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

void ReadSettings() {
  g_settings.folder = Text("HEDDLE_CAPTURE_FOLDER");
  g_settings.skip = Number("HEDDLE_CAPTURE_SKIP", 0);
  g_settings.count = Number("HEDDLE_CAPTURE_COUNT", UINT64_MAX);
  g_settings.range = Text("HEDDLE_CAPTURE_RANGE");
  g_settings.plan = Text("HEDDLE_CAPTURE_PLAN");
  const char* snapshot = Text("HEDDLE_CAPTURE_SNAPSHOT");
  g_settings.snapshot = snapshot == nullptr                   ? Snapshot::kNone
                        : std::strcmp(snapshot, "index") == 0 ? Snapshot::kIndex
                        : std::strcmp(snapshot, "all") == 0   ? Snapshot::kAll
                                                              : Snapshot::kNone;
  g_settings.metrics = Text("HEDDLE_CAPTURE_METRICS");
  const char* measure = Text("HEDDLE_CAPTURE_MEASURE");
  g_settings.measure = measure == nullptr                      ? Measure::kNothing
                       : std::strcmp(measure, "counters") == 0 ? Measure::kCounters
                       : std::strcmp(measure, "sass") == 0     ? Measure::kSass
                       : std::strcmp(measure, "pc") == 0       ? Measure::kPcSamples
                                                               : Measure::kNothing;
  const char* kernels = Text("HEDDLE_CAPTURE_KERNELS");
  if (kernels != nullptr && !g_has_kernels) {
    g_has_kernels = regcomp(&g_kernels, kernels, REG_EXTENDED | REG_NOSUB) == 0;
    if (!g_has_kernels) std::fprintf(stderr, "heddle capture: the expression of --kernels is not valid\n");
  }
}

const Settings& TheSettings() { return g_settings; }

bool SelectsKernel(const char* mangled_name) {
  return !g_has_kernels || regexec(&g_kernels, mangled_name, 0, nullptr, 0) == 0;
}

namespace {

bool IsInRange() {
  return g_settings.range == nullptr || __atomic_load_n(&g_range_depth, __ATOMIC_RELAXED) > 0;
}
bool IsWanted(uint64_t n) { return n >= g_settings.skip && n - g_settings.skip < g_settings.count; }

}  // namespace

bool AdmitLaunch() { return IsInRange() && IsWanted(__atomic_fetch_add(&g_selected, 1, __ATOMIC_RELAXED)); }
bool WouldAdmitLaunch() { return IsInRange() && IsWanted(__atomic_load_n(&g_selected, __ATOMIC_RELAXED)); }

bool EnterRange(const char* name, size_t length) {
  if (g_settings.range == nullptr || std::strlen(g_settings.range) != length ||
      std::memcmp(g_settings.range, name, length) != 0)
    return false;
  __atomic_fetch_add(&g_range_depth, 1, __ATOMIC_RELAXED);
  return true;
}

void LeaveRange() { __atomic_fetch_sub(&g_range_depth, 1, __ATOMIC_RELAXED); }

}  // namespace heddle::capture
