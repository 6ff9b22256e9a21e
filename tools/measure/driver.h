// The part of CUDA's driver API that plays launches of a trace, found by dlopen: heddle builds and its tests run where there is
// no CUDA. Types and numbers are those of cuda.h (12.4 and later), declared here because that header need not be there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "sim/base/result.h"

namespace heddle::measure {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUhandle = void*;  // contexts, modules, functions, streams, events

struct CUlaunchAttribute {
  int id;
  char pad[4];
  union {
    char bytes[64];
    uint32_t cluster[3];
    int flag;
  } value;
};
static_assert(sizeof(CUlaunchAttribute) == 72);

struct CUlaunchConfig {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  CUhandle stream;
  CUlaunchAttribute* attributes;
  uint32_t attribute_count;
};

inline constexpr int kClusterDimension = 4;  // CU_LAUNCH_ATTRIBUTE_*
inline constexpr int kProgrammaticSerialization = 6;
inline constexpr int kMaxDynamicShared = 8;  // CU_FUNC_ATTRIBUTE_*
inline constexpr int kNonPortableCluster = 14;
enum DeviceAttribute : int {  // CU_DEVICE_ATTRIBUTE_*
  kSmCount = 16,
  kL2Bytes = 38,
  kThreadsPerSm = 39,
  kMajor = 75,
  kMinor = 76,
  kSharedPerSm = 81,
  kRegistersPerSm = 82,
  kSharedPerCta = 97,
  kCtasPerSm = 106,
};

// HEDDLE_CUDA_FUNCTION(name, parameters)
#define HEDDLE_CUDA_FUNCTIONS(X)                                                                             \
  X(cuInit, (unsigned))                                                                                      \
  X(cuDeviceGet, (CUdevice*, int))                                                                           \
  X(cuDeviceGetName, (char*, int, CUdevice))                                                                 \
  X(cuDeviceGetAttribute, (int*, int, CUdevice))                                                             \
  X(cuDeviceTotalMem_v2, (size_t*, CUdevice))                                                                \
  X(cuDevicePrimaryCtxRetain, (CUhandle*, CUdevice))                                                         \
  X(cuCtxSetCurrent, (CUhandle))                                                                             \
  X(cuCtxSynchronize, ())                                                                                    \
  X(cuModuleLoadData, (CUhandle*, const void*))                                                              \
  X(cuModuleGetFunction, (CUhandle*, CUhandle, const char*))                                                 \
  X(cuModuleUnload, (CUhandle))                                                                              \
  X(cuFuncSetAttribute, (CUhandle, int, int))                                                                \
  X(cuMemAlloc_v2, (CUdeviceptr*, size_t))                                                                   \
  X(cuMemFree_v2, (CUdeviceptr))                                                                             \
  X(cuMemcpyHtoD_v2, (CUdeviceptr, const void*, size_t))                                                     \
  X(cuMemcpyDtoD_v2, (CUdeviceptr, CUdeviceptr, size_t))                                                     \
  X(cuMemcpyDtoH_v2, (void*, CUdeviceptr, size_t))                                                           \
  X(cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t))                                                     \
  X(cuEventCreate, (CUhandle*, unsigned))                                                                    \
  X(cuEventDestroy_v2, (CUhandle))                                                                           \
  X(cuEventRecord, (CUhandle, CUhandle))                                                                     \
  X(cuEventSynchronize, (CUhandle))                                                                          \
  X(cuEventElapsedTime, (float*, CUhandle, CUhandle))                                                        \
  X(cuLaunchKernelEx, (const CUlaunchConfig*, CUhandle, void**, void**))                                     \
  X(cuTensorMapEncodeTiled, (void*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const uint32_t*, \
                             const uint32_t*, int, int, int, int))                                           \
  X(cuGetErrorName, (CUresult, const char**))

struct Driver {
#define HEDDLE_CUDA_MEMBER(name, parameters) CUresult(*name) parameters = nullptr;
  HEDDLE_CUDA_FUNCTIONS(HEDDLE_CUDA_MEMBER)
#undef HEDDLE_CUDA_MEMBER

  // `library`: "libcuda.so.1", or another that has its functions. It stays loaded.
  static Result<Driver> Load(const std::string& library);

  // Nothing, or an error that names the call and CUDA's word for the code.
  Status Check(CUresult code, const std::string& call) const;
};

}  // namespace heddle::measure
