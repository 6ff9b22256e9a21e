#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "frontend/trace/expression.h"
#include "frontend/trace/trace.h"
#include "sim/base/suggest.h"

namespace heddle::trace {
namespace {

constexpr uint64_t kMaxBufferBytes = uint64_t{1} << 44;
constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr uint64_t kHugeFrom = uint64_t{1} << 20;
constexpr uint64_t kGuardBytes = 4096;
constexpr uint64_t kAddressLimit = uint64_t{1} << 49;

class Resolver {
 public:
  Resolver(const Trace& trace, const Symbols& device) : trace_(trace) {
    for (const auto& [name, value] : device) scope_.symbols[name] = value;
  }

  Result<ResolvedTrace> Run(const Symbols& defines) {
    HEDDLE_RETURN_IF_ERROR(Defines(defines));
    for (size_t i = 0; i < trace_.buffers.size(); ++i) HEDDLE_RETURN_IF_ERROR(AddBuffer(trace_.buffers[i]));
    HEDDLE_RETURN_IF_ERROR(Place());
    for (size_t i = 0; i < trace_.contents.size(); ++i)
      HEDDLE_RETURN_IF_ERROR(AddContent(trace_.contents[i]));
    for (size_t i = 0; i < trace_.launches.size(); ++i) HEDDLE_RETURN_IF_ERROR(AddLaunch(trace_.launches[i]));
    for (const TensorMap& map : trace_.tensor_maps) HEDDLE_RETURN_IF_ERROR(Write(map));
    return std::move(out_);
  }

 private:
  std::string At(const std::string& what) const {
    return trace_.name.empty() ? what : trace_.name + ", " + what;
  }
  static Error Bad(std::string place, std::string message, std::string next_step) {
    return Error{ExitCode::kTrace, std::move(place), std::move(message), std::move(next_step)};
  }

  Result<int64_t> Evaluate(const Expr& expr, const std::string& place) const {
    if (expr.text.empty()) return expr.value;
    return EvaluateInteger(expr.text, scope_, place);
  }
  // In [low, high].
  Result<int64_t> EvaluateIn(const Expr& expr, int64_t low, int64_t high, const std::string& place) const {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t value, Evaluate(expr, place));
    if (value < low || value > high)
      return Bad(place,
                 fmt::format("{}{} must lie between {} and {}",
                             expr.text.empty() ? "" : fmt::format("\"{}\" = ", expr.text), value, low, high),
                 "correct the description, or the --define that leads to it");
    return value;
  }

  Status Defines(const Symbols& overrides) {
    std::vector<std::string> known;
    for (const auto& [name, value] : trace_.defines) known.push_back(name);
    for (const auto& [name, value] : overrides) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      const std::string near = Suggest(name, known);
      return Bad(At("--define " + name), "the trace defines no such name",
                 near.empty() ? "`heddle trace info` lists what it defines"
                              : fmt::format("did you mean '{}'?", near));
    }
    for (const auto& [name, expr] : trace_.defines) {
      const auto override_value = overrides.find(name);
      int64_t value = 0;
      if (override_value != overrides.end()) {
        value = override_value->second;
      } else {
        HEDDLE_ASSIGN_OR_RETURN(value, Evaluate(expr, At("define " + name)));
      }
      scope_.symbols[name] = value;
      out_.defines.emplace_back(name, value);
    }
    return Ok();
  }

  Status AddBuffer(const Buffer& buffer) {
    const std::string place = At(fmt::format("buffer '{}'", buffer.name));
    ResolvedBuffer resolved;
    resolved.name = buffer.name;
    resolved.type = buffer.type;
    resolved.address = buffer.address;
    uint64_t bytes = SizeOf(buffer.type);
    for (const Expr& dim : buffer.shape) {
      HEDDLE_ASSIGN_OR_RETURN(const int64_t extent, EvaluateIn(dim, 1, int64_t{1} << 40, place + ", shape"));
      resolved.shape.push_back(static_cast<uint64_t>(extent));
      if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes) || bytes > kMaxBufferBytes)
        return Bad(place, "is larger than 16 TiB", "choose smaller shapes");
    }
    resolved.size_bytes = bytes;
    if (!buffer.name.empty()) scope_.buffers[buffer.name] = {resolved.shape, SizeOf(buffer.type)};
    out_.buffers.push_back(std::move(resolved));
    return Ok();
  }

  // In the order of declaration.
  Status Place() {
    uint64_t cursor = kFirstBufferAddress;
    for (size_t i = 0; i < out_.buffers.size(); ++i) {
      ResolvedBuffer& buffer = out_.buffers[i];
      if (buffer.address != 0) continue;
      const std::string place = At(fmt::format("buffer '{}', alignment", buffer.name));
      HEDDLE_ASSIGN_OR_RETURN(const int64_t asked,
                              EvaluateIn(trace_.buffers[i].alignment, 1, int64_t{1} << 30, place));
      auto alignment = static_cast<uint64_t>(asked);
      if ((alignment & (alignment - 1)) != 0)
        return Bad(place, fmt::format("{} is no power of two", alignment), "correct it");
      if (buffer.size_bytes >= kHugeFrom) alignment = std::max(alignment, kHugePage);
      buffer.address = (cursor + alignment - 1) & ~(alignment - 1);
      cursor = buffer.address + buffer.size_bytes + kGuardBytes;
      if (cursor > kAddressLimit)
        return Bad(place, "the buffers do not fit into the address space", "choose smaller shapes");
    }
    return Ok();
  }

  Result<double> Number(const std::string& text, double otherwise, const std::string& place) const {
    if (text.empty()) return otherwise;
    return EvaluateReal(text, scope_, place);
  }
  Result<uint64_t> Count(const std::string& text, uint64_t otherwise, const std::string& place) const {
    if (text.empty()) return otherwise;
    HEDDLE_ASSIGN_OR_RETURN(const int64_t value,
                            EvaluateIn(Expr{text}, 0, std::numeric_limits<int64_t>::max(), place));
    return static_cast<uint64_t>(value);
  }

  Status AddContent(const Content& content) {
    const ResolvedBuffer& buffer = out_.buffers[content.buffer];
    const std::string place = At(fmt::format("contents of '{}'", buffer.name));
    ResolvedContent resolved;
    resolved.buffer = content.buffer;
    resolved.before_launch = content.before_launch;
    HEDDLE_ASSIGN_OR_RETURN(
        const int64_t offset,
        EvaluateIn(content.offset_bytes, 0, static_cast<int64_t>(buffer.size_bytes), place + ", offset"));
    resolved.offset_bytes = static_cast<uint64_t>(offset);
    resolved.size_bytes = buffer.size_bytes - resolved.offset_bytes;
    const ContentRule& rule = content.rule;
    if (rule.kind == RuleKind::kBytes) {
      if (rule.bytes.size() > resolved.size_bytes)
        return Bad(
            place,
            fmt::format("{} bytes are given, the buffer has {}", rule.bytes.size(), resolved.size_bytes),
            "build the trace again with these sizes");
      resolved.size_bytes = rule.bytes.size();
    }
    if (rule.kind == RuleKind::kCopy) {
      const ResolvedBuffer& from = out_.buffers[rule.copy_buffer];
      if (rule.copy_bytes > resolved.size_bytes || rule.copy_offset_bytes > from.size_bytes ||
          rule.copy_bytes > from.size_bytes - rule.copy_offset_bytes)
        return Bad(place,
                   fmt::format("{} bytes are copied from '{}', which reach out of a buffer", rule.copy_bytes,
                               from.name),
                   "capture or build the trace again");
      resolved.size_bytes = rule.copy_bytes;
      resolved.copied_from = from.address + rule.copy_offset_bytes;
    } else if (rule.kind == RuleKind::kUnknown) {
      if (rule.copy_bytes > resolved.size_bytes)
        return Bad(
            place,
            fmt::format("{} bytes are unknown, the buffer has {}", rule.copy_bytes, resolved.size_bytes),
            "capture the trace again");
      if (rule.copy_bytes != 0) resolved.size_bytes = rule.copy_bytes;
    } else {
      const uint64_t count = resolved.size_bytes / SizeOf(rule.type);
      ContentSource::Numbers numbers;
      HEDDLE_ASSIGN_OR_RETURN(
          numbers.a,
          Number(rule.a, rule.kind == RuleKind::kPermutation ? static_cast<double>(count) : 0, place));
      const bool one =
          rule.kind == RuleKind::kIota || rule.kind == RuleKind::kUniform || rule.kind == RuleKind::kNormal;
      HEDDLE_ASSIGN_OR_RETURN(numbers.b, Number(rule.b, one ? 1 : 0, place));
      HEDDLE_ASSIGN_OR_RETURN(numbers.period, Count(rule.period, 0, place));
      HEDDLE_ASSIGN_OR_RETURN(numbers.repeat, Count(rule.repeat, 1, place));
      HEDDLE_ASSIGN_OR_RETURN(resolved.source, ContentSource::Make(rule, numbers, count, place));
    }
    out_.contents.push_back(std::move(resolved));
    return Ok();
  }

  Result<Dim3> Extent(const std::array<Expr, 3>& exprs, const std::array<int64_t, 3>& limits,
                      const std::string& place) const {
    std::array<uint32_t, 3> v{};
    for (size_t i = 0; i < 3; ++i) {
      HEDDLE_ASSIGN_OR_RETURN(const int64_t value,
                              EvaluateIn(exprs[i], 1, limits[i], fmt::format("{}[{}]", place, i)));
      v[i] = static_cast<uint32_t>(value);
    }
    return Dim3{v[0], v[1], v[2]};
  }

  Status AddLaunch(const Launch& launch) {
    const std::string place = At(fmt::format("launch {} '{}'", out_.launches.size(), launch.name));
    ResolvedLaunch resolved;
    resolved.name = launch.name;
    resolved.function = launch.function;
    resolved.stream = launch.stream;
    resolved.programmatic = launch.programmatic;
    resolved.frozen_grid = launch.frozen_grid;
    // The limits of every compute capability since 5.0.
    HEDDLE_ASSIGN_OR_RETURN(resolved.grid, Extent(launch.grid, {0x7fffffff, 65535, 65535}, place + ", grid"));
    HEDDLE_ASSIGN_OR_RETURN(resolved.block, Extent(launch.block, {1024, 1024, 64}, place + ", block"));
    HEDDLE_ASSIGN_OR_RETURN(resolved.cluster, Extent(launch.cluster, {16, 16, 16}, place + ", cluster"));
    if (resolved.block.Count() > 1024)
      return Bad(place + ", block", fmt::format("{} threads are more than 1024", resolved.block.Count()),
                 "choose a smaller block");
    if (resolved.grid.x % resolved.cluster.x != 0 || resolved.grid.y % resolved.cluster.y != 0 ||
        resolved.grid.z % resolved.cluster.z != 0)
      return Bad(place + ", grid", "is no multiple of the cluster", "round it up");
    HEDDLE_ASSIGN_OR_RETURN(const int64_t shared, EvaluateIn(launch.dynamic_shared_bytes, 0, 1 << 20,
                                                             place + ", dynamic_shared_bytes"));
    resolved.dynamic_shared_bytes = static_cast<uint32_t>(shared);
    resolved.parameters = launch.parameters;
    for (const ParameterPatch& patch : launch.patches)
      HEDDLE_RETURN_IF_ERROR(Apply(patch, place, &resolved.parameters));
    out_.launches.push_back(std::move(resolved));
    return Ok();
  }

  // The map's bytes among the parameters of its launch.
  Status Write(const TensorMap& map) {
    ResolvedLaunch& launch = out_.launches[map.launch];
    const std::string place = At(
        fmt::format("launch {} '{}', tensor map at byte {}", map.launch, launch.name, map.parameter_offset));
    isa::TensorMap fields;
    fields.element = map.element;
    fields.rank = static_cast<uint8_t>(map.size.size());
    fields.swizzle = map.swizzle;
    fields.interleave = map.interleave;
    fields.fill = map.fill;
    fields.promotion = map.promotion;
    HEDDLE_ASSIGN_OR_RETURN(const int64_t offset,
                            EvaluateIn(map.offset, 0, int64_t{1} << 48, place + ", offset"));
    fields.address = static_cast<uint64_t>(offset);
    if (map.buffer != kNone) fields.address += out_.buffers[map.buffer].address;
    for (size_t d = 0; d < map.size.size(); ++d) {
      HEDDLE_ASSIGN_OR_RETURN(const int64_t size,
                              EvaluateIn(map.size[d], 1, int64_t{1} << 32, place + ", size"));
      HEDDLE_ASSIGN_OR_RETURN(const int64_t box, EvaluateIn(map.box[d], 1, 256, place + ", box"));
      HEDDLE_ASSIGN_OR_RETURN(const int64_t step,
                              EvaluateIn(map.element_stride[d], 1, 8, place + ", element_stride"));
      fields.size[d] = static_cast<uint64_t>(size);
      fields.box[d] = static_cast<uint32_t>(box);
      fields.element_stride[d] = static_cast<uint32_t>(step);
      if (d == 0) continue;
      HEDDLE_ASSIGN_OR_RETURN(const int64_t stride, EvaluateIn(map.stride_bytes[d - 1], 0,
                                                               (int64_t{1} << 40) - 1, place + ", stride"));
      fields.stride_bytes[d] = static_cast<uint64_t>(stride);
    }
    if (const std::string fault = CheckTensorMap(fields); !fault.empty())
      return Bad(place, fault, "give the map as cuTensorMapEncodeTiled takes it");
    const isa::TensorMapBytes bytes = Encode(fields);
    std::copy(bytes.begin(), bytes.end(), launch.parameters.begin() + map.parameter_offset);
    return Ok();
  }

  Status Apply(const ParameterPatch& patch, const std::string& launch,
               std::vector<std::byte>* parameters) const {
    const std::string place = fmt::format("{}, parameter at byte {}", launch, patch.offset);
    const std::span<std::byte> target = std::span(*parameters).subspan(patch.offset, SizeOf(patch.type));
    if (!patch.real.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(const double value, EvaluateReal(patch.real, scope_, place));
      Store(patch.type, value, target, 0);
      return Ok();
    }
    HEDDLE_ASSIGN_OR_RETURN(const int64_t value, Evaluate(patch.value, place));
    const auto bits = static_cast<uint32_t>(target.size()) * 8;
    // Signed and unsigned parameters look alike in a cubin: what fits into either is taken.
    if (bits < 64 && (value < -(int64_t{1} << (bits - 1)) || value >= int64_t{1} << bits))
      return Bad(place, fmt::format("{} does not fit into {} bits", value, bits), "correct the expression");
    uint64_t word = static_cast<uint64_t>(value);
    if (patch.buffer != kNone) word += out_.buffers[patch.buffer].address;
    for (size_t i = 0; i < target.size(); ++i) target[i] = static_cast<std::byte>(word >> (8 * i));
    return Ok();
  }

  const Trace& trace_;
  Scope scope_;
  ResolvedTrace out_;
};

}  // namespace

Result<ResolvedTrace> Resolve(const Trace& trace, const Symbols& device, const Symbols& defines) {
  return Resolver(trace, device).Run(defines);
}

}  // namespace heddle::trace
