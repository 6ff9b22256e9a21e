// What the capture library needs of CUDA's driver interface and of CUPTI: structures, callback ids and constants, declared here so
// that no CUDA Toolkit is needed to build. They are ABI: NVIDIA appends to them and does not change them.
// tests/unit/capture_abi_test.cpp holds every one against the toolkit's own headers, where those are found.
//
// Handles are addresses that are never followed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::capture::abi {

using Handle = void*;  // CUfunction, CUmodule, CUstream, ...

// ---- CUPTI: callbacks ------------------------------------------------------------------------------------------------

enum Domain : uint32_t { kDriverApi = 1, kResource = 3 };

enum Site : uint32_t { kEnter = 0, kExit = 1 };

struct CallbackData {
  uint32_t site;
  const char* function_name;
  const void* parameters;  // <name>_params of the toolkit's generated_cuda_meta.h
  void* return_value;      // CUresult, at kExit
  const char* symbol_name;
  Handle context;
  uint32_t context_uid;
  uint64_t* correlation_data;
  uint32_t correlation_id;
};

struct ResourceData {
  Handle context;
  Handle stream;
  void* descriptor;  // ModuleData, GraphData
};

struct ModuleData {
  uint32_t module_id;
  size_t cubin_size;
  const char* cubin;
};

struct GraphData {
  Handle graph;
  Handle original_graph;
  Handle node;
  Handle original_node;
  uint32_t node_type;
  Handle dependency;
  Handle graph_exec;
};

enum ResourceId : uint32_t {
  kContextCreated = 1,
  kContextDestroyStarting = 2,
  kStreamCreated = 3,
  kStreamDestroyStarting = 4,
  kModuleLoaded = 6,
  kModuleUnloadStarting = 7,
  kGraphNodeCreated = 13,
  kGraphNodeDependencyCreated = 15,
  kGraphExecCreated = 18,
  kGraphNodeCloned = 20,
};

struct SubscriberParams {
  size_t struct_size;
  const char* subscriber_name;
  char* old_subscriber_name;
  size_t old_subscriber_size;
};

using CallbackFunction = void (*)(void* user, uint32_t domain, uint32_t id, const void* data);

// ---- CUPTI: activity -------------------------------------------------------------------------------------------------

enum ActivityKind : uint32_t { kMemcpy = 1, kMemset = 2, kConcurrentKernel = 10, kMemcpyPeer = 22 };

// The front part that all of CUPTI 12 and 13 share (CUpti_ActivityKernel8 and later).
struct __attribute__((packed, aligned(8))) KernelActivity {
  uint32_t kind;
  uint8_t cache_config;
  uint8_t shared_memory_config;
  uint16_t registers_per_thread;
  uint32_t partitioned_requested;
  uint32_t partitioned_executed;
  uint64_t start;
  uint64_t end;
  uint64_t completed;
  uint32_t device_id;
  uint32_t context_id;
  uint32_t stream_id;
  int32_t grid[3];
  int32_t block[3];
  int32_t static_shared_memory;
  int32_t dynamic_shared_memory;
  uint32_t local_memory_per_thread;
  uint32_t local_memory_total;
  uint32_t correlation_id;
  int64_t grid_id;
  const char* name;
  void* reserved0;
  uint64_t queued;
  uint64_t submitted;
  uint8_t launch_type;
  uint8_t carveout_is_requested;
  uint8_t carveout_requested;
  uint8_t padding;
  uint32_t shared_memory_executed;
  uint64_t graph_node_id;
  uint32_t shared_limit_config;
  uint32_t graph_id;
};

// CUpti_ActivityMemcpy5 and later.
struct __attribute__((packed, aligned(8))) MemcpyActivity {
  uint32_t kind;
  uint8_t copy_kind;
  uint8_t source_kind;
  uint8_t destination_kind;
  uint8_t flags;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device_id;
  uint32_t context_id;
  uint32_t stream_id;
  uint32_t correlation_id;
};

// CUpti_ActivityMemcpyPtoP4: copies between devices.
struct __attribute__((packed, aligned(8))) PeerCopyActivity {
  uint32_t kind;
  uint8_t copy_kind;
  uint8_t source_kind;
  uint8_t destination_kind;
  uint8_t flags;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device_id;
  uint32_t context_id;
  uint32_t stream_id;
  uint32_t source_device_id;
  uint32_t source_context_id;
  uint32_t destination_device_id;
  uint32_t destination_context_id;
  uint32_t correlation_id;
};

// CUpti_ActivityMemset4 and later.
struct __attribute__((packed, aligned(8))) MemsetActivity {
  uint32_t kind;
  uint32_t value;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device_id;
  uint32_t context_id;
  uint32_t stream_id;
  uint32_t correlation_id;
};

inline constexpr uint32_t kOldestApiVersion = 19;  // CUPTI of CUDA 12.0

// ---- Driver ----------------------------------------------------------------------------------------------------------

// Names and numbers of the driver interface's callbacks that are read. HEDDLE_DRIVER_CALL(name, id)
enum DriverCall : uint32_t {
#define HEDDLE_DRIVER_CALL(name, id) k_##name = id,
#include "frontend/capture/inject/driver_calls.def"
#undef HEDDLE_DRIVER_CALL
};

struct LaunchAttribute {
  uint32_t id;
  uint32_t padding;
  union {
    unsigned char bytes[64];
    uint32_t words[16];
  } value;
};
enum LaunchAttributeId : uint32_t { kCooperative = 2, kCluster = 4, kProgrammaticSerialization = 6 };

struct LaunchConfig {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  Handle stream;
  LaunchAttribute* attributes;
  uint32_t attribute_count;
};

struct LaunchParams {  // cuLaunchKernel; cuLaunchCooperativeKernel has no `extra`
  Handle function;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  Handle stream;
  void** kernel_params;
  void** extra;
};
struct LaunchExParams {
  const LaunchConfig* config;
  Handle function;
  void** kernel_params;
  void** extra;
};
struct KernelNodeParams {  // CUDA_KERNEL_NODE_PARAMS_v2; the first version ends at `extra`
  Handle function;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  void** kernel_params;
  void** extra;
  Handle kernel;
  Handle context;
};

inline constexpr uintptr_t kExtraEnd = 0;
inline constexpr uintptr_t kExtraBufferPointer = 1;
inline constexpr uintptr_t kExtraBufferSize = 2;

struct
    ModuleLoadParams {  // cuModuleLoad, cuModuleLoadData, cuModuleLoadDataEx, cuModuleLoadFatBinary, cuLibraryLoad*
  Handle* result;
  const void* image;
};
struct GetByNameParams {  // cuModuleGetFunction, cuLibraryGetKernel
  Handle* result;
  Handle owner;
  const char* name;
};
struct GetParams {  // cuKernelGetFunction, cuLibraryGetModule
  Handle* result;
  Handle owner;
};

struct AllocParams {  // cuMemAlloc, cuMemAllocManaged, cuMemAllocAsync
  uint64_t* address;
  size_t bytes;
};
struct PoolAllocParams {  // cuMemAllocFromPoolAsync
  uint64_t* address;
  size_t bytes;
  Handle pool;
  Handle stream;
};
struct AllocPitchParams {
  uint64_t* address;
  size_t* pitch;
  size_t width_bytes;
  size_t height;
};
struct FreeParams {  // cuMemFree, cuMemFreeAsync
  uint64_t address;
};
struct MapParams {  // cuMemMap, cuMemUnmap
  uint64_t address;
  size_t bytes;
};

// Every copy of one range begins so; HtoD has a host address as its source, DtoH as its destination.
struct CopyParams {
  uint64_t destination;
  uint64_t source;
  size_t bytes;
  Handle stream;  // of the asynchronous ones
};
struct PeerCopyParams {  // cuMemcpyPeer, cuMemcpyPeerAsync
  uint64_t destination;
  Handle destination_context;
  uint64_t source;
  Handle source_context;
  size_t bytes;
  Handle stream;  // of the asynchronous one
};
struct FillParams {  // cuMemsetD8, D16, D32: `count` elements
  uint64_t destination;
  uint32_t value;
  size_t count;
  Handle stream;
};
struct Fill2DParams {  // cuMemsetD2D8, D2D16, D2D32: rows of `width` elements
  uint64_t destination;
  size_t pitch;
  uint32_t value;
  size_t width;
  size_t height;
  Handle stream;
};

enum MemoryType : uint32_t { kHostMemory = 1, kDeviceMemory = 2, kArrayMemory = 3, kUnifiedMemory = 4 };
struct CopySide2D {
  size_t x_bytes;
  size_t y;
  uint32_t type;
  uint64_t host;
  uint64_t device;
  Handle array;
  size_t pitch;
};
struct Copy2D {  // CUDA_MEMCPY2D
  CopySide2D source;
  CopySide2D destination;
  size_t width_bytes;
  size_t height;
};
struct CopySide3D {
  size_t x_bytes;
  size_t y;
  size_t z;
  size_t level;
  uint32_t type;
  uint64_t host;
  uint64_t device;
  Handle array;
  Handle context;  // of CUDA_MEMCPY3D_PEER alone
  size_t pitch;
  size_t height;
};
struct Copy3D {  // CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER
  CopySide3D source;
  CopySide3D destination;
  size_t width_bytes;
  size_t height;
  size_t depth;
};
struct Copy2DParams {
  const Copy2D* copy;
  Handle stream;  // of the asynchronous one
};
struct Copy3DParams {
  const Copy3D* copy;
  Handle stream;
};
struct FillNodeParams {  // CUDA_MEMSET_NODE_PARAMS
  uint64_t destination;
  size_t pitch;
  uint32_t value;
  uint32_t element_bytes;
  size_t width;
  size_t height;
};

struct EventRecordParams {
  Handle event;
  Handle stream;
};
struct StreamWaitParams {
  Handle stream;
  Handle event;
  uint32_t flags;
};
struct GraphLaunchParams {
  Handle graph_exec;
  Handle stream;
};
struct GraphAddKernelParams {
  Handle* node;
  Handle graph;
  const Handle* dependencies;
  size_t dependency_count;
  const KernelNodeParams* kernel;
};
struct GraphSetKernelParams {  // cuGraphKernelNodeSetParams
  Handle node;
  const KernelNodeParams* kernel;
};
struct GraphExecSetKernelParams {
  Handle graph_exec;
  Handle node;
  const KernelNodeParams* kernel;
};
struct GraphAddTransferParams {  // cuGraphAddMemcpyNode, cuGraphAddMemsetNode
  Handle* node;
  Handle graph;
  const Handle* dependencies;
  size_t dependency_count;
  const void* transfer;  // Copy3D, FillNodeParams
  Handle context;
};
struct GraphSetTransferParams {  // cuGraphMemcpyNodeSetParams, cuGraphMemsetNodeSetParams
  Handle node;
  const void* transfer;
};
struct GraphExecSetTransferParams {
  Handle graph_exec;
  Handle node;
  const void* transfer;
};

enum NodeType : uint32_t { kKernelNode = 0, kCopyNode = 1, kFillNode = 2 };
struct NodeParams {  // CUgraphNodeParams
  uint32_t type;
  int32_t reserved[3];
  union {
    int64_t size[29];
    KernelNodeParams kernel;
    struct {
      int32_t flags;
      int32_t padding;
      Handle context;
      Copy3D params;
    } copy;
    FillNodeParams fill;
  } of;
  int64_t reserved2;
};
struct
    GraphAddNodeParams {  // cuGraphAddNode; the second version has the dependences' data before their number
  Handle* node;
  Handle graph;
  const Handle* dependencies;
  size_t dependency_count;
  const NodeParams* params;
};
struct GraphAddNode2Params {
  Handle* node;
  Handle graph;
  const Handle* dependencies;
  const void* dependency_data;
  size_t dependency_count;
  const NodeParams* params;
};
struct GraphSetNodeParams {
  Handle node;
  const NodeParams* params;
};
struct GraphExecSetNodeParams {
  Handle graph_exec;
  Handle node;
  const NodeParams* params;
};

struct TensorMapParams {  // cuTensorMapEncodeTiled
  void* map;              // 128 bytes
  uint32_t type;
  uint32_t rank;
  uint64_t address;
  const uint64_t* size;
  const uint64_t* stride_bytes;
  const uint32_t* box;
  const uint32_t* element_stride;
  uint32_t interleave;
  uint32_t swizzle;
  uint32_t promotion;
  uint32_t fill;
};
inline constexpr size_t kTensorMapBytes = 128;
struct Im2colMapParams {  // cuTensorMapEncodeIm2col
  void* map;
  uint32_t type;
  uint32_t rank;
  uint64_t address;
  const uint64_t* size;
  const uint64_t* stride_bytes;
  const int32_t* lower_corner;  // rank - 2 of them
  const int32_t* upper_corner;
  uint32_t channels_per_pixel;
  uint32_t pixels_per_column;
  const uint32_t* element_stride;
  uint32_t interleave;
  uint32_t swizzle;
  uint32_t promotion;
  uint32_t fill;
};
struct WideMapParams {  // cuTensorMapEncodeIm2colWide
  void* map;
  uint32_t type;
  uint32_t rank;
  uint64_t address;
  const uint64_t* size;
  const uint64_t* stride_bytes;
  int32_t lower_corner;
  int32_t upper_corner;
  uint32_t channels_per_pixel;
  uint32_t pixels_per_column;
  const uint32_t* element_stride;
  uint32_t interleave;
  uint32_t mode;
  uint32_t swizzle;
  uint32_t promotion;
  uint32_t fill;
};
struct ReplaceAddressParams {  // cuTensorMapReplaceAddress
  void* map;
  uint64_t address;
};

}  // namespace heddle::capture::abi
