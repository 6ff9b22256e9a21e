// The seam between the capture and CUDA: tables of function pointers. In a real process they are found in the libraries that it has
// loaded; a test fills them with its own functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "frontend/capture/inject/abi.h"
#include "frontend/capture/inject/abi_profiler.h"

namespace heddle::capture {

struct Cupti {
#define HEDDLE_CUPTI(name, result, arguments) result(*name) arguments = nullptr;
#define HEDDLE_CUPTI_OPTIONAL(name, result, arguments) result(*name) arguments = nullptr;
#define HEDDLE_DRIVER(name, result, arguments)
#include "frontend/capture/inject/seam.def"
#undef HEDDLE_CUPTI
#undef HEDDLE_CUPTI_OPTIONAL
#undef HEDDLE_DRIVER
};

struct Driver {
#define HEDDLE_CUPTI(name, result, arguments)
#define HEDDLE_CUPTI_OPTIONAL(name, result, arguments)
#define HEDDLE_DRIVER(name, result, arguments) result(*name) arguments = nullptr;
#include "frontend/capture/inject/seam.def"
#undef HEDDLE_CUPTI
#undef HEDDLE_CUPTI_OPTIONAL
#undef HEDDLE_DRIVER
};

// What a measuring run needs besides; none of it is asked for otherwise.
struct Profiler {
#define HEDDLE_PROFILER(name, parameters, last) uint32_t (*name)(abi::parameters*) = nullptr;
#include "frontend/capture/inject/profiler.def"
#undef HEDDLE_PROFILER
  uint32_t (*cuptiGetDeviceId)(abi::Handle context, uint32_t* device) = nullptr;
};

// libcupti: the file that HEDDLE_CUPTI names, else the copy that the process has loaded (two copies disturb each other), else the
// loader's path. False: none, or it lacks a required function; `why` says which.
bool FindCupti(Cupti* cupti, const char** why);

// In the same libcupti. False: it lacks one, which `why` names.
bool FindProfiler(Profiler* profiler, const char** why);

// The libcuda that the process has loaded.
bool FindDriver(Driver* driver);

}  // namespace heddle::capture
