// A stand-in for libcuda: device memory is host memory, kernels do nothing, and every call tells CUPTI's double what the driver would
// tell CUPTI. cuInit loads what CUDA_INJECTION64_PATH names, as the driver does.
//
// DOUBLE_LAZY=1: code is announced when its first function is launched. DOUBLE_PRIVATE=1: functions are found without a callback, as
// cudart does through the driver's private tables.
#include <dlfcn.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/support/capture/double_cuda.h"

namespace heddle::capture::testing {

thread_local bool t_in_callback = false;

// Never destroyed: the capture's handlers at exit come later than a static object's end.
State& S() {
  static State* const state = new State;
  return *state;
}
void ForbidInCallbacks(const char* call) {
  if (!t_in_callback) return;
  std::fprintf(stderr, "double: %s inside a CUPTI callback\n", call);
  std::abort();
}

bool Is(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr && *text == '1';
}

const CuptiHooks* Hooks() {
  for (const char* name : {"libcupti.so.13", "libcupti.so.12"}) {
    void* library = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) continue;
    if (void* found = dlsym(library, "heddle_double_cupti_hooks"); found != nullptr)
      return reinterpret_cast<const CuptiHooks* (*)()>(found)();
  }
  return nullptr;
}

void Resource(uint32_t id, Handle stream, void* descriptor) {
  const CuptiHooks* hooks = Hooks();
  if (hooks == nullptr || !hooks->wants(kResource, id)) return;
  const ResourceData data{nullptr, stream, descriptor};
  t_in_callback = true;
  hooks->call(kResource, id, &data);
  t_in_callback = false;
}

namespace {

void Announce(Module* module) {
  if (module->announced) return;
  module->announced = true;
  ModuleData data{module->id, module->cubin.size(), module->cubin.data()};
  Resource(kModuleLoaded, nullptr, &data);
}

Module* Load(const void* image) {
  // The size of an ELF file: its section headers are at the end.
  const auto* bytes = static_cast<const char*>(image);
  uint64_t table = 0;
  uint16_t entry = 0, count = 0;
  std::memcpy(&table, bytes + 0x28, 8);
  std::memcpy(&entry, bytes + 0x3a, 2);
  std::memcpy(&count, bytes + 0x3c, 2);
  uint64_t end = table + uint64_t{entry} * count;
  uint64_t programs = 0;
  uint16_t program_entry = 0, program_count = 0;
  std::memcpy(&programs, bytes + 0x20, 8);
  std::memcpy(&program_entry, bytes + 0x36, 2);
  std::memcpy(&program_count, bytes + 0x38, 2);
  end = std::max(end, programs + uint64_t{program_entry} * program_count);
  auto* module = new Module{std::string(bytes, end), ++S().next_module};
  if (!Is("DOUBLE_LAZY")) Announce(module);
  return module;
}

const char* Keep(const std::string& name) {
  const std::lock_guard guard(S().lock);
  return S().names.try_emplace(name, name).first->second.c_str();
}

}  // namespace

void Finished(uint32_t correlation, const std::string& name, uint64_t node_id, uint32_t ctas) {
  const CuptiHooks* hooks = Hooks();
  if (hooks == nullptr) return;
  FinishedKernel kernel{correlation, 0, 0, node_id, 7, Keep(name), ctas};
  {
    const std::lock_guard guard(S().lock);
    kernel.start_ns = S().clock_ns += 1000;
    kernel.end_ns = S().clock_ns += 2500;
  }
  hooks->kernel(kernel);
}

void Copied(const Api& api, uint8_t kind, uint64_t bytes) {
  const CuptiHooks* hooks = Hooks();
  if (hooks == nullptr) return;
  FinishedCopy copy{api.correlation(), 0, 0, kind, bytes};
  {
    const std::lock_guard guard(S().lock);
    copy.start_ns = S().clock_ns += 1000;
    copy.end_ns = S().clock_ns += 1500;
  }
  hooks->copy(copy);
}

namespace {

// What a launch does: runs, or becomes a node of the graph that its stream captures.
void Launch(const Api& api, Handle function, Handle stream, uint32_t ctas) {
  auto* f = static_cast<Function*>(function);
  Announce(f->module);
  Graph* graph = nullptr;
  std::vector<Node*> after;
  {
    const std::lock_guard guard(S().lock);
    if (const auto found = S().capturing.find(stream); found != S().capturing.end()) {
      graph = found->second;
      after = S().capture_tails[stream];
    }
  }
  if (graph == nullptr) return Finished(api.correlation(), f->name, 0, ctas);
  Node* node = NewNode(graph, 0, f->name, after);
  const std::lock_guard guard(S().lock);
  S().capture_tails[stream] = {node};
}

}  // namespace
}  // namespace heddle::capture::testing

using namespace heddle::capture::testing;
using namespace heddle::capture::abi;

extern "C" {

uint32_t cuInit(uint32_t) {
  static bool done = false;
  if (done) return 0;
  done = true;
  if (const char* path = std::getenv("CUDA_INJECTION64_PATH"); path != nullptr && *path != 0) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void* entry = library == nullptr ? nullptr : dlsym(library, "InitializeInjection");
    if (entry == nullptr) {
      std::fprintf(stderr, "double: %s\n", dlerror());
      return 100;
    }
    if (reinterpret_cast<int (*)()>(entry)() != 1) return 3;
  }
  return 0;
}

uint32_t cuCtxCreate_v2(Handle* context, uint32_t, int) {
  *context = reinterpret_cast<Handle>(0x10);
  Resource(kContextCreated, nullptr, nullptr);
  return 0;
}

uint32_t cuModuleLoadData(Handle* module, const void* image) {
  ModuleLoadParams params{module, image};
  API(cuModuleLoadData, params);
  *module = Load(image);
  return 0;
}
uint32_t cuLibraryLoadData(Handle* library, const void* image, void*, void*, uint32_t, void*, void*,
                           uint32_t) {
  ModuleLoadParams params{library, image};
  API(cuLibraryLoadData, params);
  *library = Load(image);
  return 0;
}
uint32_t cuModuleUnload(Handle module) {
  auto* m = static_cast<Module*>(module);
  ModuleData data{m->id, m->cubin.size(), m->cubin.data()};
  Resource(kModuleUnloadStarting, nullptr, &data);
  return 0;
}
uint32_t cuModuleGetFunction(Handle* function, Handle module, const char* name) {
  GetByNameParams params{function, module, name};
  if (Is("DOUBLE_PRIVATE")) {
    *function = new Function{static_cast<Module*>(module), name};
    return 0;
  }
  API(cuModuleGetFunction, params);
  *function = new Function{static_cast<Module*>(module), name};
  return 0;
}
uint32_t cuLibraryGetKernel(Handle* kernel, Handle library, const char* name) {
  GetByNameParams params{kernel, library, name};
  API(cuLibraryGetKernel, params);
  *kernel = new Function{static_cast<Module*>(library), name};
  return 0;
}

uint32_t cuFuncGetName(const char** name, Handle function) {
  *name = static_cast<Function*>(function)->name.c_str();
  return 0;
}
uint32_t cuLaunchKernel(Handle f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by,
                        uint32_t bz, uint32_t shared, Handle stream, void** params, void** extra) {
  LaunchParams p{f, {gx, gy, gz}, {bx, by, bz}, shared, stream, params, extra};
  const Api api(k_cuLaunchKernel, "cuLaunchKernel", &p, static_cast<Function*>(f)->name.c_str());
  Launch(api, f, stream, gx * gy * gz);
  return 0;
}
uint32_t cuLaunchCooperativeKernel(Handle f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by,
                                   uint32_t bz, uint32_t shared, Handle stream, void** params) {
  LaunchParams p{f, {gx, gy, gz}, {bx, by, bz}, shared, stream, params, reinterpret_cast<void**>(0x1)};
  const Api api(k_cuLaunchCooperativeKernel, "cuLaunchCooperativeKernel", &p,
                static_cast<Function*>(f)->name.c_str());
  Launch(api, f, stream, gx * gy * gz);
  return 0;
}
uint32_t cuLaunchKernelEx(const LaunchConfig* config, Handle f, void** params, void** extra) {
  LaunchExParams p{config, f, params, extra};
  const Api api(k_cuLaunchKernelEx, "cuLaunchKernelEx", &p, static_cast<Function*>(f)->name.c_str());
  Launch(api, f, config->stream, config->grid[0] * config->grid[1] * config->grid[2]);
  return 0;
}

uint32_t cuGetProcAddress_v2(const char* name, void** function, int, uint64_t, void*) {
  std::string symbol = name;
  void* self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  for (const char* suffix : {"_v2", ""}) {
    *function = dlsym(self, (symbol + suffix).c_str());
    if (*function != nullptr) return 0;
  }
  return 500;
}
}
