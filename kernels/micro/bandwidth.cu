// Micro kernels that load one path with traffic: DRAM streams, reads that stay in L2, atomics on one word.
#include <cstdint>

namespace {
__device__ __forceinline__ size_t ThreadIndex() {
  return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ size_t ThreadCount() { return static_cast<size_t>(gridDim.x) * blockDim.x; }
}  // namespace

// n counts float4 vectors in the stream kernels.
extern "C" __global__ void stream_copy(float4* __restrict__ out, const float4* __restrict__ in, size_t n) {
  for (size_t i = ThreadIndex(); i < n; i += ThreadCount()) out[i] = in[i];
}

extern "C" __global__ void stream_scale(float4* __restrict__ out, const float4* __restrict__ in, float a,
                                        size_t n) {
  for (size_t i = ThreadIndex(); i < n; i += ThreadCount()) {
    float4 v = in[i];
    v.x *= a;
    v.y *= a;
    v.z *= a;
    v.w *= a;
    out[i] = v;
  }
}

// out[thread] = the sum of what the thread read: four loads in flight a thread.
extern "C" __global__ void stream_read(float* __restrict__ out, const float4* __restrict__ in, size_t n) {
  float sum = 0.0f;
#pragma unroll 4
  for (size_t i = ThreadIndex(); i < n; i += ThreadCount()) {
    const float4 v = in[i];
    sum += v.x + v.y + v.z + v.w;
  }
  out[ThreadIndex()] = sum;
}

// Every CTA reads the same n vectors `repeats` times past L1: L2 bandwidth where they fit into L2. n is a
// multiple of 4 * blockDim.x. CTAs start at different places, so that they do not walk the slices in step.
extern "C" __global__ void l2_read(float* __restrict__ out, const float4* __restrict__ in, int n,
                                   int repeats) {
  float sum = 0.0f;
  int i = (blockIdx.x * blockDim.x * 4 + threadIdx.x) % n;
  for (int r = 0; r < repeats; ++r) {
    for (int k = 0; k < n; k += 4 * blockDim.x) {
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        const float4 v = __ldcg(in + i);
        sum += v.x + v.y + v.z + v.w;
        i += blockDim.x;
        if (i >= n) i -= n;
      }
    }
  }
  out[ThreadIndex()] = sum;
}

// Every lane adds to the same word `steps` times and keeps what it found there last: nothing for the compiler
// to combine.
extern "C" __global__ void atomic_same_address(unsigned* counter, unsigned* last, int steps) {
  unsigned seen = 0;
  for (int s = 0; s < steps; ++s) seen = atomicAdd(counter, 1u + (seen >> 31));
  last[ThreadIndex()] = seen;
}
