// Dynamic per-token quantisation of bf16 activations to fp8 e4m3: scale[t] = max|x[t, :]| / 448, out = x /
// scale rounded to nearest even and saturated. sm_90 converts in hardware; on sm_80 cuda_fp8.h does it with
// integer instructions. One CTA a token, the row stays in registers: hidden is a multiple of 8 and at most
// blockDim.x * 8 * kMaxVectors.
#include <cuda_fp8.h>

#include "common.cuh"

using namespace kernels;

namespace {
constexpr int kMaxVectors = 4;
constexpr float kE4m3Max = 448.0f;
constexpr float kMinScale = 1.0f / (kE4m3Max * 512.0f);  // an all-zero token must not divide by zero
}  // namespace

extern "C" __global__ void fp8_quant_per_token_bf16(uint8_t* __restrict__ out, float* __restrict__ scales,
                                                    const bf16* __restrict__ x, int hidden) {
  const int64_t base = static_cast<int64_t>(blockIdx.x) * hidden;
  float row[kMaxVectors][8];
  float magnitude = 0.0f;
#pragma unroll
  for (int v = 0; v < kMaxVectors; ++v) {
    const int column = (v * blockDim.x + threadIdx.x) * Bf16x8::kSize;
    if (column >= hidden) break;
    Unpack(LoadStreaming(x + base + column), row[v]);
#pragma unroll
    for (int i = 0; i < 8; ++i) magnitude = fmaxf(magnitude, fabsf(row[v][i]));
  }
  const float scale = fmaxf(BlockReduce<Max>(magnitude) / kE4m3Max, kMinScale);
  const float inverse = 1.0f / scale;
  if (threadIdx.x == 0) scales[blockIdx.x] = scale;
#pragma unroll
  for (int v = 0; v < kMaxVectors; ++v) {
    const int column = (v * blockDim.x + threadIdx.x) * Bf16x8::kSize;
    if (column >= hidden) break;
    uint32_t word[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float* f = row[v] + 4 * half;
      const uint32_t lo =
          __nv_cvt_float2_to_fp8x2(make_float2(f[0] * inverse, f[1] * inverse), __NV_SATFINITE, __NV_E4M3);
      const uint32_t hi =
          __nv_cvt_float2_to_fp8x2(make_float2(f[2] * inverse, f[3] * inverse), __NV_SATFINITE, __NV_E4M3);
      word[half] = lo | hi << 16;
    }
    *reinterpret_cast<uint2*>(out + base + column) = make_uint2(word[0], word[1]);
  }
}
