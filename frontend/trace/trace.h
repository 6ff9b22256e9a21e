// A trace in memory: what a .htrace holds, as plain structs.
//
// A Trace may hold expressions of shapes and of device properties. Resolve() evaluates them for one machine
// and gives launches and buffers with plain numbers, which the emulator's set-up and the simulator consume.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/trace/content.h"
#include "frontend/trace/dtype.h"
#include "sim/base/result.h"
#include "sim/base/types.h"
#include "sim/isa/instruction.h"
#include "sim/isa/tensor_map.h"

namespace heddle::trace {

inline constexpr uint32_t kNone = 0xffffffff;  // an index that points nowhere

// An integer, or the text of an expression that gives one.
struct Expr {
  int64_t value = 0;
  std::string text;  // empty: `value` is it

  Expr() = default;
  Expr(int64_t literal) : value(literal) {}  // NOLINT: implicit on purpose
  explicit Expr(std::string expression) : text(std::move(expression)) {}
  bool operator==(const Expr&) const = default;
};

// Where the trace was captured; empty in described ones.
struct Device {
  std::string name;         // "NVIDIA A100-SXM4-80GB"
  uint32_t sm_version = 0;  // 80, 90, ...
  std::map<std::string, int64_t> attributes;
  bool operator==(const Device&) const = default;
};

// A cubin, or what stands for one where instructions were recorded.
struct Module {
  std::string name;
  std::string sha256;            // of the bytes, lower-case hex
  std::vector<std::byte> cubin;  // empty: recorded, its functions have SASS and their launches warp streams
  uint32_t sm_version = 0;

  bool recorded() const { return cubin.empty(); }
  bool operator==(const Module&) const = default;
};

struct ParameterSlot {
  uint32_t ordinal = 0;
  uint32_t offset = 0;  // bytes from the start of the parameters
  uint32_t size_bytes = 0;
  bool operator==(const ParameterSlot&) const = default;
};

struct Function {
  uint32_t module = 0;
  std::string name;  // mangled
  std::vector<ParameterSlot> parameters;
  uint32_t parameter_bytes = 0;
  uint32_t registers = 0;  // per thread
  uint32_t static_shared_bytes =
      0;  // with isa::kReservedSharedBytes: as cubins since sm_90, and recordings, count them
  uint32_t local_bytes = 0;  // per thread
  uint32_t barriers = 0;
  uint32_t max_threads = 0;  // per CTA, 0 where the cubin states none
  bool operator==(const Function&) const = default;
};

// Decoded SASS of one function.
struct Sass {
  uint32_t function = 0;
  uint32_t decoder_version = 0;  // of the decoder that made it; decoded again when old
  isa::KernelCode code;
};

struct Buffer {
  std::string name;
  DType type = DType::kU8;
  std::vector<Expr> shape;  // slowest dimension first
  Expr alignment = 256;
  uint64_t address = 0;  // as captured; 0: Resolve() places it
  bool operator==(const Buffer&) const = default;
};

// What a range of memory holds before a launch. Later entries cover earlier ones.
struct Content {
  uint32_t buffer = 0;
  Expr offset_bytes = 0;
  uint32_t before_launch = 0;  // index in Trace::launches; 0: from the start
  ContentRule rule;
  bool operator==(const Content&) const = default;
};

// Part of the parameter bytes that depends on the buffers' addresses or on the machine.
struct ParameterPatch {
  uint32_t offset = 0;  // bytes from the start of the parameters
  DType type = DType::kU64;
  uint32_t buffer = kNone;  // its address is added to the value
  Expr value = 0;
  std::string real;  // a real expression, instead of the two
  bool operator==(const ParameterPatch&) const = default;
};

struct Launch {
  std::string name;  // label
  uint32_t function = 0;
  uint32_t stream = 0;
  std::array<Expr, 3> grid{Expr{1}, Expr{1}, Expr{1}};
  std::array<Expr, 3> block{Expr{1}, Expr{1}, Expr{1}};
  std::array<Expr, 3> cluster{Expr{1}, Expr{1}, Expr{1}};
  Expr dynamic_shared_bytes = 0;
  std::vector<std::byte> parameters;
  std::vector<ParameterPatch> patches;
  bool programmatic = false;       // may start before its predecessor in the stream has finished
  bool frozen_grid = false;        // computed for the device of the capture; sweeps flag it
  int64_t measured_start_ns = -1;  // -1: not known
  int64_t measured_end_ns = -1;
  bool operator==(const Launch&) const = default;
};

// `to` may start only when `from` has finished. Launches of one stream are ordered without edges.
struct Edge {
  uint32_t from = 0;  // indices in Trace::launches
  uint32_t to = 0;
  bool operator==(const Edge&) const = default;
};

// A tensor map among the parameters of a launch, by its fields (sim/isa/tensor_map.h). Resolve() writes the 128 bytes.
struct TensorMap {
  uint32_t launch = 0;
  uint32_t parameter_offset = 0;
  uint32_t buffer = kNone;
  Expr offset = 0;  // bytes from the start of the buffer; without a buffer the address itself
  isa::TensorElement element = isa::TensorElement::kF16;
  std::vector<Expr> size;          // by dimension, innermost first; as many as the rank
  std::vector<Expr> stride_bytes;  // of dimensions 1 and above
  std::vector<Expr> box;
  std::vector<Expr> element_stride;
  isa::TensorSwizzle swizzle = isa::TensorSwizzle::kNone;
  isa::TensorInterleave interleave = isa::TensorInterleave::kNone;
  isa::TensorFill fill = isa::TensorFill::kZero;
  isa::TensorPromotion promotion = isa::TensorPromotion::kNone;
  bool operator==(const TensorMap&) const = default;
};

struct Counter {
  uint32_t launch = 0;
  std::string name;  // Nsight Compute's metric name
  double value = 0;
  std::string unit;
  bool operator==(const Counter&) const = default;
};

struct Collective {
  uint32_t launch = 0;
  std::string kind;  // "all_reduce", ...
  uint64_t size_bytes = 0;
  uint32_t ranks = 0;
  bool operator==(const Collective&) const = default;
};

// Part of an imported instruction trace (recording.h). A recorded launch has a row for its header, and then one for each
// chunk of blocks in the order of the recording. Rows stand in the order of their launches.
struct WarpStreamBlob {
  uint32_t launch = 0;
  uint64_t cta = 0;   // of a chunk: its first block
  uint32_t warp = 0;  // 0
  std::vector<std::byte> bytes;
  bool operator==(const WarpStreamBlob&) const = default;
};

struct Trace {
  std::string name;
  std::string doc;
  std::vector<std::pair<std::string, Expr>> defines;  // each may use the earlier ones
  Device device;
  std::vector<Module> modules;
  std::vector<Function> functions;
  std::vector<Sass> sass;
  std::vector<Launch> launches;  // in order of submission
  std::vector<Edge> edges;
  std::vector<Buffer> buffers;
  std::vector<Content> contents;
  std::vector<TensorMap> tensor_maps;
  std::vector<Counter> counters;
  std::vector<Collective> collectives;
  std::vector<WarpStreamBlob> warp_streams;
  // The check of the output: a serialised pb::Check with every file inlined; empty: none stated. See check.h.
  std::string check;
};

// ---- For one machine
// -------------------------------------------------------------------------------------------------

using Symbols = std::map<std::string, int64_t>;  // "sm_count" -> 108

struct ResolvedBuffer {
  std::string name;
  DType type = DType::kU8;
  std::vector<uint64_t> shape;
  uint64_t address = 0;
  uint64_t size_bytes = 0;
};

struct ResolvedContent {
  uint32_t buffer = 0;
  uint64_t offset_bytes = 0;
  uint64_t size_bytes = 0;
  uint32_t before_launch = 0;
  std::shared_ptr<const ContentSource> source;  // null: contents are not known, or copied
  std::optional<uint64_t> copied_from;  // device address: what it holds when the launch is about to start
};

struct ResolvedLaunch {
  std::string name;
  uint32_t function = 0;
  uint32_t stream = 0;
  Dim3 grid;
  Dim3 block;
  Dim3 cluster;
  uint32_t dynamic_shared_bytes = 0;
  std::vector<std::byte> parameters;
  bool programmatic = false;
  bool frozen_grid = false;
};

struct ResolvedTrace {
  std::vector<std::pair<std::string, int64_t>> defines;
  std::vector<ResolvedBuffer> buffers;
  std::vector<ResolvedContent> contents;
  std::vector<ResolvedLaunch> launches;  // as many and in the same order as in the trace
};

// Evaluates every expression with the machine's properties and places the buffers: deterministic addresses
// from kFirstBufferAddress on, aligned, buffers of 1 MiB and more at multiples of 2 MiB, with unused space
// between them. `defines` replace values of the trace's own; an unknown name is an error.
inline constexpr uint64_t kFirstBufferAddress = 0x7f00'0000'0000;
Result<ResolvedTrace> Resolve(const Trace& trace, const Symbols& device, const Symbols& defines = {});

}  // namespace heddle::trace
