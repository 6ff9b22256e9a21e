// Brings the tokens of a mixture-of-experts layer into expert order: a stable counting sort of the (token,
// choice) slots by expert, then a copy of the rows.
#include "common.cuh"

using namespace kernels;

// One CTA. ids [slots] int32 in 0..experts-1. Writes expert_offsets [experts + 1] (exclusive prefix of the
// counts) and sorted_slots [slots] (slot numbers in expert order, stable). Dynamic shared memory: (blockDim.x
// + 1) * experts ints. blockDim.x >= experts.
extern "C" __global__ void moe_sort_slots(int* __restrict__ expert_offsets, int* __restrict__ sorted_slots,
                                          const int* __restrict__ ids, int slots, int experts) {
  extern __shared__ int shared[];
  int* start = shared;             // [experts]: where each expert's slots begin
  int* counts = shared + experts;  // [blockDim.x][experts]: slots of thread t's chunk that go to expert e
  const int chunk = (slots + blockDim.x - 1) / blockDim.x;
  const int begin = min(static_cast<int>(threadIdx.x) * chunk, slots);
  const int end = min(begin + chunk, slots);

  int* mine = counts + threadIdx.x * experts;
  for (int e = 0; e < experts; ++e) mine[e] = 0;
  for (int s = begin; s < end; ++s) ++mine[ids[s]];
  __syncthreads();

  if (threadIdx.x < experts) {  // exclusive prefix over the threads, expert by expert
    int total = 0;
    for (int t = 0; t < blockDim.x; ++t) {
      const int n = counts[t * experts + threadIdx.x];
      counts[t * experts + threadIdx.x] = total;
      total += n;
    }
    start[threadIdx.x] = total;
  }
  __syncthreads();
  if (threadIdx.x == 0) {  // exclusive prefix over the experts
    int total = 0;
    for (int e = 0; e < experts; ++e) {
      const int n = start[e];
      start[e] = total;
      expert_offsets[e] = total;
      total += n;
    }
    expert_offsets[experts] = total;
  }
  __syncthreads();

  for (int s = begin; s < end; ++s) {
    const int expert = ids[s];
    sorted_slots[start[expert] + mine[expert]++] = s;
  }
}

// out[i, :] = x[sorted_slots[i] / k, :], bf16 rows of hidden (a multiple of 8). Grid: one CTA a slot.
extern "C" __global__ void moe_permute_rows_bf16(bf16* __restrict__ out, const bf16* __restrict__ x,
                                                 const int* __restrict__ sorted_slots, int k, int hidden) {
  const int64_t to = static_cast<int64_t>(blockIdx.x) * hidden;
  const int64_t from = static_cast<int64_t>(sorted_slots[blockIdx.x] / k) * hidden;
  for (int column = threadIdx.x * Bf16x8::kSize; column < hidden; column += blockDim.x * Bf16x8::kSize) {
    Store(out + to + column, LoadBf16x8(x + from + column));
  }
}
