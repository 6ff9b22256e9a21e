// Stand-in for libcudart and libcuda. Only what host code of kernels calls between its checks and its launch; whatever else it
// wants is an undefined symbol, which names itself.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "recorder.h"

namespace heddle::recorder {
namespace {

constexpr uint64_t kFirstAddress = 0x5a0000000000;
constexpr uint64_t kGranularity = 4096;
// Of a driver, newer than the library: CUTLASS clears a bit of encoded maps of small tensors where the driver is 13.1 or older.
constexpr int kDriverVersion = 13020;

Device device{9, 0, 132, 232448, 233472, 65536, 2048, 50 << 20};
void (*on_launch)(const LaunchRecord*) = nullptr;
void (*on_write)(const WriteRecord*) = nullptr;
void (*on_allocation)(uint64_t, uint64_t) = nullptr;
uint64_t next_address = kFirstAddress;

std::unordered_map<const void*, const char*>& Kernels() {
  static auto* kernels = new std::unordered_map<const void*, const char*>;
  return *kernels;
}

void Record(const void* function, dim3 grid, dim3 block, void** parameters, size_t shared, LaunchRecord record) {
  const auto known = Kernels().find(function);
  record.kernel = known == Kernels().end() ? "?" : known->second;
  const auto copy = [](uint32_t* to, dim3 from) { to[0] = from.x, to[1] = from.y, to[2] = from.z; };
  copy(record.grid, grid);
  copy(record.block, block);
  record.dynamic_shared_bytes = static_cast<uint32_t>(shared);
  record.parameters = parameters;
  if (on_launch != nullptr) on_launch(&record);
}

LaunchRecord Plain() {
  LaunchRecord record{};
  std::fill_n(record.cluster, 3, 1u);
  return record;
}

LaunchRecord FromAttributes(const cudaLaunchAttribute* attributes, unsigned count) {
  LaunchRecord record = Plain();
  for (const cudaLaunchAttribute* a = attributes; a != attributes + count; ++a) {
    switch (a->id) {
      case cudaLaunchAttributeClusterDimension:
        record.cluster[0] = a->val.clusterDim.x;
        record.cluster[1] = a->val.clusterDim.y;
        record.cluster[2] = a->val.clusterDim.z;
        break;
      case cudaLaunchAttributeProgrammaticStreamSerialization:
        record.programmatic = a->val.programmaticStreamSerializationAllowed != 0;
        break;
      case cudaLaunchAttributeCooperative:
        record.cooperative = a->val.cooperative != 0;
        break;
      default:
        break;
    }
  }
  return record;
}

// What a device says of itself; attributes that are not here read as 0 and say so, because host code branches on them.
int Attribute(int attribute) {
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: return device.major;
    case cudaDevAttrComputeCapabilityMinor: return device.minor;
    case cudaDevAttrMultiProcessorCount: return device.multiprocessors;
    case cudaDevAttrMaxSharedMemoryPerBlock: return 49152;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return device.shared_bytes_per_block;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return device.shared_bytes_per_multiprocessor;
    case cudaDevAttrReservedSharedMemoryPerBlock: return 1024;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: return device.registers_per_multiprocessor;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return device.threads_per_multiprocessor;
    case cudaDevAttrMaxBlocksPerMultiprocessor: return 32;
    case cudaDevAttrMaxThreadsPerBlock: return 1024;
    case cudaDevAttrMaxGridDimX: return 2147483647;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: return 65535;
    case cudaDevAttrWarpSize: return 32;
    case cudaDevAttrL2CacheSize: return device.l2_bytes;
    case cudaDevAttrCooperativeLaunch: return 1;
    case cudaDevAttrClusterLaunch: return device.major >= 9;
    default:
      std::fprintf(stderr, "recorder: device attribute %d is asked for and not known\n", attribute);
      return 0;
  }
}

}  // namespace

uint64_t Allocate(uint64_t bytes) {
  const uint64_t address = next_address;
  next_address += (std::max<uint64_t>(bytes, 1) + 2 * kGranularity - 1) / kGranularity * kGranularity;
  if (on_allocation != nullptr) on_allocation(address, bytes);
  return address;
}

void Write(const WriteRecord& write) {
  if (on_write != nullptr) on_write(&write);
}

bool IsDevice(uint64_t address) { return address >= kFirstAddress && address < next_address; }

}  // namespace heddle::recorder

using heddle::recorder::Allocate;
using heddle::recorder::LaunchRecord;
using heddle::recorder::RecordedTensorMap;

extern "C" {

void heddle_set_device(const heddle::recorder::Device* device) { heddle::recorder::device = *device; }
void heddle_on_launch(void (*callback)(const LaunchRecord*)) { heddle::recorder::on_launch = callback; }
void heddle_on_write(void (*callback)(const heddle::recorder::WriteRecord*)) {
  heddle::recorder::on_write = callback;
}
void heddle_on_allocation(void (*callback)(uint64_t, uint64_t)) { heddle::recorder::on_allocation = callback; }
uint64_t heddle_allocate(uint64_t bytes) { return Allocate(bytes); }
const char* heddle_load(const char* path) {
  return dlopen(path, RTLD_LAZY | RTLD_GLOBAL) == nullptr ? dlerror() : nullptr;
}

// Registration of device code, as nvcc's host code calls it.
void** __cudaRegisterFatBinary(void* fat_binary) {
  auto** handle = new void*(fat_binary);
  return handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void** handle) { delete handle; }
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  heddle::recorder::Kernels()[host] = name;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
  return cudaSuccess;
}

// The last <<<>>>, which the stub of the kernel takes again.
struct CallConfiguration {
  dim3 grid, block;
  size_t shared;
  void* stream;
};
static CallConfiguration call_configuration;
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  call_configuration = {grid, block, shared, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  *grid = call_configuration.grid;
  *block = call_configuration.block;
  *shared = call_configuration.shared;
  *static_cast<void**>(stream) = call_configuration.stream;
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** parameters, size_t shared,
                             cudaStream_t) {
  heddle::recorder::Record(function, grid, block, parameters, shared, heddle::recorder::Plain());
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** parameters, size_t shared,
                               cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, parameters, shared, stream);
}
cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** parameters, size_t shared,
                                        cudaStream_t) {
  LaunchRecord record = heddle::recorder::Plain();
  record.cooperative = 1;
  heddle::recorder::Record(function, grid, block, parameters, shared, record);
  return cudaSuccess;
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** parameters) {
  heddle::recorder::Record(function, config->gridDim, config->blockDim, parameters, config->dynamicSmemBytes,
                           heddle::recorder::FromAttributes(config->attrs, config->numAttrs));
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = heddle::recorder::Attribute(attribute);
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  const heddle::recorder::Device& device = heddle::recorder::device;
  *properties = {};
  std::strcpy(properties->name, "heddle");
  properties->major = device.major;
  properties->minor = device.minor;
  properties->multiProcessorCount = device.multiprocessors;
  properties->sharedMemPerBlock = 49152;
  properties->sharedMemPerBlockOptin = static_cast<size_t>(device.shared_bytes_per_block);
  properties->sharedMemPerMultiprocessor = static_cast<size_t>(device.shared_bytes_per_multiprocessor);
  properties->regsPerBlock = properties->regsPerMultiprocessor = device.registers_per_multiprocessor;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = device.threads_per_multiprocessor;
  properties->warpSize = 32;
  properties->l2CacheSize = device.l2_bytes;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int, size_t, unsigned) {
  return *blocks = 1, cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int, size_t) {
  return *blocks = 1, cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void*, const cudaLaunchConfig_t* config) {
  unsigned ctas = 1;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute& a = config->attrs[i];
    if (a.id == cudaLaunchAttributeClusterDimension)
      ctas = a.val.clusterDim.x * a.val.clusterDim.y * a.val.clusterDim.z;
  }
  *clusters = heddle::recorder::device.multiprocessors / static_cast<int>(ctas);
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "an error that the recorder does not know"; }
const char* cudaGetErrorName(cudaError_t) { return "cudaErrorUnknown"; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  return *status = cudaStreamCaptureStatusNone, cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return *version = heddle::recorder::kDriverVersion, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  *pointer = reinterpret_cast<void*>(Allocate(bytes));
  return cudaSuccess;
}
cudaError_t cudaFree(void*) { return cudaSuccess; }
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
  if (heddle::recorder::IsDevice(reinterpret_cast<uint64_t>(from))) {
    std::fprintf(stderr, "recorder: a copy from device memory, whose contents nobody knows\n");
    std::abort();
  }
  heddle::recorder::Write({reinterpret_cast<uint64_t>(to), from, bytes, 0});
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t) {
  heddle::recorder::Write({reinterpret_cast<uint64_t>(to), nullptr, bytes, static_cast<uint8_t>(value)});
  return cudaSuccess;
}

CUresult cuDriverGetVersion(int* version) { return *version = heddle::recorder::kDriverVersion, CUDA_SUCCESS; }
CUresult cuGetErrorString(CUresult, const char** text) { return *text = "unknown", CUDA_SUCCESS; }

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType element, cuuint32_t rank, void* address,
                                const cuuint64_t* size, const cuuint64_t* stride, const cuuint32_t* box,
                                const cuuint32_t* element_stride, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill) {
  if (rank < 1 || rank > 5) return CUDA_ERROR_INVALID_VALUE;
  RecordedTensorMap record{};
  std::memcpy(record.mark, heddle::recorder::kTensorMapMark, sizeof record.mark);
  record.address = reinterpret_cast<uint64_t>(address);
  record.element = static_cast<uint8_t>(element);
  record.rank = static_cast<uint8_t>(rank);
  record.interleave = static_cast<uint8_t>(interleave);
  record.swizzle = static_cast<uint8_t>(swizzle);
  record.promotion = static_cast<uint8_t>(promotion);
  record.fill = static_cast<uint8_t>(fill);
  for (uint32_t d = 0; d < rank; ++d) {
    record.size[d] = size[d];
    if (d > 0) record.stride_bytes[d - 1] = stride[d - 1];
    record.box[d] = static_cast<uint16_t>(box[d]);
    record.element_stride[d] = static_cast<uint8_t>(element_stride[d]);
  }
  std::memcpy(map, &record, sizeof record);
  return CUDA_SUCCESS;
}
CUresult cuTensorMapEncodeIm2col(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                                 const cuuint64_t*, const int*, const int*, cuuint32_t, cuuint32_t, const cuuint32_t*,
                                 CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                                 CUtensorMapFloatOOBfill) {
  std::fprintf(stderr, "recorder: cuTensorMapEncodeIm2col: im2col copies are not simulated\n");
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  RecordedTensorMap record;
  std::memcpy(&record, map, sizeof record);
  if (std::memcmp(record.mark, heddle::recorder::kTensorMapMark, sizeof record.mark) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  record.address = reinterpret_cast<uint64_t>(address);
  std::memcpy(map, &record, sizeof record);
  return CUDA_SUCCESS;
}

// Entry points by name: what is defined here.
CUresult cuGetProcAddress_v2(const char* name, void** function, int, cuuint64_t,
                             CUdriverProcAddressQueryResult* status) {
  *function = dlsym(RTLD_DEFAULT, name);
  if (status != nullptr)
    *status = *function == nullptr ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND : CU_GET_PROC_ADDRESS_SUCCESS;
  if (*function == nullptr) std::fprintf(stderr, "recorder: no driver function %s\n", name);
  return *function == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* status) {
  const CUresult result = cuGetProcAddress_v2(name, function, 0, 0, nullptr);
  if (status != nullptr)
    *status = result == CUDA_SUCCESS ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorUnknown;
}

}  // extern "C"
