// Tensor-pipe throughput: each warp keeps kChains independent accumulators busy with mma.m16n8k16 bf16.
#include "../cuda/common.cuh"

using namespace kernels;

namespace {
constexpr int kChains = 8;
}

// Each warp multiplies its own 16x16 A (in[warp], 256 values) by its own 16x8 B (next 128 values), `steps`
// times into each of kChains accumulators. in [warps, 384] bf16; out [warps, 16, 8] float: the sum over the
// chains; cycles [warps].
extern "C" __global__ void hmma_throughput(float* __restrict__ out, int* __restrict__ cycles,
                                           const bf16* __restrict__ in, int steps) {
  const int lane = threadIdx.x % kWarpSize;
  const int64_t warp = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarpSize;
  const auto* a_words = reinterpret_cast<const uint32_t*>(in + warp * 384);  // [16][8] pairs along k
  const auto* b_words = a_words + 128;  // B transposed: [8][8] pairs along k
  uint32_t a[4];
#pragma unroll
  for (int r = 0; r < 4; ++r) a[r] = a_words[(lane / 4 + r % 2 * 8) * 8 + lane % 4 + r / 2 * 4];
  const uint32_t b0 = b_words[lane / 4 * 8 + lane % 4];
  const uint32_t b1 = b_words[lane / 4 * 8 + lane % 4 + 4];
  float d[kChains][4] = {};
  const int64_t start = clock64();
  for (int s = 0; s < steps; ++s) {
#pragma unroll
    for (int c = 0; c < kChains; ++c) Mma16816(d[c], a, b0, b1);
  }
  const int64_t end = clock64();
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    float sum = 0.0f;
#pragma unroll
    for (int c = 0; c < kChains; ++c) sum += d[c][r];
    out[warp * 128 + (lane / 4 + r / 2 * 8) * 8 + lane % 4 * 2 + r % 2] = sum;
  }
  if (lane == 0) cycles[warp] = static_cast<int>(end - start);
}
