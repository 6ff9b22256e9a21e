// Token embedding with a vocabulary that is split over ranks: rows outside [first, first + vocabulary) are
// zero. out [tokens, hidden] bf16, hidden a multiple of 8. Grid: one CTA a token.
#include "common.cuh"

using namespace kernels;

extern "C" __global__ void embedding_gather_bf16(bf16* __restrict__ out, const bf16* __restrict__ table,
                                                 const int* __restrict__ ids, int first, int vocabulary,
                                                 int hidden) {
  const int row = ids[blockIdx.x] - first;
  const bool here = row >= 0 && row < vocabulary;
  const bf16* from = table + static_cast<int64_t>(row) * hidden;
  bf16* to = out + static_cast<int64_t>(blockIdx.x) * hidden;
  for (int column = threadIdx.x * Bf16x8::kSize; column < hidden; column += blockDim.x * Bf16x8::kSize) {
    Bf16x8 v = {};
    if (here) v = LoadStreaming(from + column);
    Store(to + column, v);
  }
}
