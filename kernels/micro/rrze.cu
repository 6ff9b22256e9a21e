// Micro kernels that measure what RRZE's public gpu-benches measure, with the same loops: a pointer chase by footprint
// (gpu-latency), reads of L2 by footprint (gpu-l2-cache), reads of a buffer that all CTAs share (gpu-cache), streams over
// occupancy (gpu-stream), small kernels back to back (gpu-small-kernels).
#include <cstdint>

namespace {
constexpr int kStride = 8;  // of chain elements: 64 bytes
constexpr int kSpoiler = 768;  // doubles of shared memory that hold two CTAs on an SM
}  // namespace

// One closed chain through n places of 64 bytes in the order that `order`, a permutation of 0..n-1, gives.
extern "C" __global__ void chase_link(uint64_t* chain, const uint32_t* order, uint32_t n) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const uint32_t next = i + 1 == n ? 0 : i + 1;
  chain[static_cast<uint64_t>(order[i]) * kStride] =
      reinterpret_cast<uint64_t>(chain + static_cast<uint64_t>(order[next]) * kStride);
}

// 64 threads follow `steps` (a multiple of 32) links from `first` on. end = where they stand, in bytes from the chain's begin.
extern "C" __global__ void chase(uint64_t* end, const uint64_t* chain, const uint32_t* order, int64_t steps) {
  const uint64_t* at = chain + static_cast<uint64_t>(order[0]) * kStride;
#pragma unroll 1
  for (int64_t s = 0; s < steps; s += 32) {
#pragma unroll
    for (int u = 0; u < 32; ++u) at = reinterpret_cast<const uint64_t*>(*reinterpret_cast<const volatile uint64_t*>(at));
  }
  end[threadIdx.x] = reinterpret_cast<uint64_t>(at) - reinterpret_cast<uint64_t>(chain);
}

// CTA b sums the b % parts-th part of each of kParts slabs, 1024 doubles a part: all CTAs together read kParts * parts * 8 KiB.
// Nothing is stored unless a sum is 23.12.
extern "C" __global__ void __launch_bounds__(1024) l2_sum(double* __restrict__ out, const double* __restrict__ in, int parts) {
  constexpr int kSlabs = 32;
  double sum = 0;
  for (int i = 0; i < kSlabs; ++i) sum += in[blockDim.x * parts * i + (blockIdx.x % parts) * 1024 + threadIdx.x];
  sum *= 1.3;
  if (threadIdx.x > 1233 || sum == 23.12) out[threadIdx.x] += sum;
}

// Every CTA of 256 threads sums the same kCount floats `rounds` times. `zero` is 0, which the compiler does not know.
template <int kCount>
__device__ __forceinline__ void CacheSum(float* __restrict__ out, const float* __restrict__ in, int zero, int rounds) {
  constexpr int kThreads = 256;
  constexpr int kLoads = kCount / kThreads;
  constexpr int kUnrolledRounds = kLoads > 32 ? 1 : 32 / kLoads;
  constexpr int kUnrolledLoads = kLoads >= 64 ? 32 : kLoads;
  float sum = 0;
  in += threadIdx.x;
#pragma unroll kUnrolledRounds
  for (int r = 0; r < rounds; ++r) {
    in += zero;
#pragma unroll kUnrolledLoads
    for (int i = 0; i < kCount; i += kThreads) sum += in[i];
    sum *= 1.3f;
  }
  if (sum == 1233.0f) out[threadIdx.x] += sum;
}
#define CACHE_SUM(count)                                                                                             \
  extern "C" __global__ void __launch_bounds__(256)                                                                  \
      cache_sum_##count(float* __restrict__ out, const float* __restrict__ in, int zero, int rounds) {               \
    CacheSum<count>(out, in, zero, rounds);                                                                          \
  }
