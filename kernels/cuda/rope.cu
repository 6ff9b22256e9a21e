// Rotary position embedding of queries and keys in place (the two halves of a head are rotated against each
// other, as in GPT-NeoX and Llama). Grid: one CTA a token; threads stride over (head, pair of 2 rotations).
#include "common.cuh"

using namespace kernels;

namespace {

__device__ __forceinline__ void RotateHeads(bf16* heads, int head_count, int head_dim, const float* cosine,
                                            const float* sine) {
  const int half = head_dim / 2;
  const int pairs = half / 2;  // two neighbouring rotations a thread: 4-byte accesses
  for (int i = threadIdx.x; i < head_count * pairs; i += blockDim.x) {
    const int head = i / pairs;
    const int d = (i % pairs) * 2;
    auto* lo = reinterpret_cast<__nv_bfloat162*>(heads + head * head_dim + d);
    auto* hi = reinterpret_cast<__nv_bfloat162*>(heads + head * head_dim + half + d);
    const float2 x = __bfloat1622float2(*lo);
    const float2 y = __bfloat1622float2(*hi);
    const float2 c = *reinterpret_cast<const float2*>(cosine + d);
    const float2 s = *reinterpret_cast<const float2*>(sine + d);
    *lo = __floats2bfloat162_rn(x.x * c.x - y.x * s.x, x.y * c.y - y.y * s.y);
    *hi = __floats2bfloat162_rn(y.x * c.x + x.x * s.x, y.y * c.y + x.y * s.y);
  }
}

}  // namespace

// q [tokens, q_heads, head_dim], k [tokens, kv_heads, head_dim]; cos_sin_cache [max_position, head_dim] holds
// head_dim/2 cosines, then head_dim/2 sines of each position. head_dim is a multiple of 4.
extern "C" __global__ void rope_bf16(bf16* __restrict__ q, bf16* __restrict__ k,
                                     const int* __restrict__ positions,
                                     const float* __restrict__ cos_sin_cache, int q_heads, int kv_heads,
                                     int head_dim) {
  const int64_t token = blockIdx.x;
  const float* cosine = cos_sin_cache + static_cast<int64_t>(positions[token]) * head_dim;
  const float* sine = cosine + head_dim / 2;
  RotateHeads(q + token * q_heads * head_dim, q_heads, head_dim, cosine, sine);
  RotateHeads(k + token * kv_heads * head_dim, kv_heads, head_dim, cosine, sine);
}
