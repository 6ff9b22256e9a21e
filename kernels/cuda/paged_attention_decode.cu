// Attention of one query token per sequence over a paged KV cache (flash decoding in one CTA): head dimension
// 128, bf16, a group of query heads shares each KV head (GQA).
//
// Grid (kv_heads, sequences), 128 threads. Every warp takes every fourth page; 16 lanes cover a cache row of
// 128 elements with one 16-byte load each, so a warp handles two tokens at once. A row is read once for all
// query heads of the group. At the end the eight half-warps merge their running (max, sum, accumulator).
#include "common.cuh"

using namespace kernels;

namespace {

constexpr int kHeadDim = 128;
constexpr int kGroup = 4;  // query heads per KV head
constexpr int kWarps = 4;
constexpr int kLanesPerRow = kHeadDim / Bf16x8::kSize;
constexpr int kRowsPerWarp = kWarpSize / kLanesPerRow;
constexpr int kParts = kWarps * kRowsPerWarp;

struct Running {
  float max[kGroup];
  float sum[kGroup];
  float acc[kGroup][8];
};

__device__ __forceinline__ void Visit(Running& state, const float (&q)[kGroup][8], const bf16* key,
                                      const bf16* value, bool valid) {
  float k[8] = {}, v[8] = {};
  if (valid) {
    const Bf16x8 raw_key = LoadStreaming(key);
    const Bf16x8 raw_value = LoadStreaming(value);
    Unpack(raw_key, k);
    Unpack(raw_value, v);
  }
#pragma unroll
  for (int g = 0; g < kGroup; ++g) {
    float dot = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) dot += q[g][i] * k[i];
    dot = WarpReduce<Sum, kLanesPerRow>(dot);
    if (!valid) continue;
    const float max = fmaxf(state.max[g], dot);
    const float keep = exp2f(state.max[g] - max);
    const float p = exp2f(dot - max);
    state.max[g] = max;
    state.sum[g] = state.sum[g] * keep + p;
#pragma unroll
    for (int i = 0; i < 8; ++i) state.acc[g][i] = state.acc[g][i] * keep + p * v[i];
  }
}

}  // namespace

// q, out [sequences, kv_heads * kGroup, 128]; key and value cache [pages, page_size, kv_heads, 128];
// block_table [sequences, table_stride]; lengths [sequences], each >= 1; scale as in softmax(scale * q k).
// page_size is even.
extern "C" __global__ void __launch_bounds__(kWarps* kWarpSize)
    paged_attention_decode_bf16(bf16* __restrict__ out, const bf16* __restrict__ q,
                                const bf16* __restrict__ key_cache, const bf16* __restrict__ value_cache,
                                const int* __restrict__ block_table, const int* __restrict__ lengths,
                                int table_stride, int page_size, float scale) {
  const int kv_heads = gridDim.x;
  const int kv_head = blockIdx.x;
  const int sequence = blockIdx.y;
  const int warp = threadIdx.x / kWarpSize;
  const int lane = threadIdx.x % kWarpSize;
  const int part = warp * kRowsPerWarp + lane / kLanesPerRow;
  const int column = lane % kLanesPerRow * Bf16x8::kSize;
  const int length = lengths[sequence];

  float query[kGroup][8];
  const int64_t first_head = static_cast<int64_t>(sequence) * kv_heads * kGroup + kv_head * kGroup;
#pragma unroll
  for (int g = 0; g < kGroup; ++g) {
    Unpack(LoadBf16x8(q + (first_head + g) * kHeadDim + column), query[g]);
#pragma unroll
    for (int i = 0; i < 8; ++i) query[g][i] *= scale * 1.4426950408889634f;  // exp2 instead of exp
  }

  Running state;
#pragma unroll
  for (int g = 0; g < kGroup; ++g) {
    state.max[g] = Max::kIdentity;
    state.sum[g] = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) state.acc[g][i] = 0.0f;
  }

  const int pages = (length + page_size - 1) / page_size;
  const int row_stride = kv_heads * kHeadDim;
  for (int page = warp; page < pages; page += kWarps) {
    const int64_t base =
        static_cast<int64_t>(block_table[sequence * table_stride + page]) * page_size * row_stride +
        kv_head * kHeadDim + column;
#pragma unroll 2
    for (int row = lane / kLanesPerRow; row < page_size; row += kRowsPerWarp) {
      const int64_t offset = base + static_cast<int64_t>(row) * row_stride;
      Visit(state, query, key_cache + offset, value_cache + offset, page * page_size + row < length);
    }
  }

  __shared__ float shared_max[kParts][kGroup];
  __shared__ float shared_sum[kParts][kGroup];
  __shared__ float shared_acc[kParts][kGroup][kHeadDim];
#pragma unroll
  for (int g = 0; g < kGroup; ++g) {
    if (column == 0) {
      shared_max[part][g] = state.max[g];
      shared_sum[part][g] = state.sum[g];
    }
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
      *reinterpret_cast<float4*>(&shared_acc[part][g][column + i]) =
          make_float4(state.acc[g][i], state.acc[g][i + 1], state.acc[g][i + 2], state.acc[g][i + 3]);
    }
  }
  __syncthreads();

  // Each warp finishes one query head of the group, each lane four of its columns.
  const int g = warp;
  float max = Max::kIdentity;
#pragma unroll
  for (int p = 0; p < kParts; ++p) max = fmaxf(max, shared_max[p][g]);
  float sum = 0.0f;
  float result[4] = {};
#pragma unroll
  for (int p = 0; p < kParts; ++p) {
    const float weight = exp2f(shared_max[p][g] - max);
    sum += shared_sum[p][g] * weight;
    const float4 acc = *reinterpret_cast<const float4*>(&shared_acc[p][g][lane * 4]);
    result[0] += acc.x * weight;
    result[1] += acc.y * weight;
    result[2] += acc.z * weight;
    result[3] += acc.w * weight;
  }
  const float inverse = 1.0f / sum;
  *reinterpret_cast<uint2*>(out + (first_head + g) * kHeadDim + lane * 4) = make_uint2(
      PackPair(result[0] * inverse, result[1] * inverse), PackPair(result[2] * inverse, result[3] * inverse));
}
