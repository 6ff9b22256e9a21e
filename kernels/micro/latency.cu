// Micro kernels that measure one latency each: a dependent chain, timed with the SM's clock.
#include <cstdint>

// chain[i] = byte offset of element (i + stride) % n: what pointer_chase walks.
extern "C" __global__ void link_chain(uint64_t* chain, uint32_t n, uint32_t stride) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) chain[i] = static_cast<uint64_t>((i + stride) % n) * sizeof(uint64_t);
}

// Follows `steps` links from element 0. One thread. *last = the last offset, *cycles = the cycles for all steps.
extern "C" __global__ void pointer_chase(uint64_t* last, int64_t* cycles, const uint64_t* chain, int steps) {
  const auto* base = reinterpret_cast<const char*>(chain);
  uint64_t offset = 0;
  const int64_t start = clock64();
#pragma unroll 8
  for (int i = 0; i < steps; ++i) offset = *reinterpret_cast<const volatile uint64_t*>(base + offset);
  const int64_t end = clock64();
  *last = offset;
  *cycles = end - start;
}

// x = x * a + b, `steps` (a multiple of 64) times in one dependent chain a thread.
// out[i] = the result of thread i; cycles[i] = the cycles it took.
extern "C" __global__ void ffma_chain(float* out, int* cycles, const float* in, float a, float b, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = in[i];
  const int64_t start = clock64();
  for (int s = 0; s < steps; s += 64) {
#pragma unroll
    for (int u = 0; u < 64; ++u) x = __fmaf_rn(x, a, b);
  }
  const int64_t end = clock64();
  out[i] = x;
  cycles[i] = static_cast<int>(end - start);
}

// Loads from shared memory where lane i reads word i * stride: stride 1 has no conflicts, 32 the most. Each
// load's result is the next load's offset (all words are zero), so the time is latency plus the conflict's
// wavefronts. Dynamic shared memory: 32 * stride words, at least.
extern "C" __global__ void shared_conflict(int* out, int* cycles, int stride, int steps) {
  extern __shared__ int words[];
  for (int i = threadIdx.x; i < 32 * stride; i += blockDim.x) words[i] = 0;
  __syncthreads();
  int offset = threadIdx.x % 32 * stride;
  const int64_t start = clock64();
#pragma unroll 8
  for (int s = 0; s < steps; ++s) offset += static_cast<volatile int*>(words)[offset];
  const int64_t end = clock64();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = offset;
  cycles[i] = static_cast<int>(end - start);
}
