// The gated activation of a Llama MLP: out[t, i] = silu(x[t, i]) * x[t, d + i], bf16, d a multiple of 8.
// Grid: (tokens, ceil(d / (8 * blockDim.x))).
#include "common.cuh"

using namespace kernels;

extern "C" __global__ void silu_and_mul_bf16(bf16* __restrict__ out, const bf16* __restrict__ x, int d) {
  const int64_t token = blockIdx.x;
  const int column = (blockIdx.y * blockDim.x + threadIdx.x) * Bf16x8::kSize;
  if (column >= d) return;
  float gate[8], up[8];
  Unpack(LoadStreaming(x + token * 2 * d + column), gate);
  Unpack(LoadStreaming(x + token * 2 * d + d + column), up);
#pragma unroll
  for (int i = 0; i < 8; ++i) gate[i] = gate[i] / (1.0f + __expf(-gate[i])) * up[i];
  Store(out + token * d + column, Pack(gate));
}
