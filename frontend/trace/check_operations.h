// The operations of a check on tensors of doubles. Private to frontend/trace.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "frontend/trace/dtype.h"
#include "frontend/trace/expression.h"
#include "frontend/trace/launch.pb.h"
#include "sim/base/result.h"

namespace heddle::trace {

struct Tensor {
  std::vector<uint64_t> shape;  // row-major
  std::vector<double> data;

  uint64_t size() const { return data.size(); }
  uint64_t last() const { return shape.empty() ? 1 : shape.back(); }
  uint64_t rows() const { return last() == 0 ? 0 : size() / last(); }
};
Tensor MakeTensor(std::vector<uint64_t> shape);

// What an operation may read.
struct Operands {
  std::map<std::string, Tensor, std::less<>> tensors;
  const Scope* scope = nullptr;
  std::string place;  // of the operation at hand

  // nullptr: no name was given (an optional operand) or there is no such tensor.
  const Tensor* Find(const std::string& name) const;
  Result<const Tensor*> Get(const std::string& name, size_t min_rank = 0) const;
  Result<double> Real(const std::string& text, double otherwise) const;
  Result<int64_t> Integer(const std::string& text, int64_t otherwise) const;
  Error Bad(std::string message) const;
};

using Results = Result<std::vector<Tensor>>;

Results Apply(const pb::Operation& op, const Operands& in);

// By group; each in its own file.
Results ApplyMatmul(const pb::Matmul& op, const Operands& in);
Results ApplyGroupedMatmul(const pb::GroupedMatmul& op, const Operands& in);
Results ApplyAttention(const pb::Attention& op, const Operands& in);
Results ApplySoftmax(const pb::Softmax& op, const Operands& in);
Results ApplyNorm(const pb::Norm& op, bool subtract_mean, const Operands& in);
Results ApplyRope(const pb::Rope& op, const Operands& in);
Results ApplyUnary(const pb::Unary& op, const Operands& in);
Results ApplyBinary(const pb::Binary& op, const Operands& in);
Results ApplyGatedUnit(const pb::GatedUnit& op, const Operands& in);
Results ApplyReduce(const pb::Reduce& op, const Operands& in);
Results ApplyTopK(const pb::TopK& op, const Operands& in);
Results ApplyGather(const pb::Gather& op, const Operands& in);
Results ApplyScatter(const pb::Scatter& op, const Operands& in);
Results ApplyHistogram(const pb::Histogram& op, const Operands& in);
Results ApplySortByKey(const pb::SortByKey& op, const Operands& in);
Results ApplyQuantize(const pb::Quantize& op, const Operands& in);
Results ApplyView(const pb::View& op, const Operands& in);
Results ApplyTranspose(const pb::Transpose& op, const Operands& in);
Results ApplyConcat(const pb::Concat& op, const Operands& in);

}  // namespace heddle::trace
