#include "tools/measure/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace heddle::measure {

Result<Driver> Driver::Load(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return Error{ExitCode::kUsage, library, fmt::format("cannot be loaded: {}", dlerror()),
                 "run this on a machine with an NVIDIA driver, or look at the plan with --dry-run"};
  }
  Driver driver;
#define HEDDLE_CUDA_LOOK_UP(name, parameters)                                                             \
  driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(handle, #name));                            \
  if (driver.name == nullptr) {                                                                           \
    return Error{ExitCode::kUsage, library, "has no " #name, "a driver of CUDA 12.4 or later is needed"}; \
  }
  HEDDLE_CUDA_FUNCTIONS(HEDDLE_CUDA_LOOK_UP)
#undef HEDDLE_CUDA_LOOK_UP
  return driver;
}

Status Driver::Check(CUresult code, const std::string& call) const {
  if (code == 0) return Ok();
  const char* name = nullptr;
  if (cuGetErrorName(code, &name) != 0 || name == nullptr) name = "an unknown error";
  return Error{ExitCode::kDidNotFinish, call, fmt::format("{} ({})", name, code), ""};
}

}  // namespace heddle::measure
