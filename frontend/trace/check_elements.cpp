// Element by element, and moving elements.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "frontend/trace/check_operations.h"

namespace heddle::trace {
namespace {

double Evaluate(pb::Unary::Function function, double x) {
  switch (function) {
    case pb::Unary::relu:
      return std::max(x, 0.0);
    case pb::Unary::gelu:
      return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
    case pb::Unary::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case pb::Unary::silu:
      return x / (1 + std::exp(-x));
    case pb::Unary::exp:
      return std::exp(x);
    case pb::Unary::sqrt:
      return std::sqrt(x);
    case pb::Unary::rsqrt:
      return 1 / std::sqrt(x);
    case pb::Unary::square:
      return x * x;
    case pb::Unary::abs:
      return std::fabs(x);
    case pb::Unary::negate:
      return -x;
    case pb::Unary::sigmoid:
      return 1 / (1 + std::exp(-x));
    case pb::Unary::tanh:
      return std::tanh(x);
    case pb::Unary::reciprocal:
      return 1 / x;
    case pb::Unary::log:
      return std::log(x);
    case pb::Unary::floor:
      return std::floor(x);
    default:
      return x;
  }
}

double Evaluate(pb::Binary::Function function, double a, double b) {
  switch (function) {
    case pb::Binary::subtract:
      return a - b;
    case pb::Binary::multiply:
      return a * b;
    case pb::Binary::divide:
      return a / b;
    case pb::Binary::maximum:
      return std::max(a, b);
    case pb::Binary::minimum:
      return std::min(a, b);
    default:
      return a + b;
  }
}

// The shape that both broadcast to, as in NumPy; empty when they do not.
std::vector<uint64_t> Broadcast(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  std::vector<uint64_t> out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    const uint64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const uint64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return {};
    out[out.size() - 1 - i] = std::max(x, y);
  }
  return out;
}

// Element of `x` that stands behind element `index` of a tensor of `shape`.
uint64_t BroadcastIndex(uint64_t index, const std::vector<uint64_t>& shape, const Tensor& x) {
  uint64_t offset = 0;
  uint64_t stride = 1;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    const uint64_t extent = shape[shape.size() - 1 - i];
    const uint64_t own = x.shape[x.shape.size() - 1 - i];
    if (own != 1) offset += index % extent * stride;
    index /= extent;
    stride *= own;
  }
  return offset;
}

}  // namespace

Results ApplyUnary(const pb::Unary& op, const Operands& in) {
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* x, in.Get(op.x()));
  HEDDLE_ASSIGN_OR_RETURN(const double scale, in.Real(op.scale(), 1));
  HEDDLE_ASSIGN_OR_RETURN(const double shift, in.Real(op.shift(), 0));
  Tensor out = *x;
  for (double& v : out.data) v = Evaluate(op.function(), scale * v + shift);
  return std::vector<Tensor>{std::move(out)};
}

Results ApplyBinary(const pb::Binary& op, const Operands& in) {
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* a, in.Get(op.a(), 1));
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* b, in.Get(op.b(), 1));
  const std::vector<uint64_t> shape = Broadcast(a->shape, b->shape);
  if (shape.empty())
    return in.Bad(fmt::format("binary: [{}] and [{}] do not broadcast", fmt::join(a->shape, ", "),
                              fmt::join(b->shape, ", ")));
  Tensor out = MakeTensor(shape);
  for (uint64_t i = 0; i < out.size(); ++i)
    out.data[i] =
        Evaluate(op.function(), a->data[BroadcastIndex(i, shape, *a)], b->data[BroadcastIndex(i, shape, *b)]);
  return std::vector<Tensor>{std::move(out)};
}

Results ApplyGatedUnit(const pb::GatedUnit& op, const Operands& in) {
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* x, in.Get(op.x(), 1));
  if (x->last() % 2 != 0) return in.Bad(fmt::format("silu_and_mul: rows of {}", x->last()));
  const pb::Unary::Function function = op.function() == pb::Unary::identity ? pb::Unary::silu : op.function();
  const uint64_t half = x->last() / 2;
  std::vector<uint64_t> shape = x->shape;
  shape.back() = half;
  Tensor out = MakeTensor(std::move(shape));
  for (uint64_t r = 0; r < x->rows(); ++r)
    for (uint64_t i = 0; i < half; ++i)
      out.data[r * half + i] =
          Evaluate(function, x->data[r * 2 * half + i]) * x->data[r * 2 * half + half + i];
  return std::vector<Tensor>{std::move(out)};
}

Results ApplyGather(const pb::Gather& op, const Operands& in) {
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* table, in.Get(op.table(), 1));
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* index, in.Get(op.index(), 1));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t divide, in.Integer(op.divide(), 1));
  if (divide < 1) return in.Bad("gather: the divisor is below 1");
  const uint64_t row = table->size() / table->shape[0];
  std::vector<uint64_t> shape = index->shape;
  shape.insert(shape.end(), table->shape.begin() + 1, table->shape.end());
  Tensor out = MakeTensor(std::move(shape));
  for (uint64_t i = 0; i < index->size(); ++i) {
    const double at = std::floor(index->data[i] / static_cast<double>(divide));
    if (!(at >= 0 && at < static_cast<double>(table->shape[0]))) continue;
    std::copy_n(&table->data[static_cast<uint64_t>(at) * row], row, &out.data[i * row]);
  }
  return std::vector<Tensor>{std::move(out)};
}

Results ApplyScatter(const pb::Scatter& op, const Operands& in) {
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* x, in.Get(op.x(), 1));
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* index, in.Get(op.index(), 1));
  const Tensor* base = in.Find(op.base());
  HEDDLE_ASSIGN_OR_RETURN(const int64_t rows,
                          in.Integer(op.rows(), base != nullptr ? static_cast<int64_t>(base->shape[0])
                                                                : static_cast<int64_t>(x->shape[0])));
  if (rows < 1 || rows > int64_t{1} << 32 || index->size() != x->shape[0])
    return in.Bad(fmt::format("scatter: {} rows, {} indices", x->shape[0], index->size()));
  std::vector<uint64_t> shape = x->shape;
  shape[0] = static_cast<uint64_t>(rows);
  Tensor out = MakeTensor(std::move(shape));
  if (base != nullptr) {
    if (base->size() != out.size()) return in.Bad("scatter: `base` has another size");
    out.data = base->data;
  }
  const uint64_t row = x->size() / x->shape[0];
  for (uint64_t i = 0; i < index->size(); ++i) {
    if (!(index->data[i] >= 0 && index->data[i] < static_cast<double>(rows))) continue;
    double* to = &out.data[static_cast<uint64_t>(index->data[i]) * row];
    for (uint64_t j = 0; j < row; ++j) to[j] = x->data[i * row + j] + (op.accumulate() ? to[j] : 0);
  }
  return std::vector<Tensor>{std::move(out)};
}

Results ApplyHistogram(const pb::Histogram& op, const Operands& in) {
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* x, in.Get(op.x()));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t bins, in.Integer(op.bins(), 0));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t low, in.Integer(op.low(), 0));
  if (bins < 1 || bins > int64_t{1} << 32) return in.Bad(fmt::format("histogram: {} bins", bins));
  Tensor out = MakeTensor({static_cast<uint64_t>(bins)});
  for (const double v : x->data)
    if (v >= static_cast<double>(low) && v < static_cast<double>(low + bins))
      ++out.data[static_cast<uint64_t>(v - static_cast<double>(low))];
  return std::vector<Tensor>{std::move(out)};
}

Results ApplySortByKey(const pb::SortByKey& op, const Operands& in) {
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* x, in.Get(op.x()));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t bins, in.Integer(op.bins(), 0));
  if (bins < 1 || bins > int64_t{1} << 32) return in.Bad(fmt::format("sort_by_key: {} bins", bins));
  Tensor begins = MakeTensor({static_cast<uint64_t>(bins) + 1});
  for (const double v : x->data) {
    if (!(v >= 0 && v < static_cast<double>(bins)))
      return in.Bad(fmt::format("sort_by_key: {} is no bin of {}", v, bins));
    ++begins.data[static_cast<uint64_t>(v) + 1];
  }
  for (uint64_t i = 1; i < begins.size(); ++i) begins.data[i] += begins.data[i - 1];
  Tensor order = MakeTensor({x->size()});
  std::vector<double> next = begins.data;
  for (uint64_t i = 0; i < x->size(); ++i)
    order.data[static_cast<uint64_t>(next[static_cast<uint64_t>(x->data[i])]++)] = static_cast<double>(i);
  return std::vector<Tensor>{std::move(order), std::move(begins)};
}

Results ApplyQuantize(const pb::Quantize& op, const Operands& in) {
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* x, in.Get(op.x(), 1));
  const auto type = static_cast<DType>(op.type());
  if (SizeOf(type) == 0) return in.Bad("quantize: the type is not given");
  Tensor out = *x;
  if (op.mode() == pb::Quantize::given) {
    HEDDLE_ASSIGN_OR_RETURN(const Tensor* scale, in.Get(op.scale(), 1));
    if (Broadcast(x->shape, scale->shape) != x->shape)
      return in.Bad("quantize: the scale does not broadcast to the tensor");
    for (uint64_t i = 0; i < out.size(); ++i)
      out.data[i] = Round(type, out.data[i] / scale->data[BroadcastIndex(i, x->shape, *scale)]);
    return std::vector<Tensor>{std::move(out), *scale};
  }
  HEDDLE_ASSIGN_OR_RETURN(const int64_t asked, in.Integer(op.group(), 0));
  uint64_t group = x->size();
  std::vector<uint64_t> shape{1};
  if (op.mode() != pb::Quantize::per_tensor) {
    group =
        op.mode() == pb::Quantize::per_row ? x->last() : static_cast<uint64_t>(std::max<int64_t>(asked, 0));
    if (group == 0 || x->last() % group != 0)
      return in.Bad(fmt::format("quantize: groups of {} in rows of {}", group, x->last()));
    shape = x->shape;
    shape.back() = x->last() / group;
    if (op.mode() == pb::Quantize::per_row && shape.size() > 1) shape.pop_back();
  }
  Tensor scales = MakeTensor(std::move(shape));
  for (uint64_t g = 0; g < scales.size(); ++g) {
    double largest = 0;
    for (uint64_t i = g * group; i < (g + 1) * group; ++i) largest = std::max(largest, std::fabs(x->data[i]));
    const double scale = std::max(largest / HighestOf(type), op.scale_floor());
    scales.data[g] = scale;
    for (uint64_t i = g * group; i < (g + 1) * group; ++i) {
      const double v = scale == 0 ? 0 : x->data[i] / scale;
      out.data[i] = Round(type, std::clamp(v, LowestOf(type), HighestOf(type)));
    }
  }
  return std::vector<Tensor>{std::move(out), std::move(scales)};
}

Results ApplyView(const pb::View& op, const Operands& in) {
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* x, in.Get(op.x()));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t offset, in.Integer(op.offset(), 0));
  std::vector<uint64_t> shape;
  uint64_t total = 1;
  for (const std::string& text : op.shape()) {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t extent, in.Integer(text, 1));
    if (extent < 1 || __builtin_mul_overflow(total, static_cast<uint64_t>(extent), &total) ||
        total > uint64_t{1} << 36)
      return in.Bad(fmt::format("view: extent {}", extent));
    shape.push_back(static_cast<uint64_t>(extent));
  }
  std::vector<int64_t> stride(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) stride[i - 1] = stride[i] * static_cast<int64_t>(shape[i]);
  if (op.stride_size() != 0 && static_cast<size_t>(op.stride_size()) != shape.size())
    return in.Bad("view: as many strides as dimensions are needed");
  for (int i = 0; i < op.stride_size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(stride[static_cast<size_t>(i)], in.Integer(op.stride(i), 1));
    if (std::abs(stride[static_cast<size_t>(i)]) > int64_t{1} << 40)
      return in.Bad("view: a stride is too large");
  }
  Tensor out = MakeTensor(shape);
  for (uint64_t i = 0; i < out.size(); ++i) {
    int64_t at = offset;
    uint64_t rest = i;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d])
      at += static_cast<int64_t>(rest % shape[d]) * stride[d];
    if (at < 0 || static_cast<uint64_t>(at) >= x->size())
      return in.Bad(fmt::format("view: element {} lies outside the {} of '{}'", at, x->size(), op.x()));
    out.data[i] = x->data[static_cast<uint64_t>(at)];
  }
  return std::vector<Tensor>{std::move(out)};
}

Results ApplyTranspose(const pb::Transpose& op, const Operands& in) {
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* x, in.Get(op.x()));
  const size_t rank = x->shape.size();
  std::vector<uint32_t> order(op.order().begin(), op.order().end());
  std::vector<uint32_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != i) return in.Bad("transpose: `order` is no permutation of the dimensions");
  if (order.size() != rank)
    return in.Bad(fmt::format("transpose: {} entries for {} dimensions", order.size(), rank));
  std::vector<uint64_t> stride(rank, 1);
  for (size_t i = rank; i-- > 1;) stride[i - 1] = stride[i] * x->shape[i];
  std::vector<uint64_t> shape;
  for (const uint32_t d : order) shape.push_back(x->shape[d]);
  Tensor out = MakeTensor(shape);
  for (uint64_t i = 0; i < out.size(); ++i) {
    uint64_t at = 0;
    uint64_t rest = i;
    for (size_t d = rank; d-- > 0; rest /= shape[d]) at += rest % shape[d] * stride[order[d]];
    out.data[i] = x->data[at];
  }
  return std::vector<Tensor>{std::move(out)};
}

Results ApplyConcat(const pb::Concat& op, const Operands& in) {
  if (op.x_size() == 0) return in.Bad("concat: nothing to join");
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* first, in.Get(op.x(0), 1));
  const auto rank = static_cast<int>(first->shape.size());
  const int axis = op.axis() < 0 ? op.axis() + rank : op.axis();
  if (axis < 0 || axis >= rank)
    return in.Bad(fmt::format("concat: axis {} of {} dimensions", op.axis(), rank));
  std::vector<uint64_t> shape = first->shape;
  shape[static_cast<size_t>(axis)] = 0;
  uint64_t inner = 1;
  for (size_t i = static_cast<size_t>(axis) + 1; i < shape.size(); ++i) inner *= shape[i];
  std::vector<const Tensor*> parts;
  for (const std::string& name : op.x()) {
    HEDDLE_ASSIGN_OR_RETURN(const Tensor* part, in.Get(name, 1));
    std::vector<uint64_t> expected = part->shape;
    if (expected.size() != shape.size()) return in.Bad("concat: different numbers of dimensions");
    shape[static_cast<size_t>(axis)] +=
        std::exchange(expected[static_cast<size_t>(axis)], first->shape[static_cast<size_t>(axis)]);
    if (expected != first->shape) return in.Bad("concat: the other dimensions differ");
    parts.push_back(part);
  }
  Tensor out = MakeTensor(shape);
  const uint64_t row = shape[static_cast<size_t>(axis)] * inner;
  uint64_t begin = 0;
  for (const Tensor* part : parts) {
    const uint64_t own = part->shape[static_cast<size_t>(axis)] * inner;
    for (uint64_t r = 0; r < out.size() / row; ++r)
      std::copy_n(&part->data[r * own], own, &out.data[r * row + begin]);
    begin += own;
  }
  return std::vector<Tensor>{std::move(out)};
}

}  // namespace heddle::trace
