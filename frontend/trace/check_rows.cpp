// Operations that work on rows: norms, softmax, rotary embedding, reductions, top-k.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "frontend/trace/check_operations.h"

namespace heddle::trace {

Results ApplySoftmax(const pb::Softmax& op, const Operands& in) {
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* x, in.Get(op.x(), 1));
  HEDDLE_ASSIGN_OR_RETURN(const double scale, in.Real(op.scale(), 1));
  Tensor out = *x;
  for (uint64_t r = 0; r < x->rows(); ++r) {
    double* row = &out.data[r * x->last()];
    double largest = row[0] * scale;
    for (uint64_t i = 0; i < x->last(); ++i) largest = std::max(largest, row[i] * scale);
    double sum = 0;
    for (uint64_t i = 0; i < x->last(); ++i) sum += row[i] = std::exp(row[i] * scale - largest);
    for (uint64_t i = 0; i < x->last(); ++i) row[i] /= sum;
  }
  return std::vector<Tensor>{std::move(out)};
}

Results ApplyNorm(const pb::Norm& op, bool subtract_mean, const Operands& in) {
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* x, in.Get(op.x(), 1));
  const Tensor* weight = in.Find(op.weight());
  const Tensor* bias = in.Find(op.bias());
  HEDDLE_ASSIGN_OR_RETURN(const double eps, in.Real(op.eps(), 0));
  const uint64_t n = x->last();
  if ((weight != nullptr && weight->size() != n) || (bias != nullptr && bias->size() != n))
    return in.Bad(fmt::format("norm: rows of {}, weight or bias of another size", n));
  Tensor out = *x;
  for (uint64_t r = 0; r < x->rows(); ++r) {
    double* row = &out.data[r * n];
    double mean = 0;
    if (subtract_mean) mean = std::accumulate(row, row + n, 0.0) / static_cast<double>(n);
    double square = 0;
    for (uint64_t i = 0; i < n; ++i) square += (row[i] - mean) * (row[i] - mean);
    const double inverse = 1 / std::sqrt(square / static_cast<double>(n) + eps);
    for (uint64_t i = 0; i < n; ++i) {
      row[i] = (row[i] - mean) * inverse;
      if (weight != nullptr) row[i] *= weight->data[i] + op.weight_offset();
      if (bias != nullptr) row[i] += bias->data[i];
    }
  }
  return std::vector<Tensor>{std::move(out)};
}

Results ApplyRope(const pb::Rope& op, const Operands& in) {
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* x, in.Get(op.x(), 2));
  const Tensor* positions = in.Find(op.positions());
  const Tensor* cache = in.Find(op.cos_sin_cache());
  HEDDLE_ASSIGN_OR_RETURN(const double theta, in.Real(op.theta(), 10000));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t head, in.Integer(op.head_dim(), static_cast<int64_t>(x->last())));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t rotary, in.Integer(op.rotary_dim(), head));
  if (head < 1 || rotary < 2 || rotary > head || rotary % 2 != 0 ||
      x->last() % static_cast<uint64_t>(head) != 0)
    return in.Bad(fmt::format("rope: rotary dimension {} of heads of {}", rotary, head));
  const uint64_t tokens = x->shape[0];
  const auto dim = static_cast<uint64_t>(head);
  const auto half = static_cast<uint64_t>(rotary) / 2;
  if (positions != nullptr && positions->size() != tokens)
    return in.Bad(fmt::format("rope: {} positions for {} tokens", positions->size(), tokens));
  if (cache != nullptr && cache->last() != 2 * half)
    return in.Bad(fmt::format("rope: the cache has rows of {}, not {}", cache->last(), 2 * half));
  Tensor out = *x;
  const uint64_t heads = x->size() / tokens / dim;
  for (uint64_t t = 0; t < tokens; ++t) {
    const double position = positions != nullptr ? positions->data[t] : static_cast<double>(t);
    if (cache != nullptr && !(position >= 0 && position < static_cast<double>(cache->rows())))
      return in.Bad(fmt::format("rope: position {} lies outside the cache", position));
    for (uint64_t i = 0; i < half; ++i) {
      const double angle =
          position * std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(2 * half));
      const double* row =
          cache == nullptr ? nullptr : &cache->data[static_cast<uint64_t>(position) * 2 * half];
      const double c = row != nullptr ? row[i] : std::cos(angle);
      const double s = row != nullptr ? row[half + i] : std::sin(angle);
      for (uint64_t h = 0; h < heads; ++h) {
        double* v = &out.data[(t * heads + h) * dim];
        double& first = op.style() == pb::Rope::neox ? v[i] : v[2 * i];
        double& second = op.style() == pb::Rope::neox ? v[i + half] : v[2 * i + 1];
        const double a = first;
        first = a * c - second * s;
        second = second * c + a * s;
      }
    }
  }
  return std::vector<Tensor>{std::move(out)};
}

namespace {

double ReduceRange(pb::Reduce::Function function, const double* x, uint64_t count, uint64_t stride) {
  double value = 0;
  uint64_t best = 0;
  switch (function) {
    case pb::Reduce::maximum:
      value = x[0];
      for (uint64_t i = 0; i < count; ++i) value = std::max(value, x[i * stride]);
      return value;
    case pb::Reduce::minimum:
      value = x[0];
      for (uint64_t i = 0; i < count; ++i) value = std::min(value, x[i * stride]);
      return value;
    case pb::Reduce::argmax:
      for (uint64_t i = 0; i < count; ++i)
        if (x[i * stride] > x[best * stride]) best = i;
      return static_cast<double>(best);
    case pb::Reduce::absolute_maximum:
      for (uint64_t i = 0; i < count; ++i) value = std::max(value, std::fabs(x[i * stride]));
      return value;
    case pb::Reduce::sum_of_squares:
      for (uint64_t i = 0; i < count; ++i) value += x[i * stride] * x[i * stride];
      return value;
    default:
      for (uint64_t i = 0; i < count; ++i) value += x[i * stride];
      return function == pb::Reduce::mean ? value / static_cast<double>(count) : value;
  }
}

}  // namespace

Results ApplyReduce(const pb::Reduce& op, const Operands& in) {
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* x, in.Get(op.x(), 1));
  if (!op.has_axis()) {
    Tensor out = MakeTensor({1});
    out.data[0] = ReduceRange(op.function(), x->data.data(), x->size(), 1);
    return std::vector<Tensor>{std::move(out)};
  }
  const auto rank = static_cast<int>(x->shape.size());
  const int axis = op.axis() < 0 ? op.axis() + rank : op.axis();
  if (axis < 0 || axis >= rank)
    return in.Bad(fmt::format("reduce: axis {} of {} dimensions", op.axis(), rank));
  std::vector<uint64_t> shape = x->shape;
  const uint64_t extent = shape[static_cast<size_t>(axis)];
  uint64_t inner = 1;
  for (size_t i = static_cast<size_t>(axis) + 1; i < shape.size(); ++i) inner *= shape[i];
  shape.erase(shape.begin() + axis);
  if (shape.empty()) shape.push_back(1);
  Tensor out = MakeTensor(std::move(shape));
  for (uint64_t i = 0; i < out.size(); ++i)
    out.data[i] = ReduceRange(op.function(), &x->data[i / inner * inner * extent + i % inner], extent, inner);
  return std::vector<Tensor>{std::move(out)};
}

Results ApplyTopK(const pb::TopK& op, const Operands& in) {
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* x, in.Get(op.x(), 1));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t k, in.Integer(op.k(), 1));
  const Tensor* bias = in.Find(op.bias());
  const uint64_t n = x->last();
  if (k < 1 || static_cast<uint64_t>(k) > n || (bias != nullptr && bias->size() != n))
    return in.Bad(fmt::format("topk: {} of rows of {}", k, n));
  Tensor source = *x;
  if (op.softmax_first()) {
    pb::Softmax softmax;
    softmax.set_x(op.x());
    HEDDLE_ASSIGN_OR_RETURN(std::vector<Tensor> probabilities, ApplySoftmax(softmax, in));
    source = std::move(probabilities[0]);
  }
  std::vector<uint64_t> shape = x->shape;
  shape.back() = static_cast<uint64_t>(k);
  Tensor values = MakeTensor(shape);
  Tensor indices = MakeTensor(shape);
  std::vector<uint64_t> order(n);
  for (uint64_t r = 0; r < x->rows(); ++r) {
    const double* row = &source.data[r * n];
    const auto rank = [&](uint64_t i) { return row[i] + (bias != nullptr ? bias->data[i] : 0); };
    std::iota(order.begin(), order.end(), uint64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](uint64_t a, uint64_t b) { return rank(a) > rank(b); });
    double sum = 0;
    for (uint64_t j = 0; j < static_cast<uint64_t>(k); ++j) sum += row[order[j]];
    for (uint64_t j = 0; j < static_cast<uint64_t>(k); ++j) {
      values.data[r * static_cast<uint64_t>(k) + j] = row[order[j]] / (op.renormalize() ? sum : 1);
      indices.data[r * static_cast<uint64_t>(k) + j] = static_cast<double>(order[j]);
    }
  }
  return std::vector<Tensor>{std::move(values), std::move(indices)};
}

}  // namespace heddle::trace
