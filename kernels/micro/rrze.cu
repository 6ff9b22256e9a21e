// Micro kernels that measure what RRZE's public gpu-benches measure, with the same loops: a pointer chase by footprint
// (gpu-latency), reads of L2 by footprint (gpu-l2-cache), reads of a buffer that all CTAs share (gpu-cache), streams over
// occupancy (gpu-stream), small kernels back to back (gpu-small-kernels).
#include <cstdint>

// One closed chain through n places, `stride` elements of 8 bytes apart, in the order that `order`, a permutation of 0..n-1, gives.
extern "C" __global__ void chase_link(uint64_t* chain, const uint32_t* order, uint64_t stride, uint32_t n) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const uint32_t next = i + 1 == n ? 0 : i + 1;
  chain[order[i] * stride] = reinterpret_cast<uint64_t>(chain + order[next] * stride);
}

// One CTA reads the places in the order of the chain: what a chase of its whole length leaves in the caches, sooner.
extern "C" __global__ void chase_warm(uint64_t* sums, const uint64_t* chain, const uint32_t* order,
                                      uint64_t stride, uint32_t n) {
  uint64_t sum = 0;
#pragma unroll 4
  for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) sum += chain[order[i] * stride];
  sums[threadIdx.x] = sum;
}

// 64 threads follow `steps` (a multiple of 32) links from `first` on. end = where they stand, in bytes from the chain's begin.
extern "C" __global__ void chase_follow(uint64_t* end, const uint64_t* chain, const uint32_t* order, uint64_t stride,
                                 int64_t steps) {
  const uint64_t* at = chain + order[0] * stride;
#pragma unroll 1
  for (int64_t s = 0; s < steps; s += 32) {
#pragma unroll
    for (int u = 0; u < 32; ++u) at = reinterpret_cast<const uint64_t*>(*at);
  }
  end[threadIdx.x] = reinterpret_cast<uint64_t>(at) - reinterpret_cast<uint64_t>(chain);
}

// CTA b sums the b % parts-th part of each of kParts slabs, 1024 doubles a part: all CTAs together read kParts * parts * 8 KiB.
// Nothing is stored unless a sum is 23.12.
extern "C" __global__ void __launch_bounds__(1024)
    l2_sum(double* __restrict__ out, const double* __restrict__ in, int parts) {
  constexpr int kSlabs = 32;
  double sum = 0;
  for (int i = 0; i < kSlabs; ++i)
    sum += in[blockDim.x * parts * i + (blockIdx.x % parts) * 1024 + threadIdx.x];
  sum *= 1.3;
  if (threadIdx.x > 1233 || sum == 23.12) out[threadIdx.x] += sum;
}

// Reads in [n] `times` times, each CTA another part each time: L2 holds it then, as far as it fits, near every partition.
// out[thread] = the sum of what the thread read. n is a multiple of 4.
extern "C" __global__ void touch(float* out, const float4* in, uint32_t n, int times) {
  const uint32_t vectors = n / 4;
  const uint32_t threads = gridDim.x * blockDim.x;
  float sum = 0;
  for (int t = 0; t < times; ++t) {
    const uint32_t block = (blockIdx.x + t * (gridDim.x / times + 1)) % gridDim.x;
    for (uint32_t i = block * blockDim.x + threadIdx.x; i < vectors; i += threads) {
      const float4 v = __ldcg(in + i);
      sum += v.x + v.y + v.z + v.w;
    }
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Every CTA of 256 threads sums the same `loads` * 256 floats `rounds` times; `zero` is 0, which the compiler does not know.
// kRounds: of the inner loop, unrolled. out[thread] = the sum, which every CTA finds.
namespace {
template <int kLoads>
__device__ __forceinline__ float SumLoads(const float* in, float sum) {
#pragma unroll
  for (int i = 0; i < kLoads; ++i) sum += in[i * 256];
  return sum;
}
template <int kLoads>  // of a round, all unrolled, and rounds unrolled to 32 loads
__device__ __forceinline__ void SmallSum(float* __restrict__ out, const float* __restrict__ in, int zero,
                                         int rounds) {
  float sum = 0;
  in += threadIdx.x;
#pragma unroll(32 / kLoads)
  for (int r = 0; r < rounds; ++r) {
    in += zero;
    sum = SumLoads<kLoads>(in, sum) * 0.5f;
  }
  out[threadIdx.x] = sum;
}
}  // namespace
extern "C" __global__ void __launch_bounds__(256)
    cache_sum_1(float* __restrict__ out, const float* __restrict__ in, int zero, int rounds) {
  SmallSum<1>(out, in, zero, rounds);
}
extern "C" __global__ void __launch_bounds__(256)
    cache_sum_2(float* __restrict__ out, const float* __restrict__ in, int zero, int rounds) {
  SmallSum<2>(out, in, zero, rounds);
}
extern "C" __global__ void __launch_bounds__(256)
    cache_sum(float* __restrict__ out, const float* __restrict__ in, int zero, int rounds, int loads) {
  float sum = 0;
  in += threadIdx.x;
  for (int r = 0; r < rounds; ++r) {
    in += zero;
    const float* at = in;
    int left = loads;
#pragma unroll 1
    for (; left >= 32; left -= 32, at += 32 * 256) sum = SumLoads<32>(at, sum);
#pragma unroll 1
    for (; left >= 4; left -= 4, at += 4 * 256) sum = SumLoads<4>(at, sum);
#pragma unroll 1
    for (; left > 0; --left, at += 256) sum += *at;
    sum *= 0.5f;
  }
  out[threadIdx.x] = sum;
}

// One element a thread of streams of n doubles; dynamic shared memory says how many CTAs an SM holds.
extern "C" __global__ void stream_read_one(double* a, const double* __restrict__ b, size_t n) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i >= n) return;
  const double v = b[i];
  if (v == 123.0) a[i] = v;
}
extern "C" __global__ void stream_scale_one(double* a, const double* __restrict__ b, size_t n) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i >= n) return;
  a[i] = b[i] * 1.25;
}
extern "C" __global__ void stream_triad_one(double* a, const double* __restrict__ b,
                                            const double* __restrict__ c, size_t n) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i >= n) return;
  a[i] = b[i] * 1.25 + c[i];
}
