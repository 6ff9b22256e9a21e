// LayerNorm of bf16 rows with weight and bias. One CTA a row, the row stays in registers: hidden is a
// multiple of 8 and at most blockDim.x * 8 * kMaxVectors; all pointers are 16-byte aligned.
#include "common.cuh"

using namespace kernels;

namespace {
constexpr int kMaxVectors = 4;
}

// out = (x - mean) / sqrt(variance + epsilon) * weight + bias, with the variance taken about the mean (two
// passes over registers) so that large means cost no accuracy.
extern "C" __global__ void layer_norm_bf16(bf16* __restrict__ out, const bf16* __restrict__ x,
                                           const bf16* __restrict__ weight, const bf16* __restrict__ bias,
                                           int hidden, float epsilon) {
  const int64_t base = static_cast<int64_t>(blockIdx.x) * hidden;
  float row[kMaxVectors][8];
  float sum = 0.0f;
#pragma unroll
  for (int v = 0; v < kMaxVectors; ++v) {
    const int column = (v * blockDim.x + threadIdx.x) * Bf16x8::kSize;
    if (column >= hidden) break;
    Unpack(LoadStreaming(x + base + column), row[v]);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += row[v][i];
  }
  const float mean = BlockReduce<Sum>(sum) / static_cast<float>(hidden);
  float squares = 0.0f;
#pragma unroll
  for (int v = 0; v < kMaxVectors; ++v) {
    if ((v * blockDim.x + threadIdx.x) * Bf16x8::kSize >= hidden) break;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      row[v][i] -= mean;
      squares += row[v][i] * row[v][i];
    }
  }
  const float scale = rsqrtf(BlockReduce<Sum>(squares) / static_cast<float>(hidden) + epsilon);
#pragma unroll
  for (int v = 0; v < kMaxVectors; ++v) {
    const int column = (v * blockDim.x + threadIdx.x) * Bf16x8::kSize;
    if (column >= hidden) break;
    float w[8], b[8], y[8];
    Unpack(LoadBf16x8(weight + column), w);
    Unpack(LoadBf16x8(bias + column), b);
#pragma unroll
    for (int i = 0; i < 8; ++i) y[i] = row[v][i] * scale * w[i] + b[i];
    Store(out + base + column, Pack(y));
  }
}
