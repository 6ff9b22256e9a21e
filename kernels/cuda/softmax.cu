// Softmax over bf16 rows of any length that is a multiple of 8. One CTA a row; the first pass keeps a running
// maximum and sum (online softmax), the second reads the row again, mostly from the caches, and writes.
#include "common.cuh"

using namespace kernels;

namespace {

// Partial softmax statistics of a set of elements: their maximum and the sum of exp(x - max).
struct MaxSum {
  float max;
  float sum;
};

__device__ __forceinline__ MaxSum Merge(const MaxSum& a, const MaxSum& b) {
  const float max = fmaxf(a.max, b.max);
  return {max, a.sum * __expf(a.max - max) + b.sum * __expf(b.max - max)};
}

__device__ __forceinline__ MaxSum WarpMerge(MaxSum s) {
#pragma unroll
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2) {
    s = Merge(s, {__shfl_xor_sync(kFullMask, s.max, offset), __shfl_xor_sync(kFullMask, s.sum, offset)});
  }
  return s;
}

__device__ __forceinline__ MaxSum BlockMerge(MaxSum s) {
  __shared__ MaxSum partial[kWarpSize];
  const int lane = threadIdx.x % kWarpSize;
  s = WarpMerge(s);
  if (lane == 0) partial[threadIdx.x / kWarpSize] = s;
  __syncthreads();
  s = lane < blockDim.x / kWarpSize ? partial[lane] : MaxSum{Max::kIdentity, 0.0f};
  return WarpMerge(s);
}

}  // namespace

extern "C" __global__ void softmax_bf16(bf16* __restrict__ out, const bf16* __restrict__ x, int columns) {
  const int64_t base = static_cast<int64_t>(blockIdx.x) * columns;
  const int stride = blockDim.x * Bf16x8::kSize;
  MaxSum stats = {Max::kIdentity, 0.0f};
  for (int column = threadIdx.x * Bf16x8::kSize; column < columns; column += stride) {
    float f[8];
    Unpack(LoadBf16x8(x + base + column), f);
    float max = stats.max;
#pragma unroll
    for (int i = 0; i < 8; ++i) max = fmaxf(max, f[i]);
    float sum = stats.sum * __expf(stats.max - max);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += __expf(f[i] - max);
    stats = {max, sum};
  }
  stats = BlockMerge(stats);
  const float inverse = 1.0f / stats.sum;
  for (int column = threadIdx.x * Bf16x8::kSize; column < columns; column += stride) {
    float f[8];
    Unpack(LoadBf16x8(x + base + column), f);
#pragma unroll
    for (int i = 0; i < 8; ++i) f[i] = __expf(f[i] - stats.max) * inverse;
    Store(out + base + column, Pack(f));
  }
}
