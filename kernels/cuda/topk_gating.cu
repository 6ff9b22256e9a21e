// Mixture-of-experts routing: softmax over the experts' logits, the k largest, weights renormalised to sum 1.
// One warp a token, logits in registers. Grid: ceil(tokens / (blockDim.x / 32)).
#include "common.cuh"

using namespace kernels;

namespace {

constexpr int kMaxExpertsPerLane = 8;  // up to 256 experts

// The pair (value, expert) that ranks first in the warp: the larger value, on a tie the lower expert.
__device__ __forceinline__ void WarpArgMax(float& value, int& expert) {
#pragma unroll
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2) {
    const float other_value = __shfl_xor_sync(kFullMask, value, offset);
    const int other_expert = __shfl_xor_sync(kFullMask, expert, offset);
    if (other_value > value || (other_value == value && other_expert < expert)) {
      value = other_value;
      expert = other_expert;
    }
  }
}

}  // namespace

// logits [tokens, experts] float; weights [tokens, k] float and ids [tokens, k] int32, best first. k <=
// experts <= 256.
extern "C" __global__ void topk_gating_softmax(float* __restrict__ weights, int* __restrict__ ids,
                                               const float* __restrict__ logits, int tokens, int experts,
                                               int k) {
  const int lane = threadIdx.x % kWarpSize;
  const int token = blockIdx.x * (blockDim.x / kWarpSize) + threadIdx.x / kWarpSize;
  if (token >= tokens) return;

  float p[kMaxExpertsPerLane];
  float max = Max::kIdentity;
#pragma unroll
  for (int i = 0; i < kMaxExpertsPerLane; ++i) {
    const int expert = i * kWarpSize + lane;
    p[i] = expert < experts ? logits[static_cast<int64_t>(token) * experts + expert] : -INFINITY;
    max = fmaxf(max, p[i]);
  }
  max = WarpReduce<Max>(max);
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kMaxExpertsPerLane; ++i) {
    p[i] = __expf(p[i] - max);
    sum += p[i];
  }
  const float inverse = 1.0f / WarpReduce<Sum>(sum);
#pragma unroll
  for (int i = 0; i < kMaxExpertsPerLane; ++i) p[i] = i * kWarpSize + lane < experts ? p[i] * inverse : -1.0f;

  float chosen_weight = 0.0f;  // lane j keeps the j-th choice
  int chosen_id = 0;
  float chosen_sum = 0.0f;
  for (int j = 0; j < k; ++j) {
    float best = p[0];
    int expert = lane;
#pragma unroll
    for (int i = 1; i < kMaxExpertsPerLane; ++i) {
      if (p[i] > best) {
        best = p[i];
        expert = i * kWarpSize + lane;
      }
    }
    WarpArgMax(best, expert);
    if (lane == j) {
      chosen_weight = best;
      chosen_id = expert;
    }
    chosen_sum += best;
#pragma unroll
    for (int i = 0; i < kMaxExpertsPerLane; ++i) {
      if (expert == i * kWarpSize + lane) p[i] = -1.0f;
    }
  }
  if (lane < k) {
    weights[static_cast<int64_t>(token) * k + lane] = chosen_weight / chosen_sum;
    ids[static_cast<int64_t>(token) * k + lane] = chosen_id;
  }
}
