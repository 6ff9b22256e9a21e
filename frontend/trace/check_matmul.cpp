// Matrix products and attention.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "frontend/trace/check_operations.h"

namespace heddle::trace {
namespace {

double Dot(const double* a, const double* b, uint64_t count) {
  double sum[4] = {0, 0, 0, 0};
  uint64_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (uint64_t lane = 0; lane < 4; ++lane) sum[lane] += a[i + lane] * b[i + lane];
  for (; i < count; ++i) sum[0] += a[i] * b[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// The last two dimensions exchanged.
Tensor TransposeLast(const Tensor& x) {
  const uint64_t rows = x.shape[x.shape.size() - 2];
  const uint64_t columns = x.last();
  Tensor out = x;
  std::swap(out.shape[x.shape.size() - 2], out.shape.back());
  for (uint64_t base = 0; base < x.size(); base += rows * columns)
    for (uint64_t r = 0; r < rows; ++r)
      for (uint64_t c = 0; c < columns; ++c) out.data[base + c * rows + r] = x.data[base + r * columns + c];
  return out;
}

// c[m][n] = a[m][k] * b[n][k], in blocks that stay in the caches.
void MultiplyBlock(const double* a, const double* b, double* c, uint64_t m, uint64_t n, uint64_t k) {
  constexpr uint64_t kBlock = 32;
  for (uint64_t i0 = 0; i0 < m; i0 += kBlock)
    for (uint64_t j0 = 0; j0 < n; j0 += kBlock)
      for (uint64_t i = i0; i < std::min(m, i0 + kBlock); ++i)
        for (uint64_t j = j0; j < std::min(n, j0 + kBlock); ++j) c[i * n + j] = Dot(a + i * k, b + j * k, k);
}

}  // namespace

Results ApplyMatmul(const pb::Matmul& op, const Operands& in) {
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* a, in.Get(op.a(), 2));
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* b, in.Get(op.b(), 2));
  const Tensor left = op.transpose_a() ? TransposeLast(*a) : *a;
  const Tensor right = op.transpose_b() ? *b : TransposeLast(*b);  // [..., N, K]
  const uint64_t m = left.shape[left.shape.size() - 2];
  const uint64_t k = left.last();
  const uint64_t n = right.shape[right.shape.size() - 2];
  if (right.last() != k)
    return in.Bad(fmt::format("matmul: the inner dimensions are {} and {}", k, right.last()));
  const uint64_t batch = left.size() / (m * k);
  const uint64_t right_batch = right.size() / (n * k);
  if (right_batch != 1 && right_batch != batch)
    return in.Bad(fmt::format("matmul: the leading dimensions hold {} and {} matrices", batch, right_batch));
  std::vector<uint64_t> shape = left.shape;
  shape.back() = n;
  Tensor out = MakeTensor(std::move(shape));
  for (uint64_t i = 0; i < batch; ++i)
    MultiplyBlock(&left.data[i * m * k], &right.data[right_batch == 1 ? 0 : i * n * k], &out.data[i * m * n],
                  m, n, k);
  return std::vector<Tensor>{std::move(out)};
}

Results ApplyGroupedMatmul(const pb::GroupedMatmul& op, const Operands& in) {
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* x, in.Get(op.x(), 2));
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* w, in.Get(op.weight(), 3));
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* expert, in.Get(op.expert()));
  const Tensor* scale = in.Find(op.row_scale());
  const Tensor* index = in.Find(op.row_index());
  const Tensor weight = op.transpose_b() ? *w : TransposeLast(*w);  // [experts, N, K]
  const uint64_t n = weight.shape[1];
  const uint64_t k = weight.shape[2];
  const uint64_t rows = index != nullptr ? index->size() : x->rows();
  if (x->last() != k)
    return in.Bad(fmt::format("grouped_matmul: the inner dimensions are {} and {}", x->last(), k));
  if (expert->size() != rows || (scale != nullptr && scale->size() != rows))
    return in.Bad(fmt::format("grouped_matmul: {} rows, {} experts", rows, expert->size()));
  Tensor out = MakeTensor({rows, n});
  for (uint64_t r = 0; r < rows; ++r) {
    const double source = index != nullptr ? index->data[r] : static_cast<double>(r);
    const double e = expert->data[r];
    if (!(source >= 0 && source < static_cast<double>(x->rows())) ||
        !(e >= 0 && e < static_cast<double>(weight.shape[0])))
      return in.Bad(fmt::format("grouped_matmul: row {} uses row {} and expert {}", r, source, e));
    const double* a = &x->data[static_cast<uint64_t>(source) * k];
    const double* b = &weight.data[static_cast<uint64_t>(e) * n * k];
    for (uint64_t j = 0; j < n; ++j)
      out.data[r * n + j] = Dot(a, b + j * k, k) * (scale != nullptr ? scale->data[r] : 1);
  }
  return std::vector<Tensor>{std::move(out)};
}

namespace {

// One sequence of one query head: strides in elements; keys through a table of blocks where there is one.
struct Sequence {
  const double* q = nullptr;
  const double* k = nullptr;
  const double* v = nullptr;
  double* out = nullptr;
  double* lse = nullptr;
  uint64_t queries = 0;
  uint64_t keys = 0;
  // Strides count rows, of the head dimension of queries and keys or of that of values and results.
  uint64_t q_stride = 0;
  uint64_t lse_stride = 1;
  uint64_t kv_stride = 0;          // from a key to the next, inside a block
  const double* blocks = nullptr;  // paged: the sequence's row of the block table
  uint64_t block_size = 0;
  uint64_t block_stride = 0;

  uint64_t KeyRow(uint64_t key) const {
    if (blocks == nullptr) return key * kv_stride;
    return static_cast<uint64_t>(blocks[key / block_size]) * block_stride + key % block_size * kv_stride;
  }
};

struct AttentionNumbers {
  double scale = 1;
  double softcap = 0;
  uint64_t window = 0;
  bool causal = false;
  uint64_t dim = 0;
  uint64_t v_dim = 0;
};

void Attend(const Sequence& s, const AttentionNumbers& n) {
  std::vector<double> score(s.keys);
  for (uint64_t i = 0; i < s.queries; ++i) {
    // Aligned at the end: query i stands at key i + keys - queries.
    const int64_t position = static_cast<int64_t>(i + s.keys) - static_cast<int64_t>(s.queries);
    const int64_t end = n.causal ? std::clamp<int64_t>(position + 1, 0, static_cast<int64_t>(s.keys))
                                 : static_cast<int64_t>(s.keys);
    const int64_t begin =
        n.window == 0 ? 0 : std::max<int64_t>(0, position + 1 - static_cast<int64_t>(n.window));
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t j = begin; j < end; ++j) {
      double value =
          Dot(s.q + i * s.q_stride * n.dim, s.k + s.KeyRow(static_cast<uint64_t>(j)) * n.dim, n.dim) *
          n.scale;
      if (n.softcap != 0) value = n.softcap * std::tanh(value / n.softcap);
      score[static_cast<size_t>(j)] = value;
      largest = std::max(largest, value);
    }
    double sum = 0;
    std::vector<double> row(n.v_dim);
    for (int64_t j = begin; j < end; ++j) {
      const double p = std::exp(score[static_cast<size_t>(j)] - largest);
      const double* v = s.v + s.KeyRow(static_cast<uint64_t>(j)) * n.v_dim;
      sum += p;
      for (uint64_t d = 0; d < n.v_dim; ++d) row[d] += p * v[d];
    }
    for (uint64_t d = 0; d < n.v_dim; ++d) s.out[i * s.q_stride * n.v_dim + d] = sum == 0 ? 0 : row[d] / sum;
    s.lse[i * s.lse_stride] = sum == 0 ? -std::numeric_limits<double>::infinity() : largest + std::log(sum);
  }
}

// Values may be of another head dimension than keys.
bool SameButLast(const Tensor& k, const Tensor& v) {
  return k.shape.size() == v.shape.size() && std::equal(k.shape.begin(), k.shape.end() - 1, v.shape.begin());
}

Tensor MakeResult(const Tensor& q, uint64_t v_dim) {
  auto shape = q.shape;
  shape.back() = v_dim;
  return MakeTensor(shape);
}

Results AttendDense(const pb::Attention& op, const Operands& in, const AttentionNumbers& n, const Tensor& q,
                    const Tensor& k, const Tensor& v) {
  if (q.shape.size() != 4 || k.shape.size() != 4 || !SameButLast(k, v))
    return in.Bad("attention: q, k and v must have 4 dimensions, and k and v the same but for the last");
  const bool heads_first = op.layout() == pb::Attention::bhsd;
  const size_t head_dim = heads_first ? 1 : 2;
  const size_t sequence_dim = heads_first ? 2 : 1;
  const uint64_t batch = q.shape[0], heads = q.shape[head_dim], kv_heads = k.shape[head_dim];
  const uint64_t queries = q.shape[sequence_dim], keys = k.shape[sequence_dim];
  if (k.shape[0] != batch || heads % kv_heads != 0)
    return in.Bad(fmt::format("attention: {} query heads and {} key heads", heads, kv_heads));
  Tensor out = MakeResult(q, n.v_dim);
  Tensor lse = MakeTensor({batch, heads, queries});
  for (uint64_t b = 0; b < batch; ++b)
    for (uint64_t h = 0; h < heads; ++h) {
      const uint64_t g = h / (heads / kv_heads);
      Sequence s;
      const uint64_t q_row = heads_first ? (b * heads + h) * queries : b * queries * heads + h;
      const uint64_t k_row = heads_first ? (b * kv_heads + g) * keys : b * keys * kv_heads + g;
      s.q = &q.data[q_row * n.dim];
      s.out = &out.data[q_row * n.v_dim];
      s.k = &k.data[k_row * n.dim];
      s.v = &v.data[k_row * n.v_dim];
      s.lse = &lse.data[(b * heads + h) * queries];
      s.queries = queries;
      s.keys = keys;
      s.q_stride = heads_first ? 1 : heads;
      s.kv_stride = heads_first ? 1 : kv_heads;
      Attend(s, n);
    }
  return std::vector<Tensor>{std::move(out), std::move(lse)};
}

Results AttendVarlen(const pb::Attention& op, const Operands& in, const AttentionNumbers& n, const Tensor& q,
                     const Tensor& k, const Tensor& v) {
  if (q.shape.size() != 3 || k.shape.size() != 3 || !SameButLast(k, v))
    return in.Bad(
        "attention: q, k and v must be [tokens, heads, dim], and k and v the same but for the last");
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* cu_q, in.Get(op.cu_seqlens_q(), 1));
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* cu_k,
                          in.Get(op.cu_seqlens_k().empty() ? op.cu_seqlens_q() : op.cu_seqlens_k(), 1));
  const uint64_t heads = q.shape[1], kv_heads = k.shape[1];
  if (cu_q->size() != cu_k->size() || heads % kv_heads != 0)
    return in.Bad("attention: the cumulative lengths or the heads do not fit");
  Tensor out = MakeResult(q, n.v_dim);
  Tensor lse = MakeTensor({q.shape[0], heads});
  for (uint64_t i = 0; i + 1 < cu_q->size(); ++i) {
    const auto q0 = static_cast<uint64_t>(cu_q->data[i]), q1 = static_cast<uint64_t>(cu_q->data[i + 1]);
    const auto k0 = static_cast<uint64_t>(cu_k->data[i]), k1 = static_cast<uint64_t>(cu_k->data[i + 1]);
    if (q1 < q0 || k1 < k0 || q1 > q.shape[0] || k1 > k.shape[0])
      return in.Bad(fmt::format("attention: sequence {} has impossible offsets", i));
    for (uint64_t h = 0; h < heads && q1 > q0; ++h) {
      const uint64_t g = h / (heads / kv_heads);
      Sequence s;
      s.q = &q.data[(q0 * heads + h) * n.dim];
      s.out = &out.data[(q0 * heads + h) * n.v_dim];
      s.k = k.data.data() + (k0 * kv_heads + g) * n.dim;
      s.v = v.data.data() + (k0 * kv_heads + g) * n.v_dim;
      s.lse = &lse.data[q0 * heads + h];
      s.lse_stride = heads;
      s.queries = q1 - q0;
      s.keys = k1 - k0;
      s.q_stride = heads;
      s.kv_stride = kv_heads;
      Attend(s, n);
    }
  }
  return std::vector<Tensor>{std::move(out), std::move(lse)};
}

Results AttendPaged(const pb::Attention& op, const Operands& in, const AttentionNumbers& n, const Tensor& q,
                    const Tensor& k, const Tensor& v) {
  if (q.shape.size() != 3 || k.shape.size() != 4 || !SameButLast(k, v))
    return in.Bad("attention: q must be [batch, heads, dim], k and v [blocks, ., ., dim]");
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* table, in.Get(op.block_table(), 2));
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* lengths, in.Get(op.seq_lens(), 1));
  const bool heads_first = op.layout() == pb::Attention::paged_hnd;
  const uint64_t batch = q.shape[0], heads = q.shape[1];
  const uint64_t kv_heads = k.shape[heads_first ? 1 : 2], block_size = k.shape[heads_first ? 2 : 1];
  if (table->shape[0] != batch || lengths->size() != batch || heads % kv_heads != 0)
    return in.Bad("attention: the block table, the lengths or the heads do not fit");
  Tensor out = MakeResult(q, n.v_dim);
  Tensor lse = MakeTensor({batch, heads});
  for (uint64_t b = 0; b < batch; ++b) {
    const double length = lengths->data[b];
    if (!(length >= 0 && length <= static_cast<double>(table->last() * block_size)))
      return in.Bad(fmt::format("attention: sequence {} has {} keys", b, length));
    const auto keys = static_cast<uint64_t>(length);
    for (uint64_t i = 0; i * block_size < keys; ++i) {
      const double block = table->data[b * table->last() + i];
      if (!(block >= 0 && block < static_cast<double>(k.shape[0])))
        return in.Bad(fmt::format("attention: entry {} of sequence {} names block {}", i, b, block));
    }
    for (uint64_t h = 0; h < heads; ++h) {
      const uint64_t g = h / (heads / kv_heads);
      Sequence s;
      s.q = &q.data[(b * heads + h) * n.dim];
      s.out = &out.data[(b * heads + h) * n.v_dim];
      s.k = &k.data[(heads_first ? g * block_size : g) * n.dim];
      s.v = &v.data[(heads_first ? g * block_size : g) * n.v_dim];
      s.lse = &lse.data[b * heads + h];
      s.queries = 1;
      s.keys = keys;
      s.q_stride = 1;
      s.kv_stride = heads_first ? 1 : kv_heads;
      s.blocks = &table->data[b * table->last()];
      s.block_size = block_size;
      s.block_stride = block_size * kv_heads;
      Attend(s, n);
    }
  }
  return std::vector<Tensor>{std::move(out), std::move(lse)};
}

}  // namespace

Results ApplyAttention(const pb::Attention& op, const Operands& in) {
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* q, in.Get(op.q(), 3));
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* k, in.Get(op.k(), 3));
  HEDDLE_ASSIGN_OR_RETURN(const Tensor* v, in.Get(op.v(), 3));
  AttentionNumbers n;
  n.dim = q->last();
  n.v_dim = v->last();
  n.causal = op.causal();
  if (k->last() != n.dim)
    return in.Bad(fmt::format("attention: head dimensions {} of queries and {} of keys", n.dim, k->last()));
  HEDDLE_ASSIGN_OR_RETURN(n.scale, in.Real(op.scale(), 1 / std::sqrt(static_cast<double>(n.dim))));
  HEDDLE_ASSIGN_OR_RETURN(n.softcap, in.Real(op.softcap(), 0));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t window, in.Integer(op.window(), 0));
  if (window < 0) return in.Bad("attention: the window is negative");
  n.window = static_cast<uint64_t>(window);
  switch (op.layout()) {
    case pb::Attention::bhsd:
    case pb::Attention::bshd:
      return AttendDense(op, in, n, *q, *k, *v);
    case pb::Attention::thd:
      return AttendVarlen(op, in, n, *q, *k, *v);
    case pb::Attention::paged:
    case pb::Attention::paged_hnd:
      return AttendPaged(op, in, n, *q, *k, *v);
    default:
      return in.Bad("attention: unknown layout");
  }
}

}  // namespace heddle::trace
