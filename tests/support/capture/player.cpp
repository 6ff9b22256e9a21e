// A program that uses the driver as a script says: the process that the capture is tested on. It obtains the driver as the CUDA runtime
// does: dlopen, dlsym for cuGetProcAddress, and everything else through that (PLAYER_DLSYM=1: everything through dlsym).
//
//   module NAME FILE | library NAME FILE | function NAME MODULE KERNEL | kernel NAME LIBRARY KERNEL | unload MODULE
//   alloc NAME BYTES | free NAME | allocasync NAME BYTES | allocpool NAME BYTES [POOL] | freeasync NAME | address NAME
//   upload TO FILE [STREAM] | fill TO VALUE COUNT [STREAM] | copy TO FROM BYTES [STREAM] | peercopy TO FROM BYTES STREAM
//   upload2d TO PITCH FILE FILEPITCH WIDTH ROWS | copy2d TO PITCH FROM PITCH WIDTH ROWS STREAM
//   copy3d TO PITCH HEIGHT FROM PITCH HEIGHT WIDTH ROWS LAYERS | fill2d TO PITCH VALUE WIDTH ROWS STREAM
//   poke TO FILE: what a kernel would write
//   sync STREAM | eventsync EVENT | contextsync
//   im2colmap NAME BUFFER | replacemap NAME BUFFER
//   tensormap NAME BUFFER TYPE SWIZZLE RANK SIZE... STRIDE... BOX...   (a stride less than the others)
//   launch FUNCTION GRID BLOCK SHARED STREAM VALUE...    with kernelParams; GRID and BLOCK as x,y,z
//   extra | coop | cluster as launch; `cluster` through cuLaunchKernelEx with a cluster of 2 and programmatic serialisation
//   parallel THREADS COUNT FUNCTION GRID BLOCK SHARED STREAM VALUE...
//   inthread LINE (in a thread of its own, which ends)
//   record EVENT STREAM | wait STREAM EVENT
//   begin STREAM | end STREAM GRAPH | instantiate EXEC GRAPH | graph EXEC STREAM
//   newgraph GRAPH | kernelnode NODE GRAPH AFTER FUNCTION GRID BLOCK SHARED STREAM VALUE... | copynode NODE GRAPH AFTER TO FROM BYTES |
//   setcopynode NODE TO FROM BYTES | fillnode NODE GRAPH AFTER TO VALUE COUNT      AFTER: a node, or - for none
//   push NAME | pop     (NVTX)
//   allreduce COUNT TYPE | allgather COUNT TYPE | send COUNT TYPE   (NCCL; TYPE is a number of ncclDataType_t)
//   fork (the child does the rest up to `joined`, then ends; the parent waits and goes on behind it) | joined
//   exec PROGRAM ARGUMENT (in a child)
//   say NUMBER (and the time) | sleep MS | exit (without handlers) | kill
// TO, FROM: NAME or NAME+N. VALUE: b:NAME or b:NAME+N (address of a buffer), i:N (32 bits), q:N (64 bits), m:NAME (a tensor map).
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/capture/player.h"

namespace heddle::capture::player {

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "player: %s\n", what.c_str());
  std::exit(3);
}

void* Driver(const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) Fail(dlerror());
  using GetProc = uint32_t (*)(const char*, void**, int, uint64_t, void*);
  static auto get = reinterpret_cast<GetProc>(dlsym(library, "cuGetProcAddress_v2"));
  void* found = nullptr;
  if (std::getenv("PLAYER_DLSYM") != nullptr)
    for (const char* suffix : {"_v2", ""}) {
      if (found == nullptr) found = dlsym(library, (std::string(name) + suffix).c_str());
    }
  else
    get(name, &found, 13000, 0, nullptr);
  if (found == nullptr) Fail(std::string("no ") + name);
  return found;
}

Handle Small(const std::string& text) { return reinterpret_cast<Handle>(std::stoull(text)); }

std::vector<char> File(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) Fail("no file " + path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

uint64_t Address(const std::string& text) {
  const size_t plus = text.find('+');
  const uint64_t offset = plus == std::string::npos ? 0 : std::stoull(text.substr(plus + 1));
  return g.buffers.at(text.substr(0, plus)) + offset;
}

Script g;

namespace {

using abi::LaunchAttribute;
using abi::LaunchConfig;

template <typename T>
std::vector<char> Bytes(T value) {
  std::vector<char> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::vector<char> Value(const std::string& text) {
  const std::string rest = text.substr(2);
  if (text[0] == 'i') return Bytes(static_cast<uint32_t>(std::stoll(rest)));
  if (text[0] == 'q') return Bytes(static_cast<uint64_t>(std::stoll(rest)));
  if (text[0] == 'm') return g.maps.at(rest);
  return Bytes(Address(rest));
}

}  // namespace

Launch ReadLaunch(std::istringstream& in) {
  Launch launch{};
  std::string function, grid, block, shared, stream, value;
  in >> function >> grid >> block >> shared >> stream;
  launch.function = g.handles.at(function);
  if (std::sscanf(grid.c_str(), "%u,%u,%u", &launch.grid[0], &launch.grid[1], &launch.grid[2]) != 3 ||
      std::sscanf(block.c_str(), "%u,%u,%u", &launch.block[0], &launch.block[1], &launch.block[2]) != 3)
    Fail("no grid or block");
  launch.shared = static_cast<uint32_t>(std::stoul(shared));
  launch.stream = Small(stream);
  while (in >> value) launch.values.push_back(Value(value));
  return launch;
}

namespace {}  // namespace

std::vector<void*> Pointers(Launch& launch) {
  std::vector<void*> pointers;
  for (auto& value : launch.values) pointers.push_back(value.data());
  return pointers;
}

namespace {

void Run(Launch& l, void** pointers, void** extra) {
  Call("cuLaunchKernel", l.function, l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1], l.block[2],
       l.shared, l.stream, pointers, extra);
}

void LaunchWith(const std::string& kind, Launch l) {
  std::vector<void*> pointers = Pointers(l);
  if (kind == "launch") return Run(l, pointers.data(), nullptr);
  if (kind == "coop")
    return Call("cuLaunchCooperativeKernel", l.function, l.grid[0], l.grid[1], l.grid[2], l.block[0],
                l.block[1], l.block[2], l.shared, l.stream, pointers.data());
  if (kind == "extra") {
    std::vector<char> buffer;  // each value at a multiple of its size
    for (const auto& value : l.values) {
      while (buffer.size() % value.size() != 0) buffer.push_back(0);
      buffer.insert(buffer.end(), value.begin(), value.end());
    }
    size_t size = buffer.size();
    void* extra[] = {reinterpret_cast<void*>(1), buffer.data(), reinterpret_cast<void*>(2), &size, nullptr};
    return Run(l, nullptr, extra);
  }
  LaunchAttribute attributes[2]{};
  attributes[0].id = 4;
  attributes[0].value.words[0] = 2;
  attributes[0].value.words[1] = attributes[0].value.words[2] = 1;
  attributes[1].id = 6;
  attributes[1].value.words[0] = 1;
  LaunchConfig config{};
  std::memcpy(config.grid, l.grid, sizeof l.grid);
  std::memcpy(config.block, l.block, sizeof l.block);
  config.shared_bytes = l.shared;
  config.stream = l.stream;
  config.attributes = attributes;
  config.attribute_count = 2;
  Call("cuLaunchKernelEx", static_cast<const LaunchConfig*>(&config), l.function, pointers.data(),
       static_cast<void**>(nullptr));
}

void Parallel(std::istringstream& in) {
  unsigned threads = 0, count = 0;
  in >> threads >> count;
  const Launch launch = ReadLaunch(in);
  std::vector<std::thread> running;
  for (unsigned t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      Launch mine = launch;
      mine.stream = reinterpret_cast<Handle>(reinterpret_cast<uintptr_t>(mine.stream) + t);
      for (unsigned i = 0; i < count; ++i) LaunchWith("launch", mine);
    });
  for (std::thread& each : running) each.join();
}

// NVTX as its headers do it: the injection library fills a table of functions.
using PushFunction = int (*)(const char*);
using PopFunction = int (*)();
PushFunction g_push = nullptr;
PopFunction g_pop = nullptr;

int FunctionTable(int module, void**** table, unsigned* size) {
  static void** entries[16] = {};
  if (module != 1) return 0;
  entries[9] = reinterpret_cast<void**>(&g_push);
  entries[11] = reinterpret_cast<void**>(&g_pop);
  *table = entries;
  *size = 12;
  return 1;
}
struct NvtxTable {
  size_t size;
  int (*get)(int, void****, unsigned*);
};
const void* ExportTable(uint32_t id) {
  static const NvtxTable table = {sizeof(NvtxTable), FunctionTable};
  return id == 1 ? &table : nullptr;
}
void StartNvtx() {
  const char* path = std::getenv("NVTX_INJECTION64_PATH");
  void* library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void* entry = library == nullptr ? nullptr : dlsym(library, "InitializeInjectionNvtx2");
  if (entry != nullptr) reinterpret_cast<int (*)(const void* (*)(uint32_t))>(entry)(ExportTable);
}

// As vLLM's pynccl has it: a library of its own, functions by dlsym.
bool Collective(const std::string& verb, std::istringstream& in) {
  std::string count, type;
  if (verb != "allreduce" && verb != "allgather" && verb != "send") return false;
  in >> count >> type;
  static void* const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) Fail(dlerror());
  const size_t elements = std::stoull(count);
  const auto of_type = static_cast<uint32_t>(std::stoul(type));
  Handle none = nullptr;
  if (verb == "allreduce")
    reinterpret_cast<uint32_t (*)(const void*, void*, size_t, uint32_t, uint32_t, Handle, Handle)>(
        dlsym(library, "ncclAllReduce"))(none, none, elements, of_type, 0, none, none);
  else if (verb == "allgather")
    reinterpret_cast<uint32_t (*)(const void*, void*, size_t, uint32_t, Handle, Handle)>(
        dlsym(library, "ncclAllGather"))(none, none, elements, of_type, none, none);
  else
    reinterpret_cast<uint32_t (*)(const void*, size_t, uint32_t, int, Handle, Handle)>(
        dlsym(library, "ncclSend"))(none, elements, of_type, 3, none, none);
  return true;
}

bool Code(const std::string& verb, std::istringstream& in) {
  std::string name, text, kernel;
  in >> name >> text >> kernel;
  Handle none = nullptr;
  if (verb == "module") {
    g.files[name] = File(text);
    Call("cuModuleLoadData", &g.handles[name], static_cast<const void*>(g.files[name].data()));
  } else if (verb == "library") {
    g.files[name] = File(text);
    Call("cuLibraryLoadData", &g.handles[name], static_cast<const void*>(g.files[name].data()), none, none,
         0u, none, none, 0u);
  } else if (verb == "function") {
    Call("cuModuleGetFunction", &g.handles[name], g.handles.at(text), kernel.c_str());
  } else if (verb == "kernel") {
    Call("cuLibraryGetKernel", &g.handles[name], g.handles.at(text), kernel.c_str());
  } else if (verb == "unload") {
    Call("cuModuleUnload", g.handles.at(name));
  } else {
    return false;
  }
  return true;
}

bool Streams(const std::string& verb, std::istringstream& in) {
  std::string a, b;
  in >> a >> b;
  if (verb == "record")
    Call("cuEventRecord", Small(a), Small(b));
  else if (verb == "wait")
    Call("cuStreamWaitEvent", Small(a), Small(b), 0u);
  else if (verb == "begin")
    Call("cuStreamBeginCapture", Small(a), 0u);
  else if (verb == "end")
    Call("cuStreamEndCapture", Small(a), &g.handles[b]);
  else if (verb == "instantiate")
    Call("cuGraphInstantiateWithFlags", &g.handles[a], g.handles.at(b), uint64_t{0});
  else if (verb == "graph")
    Call("cuGraphLaunch", g.handles.at(a), Small(b));
  else if (verb == "sync")
    Call("cuStreamSynchronize", Small(a));
  else if (verb == "eventsync")
    Call("cuEventSynchronize", Small(a));
  else if (verb == "contextsync")
    Call("cuCtxSynchronize");
  else if (verb == "push" && g_push != nullptr)
    g_push(a.c_str());
  else if (verb == "pop" && g_pop != nullptr)
    g_pop();
  else
    return verb == "push" || verb == "pop";
  return true;
}

void Process(const std::string& verb, std::istringstream& in, std::istream& script, bool* is_child) {
  int milliseconds = 0;
  if (verb == "sleep" && in >> milliseconds) {
    usleep(static_cast<useconds_t>(milliseconds) * 1000);
  } else if (verb == "say" && in >> milliseconds) {  // a number, and when it was said
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    std::printf("%d %lld\n", milliseconds,
                static_cast<long long>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()));
    std::fflush(stdout);
  } else if (verb == "exit") {
    std::fflush(nullptr);
    _exit(0);
  } else if (verb == "kill") {
    kill(getpid(), SIGKILL);
  } else if (verb == "exec") {
    std::string program, argument;
    in >> program >> argument;
    const pid_t child = fork();
    if (child == 0) {
      execl(program.c_str(), program.c_str(), argument.c_str(), static_cast<char*>(nullptr));
      _exit(127);
    }
    waitpid(child, nullptr, 0);
  } else if (verb == "joined") {
    if (*is_child) std::exit(0);
  } else if (verb == "fork") {
    std::fflush(nullptr);
    const pid_t child = fork();
    *is_child = child == 0;
    if (*is_child) return;
    waitpid(child, nullptr, 0);
    for (std::string line; std::getline(script, line) && line != "joined";) {
    }
  } else {
    Fail("unknown " + verb);
  }
}

// One line of the script.
void Do(const std::string& line, std::istream& script, bool* is_child) {
  std::istringstream in(line);
  std::string verb;
  if (!(in >> verb)) return;
  const auto rest = [&] { return std::istringstream(line.substr(verb.size())); };
  if (verb == "launch" || verb == "extra" || verb == "coop" || verb == "cluster")
    return LaunchWith(verb, ReadLaunch(in));
  if (verb == "parallel") return Parallel(in);
  if (verb == "inthread") {
    std::thread([&] { Do(rest().str().substr(1), script, is_child); }).join();
    return;
  }
  std::istringstream a = rest(), b = rest(), c = rest(), d = rest(), e = rest(), f = rest();
  if (!Memory(verb, a) && !Code(verb, b) && !Streams(verb, c) && !Collective(verb, e) && !Nodes(verb, f))
    Process(verb, d, script, is_child);
}

}  // namespace
}  // namespace heddle::capture::player

using namespace heddle::capture::player;

int main(int argc, char** argv) {
  if (argc != 2) Fail("give a script");
  std::ifstream script(argv[1]);
  StartNvtx();
  Call("cuInit", 0u);
  Handle context = nullptr;
  Call("cuCtxCreate", &context, 0u, 0);
  bool is_child = false;
  for (std::string line; std::getline(script, line);) Do(line, script, &is_child);
  return 0;
}
