#include "frontend/capture/inject/seam.h"

#include <dlfcn.h>
#include <cstdlib>

namespace heddle::capture {
namespace {

// PyTorch's wheels and the toolkit use these names.
constexpr const char* kNames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};

void* OpenCupti() {
  if (const char* named = std::getenv("HEDDLE_CUPTI"); named != nullptr && *named != 0)
    return dlopen(named, RTLD_NOW | RTLD_LOCAL);
  for (const char* name : kNames)
    if (void* loaded = dlopen(name, RTLD_NOW | RTLD_NOLOAD); loaded != nullptr) return loaded;
  for (const char* name : kNames)
    if (void* loaded = dlopen(name, RTLD_NOW | RTLD_LOCAL); loaded != nullptr) return loaded;
  return nullptr;
}

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

}  // namespace

bool FindCupti(Cupti* cupti, const char** why) {
  void* library = OpenCupti();
  *why = "libcupti";
  if (library == nullptr) return false;
#define HEDDLE_CUPTI(name, result, arguments) \
  if (!Find(library, #name, &cupti->name)) {  \
    *why = #name;                             \
    return false;                             \
  }
#define HEDDLE_CUPTI_OPTIONAL(name, result, arguments) Find(library, #name, &cupti->name);
#define HEDDLE_DRIVER(name, result, arguments)
#include "frontend/capture/inject/seam.def"
#undef HEDDLE_CUPTI
#undef HEDDLE_CUPTI_OPTIONAL
#undef HEDDLE_DRIVER
  return true;
}

bool FindProfiler(Profiler* profiler, const char** why) {
  void* library = OpenCupti();
  *why = "libcupti";
  if (library == nullptr) return false;
#define HEDDLE_PROFILER(name, parameters, last) \
  if (!Find(library, #name, &profiler->name)) { \
    *why = #name;                               \
    return false;                               \
  }
#include "frontend/capture/inject/profiler.def"
#undef HEDDLE_PROFILER
  *why = "cuptiGetDeviceId";
  return Find(library, "cuptiGetDeviceId", &profiler->cuptiGetDeviceId);
}

bool FindDriver(Driver* driver) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return false;
  bool all = true;
#define HEDDLE_CUPTI(name, result, arguments)
#define HEDDLE_CUPTI_OPTIONAL(name, result, arguments)
#define HEDDLE_DRIVER(name, result, arguments) all = Find(library, #name, &driver->name) && all;
#include "frontend/capture/inject/seam.def"
#undef HEDDLE_CUPTI
#undef HEDDLE_CUPTI_OPTIONAL
#undef HEDDLE_DRIVER
  return all;
}

}  // namespace heddle::capture
