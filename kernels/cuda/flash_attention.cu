// Forward attention without the score matrix in memory (FlashAttention-2): online softmax, bf16 mma.m16n8k16,
// K and V tiles through a two-stage cp.async pipeline in swizzled shared memory.
//
// Layout [batch, sequence, heads, head_dim] for q, k, v and out; query heads share KV heads in groups (GQA).
// Causal means that query i sees keys 0..i + (kv_length - q_length). A CTA of 4 warps computes 64 query rows
// of one head, 16 a warp. Grid (ceil(q_length / 64), q_heads, batch); 128 threads; dynamic shared memory 4 *
// 64 * head_dim * 2 bytes.
#include "common.cuh"

namespace kernels {
namespace {

constexpr int kRows = 64;     // queries a CTA
constexpr int kColumns = 64;  // keys a step
constexpr int kThreads = 128;

struct Shape {
  int q_length, kv_length, q_heads, kv_heads;
  float scale;
};

template <int head_dim>
struct Tile {
  static constexpr int kBytes = 64 * head_dim * 2;
  static constexpr int kChunks = head_dim / 8;  // 16-byte chunks a row

  // Chunks are permuted within groups of 8 by the row, so that 8 consecutive rows use all banks.
  __device__ static __forceinline__ uint32_t Offset(int row, int chunk) {
    return row * head_dim * 2 + ((chunk ^ (row & 7)) << 4);
  }

  // Copies rows [row0, row0 + 64) of one head; rows from `rows` on are zero.
  __device__ static __forceinline__ void Load(uint32_t shared, const bf16* head, int row0, int rows,
                                              int64_t row_stride) {
#pragma unroll
    for (int i = 0; i < 64 * kChunks / kThreads; ++i) {
      const int index = i * kThreads + threadIdx.x;
      const int row = index / kChunks;
      const int chunk = index % kChunks;
      const bool valid = row0 + row < rows;
      const bf16* from = valid ? head + (row0 + row) * row_stride + chunk * 8 : head;
      CpAsync16(shared + Offset(row, chunk), from, valid);
    }
  }
};

// The running state of the two query rows (lane / 4 and lane / 4 + 8) that a thread holds.
template <int head_dim>
struct State {
  float out[head_dim / 8][4];
  float max[2];
  float sum[2];
};

// s = q * k^T of this warp's 16 rows and the 64 keys of the tile.
template <int head_dim>
__device__ __forceinline__ void Scores(float (&s)[kColumns / 8][4], const uint32_t (&q)[head_dim / 16][4],
                                       uint32_t k_tile) {
  const int lane = threadIdx.x % kWarpSize;
#pragma unroll
  for (int j = 0; j < kColumns / 8; ++j)
#pragma unroll
    for (int r = 0; r < 4; ++r) s[j][r] = 0.0f;
#pragma unroll
  for (int d = 0; d < head_dim / 16; ++d) {
#pragma unroll
    for (int j = 0; j < kColumns / 8; j += 2) {
      uint32_t k[4];
      Ldmatrix(k, k_tile + Tile<head_dim>::Offset(j * 8 + lane % 8 + lane / 16 * 8, d * 2 + lane / 8 % 2));
      Mma16816(s[j], q[d], k[0], k[1]);
      Mma16816(s[j + 1], q[d], k[2], k[3]);
    }
  }
}

// Turns scores (masked ones are -inf) into probabilities relative to the new maximum and rescales the state.
template <int head_dim>
__device__ __forceinline__ void OnlineSoftmax(State<head_dim>& state, float (&s)[kColumns / 8][4],
                                              float scale_log2) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float max = state.max[half];
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j) max = fmaxf(max, fmaxf(s[j][2 * half], s[j][2 * half + 1]));
    max = WarpReduce<Max, 4>(max);
    const float shift =
        max == -INFINITY ? 0.0f : max * scale_log2;  // a row that sees nothing yet must not make NaNs
    const float keep = exp2f(state.max[half] * scale_log2 - shift);
    state.max[half] = max;
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        s[j][2 * half + c] = exp2f(s[j][2 * half + c] * scale_log2 - shift);
        sum += s[j][2 * half + c];
      }
    }
    state.sum[half] = state.sum[half] * keep + sum;  // of this lane's columns; lanes are added at the end
#pragma unroll
    for (int d = 0; d < head_dim / 8; ++d) {
      state.out[d][2 * half] *= keep;
      state.out[d][2 * half + 1] *= keep;
    }
  }
}

// out += p * v. The accumulator layout of p is the A-operand layout of the next product.
template <int head_dim>
__device__ __forceinline__ void AddValues(State<head_dim>& state, const float (&p)[kColumns / 8][4],
                                          uint32_t v_tile) {
  const int lane = threadIdx.x % kWarpSize;
#pragma unroll
  for (int j = 0; j < kColumns / 16; ++j) {
    const uint32_t a[4] = {PackPair(p[2 * j][0], p[2 * j][1]), PackPair(p[2 * j][2], p[2 * j][3]),
                           PackPair(p[2 * j + 1][0], p[2 * j + 1][1]),
                           PackPair(p[2 * j + 1][2], p[2 * j + 1][3])};
#pragma unroll
    for (int d = 0; d < head_dim / 8; d += 2) {
      uint32_t v[4];
      LdmatrixTranspose(v, v_tile + Tile<head_dim>::Offset(j * 16 + lane % 16, d + lane / 16));
      Mma16816(state.out[d], a, v[0], v[1]);
      Mma16816(state.out[d + 1], a, v[2], v[3]);
    }
  }
}

template <int head_dim, bool causal>
__device__ __forceinline__ void FlashAttention(bf16* out, const bf16* q, const bf16* k, const bf16* v,
                                               const Shape& shape) {
  using T = Tile<head_dim>;
  extern __shared__ __align__(128) uint8_t shared_bytes[];
  const uint32_t k_tiles =
      SharedAddress(shared_bytes);  // two K tiles, then two V tiles; Q passes through the first V tile
  const uint32_t v_tiles = k_tiles + 2 * T::kBytes;
  const int lane = threadIdx.x % kWarpSize;
  const int warp = threadIdx.x / kWarpSize;

  // The longest rows first: they decide when a causal grid ends.
  const int row0 = (causal ? gridDim.x - 1 - blockIdx.x : blockIdx.x) * kRows;
  const int64_t q_stride = static_cast<int64_t>(shape.q_heads) * head_dim;
  const int64_t kv_stride = static_cast<int64_t>(shape.kv_heads) * head_dim;
  const int kv_head = blockIdx.y / (shape.q_heads / shape.kv_heads);
  q += blockIdx.z * shape.q_length * q_stride + blockIdx.y * head_dim;
  out += blockIdx.z * shape.q_length * q_stride + blockIdx.y * head_dim;
  k += blockIdx.z * shape.kv_length * kv_stride + kv_head * head_dim;
  v += blockIdx.z * shape.kv_length * kv_stride + kv_head * head_dim;

  const int offset = shape.kv_length - shape.q_length;
  const int keys = causal ? min(shape.kv_length, row0 + kRows + offset) : shape.kv_length;
  const int steps = (keys + kColumns - 1) / kColumns;

  T::Load(v_tiles, q, row0, shape.q_length, q_stride);
  CpAsyncCommit();
  T::Load(k_tiles, k, 0, shape.kv_length, kv_stride);
  CpAsyncCommit();
  CpAsyncWait<1>();
  __syncthreads();
  uint32_t query[head_dim / 16][4];
#pragma unroll
  for (int d = 0; d < head_dim / 16; ++d)
    Ldmatrix(query[d], v_tiles + T::Offset(warp * 16 + lane % 16, d * 2 + lane / 16));
  __syncthreads();
  T::Load(v_tiles, v, 0, shape.kv_length, kv_stride);
  CpAsyncCommit();

  State<head_dim> state;
#pragma unroll
  for (int d = 0; d < head_dim / 8; ++d)
#pragma unroll
    for (int r = 0; r < 4; ++r) state.out[d][r] = 0.0f;
  state.max[0] = state.max[1] = -INFINITY;
  state.sum[0] = state.sum[1] = 0.0f;
  const float scale_log2 = shape.scale * 1.4426950408889634f;

  for (int step = 0; step < steps; ++step) {
    const uint32_t k_tile = k_tiles + step % 2 * T::kBytes;
    const uint32_t v_tile = v_tiles + step % 2 * T::kBytes;
    if (step + 1 < steps) {
      T::Load(k_tiles + (step + 1) % 2 * T::kBytes, k, (step + 1) * kColumns, shape.kv_length, kv_stride);
    }
    CpAsyncCommit();
    CpAsyncWait<2>();  // K of this step; its V and the next K may be in flight
    __syncthreads();
    float s[kColumns / 8][4];
    Scores<head_dim>(s, query, k_tile);

    // Only the last tiles need the mask: keys behind the end, and the diagonal.
    const int first_key = step * kColumns;
    const int visible = causal ? row0 + offset + 1 : shape.kv_length;  // keys that every row of the CTA sees
    if (first_key + kColumns > min(visible, shape.kv_length)) {
#pragma unroll
      for (int j = 0; j < kColumns / 8; ++j)
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          const int key = first_key + j * 8 + lane % 4 * 2 + r % 2;
          const int row = row0 + warp * 16 + lane / 4 + r / 2 * 8;
          if (key >= shape.kv_length || (causal && key > row + offset)) s[j][r] = -INFINITY;
        }
    }
    OnlineSoftmax<head_dim>(state, s, scale_log2);

    if (step + 1 < steps) {
      T::Load(v_tiles + (step + 1) % 2 * T::kBytes, v, (step + 1) * kColumns, shape.kv_length, kv_stride);
    }
    CpAsyncCommit();
    CpAsyncWait<2>();  // V of this step
    __syncthreads();
    AddValues<head_dim>(state, s, v_tile);
    // No barrier here: the next step's K goes where nobody reads since the barrier above, its V is fetched
    // behind the next one.
  }

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float sum = WarpReduce<Sum, 4>(state.sum[half]);
    const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
    const int row = row0 + warp * 16 + lane / 4 + half * 8;
    if (row >= shape.q_length) continue;
#pragma unroll
    for (int d = 0; d < head_dim / 8; ++d) {
      *reinterpret_cast<uint32_t*>(out + row * q_stride + d * 8 + lane % 4 * 2) =
          PackPair(state.out[d][2 * half] * inverse, state.out[d][2 * half + 1] * inverse);
    }
  }
}

}  // namespace
}  // namespace kernels

using namespace kernels;

#define FLASH_ATTENTION_KERNEL(name, head_dim, causal)                                                    \
  extern "C" __global__ void __launch_bounds__(kThreads) name(                                            \
      bf16* __restrict__ out, const bf16* __restrict__ q, const bf16* __restrict__ k,                     \
      const bf16* __restrict__ v, int q_length, int kv_length, int q_heads, int kv_heads, float scale) {  \
    FlashAttention<head_dim, causal>(out, q, k, v, Shape{q_length, kv_length, q_heads, kv_heads, scale}); \
  }

FLASH_ATTENTION_KERNEL(flash_attention_hd64, 64, false)
FLASH_ATTENTION_KERNEL(flash_attention_hd64_causal, 64, true)
FLASH_ATTENTION_KERNEL(flash_attention_hd128, 128, false)
FLASH_ATTENTION_KERNEL(flash_attention_hd128_causal, 128, true)
