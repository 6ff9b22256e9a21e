#include "frontend/trace/build_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "frontend/trace/build_modules.h"
#include "frontend/trace/expression.h"
#include "sim/base/suggest.h"

namespace heddle::trace {
namespace {

Error Bad(std::string place, std::string message, std::string next_step) {
  return Error{ExitCode::kTrace, std::move(place), std::move(message), std::move(next_step)};
}

class CheckBuilder {
 public:
  CheckBuilder(const pb::Check& check, const Locator& at, const Trace& trace, const ResolvedTrace& resolved)
      : check_(check), at_(at), trace_(trace), resolved_(resolved) {}

  Result<std::string> Run(const std::string& target) {
    if (!check_.none().empty()) {
      if (check_.op_size() > 0 || check_.compare_size() > 0)
        return Bad(at_.Place("none"), "`none` beside a check", "remove one of them");
      return check_.SerializeAsString();
    }
    if (check_.compare_size() == 0)
      return Bad(at_.Place("compare"), "the check compares nothing",
                 "add `compare { buffer: \"out\" reference: \"y\" }`, or say `none: \"why\"`");
    for (const Buffer& buffer : trace_.buffers) names_.push_back(buffer.name);
    for (int i = 0; i < check_.op_size(); ++i)
      HEDDLE_RETURN_IF_ERROR(AddOperation(check_.op(i), at_.Sub("op", i, check_.op(i))));
    pb::Check out = check_;
    for (int i = 0; i < out.compare_size(); ++i)
      HEDDLE_RETURN_IF_ERROR(
          AddCompare(out.mutable_compare(i), at_.Sub("compare", i, check_.compare(i)), target));
    HEDDLE_RETURN_IF_ERROR(RefuseConstantInputs());
    return out.SerializeAsString();
  }

 private:
  Status RequireName(const std::string& name, const std::string& place) const {
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) return Ok();
    const std::string near = Suggest(name, names_);
    return Bad(
        place, fmt::format("'{}' is neither a buffer nor the result of an earlier operation", name),
        near.empty() ? "declare the buffer, or move the operation" : fmt::format("did you mean '{}'?", near));
  }

  Status AddOperation(const pb::Operation& op, const Locator& at) {
    if (op.kind_case() == pb::Operation::KIND_NOT_SET)
      return Bad(at.Place("kind"), "the operation does nothing", "add `matmul { ... }` or another");
    const std::vector<std::string> inputs = InputsOf(op);
    for (const std::string& input : inputs) HEDDLE_RETURN_IF_ERROR(RequireName(input, at.Place("kind")));
    std::vector<std::string> outputs(op.also().begin(), op.also().end());
    outputs.insert(outputs.begin(), op.out());
    for (const std::string& output : outputs) {
      if (output.empty()) return Bad(at.Place("out"), "the operation's result has no name", "add `out`");
      if (std::find(names_.begin(), names_.end(), output) != names_.end())
        return Bad(at.Place("out"), fmt::format("the name '{}' is taken", output), "choose another");
      names_.push_back(output);
      made_from_[output] = inputs;
    }
    return Ok();
  }

  Status AddCompare(pb::Compare* compare, const Locator& at, const std::string& target) {
    const auto found = std::find_if(resolved_.buffers.begin(), resolved_.buffers.end(),
                                    [&](const ResolvedBuffer& b) { return b.name == compare->buffer(); });
    if (found == resolved_.buffers.end())
      return Bad(at.Place("buffer"), fmt::format("there is no buffer '{}'", compare->buffer()),
                 "declare it with `buffer`");
    if (compare->has_reference()) {
      HEDDLE_RETURN_IF_ERROR(RequireName(compare->reference(), at.Place("reference")));
      if (!made_from_.contains(compare->reference()))
        return Bad(at.Place("reference"), fmt::format("'{}' is a buffer, not a result", compare->reference()),
                   "use `unary { x: \"...\" function: identity }` to compare with a buffer's first contents");
      Collect(compare->reference());
      return Ok();
    }
    if (!compare->has_file())
      return Bad(at.Place("with"), "with what to compare is not stated", "add `reference` or `file`");
    const DType type = compare->file_type() == pb::DType::unspecified
                           ? found->type
                           : static_cast<DType>(compare->file_type());
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                            ReadFile(ResolvePath(compare->file(), at.file(), target), at.Place("file")));
    const uint64_t wanted = found->size_bytes / SizeOf(found->type) * SizeOf(type);
    if (bytes.size() != wanted)
      return Bad(at.Place("file"),
                 fmt::format("the file has {} bytes, {} are compared", bytes.size(), wanted),
                 "give another file or `file_type`");
    compare->set_data(bytes.data(), bytes.size());
    compare->set_file_type(static_cast<pb::DType::Enum>(type));
    compare->set_file("");  // where it came from is nobody's business
    return Ok();
  }

  void Collect(const std::string& name) {
    if (!reached_.insert(name).second) return;
    const auto made = made_from_.find(name);
    if (made == made_from_.end()) return;
    for (const std::string& input : made->second) Collect(input);
  }

  // A kernel that computes anything gives the right answer on constants too easily.
  Status RefuseConstantInputs() const {
    std::vector<std::string> constant;
    for (const ResolvedContent& content : resolved_.contents) {
      const std::string& name = resolved_.buffers[content.buffer].name;
      if (!reached_.contains(name)) continue;
      if (content.source == nullptr)
        return Bad(at_.Place("op"),
                   fmt::format("the contents of '{}' are unknown, hence no reference can be computed", name),
                   "give them a rule");
      if (!content.source->IsConstant()) return Ok();
      constant.push_back(name);
    }
    if (constant.empty()) return Ok();
    return Bad(at_.Place("op"),
               fmt::format("every input of the check is constant: {}", fmt::join(constant, ", ")),
               "give them random contents: `content { normal { seed: 1 } }`");
  }

  const pb::Check& check_;
  const Locator& at_;
  const Trace& trace_;
  const ResolvedTrace& resolved_;
  std::vector<std::string> names_;
  std::map<std::string, std::vector<std::string>> made_from_;
  std::set<std::string> reached_;
};

}  // namespace

std::vector<std::string> InputsOf(const pb::Operation& op) {
  std::vector<std::string> all;
  switch (op.kind_case()) {
    case pb::Operation::kMatmul:
      all = {op.matmul().a(), op.matmul().b()};
      break;
    case pb::Operation::kSoftmax:
      all = {op.softmax().x()};
      break;
    case pb::Operation::kLayernorm:
      all = {op.layernorm().x(), op.layernorm().weight(), op.layernorm().bias()};
      break;
    case pb::Operation::kRmsnorm:
      all = {op.rmsnorm().x(), op.rmsnorm().weight(), op.rmsnorm().bias()};
      break;
    case pb::Operation::kRope:
      all = {op.rope().x(), op.rope().positions(), op.rope().cos_sin_cache()};
      break;
    case pb::Operation::kUnary:
      all = {op.unary().x()};
      break;
    case pb::Operation::kBinary:
      all = {op.binary().a(), op.binary().b()};
      break;
    case pb::Operation::kSiluAndMul:
      all = {op.silu_and_mul().x()};
      break;
    case pb::Operation::kAttention: {
      const pb::Attention& a = op.attention();
      all = {a.q(), a.k(), a.v(), a.cu_seqlens_q(), a.cu_seqlens_k(), a.block_table(), a.seq_lens()};
      break;
    }
    case pb::Operation::kReduce:
      all = {op.reduce().x()};
      break;
    case pb::Operation::kTopk:
      all = {op.topk().x(), op.topk().bias()};
      break;
    case pb::Operation::kGroupedMatmul: {
      const pb::GroupedMatmul& g = op.grouped_matmul();
      all = {g.x(), g.weight(), g.expert(), g.row_scale(), g.row_index()};
      break;
    }
    case pb::Operation::kGather:
      all = {op.gather().table(), op.gather().index()};
      break;
    case pb::Operation::kHistogram:
      all = {op.histogram().x()};
      break;
    case pb::Operation::kQuantize:
      all = {op.quantize().x(), op.quantize().scale()};
      break;
    case pb::Operation::kView:
      all = {op.view().x()};
      break;
    case pb::Operation::kTranspose:
      all = {op.transpose().x()};
      break;
    case pb::Operation::kScatter:
      all = {op.scatter().x(), op.scatter().index(), op.scatter().base()};
      break;
    case pb::Operation::kConcat:
      all.assign(op.concat().x().begin(), op.concat().x().end());
      break;
    case pb::Operation::kSortByKey:
      all = {op.sort_by_key().x()};
      break;
    case pb::Operation::KIND_NOT_SET:
      break;
  }
  std::erase(all, "");
  return all;
}

Result<std::string> MakeCheck(const pb::Check& check, const Locator& at, const std::string& target,
                              const Trace& trace, const ResolvedTrace& resolved) {
  return CheckBuilder(check, at, trace, resolved).Run(target);
}

}  // namespace heddle::trace
