// bf16 to e4m3 as serving frameworks do it in front of an fp8 product, and with a factor that is known.
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <cstdint>

namespace {

constexpr float kLargest = 448;
constexpr int kVector = 8, kGroup = 128;

struct Vector {
  float x[kVector];
};

__device__ Vector Load(const __nv_bfloat16* from) {
  const uint4 bits = *reinterpret_cast<const uint4*>(from);
  const __nv_bfloat162* pairs = reinterpret_cast<const __nv_bfloat162*>(&bits);
  Vector v;
#pragma unroll
  for (int i = 0; i < kVector / 2; ++i) {
    const float2 pair = __bfloat1622float2(pairs[i]);
    v.x[2 * i] = pair.x, v.x[2 * i + 1] = pair.y;
  }
  return v;
}

__device__ void Store(__nv_fp8_e4m3* to, const Vector& v, float factor) {
  uint2 bits;
  __nv_fp8x4_e4m3* quads = reinterpret_cast<__nv_fp8x4_e4m3*>(&bits);
#pragma unroll
  for (int i = 0; i < 2; ++i)
    quads[i] = __nv_fp8x4_e4m3(make_float4(v.x[4 * i] * factor, v.x[4 * i + 1] * factor,
                                           v.x[4 * i + 2] * factor, v.x[4 * i + 3] * factor));
  *reinterpret_cast<uint2*>(to) = bits;
}

__device__ float Largest(const Vector& v, float largest) {
#pragma unroll
  for (float x : v.x) largest = fmaxf(largest, fabsf(x));
  return largest;
}

}  // namespace

// A CTA a row, twice over it: its largest, then the quotients. Grid: rows.
extern "C" __global__ void __launch_bounds__(256)
    quantize_rows(__nv_fp8_e4m3* out, float* scale, const __nv_bfloat16* x, int columns) {
  __shared__ float largest_of[8];
  const size_t row = static_cast<size_t>(blockIdx.x) * columns;
  float largest = 0;
  for (int i = threadIdx.x * kVector; i < columns; i += 256 * kVector)
    largest = Largest(Load(x + row + i), largest);
  for (int lanes = 16; lanes > 0; lanes /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, lanes));
  if (threadIdx.x % 32 == 0) largest_of[threadIdx.x / 32] = largest;
  __syncthreads();
  largest = largest_of[0];
#pragma unroll
  for (int i = 1; i < 8; ++i) largest = fmaxf(largest, largest_of[i]);
  const float factor = fmaxf(largest / kLargest, 1e-10f);
  if (threadIdx.x == 0) scale[blockIdx.x] = factor;
  for (int i = threadIdx.x * kVector; i < columns; i += 256 * kVector)
    Store(out + row + i, Load(x + row + i), 1 / factor);
}

// Sixteen lanes for each 128 of a row; factors [columns / 128, padded_rows]. Grid: cdiv(rows * columns / 128, 16).
extern "C" __global__ void __launch_bounds__(256)
    quantize_groups(__nv_fp8_e4m3* out, float* scale, const __nv_bfloat16* x, int rows, int columns,
                    int padded_rows) {
  const int group = blockIdx.x * 16 + threadIdx.x / 16, lane = threadIdx.x % 16, groups = columns / kGroup;
  if (group >= rows * groups) return;
  const size_t at = static_cast<size_t>(group) * kGroup + lane * kVector;
  const Vector v = Load(x + at);
  float largest = Largest(v, 1e-10f);
  const unsigned lanes_here = threadIdx.x % 32 < 16 ? 0xffffu : 0xffff0000u;
  for (int lanes = 8; lanes > 0; lanes /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(lanes_here, largest, lanes));
  const float factor = largest / kLargest;
  if (lane == 0) scale[static_cast<size_t>(group % groups) * padded_rows + group / groups] = factor;
  Store(out + at, v, 1 / factor);
}

// The same with factors [groups], which lie as the groups do. Grid: cdiv(groups, 16).
extern "C" __global__ void __launch_bounds__(256)
    quantize_group_rows(__nv_fp8_e4m3* out, float* scale, const __nv_bfloat16* x, int groups) {
  const int group = blockIdx.x * 16 + threadIdx.x / 16, lane = threadIdx.x % 16;
  if (group >= groups) return;
  const size_t at = static_cast<size_t>(group) * kGroup + lane * kVector;
  const Vector v = Load(x + at);
  float largest = Largest(v, 1e-10f);
  const unsigned lanes_here = threadIdx.x % 32 < 16 ? 0xffffu : 0xffff0000u;
  for (int lanes = 8; lanes > 0; lanes /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(lanes_here, largest, lanes));
  const float factor = largest / kLargest;
  if (lane == 0) scale[group] = factor;
  Store(out + at, v, 1 / factor);
}

// A CTA a row, with one factor for all, 16 elements a turn. Grid: rows.
extern "C" __global__ void __launch_bounds__(256)
    quantize_static(__nv_fp8_e4m3* out, const __nv_bfloat16* x, const float* scale, int columns) {
  const size_t row = static_cast<size_t>(blockIdx.x) * columns;
  const float factor = 1 / *scale;
  for (int i = threadIdx.x * 2 * kVector; i < columns; i += blockDim.x * 2 * kVector) {
    const Vector low = Load(x + row + i), high = Load(x + row + i + kVector);
    Store(out + row + i, low, factor);
    Store(out + row + i + kVector, high, factor);
  }
}
