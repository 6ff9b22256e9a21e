// Histogram of int32 keys in 0..bins-1 (expert load, token counts): per-CTA counts with shared-memory
// atomics, then one global atomic a bin and CTA. counts [bins] must be zero before. Dynamic shared memory:
// bins ints.
#include "common.cuh"

extern "C" __global__ void histogram_int32(int* __restrict__ counts, const int* __restrict__ keys, int n,
                                           int bins) {
  extern __shared__ int local[];
  for (int b = threadIdx.x; b < bins; b += blockDim.x) local[b] = 0;
  __syncthreads();
  const int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) atomicAdd(&local[keys[i]], 1);
  __syncthreads();
  for (int b = threadIdx.x; b < bins; b += blockDim.x) {
    if (local[b] != 0) atomicAdd(&counts[b], local[b]);
  }
}
