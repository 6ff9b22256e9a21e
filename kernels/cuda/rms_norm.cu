// RMSNorm of bf16 rows, alone and fused with the residual addition that precedes it in a transformer block.
// One CTA normalises one row and keeps it in registers between the two uses: hidden must be a multiple of 8
// and at most blockDim.x * 8 * kMaxVectors; all pointers are 16-byte aligned. Grid: one CTA a row.
#include "common.cuh"

namespace kernels {
namespace {

constexpr int kMaxVectors = 4;

// Scales the row held in `row` by 1/rms and by the weight, and writes it.
__device__ __forceinline__ void Normalise(const float (&row)[kMaxVectors][8], float sum_of_squares,
                                          const bf16* weight, bf16* out, int hidden, float epsilon) {
  const float scale = rsqrtf(BlockReduce<Sum>(sum_of_squares) / static_cast<float>(hidden) + epsilon);
#pragma unroll
  for (int v = 0; v < kMaxVectors; ++v) {
    const int column = (v * blockDim.x + threadIdx.x) * Bf16x8::kSize;
    if (column >= hidden) break;
    float w[8], y[8];
    Unpack(LoadBf16x8(weight + column), w);
#pragma unroll
    for (int i = 0; i < 8; ++i) y[i] = row[v][i] * scale * w[i];
    Store(out + column, Pack(y));
  }
}

}  // namespace
}  // namespace kernels

using namespace kernels;

// out = x / sqrt(mean(x^2) + epsilon) * weight
extern "C" __global__ void rms_norm_bf16(bf16* __restrict__ out, const bf16* __restrict__ x,
                                         const bf16* __restrict__ weight, int hidden, float epsilon) {
  const int64_t base = static_cast<int64_t>(blockIdx.x) * hidden;
  float row[kMaxVectors][8];
  float sum_of_squares = 0.0f;
#pragma unroll
  for (int v = 0; v < kMaxVectors; ++v) {
    const int column = (v * blockDim.x + threadIdx.x) * Bf16x8::kSize;
    if (column >= hidden) break;
    Unpack(LoadStreaming(x + base + column), row[v]);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum_of_squares += row[v][i] * row[v][i];
  }
  Normalise(row, sum_of_squares, weight, out + base, hidden, epsilon);
}

// residual += x; x = rms_norm(residual). Both in place; the sum is rounded to bf16 before it is normalised,
// as the next layer will see it.
extern "C" __global__ void fused_add_rms_norm_bf16(bf16* __restrict__ x, bf16* __restrict__ residual,
                                                   const bf16* __restrict__ weight, int hidden,
                                                   float epsilon) {
  const int64_t base = static_cast<int64_t>(blockIdx.x) * hidden;
  float row[kMaxVectors][8];
  float sum_of_squares = 0.0f;
#pragma unroll
  for (int v = 0; v < kMaxVectors; ++v) {
    const int column = (v * blockDim.x + threadIdx.x) * Bf16x8::kSize;
    if (column >= hidden) break;
    const Bf16x8 a = LoadBf16x8(x + base + column);
    Bf16x8 r = LoadBf16x8(residual + base + column);
#pragma unroll
    for (int i = 0; i < 4; ++i) r.pair[i] = __hadd2(r.pair[i], a.pair[i]);
    Store(residual + base + column, r);
    Unpack(r, row[v]);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum_of_squares += row[v][i] * row[v][i];
  }
  Normalise(row, sum_of_squares, weight, x + base, hidden, epsilon);
}
