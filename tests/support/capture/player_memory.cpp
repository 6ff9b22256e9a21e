// The player's memory, and graphs that it builds node by node.
#include <cstdio>
#include <cstring>

#include "tests/support/capture/player.h"

namespace heddle::capture::player {
namespace {

using namespace abi;

CopySide3D Side(uint32_t type, uint64_t address, size_t pitch, size_t height) {
  CopySide3D side{};
  side.type = type;
  (type == kHostMemory ? side.host : side.device) = address;
  side.pitch = pitch;
  side.height = height;
  return side;
}

CopySide2D Flat(const CopySide3D& side) {
  return {0, 0, side.type, side.host, side.device, nullptr, side.pitch};
}

// Copies and fills of several rows.
bool Rows(const std::string& verb, std::istringstream& in) {
  std::string to, from, stream = "0";
  size_t to_pitch = 0, from_pitch = 0, to_height = 0, from_height = 0, width = 0, rows = 0, layers = 0;
  uint32_t value = 0;
  if (verb == "copy2d" && in >> to >> to_pitch >> from >> from_pitch >> width >> rows >> stream) {
    const Copy2D copy{Flat(Side(kDeviceMemory, Address(from), from_pitch, 0)),
                      Flat(Side(kDeviceMemory, Address(to), to_pitch, 0)), width, rows};
    Call("cuMemcpy2DAsync", &copy, Small(stream));
  } else if (verb == "upload2d" && in >> to >> to_pitch >> from >> from_pitch >> width >> rows) {
    const std::vector<char>& bytes = g.files[from] = File(from);
    const Copy2D copy{Flat(Side(kHostMemory, reinterpret_cast<uint64_t>(bytes.data()), from_pitch, 0)),
                      Flat(Side(kDeviceMemory, Address(to), to_pitch, 0)), width, rows};
    Call("cuMemcpy2DAsync", &copy, Small(stream));
  } else if (verb == "copy3d" && in >> to >> to_pitch >> to_height >> from >> from_pitch >> from_height >>
                                     width >> rows >> layers) {
    const Copy3D copy{Side(kDeviceMemory, Address(from), from_pitch, from_height),
                      Side(kDeviceMemory, Address(to), to_pitch, to_height), width, rows, layers};
    Call("cuMemcpy3D", &copy);
  } else if (verb == "fill2d" && in >> to >> to_pitch >> value >> width >> rows >> stream) {
    Call("cuMemsetD2D32Async", Address(to), to_pitch, value, width, rows, Small(stream));
  } else {
    return false;
  }
  return true;
}

Copy3D Line(const std::string& to, const std::string& from, size_t bytes) {
  return {Side(kDeviceMemory, Address(from), bytes, 1), Side(kDeviceMemory, Address(to), bytes, 1), bytes, 1,
          1};
}

}  // namespace

bool Memory(const std::string& verb, std::istringstream& in) {
  std::istringstream again(in.str());
  std::string name, text, other;
  in >> name >> text >> other;
  if (verb == "alloc") {
    Call("cuMemAlloc", &g.buffers[name], static_cast<size_t>(std::stoull(text)));
  } else if (verb == "allocasync") {
    Call("cuMemAllocAsync", &g.buffers[name], static_cast<size_t>(std::stoull(text)), Handle{});
  } else if (verb == "allocpool") {
    Call("cuMemAllocFromPoolAsync", &g.buffers[name], static_cast<size_t>(std::stoull(text)),
         other.empty() ? Handle{} : Small(other), Handle{});
  } else if (verb == "freeasync") {
    Call("cuMemFreeAsync", g.buffers.at(name), Handle{});
  } else if (verb == "free") {
    Call("cuMemFree", g.buffers.at(name));
  } else if (verb == "upload") {
    const std::vector<char>& bytes = g.files[text] = File(text);
    const auto* data = static_cast<const void*>(bytes.data());
    if (other.empty())
      Call("cuMemcpyHtoD", Address(name), data, bytes.size());
    else
      Call("cuMemcpyHtoDAsync", Address(name), data, bytes.size(), Small(other));
  } else if (verb == "poke") {
    const std::vector<char> bytes = File(text);
    std::memcpy(reinterpret_cast<void*>(Address(name)), bytes.data(), bytes.size());
  } else if (verb == "fill") {
    std::string stream;
    const auto value = static_cast<uint32_t>(std::stoul(text));
    const auto count = static_cast<size_t>(std::stoull(other));
    if (in >> stream)
      Call("cuMemsetD32Async", Address(name), value, count, Small(stream));
    else
      Call("cuMemsetD32", Address(name), value, count);
  } else if (verb == "copy") {
    std::string stream;
    const auto bytes = static_cast<size_t>(std::stoull(other));
    if (in >> stream)
      Call("cuMemcpyDtoDAsync", Address(name), Address(text), bytes, Small(stream));
    else
      Call("cuMemcpyDtoD", Address(name), Address(text), bytes);
  } else if (verb == "peercopy") {
    std::string stream;
    in >> stream;
    Call("cuMemcpyPeerAsync", Address(name), Handle{}, Address(text), Handle{},
         static_cast<size_t>(std::stoull(other)), Small(stream));
  } else if (verb == "address") {
    std::printf("%s %llu\n", name.c_str(), static_cast<unsigned long long>(g.buffers.at(name)));
  } else if (verb == "replacemap") {
    Call("cuTensorMapReplaceAddress", static_cast<void*>(g.maps.at(name).data()), Address(text));
  } else if (verb == "im2colmap") {
    const uint64_t size[4] = {64, 8, 8, 2}, stride[3] = {128, 1024, 8192};
    const int32_t lower[2] = {-1, -1}, upper[2] = {1, 1};
    const uint32_t step[4] = {1, 1, 1, 1};
    g.maps[name].resize(128);
    Call("cuTensorMapEncodeIm2col", static_cast<void*>(g.maps[name].data()), 9u, 4u, Address(text),
         static_cast<const uint64_t*>(size), static_cast<const uint64_t*>(stride),
         static_cast<const int32_t*>(lower), static_cast<const int32_t*>(upper), 64u, 32u,
         static_cast<const uint32_t*>(step), 0u, 0u, 0u, 0u);
  } else if (verb == "tensormap") {
    uint32_t swizzle = 0, rank = 0, step[5] = {1, 1, 1, 1, 1}, box[5] = {};
    uint64_t size[5] = {}, stride[5] = {};
    in >> swizzle >> rank;
    for (uint32_t i = 0; i < rank && rank <= 5; ++i) in >> size[i];
    for (uint32_t i = 0; i + 1 < rank && rank <= 5; ++i) in >> stride[i];
    for (uint32_t i = 0; i < rank && rank <= 5; ++i) in >> box[i];
    if (!in) Fail("no tensor map");
    g.maps[name].resize(128);
    Call("cuTensorMapEncodeTiled", static_cast<void*>(g.maps[name].data()),
         static_cast<uint32_t>(std::stoul(other)), rank, g.buffers.at(text),
         static_cast<const uint64_t*>(size), static_cast<const uint64_t*>(stride),
         static_cast<const uint32_t*>(box), static_cast<const uint32_t*>(step), 0u, swizzle, 0u, 0u);
  } else {
    return Rows(verb, again);
  }
  return true;
}

bool Nodes(const std::string& verb, std::istringstream& in) {
  std::string node, graph, after, to, from;
  size_t bytes = 0;
  if (verb == "newgraph" && in >> graph) {
    Call("cuGraphCreate", &g.handles[graph], 0u);
    return true;
  }
  if (verb == "setcopynode" && in >> node >> to >> from >> bytes) {
    const Copy3D copy = Line(to, from, bytes);
    Call("cuGraphMemcpyNodeSetParams", g.handles.at(node), &copy);
    return true;
  }
  if ((verb != "kernelnode" && verb != "copynode" && verb != "fillnode") || !(in >> node >> graph >> after))
    return false;
  const Handle before = after == "-" ? nullptr : g.handles.at(after);
  const auto count = static_cast<size_t>(before != nullptr);
  if (verb == "kernelnode") {
    Launch launch = ReadLaunch(in);
    std::vector<void*> pointers = Pointers(launch);
    KernelNodeParams params{};
    params.function = launch.function;
    std::memcpy(params.grid, launch.grid, sizeof params.grid);
    std::memcpy(params.block, launch.block, sizeof params.block);
    params.shared_bytes = launch.shared;
    params.kernel_params = pointers.data();
    Call("cuGraphAddKernelNode", &g.handles[node], g.handles.at(graph), &before, count, &params);
  } else if (verb == "copynode" && in >> to >> from >> bytes) {
    const Copy3D copy = Line(to, from, bytes);
    Call("cuGraphAddMemcpyNode", &g.handles[node], g.handles.at(graph), &before, count, &copy, Handle{});
  } else {
    NodeParams params{};
    params.type = kFillNode;
    params.of.fill.element_bytes = 4;
    params.of.fill.height = 1;
    in >> to >> params.of.fill.value >> params.of.fill.width;
    params.of.fill.destination = Address(to);
    Call("cuGraphAddNode", &g.handles[node], g.handles.at(graph), &before, static_cast<const void*>(nullptr),
         count, &params);
  }
  return true;
}

}  // namespace heddle::capture::player
