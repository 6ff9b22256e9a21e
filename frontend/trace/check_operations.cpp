#include "frontend/trace/check_operations.h"

#include <fmt/format.h>

namespace heddle::trace {

Tensor MakeTensor(std::vector<uint64_t> shape) {
  Tensor tensor{std::move(shape), {}};
  uint64_t size = 1;
  for (const uint64_t dim : tensor.shape) size *= dim;
  tensor.data.resize(size);
  return tensor;
}

const Tensor* Operands::Find(const std::string& name) const {
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}

Result<const Tensor*> Operands::Get(const std::string& name, size_t min_rank) const {
  const Tensor* tensor = Find(name);
  if (tensor == nullptr)
    return Bad(name.empty() ? "an operand is not given" : fmt::format("there is no '{}'", name));
  if (tensor->shape.size() < min_rank)
    return Bad(
        fmt::format("'{}' has {} dimensions, at least {} are needed", name, tensor->shape.size(), min_rank));
  return tensor;
}

Result<double> Operands::Real(const std::string& text, double otherwise) const {
  if (text.empty()) return otherwise;
  return EvaluateReal(text, *scope, place);
}

Result<int64_t> Operands::Integer(const std::string& text, int64_t otherwise) const {
  if (text.empty()) return otherwise;
  return EvaluateInteger(text, *scope, place);
}

Error Operands::Bad(std::string message) const {
  return Error{ExitCode::kTrace, place, std::move(message),
               "correct the description's check and build the trace again"};
}

Results Apply(const pb::Operation& op, const Operands& in) {
  switch (op.kind_case()) {
    case pb::Operation::kMatmul:
      return ApplyMatmul(op.matmul(), in);
    case pb::Operation::kSoftmax:
      return ApplySoftmax(op.softmax(), in);
    case pb::Operation::kLayernorm:
      return ApplyNorm(op.layernorm(), true, in);
    case pb::Operation::kRmsnorm:
      return ApplyNorm(op.rmsnorm(), false, in);
    case pb::Operation::kRope:
      return ApplyRope(op.rope(), in);
    case pb::Operation::kUnary:
      return ApplyUnary(op.unary(), in);
    case pb::Operation::kBinary:
      return ApplyBinary(op.binary(), in);
    case pb::Operation::kSiluAndMul:
      return ApplyGatedUnit(op.silu_and_mul(), in);
    case pb::Operation::kAttention:
      return ApplyAttention(op.attention(), in);
    case pb::Operation::kReduce:
      return ApplyReduce(op.reduce(), in);
    case pb::Operation::kTopk:
      return ApplyTopK(op.topk(), in);
    case pb::Operation::kGroupedMatmul:
      return ApplyGroupedMatmul(op.grouped_matmul(), in);
    case pb::Operation::kGather:
      return ApplyGather(op.gather(), in);
    case pb::Operation::kHistogram:
      return ApplyHistogram(op.histogram(), in);
    case pb::Operation::kQuantize:
      return ApplyQuantize(op.quantize(), in);
    case pb::Operation::kView:
      return ApplyView(op.view(), in);
    case pb::Operation::kTranspose:
      return ApplyTranspose(op.transpose(), in);
    case pb::Operation::kScatter:
      return ApplyScatter(op.scatter(), in);
    case pb::Operation::kConcat:
      return ApplyConcat(op.concat(), in);
    case pb::Operation::kSortByKey:
      return ApplySortByKey(op.sort_by_key(), in);
    case pb::Operation::KIND_NOT_SET:
      break;
  }
  return in.Bad("an operation that this heddle does not know");
}

}  // namespace heddle::trace
