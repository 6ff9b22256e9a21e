#include "frontend/trace/build_contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "frontend/trace/build_modules.h"
#include "frontend/trace/moe_align.h"

namespace heddle::trace {
namespace {

constexpr uint64_t kMaxTableBytes = uint64_t{1} << 30;

Error Bad(std::string place, std::string message, std::string next_step) {
  return Error{ExitCode::kTrace, std::move(place), std::move(message), std::move(next_step)};
}

uint64_t ElementCount(const Scope::Shape& shape) {
  uint64_t count = 1;
  for (const uint64_t dim : shape.dims) count *= dim;  // AddBuffer has checked the product
  return count;
}

// Tables are computed once, when the trace is built: their size may not depend on the machine.
Status CheckTable(const Buffer& buffer, uint64_t bytes, const std::string& place) {
  if (bytes > kMaxTableBytes)
    return Bad(place, fmt::format("a table of {} bytes is larger than 1 GiB", bytes),
               "use a rule such as uniform or permutation");
  for (const Expr& dim : buffer.shape)
    for (const std::string& name : NamesIn(dim.text))
      if (TypicalDevice().contains(name))
        return Bad(place, fmt::format("a table's shape may not depend on the device ('{}')", name),
                   "use a rule such as uniform or permutation");
  return Ok();
}

Result<std::vector<std::byte>> ListBytes(const pb::List& list, const Locator& at, DType type, uint64_t count,
                                         const Scope& scope) {
  const std::string place = at.Place("value");
  if (list.value_size() == 0) return Bad(place, "the list is empty", "give at least one value");
  if (static_cast<uint64_t>(list.value_size()) > count)
    return Bad(place, fmt::format("{} values for {} elements", list.value_size(), count), "shorten the list");
  std::vector<double> values;
  for (int i = 0; i < list.value_size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const double value, EvaluateReal(list.value(i), scope, at.Place("value", i)));
    if (!IsFloat(type) && (value < LowestOf(type) || value > HighestOf(type)))
      return Bad(at.Place("value", i), fmt::format("{} does not fit into {}", value, Name(type)),
                 "correct the value or the type");
    values.push_back(value);
  }
  std::vector<std::byte> bytes(count * SizeOf(type));
  for (uint64_t i = 0; i < count; ++i)
    Store(type, values[std::min<uint64_t>(i, values.size() - 1)], bytes, i);
  return bytes;
}

Result<std::vector<std::byte>> FileBytes(const pb::RawFile& file, const Locator& at,
                                         const std::string& target, uint64_t size, const Scope& scope) {
  HEDDLE_ASSIGN_OR_RETURN(std::vector<std::byte> bytes,
                          ReadFile(ResolvePath(file.path(), at.file(), target), at.Place("path")));
  int64_t offset = 0;
  if (!file.offset().empty()) {
    HEDDLE_ASSIGN_OR_RETURN(offset, EvaluateInteger(file.offset(), scope, at.Place("offset")));
  }
  if (offset < 0 || static_cast<uint64_t>(offset) > bytes.size() ||
      bytes.size() - static_cast<uint64_t>(offset) < size)
    return Bad(at.Place("path"),
               fmt::format("'{}' has {} bytes, {} from byte {} on are needed", file.path(), bytes.size(),
                           size, offset),
               "give another file or another shape");
  return std::vector<std::byte>(bytes.begin() + offset,
                                bytes.begin() + offset + static_cast<std::ptrdiff_t>(size));
}

// The elements of a buffer that has been declared before, as the trace gives them for a typical machine.
Result<std::vector<int64_t>> IntegersOf(const std::string& name, const Trace& trace,
                                        const std::string& place) {
  const auto found = std::find_if(trace.buffers.begin(), trace.buffers.end(),
                                  [&](const Buffer& b) { return b.name == name; });
  if (found == trace.buffers.end() || IsFloat(found->type))
    return Bad(place, fmt::format("'{}' is no integer buffer that is declared in front of this", name),
               "declare it first");
  HEDDLE_ASSIGN_OR_RETURN(const ResolvedTrace resolved, Resolve(trace, TypicalDevice()));
  const auto index = static_cast<uint32_t>(found - trace.buffers.begin());
  std::vector<std::byte> bytes(std::min(resolved.buffers[index].size_bytes, kMaxTableBytes));
  for (const ResolvedContent& content : resolved.contents)
    if (content.buffer == index && content.source != nullptr) content.source->Fill(0, bytes);
  std::vector<int64_t> values(bytes.size() / SizeOf(found->type));
  for (uint64_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(Load(found->type, bytes, i));
  return values;
}

Result<std::vector<std::byte>> MoeBytes(const pb::MoeAlign& rule, const Locator& at, DType type,
                                        uint64_t count, const Scope& scope, const Trace& trace) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<int64_t> experts_of,
                          IntegersOf(rule.expert_ids(), trace, at.Place("expert_ids")));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t experts, EvaluateInteger(rule.experts(), scope, at.Place("experts")));
  const bool padded =
      rule.output() != pb::MoeAlign::sorted_pairs && rule.output() != pb::MoeAlign::expert_offsets;
  int64_t block = 1;
  if (padded || !rule.block().empty()) {
    HEDDLE_ASSIGN_OR_RETURN(block, EvaluateInteger(rule.block(), scope, at.Place("block")));
  }
  if (experts < 1 || experts > 1 << 20 || block < 1 || block > 1 << 20)
    return Bad(at.Place("experts"), "experts and block must lie between 1 and 2^20", "correct them");
  HEDDLE_ASSIGN_OR_RETURN(const MoeTables tables,
                          AlignMoe(experts_of, static_cast<uint64_t>(experts), static_cast<uint64_t>(block),
                                   at.Place("expert_ids")));
  const std::vector<int64_t>* values = nullptr;
  int64_t fill = 0;
  switch (rule.output()) {
    case pb::MoeAlign::sorted_token_ids:
      values = &tables.sorted_token_ids;
      fill = static_cast<int64_t>(experts_of.size());
      break;
    case pb::MoeAlign::block_expert_ids:
      values = &tables.block_expert_ids;
      fill = -1;
      break;
    case pb::MoeAlign::padded_token_count:
      values = &tables.padded_token_count;
      break;
    case pb::MoeAlign::sorted_pairs:
      values = &tables.sorted_pairs;
      break;
    default:
      values = &tables.expert_offsets;
      break;
  }
  if (values->size() > count)
    return Bad(at.Place("output"), fmt::format("{} values for {} elements", values->size(), count),
               "make the buffer larger");
  std::vector<std::byte> bytes(count * SizeOf(type));
  for (uint64_t i = 0; i < count; ++i)
    Store(type, static_cast<double>(i < values->size() ? (*values)[i] : fill), bytes, i);
  return bytes;
}

// Numbers of a rule are tried now and kept as text.
Status Keep(const std::string& text, const Scope& scope, const std::string& place, std::string* out) {
  if (!text.empty())
    HEDDLE_RETURN_IF_ERROR([&]() -> Status {
      const Result<double> value = EvaluateReal(text, scope, place);
      return value.ok() ? Ok() : Status(value.error());
    }());
  *out = text;
  return Ok();
}

Status Require(const std::string& text, const std::string& place, std::string_view what) {
  if (!text.empty()) return Ok();
  return Bad(place, fmt::format("'{}' is not given", what), "add it");
}

Status MakeRule(const pb::Content& content, const Locator& at, const std::string& target,
                const Buffer& buffer, const Scope& scope, const Trace& trace, ContentRule* rule) {
  const uint64_t count = ElementCount(scope.buffers.at(buffer.name));
  const auto table = [&](std::string_view field, auto make) -> Status {
    HEDDLE_RETURN_IF_ERROR(CheckTable(buffer, count * SizeOf(buffer.type), at.Place(field)));
    rule->kind = RuleKind::kBytes;
    HEDDLE_ASSIGN_OR_RETURN(rule->bytes, make());
    return Ok();
  };
  switch (content.rule_case()) {
    case pb::Content::kUnknown:
      rule->kind = RuleKind::kUnknown;
      return Ok();
    case pb::Content::kZeros:
      rule->kind = RuleKind::kZeros;
      return Ok();
    case pb::Content::kConstant: {
      rule->kind = RuleKind::kConstant;
      const Locator sub = at.Sub("constant", 0, content.constant());
      HEDDLE_RETURN_IF_ERROR(Require(content.constant().value(), at.Place("constant"), "value"));
      return Keep(content.constant().value(), scope, sub.Place("value"), &rule->a);
    }
    case pb::Content::kIota: {
      rule->kind = RuleKind::kIota;
      const Locator sub = at.Sub("iota", 0, content.iota());
      HEDDLE_RETURN_IF_ERROR(Keep(content.iota().start(), scope, sub.Place("start"), &rule->a));
      HEDDLE_RETURN_IF_ERROR(Keep(content.iota().step(), scope, sub.Place("step"), &rule->b));
      HEDDLE_RETURN_IF_ERROR(Keep(content.iota().period(), scope, sub.Place("period"), &rule->period));
      return Keep(content.iota().repeat(), scope, sub.Place("repeat"), &rule->repeat);
    }
    case pb::Content::kUniform: {
      rule->kind = RuleKind::kUniform;
      rule->seed = content.uniform().seed();
      const Locator sub = at.Sub("uniform", 0, content.uniform());
      if (!IsFloat(buffer.type)) {
        HEDDLE_RETURN_IF_ERROR(Require(content.uniform().low(), at.Place("uniform"), "low"));
        HEDDLE_RETURN_IF_ERROR(Require(content.uniform().high(), at.Place("uniform"), "high"));
      }
      HEDDLE_RETURN_IF_ERROR(Keep(content.uniform().low(), scope, sub.Place("low"), &rule->a));
      return Keep(content.uniform().high(), scope, sub.Place("high"), &rule->b);
    }
    case pb::Content::kNormal: {
      rule->kind = RuleKind::kNormal;
      rule->seed = content.normal().seed();
      const Locator sub = at.Sub("normal", 0, content.normal());
      HEDDLE_RETURN_IF_ERROR(Keep(content.normal().mean(), scope, sub.Place("mean"), &rule->a));
      return Keep(content.normal().stddev(), scope, sub.Place("stddev"), &rule->b);
    }
    case pb::Content::kPermutation: {
      rule->kind = RuleKind::kPermutation;
      rule->seed = content.permutation().seed();
      return Keep(content.permutation().range(), scope,
                  at.Sub("permutation", 0, content.permutation()).Place("range"), &rule->a);
    }
    case pb::Content::kOffsets: {
      rule->kind = RuleKind::kOffsets;
      rule->seed = content.offsets().seed();
      if (content.offsets().even()) rule->b.assign(1, '1');
      HEDDLE_RETURN_IF_ERROR(Require(content.offsets().total(), at.Place("offsets"), "total"));
      return Keep(content.offsets().total(), scope, at.Sub("offsets", 0, content.offsets()).Place("total"),
                  &rule->a);
    }
    case pb::Content::kFile:
      return table("file", [&] {
        return FileBytes(content.file(), at.Sub("file", 0, content.file()), target,
                         count * SizeOf(buffer.type), scope);
      });
    case pb::Content::kList:
      return table("list", [&] {
        return ListBytes(content.list(), at.Sub("list", 0, content.list()), buffer.type, count, scope);
      });
    case pb::Content::kMoeAlign:
      return table("moe_align", [&] {
        return MoeBytes(content.moe_align(), at.Sub("moe_align", 0, content.moe_align()), buffer.type, count,
                        scope, trace);
      });
    case pb::Content::RULE_NOT_SET:
      break;
  }
  return Bad(at.Place("rule"), fmt::format("the contents of '{}' are not stated", buffer.name),
             "add `content { zeros {} }`, `content { normal { seed: 1 } }` or, where nobody knows, `content "
             "{ unknown {} }`");
}

}  // namespace

Result<Expr> MakeExpr(const std::string& text, const Scope& scope, const std::string& place) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t value, EvaluateInteger(text, scope, place));
  if (NamesIn(text).empty()) return Expr{value};
  return Expr{text};
}

Status AddBuffer(const pb::Buffer& buffer, const Locator& at, const std::string& target, Scope* scope,
                 Trace* trace) {
  Buffer out;
  out.name = buffer.name();
  out.type = static_cast<DType>(buffer.type());
  if (out.name.empty()) return Bad(at.Place("name"), "the buffer has no name", "add `name`");
  if (scope->buffers.contains(out.name))
    return Bad(at.Place("name"), fmt::format("there are two buffers '{}'", out.name), "rename one");
  if (SizeOf(out.type) == 0)
    return Bad(at.Place("type"), fmt::format("'{}' has no element type", out.name),
               "add `type: bf16` or another");
  if (buffer.shape_size() == 0)
    return Bad(at.Place("shape"), fmt::format("'{}' has no shape", out.name),
               "add `shape: [\"rows\", \"columns\"]`");
  Scope::Shape shape{{}, SizeOf(out.type)};
  uint64_t bytes = SizeOf(out.type);
  for (int i = 0; i < buffer.shape_size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(out.shape.emplace_back(),
                            MakeExpr(buffer.shape(i), *scope, at.Place("shape", i)));
    HEDDLE_ASSIGN_OR_RETURN(const int64_t extent,
                            EvaluateInteger(buffer.shape(i), *scope, at.Place("shape", i)));
    if (extent < 1 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes) ||
        bytes > uint64_t{1} << 44)
      return Bad(at.Place("shape", i),
                 fmt::format("\"{}\" = {} is no possible extent", buffer.shape(i), extent),
                 "a buffer has 1 byte to 16 TiB");
    shape.dims.push_back(static_cast<uint64_t>(extent));
  }
  if (!buffer.alignment().empty()) {
    HEDDLE_ASSIGN_OR_RETURN(out.alignment, MakeExpr(buffer.alignment(), *scope, at.Place("alignment")));
  }
  scope->buffers[out.name] = shape;
  Content content;
  content.buffer = static_cast<uint32_t>(trace->buffers.size());
  content.rule.type = out.type;
  HEDDLE_RETURN_IF_ERROR(MakeRule(buffer.content(), at.Sub("content", 0, buffer.content()), target, out,
                                  *scope, *trace, &content.rule));
  trace->buffers.push_back(std::move(out));
  trace->contents.push_back(std::move(content));
  return Ok();
}

}  // namespace heddle::trace
