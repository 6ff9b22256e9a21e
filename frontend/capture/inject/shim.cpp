// With LD_PRELOAD: stands in front of the driver's launch functions and of NCCL's collectives, however the process finds them: by linking
// with them, by dlsym, or through cuGetProcAddress, which the CUDA runtime obtains by dlopen and dlsym. Memory may be read here: no
// CUPTI callback is running. Without LD_PRELOAD nothing here is ever called.
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <type_traits>

#include "frontend/capture/inject/capture.h"
#include "frontend/capture/inject/measure.h"
#include "frontend/capture/inject/settings.h"
#include "frontend/capture/inject/sink.h"
#include "frontend/capture/inject/snapshot.h"

#define HEDDLE_EXPORT __attribute__((visibility("default")))

namespace heddle::capture {
namespace {

using abi::Handle;
using DlsymFunction = void* (*)(void*, const char*);

constexpr uint32_t kNotFound = 500;        // CUDA_ERROR_NOT_FOUND
constexpr uint64_t kPerThreadStreams = 2;  // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

DlsymFunction RealDlsym() {
  static DlsymFunction real = nullptr;
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"})
    if (real == nullptr) real = reinterpret_cast<DlsymFunction>(dlvsym(RTLD_NEXT, "dlsym", version));
  return real;
}

// The functions that stand behind ours.
#define HEDDLE_SHIM(result, name, declaration) result(*g_##name) declaration = nullptr;
#include "frontend/capture/inject/shim.def"
#undef HEDDLE_SHIM

// For a process that links with the function: ours came first.
template <typename Function>
bool Find(Function* function, const char* name) {
  if (*function == nullptr) *function = reinterpret_cast<Function>(RealDlsym()(RTLD_NEXT, name));
  if (*function != nullptr) return true;
  void* driver = std::strncmp(name, "cu", 2) == 0 ? dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) : nullptr;
  if (driver != nullptr) *function = reinterpret_cast<Function>(RealDlsym()(driver, name));
  return *function != nullptr;
}

const SnapshotDriver& Reader() {
  static SnapshotDriver reader;
  if (reader.copy_to_host != nullptr) return reader;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return reader;
  const auto find = [&](auto* function, const char* name) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(RealDlsym()(driver, name));
  };
  find(&reader.stream_is_capturing, "cuStreamIsCapturing");
  find(&reader.context_synchronize, "cuCtxSynchronize");
  find(&reader.stream_synchronize, "cuStreamSynchronize");
  find(&reader.address_range, "cuMemGetAddressRange_v2");
  find(&reader.context_current, "cuCtxGetCurrent");
  find(&reader.function_name, "cuFuncGetName");
  find(&reader.copy_to_host, "cuMemcpyDtoH_v2");
  return reader;
}

struct Wrapped {
  const char* name;
  void* ours;
  void** real;
};

// What NCCL was looked up in: a library of Python's ctypes is in nobody's global scope.
void* g_nccl = RTLD_DEFAULT;

bool IsAskedFor() {
  static const bool asked = std::getenv("HEDDLE_CAPTURE_FOLDER") != nullptr;
  return asked;
}

}  // namespace
}  // namespace heddle::capture

extern "C" {
#define HEDDLE_SHIM(result, name, declaration) HEDDLE_EXPORT result name declaration;
#include "frontend/capture/inject/shim.def"
#undef HEDDLE_SHIM
}

namespace heddle::capture {
namespace {

const Wrapped kWrapped[] = {
#define HEDDLE_SHIM(result, name, declaration) \
  {#name, reinterpret_cast<void*>(&::name), reinterpret_cast<void**>(&g_##name)},
#include "frontend/capture/inject/shim.def"
#undef HEDDLE_SHIM
};

// Ours instead of `real`, where it is one of those above; `suffix` as in names: "", "_v2", "_ptsz".
void* Wrap(const char* name, const char* suffix, void* real) {
  if (real == nullptr || !IsAskedFor()) return real;
  const size_t length = std::strlen(name), suffix_length = std::strlen(suffix);
  for (const Wrapped& each : kWrapped) {
    if (std::strlen(each.name) != length + suffix_length || std::strncmp(each.name, name, length) != 0 ||
        std::strcmp(each.name + length, suffix) != 0)
      continue;
    if (real != each.ours) *each.real = real;
    return each.ours;
  }
  return real;
}

void WrapProcAddress(const char* name, void** function, uint64_t flags) {
  if (function == nullptr || *function == nullptr || name == nullptr) return;
  // The driver answers a plain name with the newest version and the kind of default stream that was asked for.
  void* const real = *function;
  *function = Wrap(name, (flags & kPerThreadStreams) != 0 ? "_ptsz" : "", real);
  if (*function == real && std::strcmp(name, "cuGetProcAddress") == 0) *function = Wrap(name, "_v2", real);
}

}  // namespace
}  // namespace heddle::capture

using namespace heddle::capture;

extern "C" {

// Falls through to the C library's as a tail call: it looks at who called (RTLD_NEXT).
HEDDLE_EXPORT void* dlsym(void* handle, const char* name) {
  const bool candidate = ((name[0] == 'c' && name[1] == 'u') || (name[0] == 'n' && name[1] == 'c'));
  if (!candidate) return RealDlsym()(handle, name);
  if (name[0] == 'n' && handle != RTLD_DEFAULT && handle != RTLD_NEXT) g_nccl = handle;
  return Wrap(name, "", RealDlsym()(handle, name));
}

uint32_t cuGetProcAddress(const char* name, void** function, int version, uint64_t flags) {
  if (!Find(&g_cuGetProcAddress, "cuGetProcAddress")) return kNotFound;
  const uint32_t status = g_cuGetProcAddress(name, function, version, flags);
  // cuGetProcAddress itself, asked for by an old version, has four arguments: nothing to wrap by the newer one.
  if (status == 0 && std::strcmp(name, "cuGetProcAddress") != 0) WrapProcAddress(name, function, flags);
  return status;
}
uint32_t cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t flags, void* found) {
  if (!Find(&g_cuGetProcAddress_v2, "cuGetProcAddress_v2")) return kNotFound;
  const uint32_t status = g_cuGetProcAddress_v2(name, function, version, flags, found);
  if (status == 0 && (version >= 12000 || std::strcmp(name, "cuGetProcAddress") != 0))
    WrapProcAddress(name, function, flags);
  return status;
}

#define HEDDLE_LAUNCH(name)                                                                             \
  uint32_t name(Handle f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz, \
                uint32_t shared, Handle stream, void** params, void** extra) {                          \
    if (!Find(&g_##name, #name)) return kNotFound;                                                      \
    if (SnapshotsAreOn()) SnapshotLaunch(Reader(), f, stream, params, extra);                           \
    const MeasuredLaunch measured(Reader, stream);                                                      \
    return g_##name(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);                          \
  }
HEDDLE_LAUNCH(cuLaunchKernel)
HEDDLE_LAUNCH(cuLaunchKernel_ptsz)
#undef HEDDLE_LAUNCH

#define HEDDLE_LAUNCH_EX(name)                                                                             \
  uint32_t name(const abi::LaunchConfig* config, Handle f, void** params, void** extra) {                  \
    if (!Find(&g_##name, #name)) return kNotFound;                                                         \
    if (SnapshotsAreOn() && config != nullptr) SnapshotLaunch(Reader(), f, config->stream, params, extra); \
    const MeasuredLaunch measured(Reader, config == nullptr ? nullptr : config->stream);                   \
    return g_##name(config, f, params, extra);                                                             \
  }
HEDDLE_LAUNCH_EX(cuLaunchKernelEx)
HEDDLE_LAUNCH_EX(cuLaunchKernelEx_ptsz)
#undef HEDDLE_LAUNCH_EX

#define HEDDLE_COOPERATIVE(name)                                                                        \
  uint32_t name(Handle f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz, \
                uint32_t shared, Handle stream, void** params) {                                        \
    if (!Find(&g_##name, #name)) return kNotFound;                                                      \
    if (SnapshotsAreOn()) SnapshotLaunch(Reader(), f, stream, params, nullptr);                         \
    const MeasuredLaunch measured(Reader, stream);                                                      \
    return g_##name(f, gx, gy, gz, bx, by, bz, shared, stream, params);                                 \
  }
HEDDLE_COOPERATIVE(cuLaunchCooperativeKernel)
HEDDLE_COOPERATIVE(cuLaunchCooperativeKernel_ptsz)
#undef HEDDLE_COOPERATIVE

#define HEDDLE_GRAPH_LAUNCH(name)                                \
  uint32_t name(Handle executable, Handle stream) {              \
    if (!Find(&g_##name, #name)) return kNotFound;               \
    if (SnapshotsAreOn()) SnapshotGraphLaunch(Reader(), stream); \
    NoteUnmeasuredGraph();                                       \
    return g_##name(executable, stream);                         \
  }
HEDDLE_GRAPH_LAUNCH(cuGraphLaunch)
HEDDLE_GRAPH_LAUNCH(cuGraphLaunch_ptsz)
#undef HEDDLE_GRAPH_LAUNCH

}  // extern "C"

// ---- NCCL ------------------------------------------------------------------------------------------------------------

namespace heddle::capture {
namespace {

constexpr uint32_t kNcclInternalError = 3;
constexpr uint32_t kNoPeer = 0;

void NoteCollective(const char* kind, size_t count, uint32_t type, uint32_t peer, Handle communicator,
                    Handle stream) {
  if (!SinkIsOpen()) return;
  using Ask = uint32_t (*)(Handle, int*);
  const auto ask_count = reinterpret_cast<Ask>(RealDlsym()(g_nccl, "ncclCommCount"));
  const auto ask_rank = reinterpret_cast<Ask>(RealDlsym()(g_nccl, "ncclCommUserRank"));
  int ranks = 0, rank = 0;
  if (ask_count != nullptr) ask_count(communicator, &ranks);
  if (ask_rank != nullptr) ask_rank(communicator, &rank);
  if (Record record(kCollectiveRecord, 256); record) {
    record->Bytes(1, kind, std::strlen(kind));
    record->Varint(2, count);
    record->Varint(3, type);
    record->Varint(4, static_cast<uint32_t>(ranks));
    record->Varint(5, static_cast<uint32_t>(rank));
    record->Varint(6, peer);
    record->Varint(7, reinterpret_cast<uint64_t>(communicator));
    record->Varint(8, reinterpret_cast<uint64_t>(stream));
    record->Varint(9, ThisThread().number);
  }
}

}  // namespace
}  // namespace heddle::capture

extern "C" {

uint32_t ncclAllReduce(const void* from, void* to, size_t count, uint32_t type, uint32_t op, Handle comm,
                       Handle stream) {
  if (!Find(&g_ncclAllReduce, "ncclAllReduce")) return kNcclInternalError;
  NoteCollective("all_reduce", count, type, kNoPeer, comm, stream);
  return g_ncclAllReduce(from, to, count, type, op, comm, stream);
}
uint32_t ncclReduceScatter(const void* from, void* to, size_t count, uint32_t type, uint32_t op, Handle comm,
                           Handle stream) {
  if (!Find(&g_ncclReduceScatter, "ncclReduceScatter")) return kNcclInternalError;
  NoteCollective("reduce_scatter", count, type, kNoPeer, comm, stream);
  return g_ncclReduceScatter(from, to, count, type, op, comm, stream);
}
uint32_t ncclAllGather(const void* from, void* to, size_t count, uint32_t type, Handle comm, Handle stream) {
  if (!Find(&g_ncclAllGather, "ncclAllGather")) return kNcclInternalError;
  NoteCollective("all_gather", count, type, kNoPeer, comm, stream);
  return g_ncclAllGather(from, to, count, type, comm, stream);
}
uint32_t ncclBroadcast(const void* from, void* to, size_t count, uint32_t type, int root, Handle comm,
                       Handle stream) {
  if (!Find(&g_ncclBroadcast, "ncclBroadcast")) return kNcclInternalError;
  NoteCollective("broadcast", count, type, static_cast<uint32_t>(root), comm, stream);
  return g_ncclBroadcast(from, to, count, type, root, comm, stream);
}
uint32_t ncclReduce(const void* from, void* to, size_t count, uint32_t type, uint32_t op, int root,
                    Handle comm, Handle stream) {
  if (!Find(&g_ncclReduce, "ncclReduce")) return kNcclInternalError;
  NoteCollective("reduce", count, type, static_cast<uint32_t>(root), comm, stream);
  return g_ncclReduce(from, to, count, type, op, root, comm, stream);
}
uint32_t ncclSend(const void* from, size_t count, uint32_t type, int peer, Handle comm, Handle stream) {
  if (!Find(&g_ncclSend, "ncclSend")) return kNcclInternalError;
  NoteCollective("send", count, type, static_cast<uint32_t>(peer), comm, stream);
  return g_ncclSend(from, count, type, peer, comm, stream);
}
uint32_t ncclRecv(void* to, size_t count, uint32_t type, int peer, Handle comm, Handle stream) {
  if (!Find(&g_ncclRecv, "ncclRecv")) return kNcclInternalError;
  NoteCollective("recv", count, type, static_cast<uint32_t>(peer), comm, stream);
  return g_ncclRecv(to, count, type, peer, comm, stream);
}
}
