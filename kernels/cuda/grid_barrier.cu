// Gradient clipping of a whole tensor in one launch: each CTA sums the squares of its share, all CTAs meet at
// a barrier in global memory, then every CTA adds up the partial sums and scales its share. All CTAs must be
// resident at once.
#include "common.cuh"

using namespace kernels;

namespace {

// A sense-reversing barrier over the grid. `arrived` counts the CTAs of the current round, `generation` the
// rounds.
struct GridBarrier {
  unsigned arrived;
  unsigned generation;
};

__device__ __forceinline__ void Wait(GridBarrier* barrier) {
  __syncthreads();
  if (threadIdx.x == 0) {
    volatile unsigned* generation = &barrier->generation;
    const unsigned mine = *generation;
    __threadfence();
    if (atomicAdd(&barrier->arrived, 1u) == gridDim.x - 1) {
      barrier->arrived = 0;
      __threadfence();
      atomicAdd(&barrier->generation, 1u);
    } else {
      while (*generation == mine) __nanosleep(32);
    }
    __threadfence();
  }
  __syncthreads();
}

}  // namespace

// x [n] float in place: x *= min(1, max_norm / |x|). partial [gridDim.x] float; *barrier {0, any}; n a
// multiple of 4.
extern "C" __global__ void clip_gradient_norm(float* __restrict__ x, float* partial, GridBarrier* barrier,
                                              int n, float max_norm) {
  const int stride = gridDim.x * blockDim.x * 4;
  const int first = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  float sum = 0.0f;
  for (int i = first; i < n; i += stride) {
    const float4 v = *reinterpret_cast<const float4*>(x + i);
    sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  sum = BlockReduce<Sum>(sum);
  if (threadIdx.x == 0) __stcg(partial + blockIdx.x, sum);
  Wait(barrier);

  float total = 0.0f;
  for (int i = threadIdx.x; i < gridDim.x; i += blockDim.x) total += __ldcg(partial + i);
  total = BlockReduce<Sum>(total);
  const float factor = fminf(1.0f, max_norm * rsqrtf(total));
  for (int i = first; i < n; i += stride) {
    float4 v = *reinterpret_cast<float4*>(x + i);
    v.x *= factor;
    v.y *= factor;
    v.z *= factor;
    v.w *= factor;
    *reinterpret_cast<float4*>(x + i) = v;
  }
}
