#include "tools/measure/player.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>

#include "sim/isa/tensor_map.h"

namespace heddle::measure {
namespace {

constexpr size_t kChunkBytes = 32 << 20;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// CUtensorMapDataType's numbers are those of tensormap.replace.
static_assert(static_cast<int>(isa::TensorElement::kF16) == 6 &&
              static_cast<int>(isa::TensorElement::kTF32Ftz) == 12);

}  // namespace

bool RunsOn(uint32_t code, uint32_t device) { return code / 10 == device / 10 && code <= device; }

// What is allocated for one trace, freed with it.
struct Player::Memory {
  const Driver* driver;
  std::vector<CUdeviceptr> buffers;  // as in the trace
  CUdeviceptr flush = 0;
  size_t flush_bytes = 0;
  std::map<uint32_t, CUhandle> modules;
  CUhandle begin = nullptr, end = nullptr;  // events

  explicit Memory(const Driver* used) : driver(used) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    for (const CUdeviceptr buffer : buffers) driver->cuMemFree_v2(buffer);
    if (flush != 0) driver->cuMemFree_v2(flush);
    for (const auto& [index, module] : modules) driver->cuModuleUnload(module);
    if (begin != nullptr) driver->cuEventDestroy_v2(begin);
    if (end != nullptr) driver->cuEventDestroy_v2(end);
  }

  // The GPU's address for one of the trace's; nothing where it lies in no buffer.
  std::optional<CUdeviceptr> Translate(uint64_t address, const trace::ResolvedTrace& resolved) const {
    for (size_t i = 0; i < resolved.buffers.size(); ++i) {
      const trace::ResolvedBuffer& buffer = resolved.buffers[i];
      if (address >= buffer.address && address - buffer.address <= buffer.size_bytes)
        return buffers[i] + (address - buffer.address);
    }
    return std::nullopt;
  }
};

Result<Player> Player::Open(const Driver& driver) {
  Player player(driver);
  HEDDLE_RETURN_IF_ERROR(driver.Check(driver.cuInit(0), "cuInit"));
  CUdevice device = 0;
  HEDDLE_RETURN_IF_ERROR(driver.Check(driver.cuDeviceGet(&device, 0), "cuDeviceGet"));
  CUhandle context = nullptr;
  HEDDLE_RETURN_IF_ERROR(
      driver.Check(driver.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain"));
  HEDDLE_RETURN_IF_ERROR(driver.Check(driver.cuCtxSetCurrent(context), "cuCtxSetCurrent"));
  HEDDLE_RETURN_IF_ERROR(player.Describe(device));
  return player;
}

Status Player::Describe(CUdevice device) {
  char name[256] = {};
  HEDDLE_RETURN_IF_ERROR(
      driver_.Check(driver_.cuDeviceGetName(name, sizeof name - 1, device), "cuDeviceGetName"));
  device_.name = name;
  std::map<int, int> attributes;
  for (const int attribute : {kSmCount, kL2Bytes, kThreadsPerSm, kMajor, kMinor, kSharedPerSm,
                              kRegistersPerSm, kSharedPerCta, kCtasPerSm}) {
    HEDDLE_RETURN_IF_ERROR(
        driver_.Check(driver_.cuDeviceGetAttribute(&attributes[attribute], attribute, device),
                      fmt::format("cuDeviceGetAttribute {}", attribute)));
  }
  size_t memory_bytes = 0;
  HEDDLE_RETURN_IF_ERROR(
      driver_.Check(driver_.cuDeviceTotalMem_v2(&memory_bytes, device), "cuDeviceTotalMem"));
  device_.sm_version = static_cast<uint32_t>(10 * attributes[kMajor] + attributes[kMinor]);
  device_.l2_bytes = static_cast<uint64_t>(attributes[kL2Bytes]);
  device_.symbols = {{"sm_count", attributes[kSmCount]},
                     {"l2_bytes", attributes[kL2Bytes]},
                     {"registers_per_sm", attributes[kRegistersPerSm]},
                     {"shared_bytes_per_sm", attributes[kSharedPerSm]},
                     {"shared_bytes_per_cta", attributes[kSharedPerCta]},
                     {"warps_per_sm", attributes[kThreadsPerSm] / 32},
                     {"ctas_per_sm", attributes[kCtasPerSm]},
                     {"memory_bytes", static_cast<int64_t>(memory_bytes)}};
  return Ok();
}

std::string Player::WhyNot(const trace::Trace& trace) const {
  for (const trace::Module& module : trace.modules) {
    if (module.recorded()) return "its instructions were recorded, there is no cubin";
    if (!RunsOn(module.sm_version, device_.sm_version))
      return fmt::format("it has code for sm_{}, this is sm_{}", module.sm_version, device_.sm_version);
  }
  return "";
}

Status Player::CopyOnDevice(const trace::ResolvedTrace& resolved, const trace::ResolvedContent& content,
                            const Memory& memory) {
  for (size_t i = 0; i < resolved.buffers.size(); ++i) {
    const uint64_t offset = *content.copied_from - resolved.buffers[i].address;
    if (offset >= resolved.buffers[i].size_bytes) continue;
    return driver_.Check(driver_.cuMemcpyDtoD_v2(memory.buffers[content.buffer] + content.offset_bytes,
                                                 memory.buffers[i] + offset, content.size_bytes),
                         "cuMemcpyDtoD");
  }
  return Ok();
}

Status Player::Fill(const trace::ResolvedTrace& resolved, uint32_t before_launch, const Memory& memory) {
  std::vector<std::byte> chunk;
  for (const trace::ResolvedContent& content : resolved.contents) {
    if (content.before_launch != before_launch) continue;
    if (content.copied_from) {
      HEDDLE_RETURN_IF_ERROR(CopyOnDevice(resolved, content, memory));
      continue;
    }
    if (content.source == nullptr) continue;
    for (uint64_t done = 0; done < content.size_bytes; done += chunk.size()) {
      chunk.resize(std::min<uint64_t>(kChunkBytes, content.size_bytes - done));
      content.source->Fill(done, chunk);
      const CUdeviceptr to = memory.buffers[content.buffer] + content.offset_bytes + done;
      HEDDLE_RETURN_IF_ERROR(
          driver_.Check(driver_.cuMemcpyHtoD_v2(to, chunk.data(), chunk.size()), "cuMemcpyHtoD"));
    }
  }
  return Ok();
}

Result<std::vector<std::byte>> Player::Parameters(const trace::Trace& trace,
                                                  const trace::ResolvedTrace& resolved, uint32_t launch,
                                                  const Memory& memory) const {
  std::vector<std::byte> bytes = resolved.launches[launch].parameters;
  for (const trace::ParameterPatch& patch : trace.launches[launch].patches) {
    if (patch.buffer == trace::kNone || patch.offset + sizeof(uint64_t) > bytes.size()) continue;
    uint64_t address = 0;
    std::memcpy(&address, bytes.data() + patch.offset, sizeof address);
    address += memory.buffers[patch.buffer] - resolved.buffers[patch.buffer].address;
    std::memcpy(bytes.data() + patch.offset, &address, sizeof address);
  }
  for (const trace::TensorMap& entry : trace.tensor_maps) {
    if (entry.launch != launch || entry.parameter_offset + isa::kTensorMapBytes > bytes.size()) continue;
    std::byte* at = bytes.data() + entry.parameter_offset;
    const isa::TensorMap map =
        isa::DecodeTensorMap(std::span<const std::byte, isa::kTensorMapBytes>(at, isa::kTensorMapBytes));
    const std::optional<CUdeviceptr> address = memory.Translate(map.address, resolved);
    if (!address)
      return Error{ExitCode::kTrace, trace.name, "a tensor map lies outside the trace's buffers", ""};
    // The driver wants the map at a multiple of 64 bytes.
    alignas(64) std::array<std::byte, isa::kTensorMapBytes> encoded{};
    const CUresult code = driver_.cuTensorMapEncodeTiled(
        encoded.data(), static_cast<int>(map.element), map.rank, reinterpret_cast<void*>(*address),
        map.size.data(), map.stride_bytes.data() + 1, map.box.data(), map.element_stride.data(),
        static_cast<int>(map.interleave), static_cast<int>(map.swizzle), static_cast<int>(map.promotion),
        static_cast<int>(map.fill));
    HEDDLE_RETURN_IF_ERROR(driver_.Check(code, "cuTensorMapEncodeTiled"));
    std::memcpy(at, encoded.data(), encoded.size());
  }
  return bytes;
}

struct Player::Launch {
  CUhandle kernel = nullptr;
  CUlaunchConfig config{};
  std::array<CUlaunchAttribute, 2> attributes{};
  std::vector<std::byte> parameters;
};

Status Player::Start(Launch* launch) {
  size_t bytes = launch->parameters.size();
  // CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE and _END.
  void* extra[] = {reinterpret_cast<void*>(1), launch->parameters.data(), reinterpret_cast<void*>(2), &bytes,
                   nullptr};
  launch->config.attributes = launch->attributes.data();
  return driver_.Check(
      driver_.cuLaunchKernelEx(&launch->config, launch->kernel, nullptr, bytes == 0 ? nullptr : extra),
      "cuLaunchKernelEx");
}

// Picoseconds between the two events.
Result<double> Player::TimeOnce(Launch* launch, bool cold, const Memory& memory) {
  if (cold) {
    HEDDLE_RETURN_IF_ERROR(
        driver_.Check(driver_.cuMemsetD8_v2(memory.flush, 0, memory.flush_bytes), "cuMemsetD8"));
  }
  HEDDLE_RETURN_IF_ERROR(driver_.Check(driver_.cuEventRecord(memory.begin, nullptr), "cuEventRecord"));
  HEDDLE_RETURN_IF_ERROR(Start(launch));
  HEDDLE_RETURN_IF_ERROR(driver_.Check(driver_.cuEventRecord(memory.end, nullptr), "cuEventRecord"));
  HEDDLE_RETURN_IF_ERROR(driver_.Check(driver_.cuEventSynchronize(memory.end), "cuEventSynchronize"));
  float milliseconds = 0;
  HEDDLE_RETURN_IF_ERROR(driver_.Check(driver_.cuEventElapsedTime(&milliseconds, memory.begin, memory.end),
                                       "cuEventElapsedTime"));
  return static_cast<double>(milliseconds) * 1e9;
}

Status Player::Allocate(const trace::ResolvedTrace& resolved, Memory* memory) {
  for (const trace::ResolvedBuffer& buffer : resolved.buffers) {
    CUdeviceptr address = 0;
    HEDDLE_RETURN_IF_ERROR(
        driver_.Check(driver_.cuMemAlloc_v2(&address, std::max<uint64_t>(buffer.size_bytes, 256)),
                      fmt::format("cuMemAlloc of {} bytes for {}", buffer.size_bytes, buffer.name)));
    memory->buffers.push_back(address);
  }
  return Ok();
}

Result<CUhandle> Player::Kernel(const trace::Trace& trace, const trace::Function& function, Memory* memory) {
  if (!memory->modules.contains(function.module)) {
    CUhandle module = nullptr;
    HEDDLE_RETURN_IF_ERROR(driver_.Check(
        driver_.cuModuleLoadData(&module, trace.modules[function.module].cubin.data()), "cuModuleLoadData"));
    memory->modules[function.module] = module;
  }
  CUhandle kernel = nullptr;
  HEDDLE_RETURN_IF_ERROR(driver_.Check(
      driver_.cuModuleGetFunction(&kernel, memory->modules[function.module], function.name.c_str()),
      "cuModuleGetFunction " + function.name));
  return kernel;
}

Status Player::Prepare(const trace::Trace& trace, const trace::ResolvedTrace& resolved, uint32_t index,
                       Memory* memory, Launch* launch) {
  const trace::ResolvedLaunch& from = resolved.launches[index];
  HEDDLE_ASSIGN_OR_RETURN(launch->kernel, Kernel(trace, trace.functions[from.function], memory));
  if (from.dynamic_shared_bytes > 0) {
    HEDDLE_RETURN_IF_ERROR(
        driver_.Check(driver_.cuFuncSetAttribute(launch->kernel, kMaxDynamicShared,
                                                 static_cast<int>(from.dynamic_shared_bytes)),
                      "cuFuncSetAttribute"));
  }
  launch->config = {{from.grid.x, from.grid.y, from.grid.z},
                    {from.block.x, from.block.y, from.block.z},
                    from.dynamic_shared_bytes,
                    nullptr,
                    nullptr,
                    0};
  if (from.cluster.Count() > 1) {
    CUlaunchAttribute& attribute = launch->attributes[launch->config.attribute_count++];
    attribute.id = kClusterDimension;
    attribute.value.cluster[0] = from.cluster.x;
    attribute.value.cluster[1] = from.cluster.y;
    attribute.value.cluster[2] = from.cluster.z;
    if (from.cluster.Count() > 8) {
      HEDDLE_RETURN_IF_ERROR(driver_.Check(driver_.cuFuncSetAttribute(launch->kernel, kNonPortableCluster, 1),
                                           "cuFuncSetAttribute"));
    }
  }
  HEDDLE_RETURN_IF_ERROR(Fill(resolved, index, *memory));
  HEDDLE_ASSIGN_OR_RETURN(launch->parameters, Parameters(trace, resolved, index, *memory));
  return Ok();
}

Result<std::map<std::string, std::vector<std::byte>>> Player::Play(const trace::Trace& trace,
                                                                   const std::vector<std::string>& buffers) {
  HEDDLE_ASSIGN_OR_RETURN(const trace::ResolvedTrace resolved, trace::Resolve(trace, device_.symbols));
  Memory memory(&driver_);
  HEDDLE_RETURN_IF_ERROR(Allocate(resolved, &memory));
  for (uint32_t i = 0; i < resolved.launches.size(); ++i) {
    Launch launch;
    HEDDLE_RETURN_IF_ERROR(Prepare(trace, resolved, i, &memory, &launch));
    HEDDLE_RETURN_IF_ERROR(Start(&launch));
  }
  HEDDLE_RETURN_IF_ERROR(driver_.Check(driver_.cuCtxSynchronize(), "cuCtxSynchronize"));
  std::map<std::string, std::vector<std::byte>> contents;
  for (const std::string& name : buffers) {
    const auto found = std::find_if(resolved.buffers.begin(), resolved.buffers.end(),
                                    [&](const trace::ResolvedBuffer& buffer) { return buffer.name == name; });
    if (found == resolved.buffers.end())
      return Error{ExitCode::kTrace, trace.name, fmt::format("has no buffer '{}'", name),
                   "build it from kernels/streams/streams.launch.textproto"};
    std::vector<std::byte>& bytes = contents[name];
    bytes.resize(found->size_bytes);
    const CUdeviceptr from = memory.buffers[static_cast<size_t>(found - resolved.buffers.begin())];
    HEDDLE_RETURN_IF_ERROR(
        driver_.Check(driver_.cuMemcpyDtoH_v2(bytes.data(), from, bytes.size()), "cuMemcpyDtoH"));
  }
  return contents;
}

Result<std::vector<results::HardwareRecord>> Player::Measure(const trace::Trace& trace,
                                                             const std::string& digest,
                                                             const std::string& source,
                                                             const Options& options) {
  HEDDLE_ASSIGN_OR_RETURN(const trace::ResolvedTrace resolved, trace::Resolve(trace, device_.symbols));
  Memory memory(&driver_);
  HEDDLE_RETURN_IF_ERROR(Allocate(resolved, &memory));
  memory.flush_bytes = 2 * device_.l2_bytes;
  HEDDLE_RETURN_IF_ERROR(
      driver_.Check(driver_.cuMemAlloc_v2(&memory.flush, memory.flush_bytes), "cuMemAlloc"));
  HEDDLE_RETURN_IF_ERROR(driver_.Check(driver_.cuEventCreate(&memory.begin, 0), "cuEventCreate"));
  HEDDLE_RETURN_IF_ERROR(driver_.Check(driver_.cuEventCreate(&memory.end, 0), "cuEventCreate"));

  std::vector<results::HardwareRecord> records;
  for (uint32_t i = 0; i < resolved.launches.size(); ++i) {
    const trace::ResolvedLaunch& launch = resolved.launches[i];
    const trace::Function& function = trace.functions[launch.function];
    Launch ready;
    HEDDLE_RETURN_IF_ERROR(Prepare(trace, resolved, i, &memory, &ready));
    std::vector<double> cold, warm;
    for (uint32_t n = 0; n < options.warm_up + options.repeats; ++n) {
      HEDDLE_ASSIGN_OR_RETURN(const double after_flush, TimeOnce(&ready, true, memory));
      HEDDLE_ASSIGN_OR_RETURN(const double after_itself, TimeOnce(&ready, false, memory));
      if (n < options.warm_up) continue;
      cold.push_back(after_flush);
      warm.push_back(after_itself);
    }
    results::HardwareRecord& record = records.emplace_back();
    record.gpu = device_.name;
    record.kernel_name = function.name;
    record.source = source;
    record.protocol =
        fmt::format("heddle_measure: CUDA events around one launch, median of {}, L2 flushed before each",
                    options.repeats);
    const double median = Median(cold);
    const auto [least, most] = std::minmax_element(cold.begin(), cold.end());
    record.metrics = {{"duration_ps", "ps", std::round(median)},
                      {"duration_warm_ps", "ps", std::round(Median(warm))},
                      {"duration_spread_percent", "%", median > 0 ? 100 * (*most - *least) / median : 0}};
    results::HardwareLaunch& row = record.launch.emplace();
    row.mangled_name = function.name;
    row.grid = launch.grid;
    row.block = launch.block;
    row.cluster = launch.cluster;
    row.registers_per_thread = function.registers;
    row.static_shared_bytes = function.static_shared_bytes;
    row.dynamic_shared_bytes = launch.dynamic_shared_bytes;
    row.time_resolution_ns = 500;  // of CUDA events
    row.trace_digest = digest;
    row.trace_ordinal = i;
  }
  return records;
}

}  // namespace heddle::measure
