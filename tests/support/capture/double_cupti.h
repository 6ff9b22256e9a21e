// Between the doubles of libcuda and libcupti: what the driver tells CUPTI. Found by dlsym, as two libraries would.
#pragma once

#include <cstdint>

#include "frontend/capture/inject/abi.h"

namespace heddle::capture::testing {

// One finished kernel. `name` must stay valid.
struct FinishedKernel {
  uint32_t correlation;
  uint64_t start_ns;
  uint64_t end_ns;
  uint64_t graph_node_id;
  uint32_t stream;
  const char* name;
  uint32_t ctas;
};

// double_profiler.cpp: a kernel ran; whether something is measured that kernel times exclude.
void ProfiledKernel(uint32_t correlation, uint32_t ctas);
bool IsProfiling();

// One finished copy, or fill where `kind` is 0.
struct FinishedCopy {
  uint32_t correlation;
  uint64_t start_ns;
  uint64_t end_ns;
  uint8_t kind;
  uint64_t bytes;
};

struct CuptiHooks {
  bool (*wants)(uint32_t domain, uint32_t id);
  void (*call)(uint32_t domain, uint32_t id, const void* data);
  void (*kernel)(const FinishedKernel& kernel);
  void (*copy)(const FinishedCopy& copy);
};

}  // namespace heddle::capture::testing

extern "C" const heddle::capture::testing::CuptiHooks* heddle_double_cupti_hooks();
