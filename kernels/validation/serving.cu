// Kernels between the products of a serving framework, re-created: vLLM's norms, activations and rotary embedding as they are since
// 2025 (16 bytes a load) and as they were in 2023 (one element a load), and what a mixture of experts needs around its products.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace {

using Bf16 = __nv_bfloat16;
constexpr int kVector = 8;

struct Vector {
  float x[kVector];
};

__device__ Vector Load(const Bf16* from) {
  const uint4 bits = *reinterpret_cast<const uint4*>(from);
  const __nv_bfloat162* pairs = reinterpret_cast<const __nv_bfloat162*>(&bits);
  Vector v;
#pragma unroll
  for (int i = 0; i < kVector / 2; ++i) {
    const float2 pair = __bfloat1622float2(pairs[i]);
    v.x[2 * i] = pair.x, v.x[2 * i + 1] = pair.y;
  }
  return v;
}

__device__ void Store(Bf16* to, const Vector& v) {
  uint4 bits;
  __nv_bfloat162* pairs = reinterpret_cast<__nv_bfloat162*>(&bits);
#pragma unroll
  for (int i = 0; i < kVector / 2; ++i) pairs[i] = __floats2bfloat162_rn(v.x[2 * i], v.x[2 * i + 1]);
  *reinterpret_cast<uint4*>(to) = bits;
}

__device__ float Sum(float x) {
  __shared__ float parts[32];
  for (int lanes = 16; lanes > 0; lanes /= 2) x += __shfl_xor_sync(~0u, x, lanes);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < (blockDim.x + 31) / 32; ++i) sum += parts[i];
  return sum;
}

__device__ float Silu(float x) { return x / (1 + __expf(-x)); }

}  // namespace

// --- 16 bytes a load --------------------------------------------------------------------------------------------------

// A CTA a row.
extern "C" __global__ void __launch_bounds__(1024)
    rms_norm(Bf16* out, const Bf16* x, const Bf16* weight, float epsilon, int columns) {
  const size_t row = static_cast<size_t>(blockIdx.x) * columns;
  float squares = 0;
  for (int i = threadIdx.x * kVector; i < columns; i += blockDim.x * kVector) {
    const Vector v = Load(x + row + i);
#pragma unroll
    for (float e : v.x) squares += e * e;
  }
  const float scale = rsqrtf(Sum(squares) / columns + epsilon);
  for (int i = threadIdx.x * kVector; i < columns; i += blockDim.x * kVector) {
    Vector v = Load(x + row + i);
    const Vector w = Load(weight + i);
#pragma unroll
    for (int j = 0; j < kVector; ++j) v.x[j] *= scale * w.x[j];
    Store(out + row + i, v);
  }
}

// x becomes the norm of x + residual, and residual the sum. A CTA a row.
extern "C" __global__ void __launch_bounds__(1024)
    fused_add_rms_norm(Bf16* x, Bf16* residual, const Bf16* weight, float epsilon, int columns) {
  const size_t row = static_cast<size_t>(blockIdx.x) * columns;
  float squares = 0;
  for (int i = threadIdx.x * kVector; i < columns; i += blockDim.x * kVector) {
    Vector v = Load(x + row + i);
    const Vector r = Load(residual + row + i);
#pragma unroll
    for (int j = 0; j < kVector; ++j) v.x[j] += r.x[j], squares += v.x[j] * v.x[j];
    Store(residual + row + i, v);
  }
  const float scale = rsqrtf(Sum(squares) / columns + epsilon);
  for (int i = threadIdx.x * kVector; i < columns; i += blockDim.x * kVector) {
    Vector v = Load(residual + row + i);
    const Vector w = Load(weight + i);
#pragma unroll
    for (int j = 0; j < kVector; ++j) v.x[j] *= scale * w.x[j];
    Store(x + row + i, v);
  }
}

// out [rows, columns] from x [rows, 2 * columns]. A CTA a row.
extern "C" __global__ void __launch_bounds__(1024) silu_and_mul(Bf16* out, const Bf16* x, int columns) {
  const size_t row = blockIdx.x;
  for (int i = threadIdx.x * kVector; i < columns; i += blockDim.x * kVector) {
    Vector gate = Load(x + row * 2 * columns + i);
    const Vector up = Load(x + (row * 2 + 1) * columns + i);
#pragma unroll
    for (int j = 0; j < kVector; ++j) gate.x[j] = Silu(gate.x[j]) * up.x[j];
    Store(out + row * columns + i, gate);
  }
}

// NeoX halves, in place; cos_sin [positions, head_dim]. A CTA a token.
extern "C" __global__ void __launch_bounds__(512)
    rotary(const int64_t* positions, Bf16* q, Bf16* k, const Bf16* cos_sin, int heads, int kv_heads,
           int head_dim) {
  const Bf16* table = cos_sin + positions[blockIdx.x] * head_dim;
  const int half = head_dim / 2;
  for (int i = threadIdx.x; i < (heads + kv_heads) * half; i += blockDim.x) {
    const int head = i / half, at = i % half;
    Bf16* x = head < heads ? q + (static_cast<size_t>(blockIdx.x) * heads + head) * head_dim
                           : k + (static_cast<size_t>(blockIdx.x) * kv_heads + head - heads) * head_dim;
    const float c = __bfloat162float(table[at]), s = __bfloat162float(table[half + at]);
    const float low = __bfloat162float(x[at]), high = __bfloat162float(x[at + half]);
    x[at] = __float2bfloat16(low * c - high * s);
    x[at + half] = __float2bfloat16(high * c + low * s);
  }
}

// --- one element a load -----------------------------------------------------------------------------------------------

extern "C" __global__ void __launch_bounds__(1024)
    rms_norm_scalar(__half* out, const __half* x, const __half* weight, float epsilon, int columns) {
  const size_t row = static_cast<size_t>(blockIdx.x) * columns;
  float squares = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    const float e = __half2float(x[row + i]);
    squares += e * e;
  }
  const float scale = rsqrtf(Sum(squares) / columns + epsilon);
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    out[row + i] = __hmul(__float2half(__half2float(x[row + i]) * scale), weight[i]);
}

extern "C" __global__ void __launch_bounds__(1024)
    silu_and_mul_scalar(__half* out, const __half* x, int columns) {
  const size_t row = blockIdx.x;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    const float gate = __half2float(__ldg(x + row * 2 * columns + i));
    const __half up = __ldg(x + (row * 2 + 1) * columns + i);
    out[row * columns + i] = __hmul(__float2half(gate / (1 + expf(-gate))), up);
  }
}

extern "C" __global__ void __launch_bounds__(512)
    rotary_scalar(const int64_t* positions, __half* q, __half* k, const __half* cos_sin, int heads,
                  int kv_heads, int head_dim) {
  const __half* table = cos_sin + positions[blockIdx.x] * head_dim;
  const int half = head_dim / 2;
  for (int i = threadIdx.x; i < heads * half; i += blockDim.x) {
    __half* x = q + (static_cast<size_t>(blockIdx.x) * heads + i / half) * head_dim;
    const __half c = __ldg(table + i % half), s = __ldg(table + half + i % half), low = x[i % half],
                 high = x[i % half + half];
    x[i % half] = low * c - high * s;
    x[i % half + half] = high * c + low * s;
  }
  for (int i = threadIdx.x; i < kv_heads * half; i += blockDim.x) {
    __half* x = k + (static_cast<size_t>(blockIdx.x) * kv_heads + i / half) * head_dim;
    const __half c = __ldg(table + i % half), s = __ldg(table + half + i % half), low = x[i % half],
                 high = x[i % half + half];
    x[i % half] = low * c - high * s;
    x[i % half + half] = high * c + low * s;
  }
}

// PyTorch's vectorised addition of half precision: four elements a load. Grid: cdiv(count, 512).
extern "C" __global__ void __launch_bounds__(128)
    add_half(__half* out, const __half* a, const __half* b, int count) {
  const int i = (blockIdx.x * 128 + threadIdx.x) * 4;
  if (i + 4 > count) return;
  const uint2 left = *reinterpret_cast<const uint2*>(a + i), right = *reinterpret_cast<const uint2*>(b + i);
  const __half2 low =
      __hadd2(*reinterpret_cast<const __half2*>(&left.x), *reinterpret_cast<const __half2*>(&right.x));
  const __half2 high =
      __hadd2(*reinterpret_cast<const __half2*>(&left.y), *reinterpret_cast<const __half2*>(&right.y));
  *reinterpret_cast<uint2*>(out + i) = {*reinterpret_cast<const uint32_t*>(&low),
                                        *reinterpret_cast<const uint32_t*>(&high)};
}

// --- mixture of experts -----------------------------------------------------------------------------------------------

// One CTA counts each expert's slots in shared memory, rounds them up to blocks, and writes where each expert begins and whose each
// block is. Dynamic shared memory: 2 * experts + 1 ints.
extern "C" __global__ void __launch_bounds__(1024)
    moe_align(int* begins, int* block_experts, int* padded, const int* ids, int slots, int experts,
              int block) {
  extern __shared__ int shared[];
  int* counts = shared;
  int* begin = shared + experts;
  for (int e = threadIdx.x; e < experts; e += blockDim.x) counts[e] = 0;
  __syncthreads();
  for (int s = threadIdx.x; s < slots; s += blockDim.x) atomicAdd(counts + ids[s], 1);
  __syncthreads();
  if (threadIdx.x < 32) {  // a warp adds up 32 experts at a time
    int before = 0;
    for (int first = 0; first < experts; first += 32) {
      const int e = first + threadIdx.x;
      const int own = e < experts ? (counts[e] + block - 1) / block * block : 0;
      int sum = own;
      for (int lanes = 1; lanes < 32; lanes *= 2) {
        const int other = __shfl_up_sync(~0u, sum, lanes);
        if (threadIdx.x >= lanes) sum += other;
      }
      if (e < experts) begin[e] = before + sum - own;
      before += __shfl_sync(~0u, sum, 31);
    }
    if (threadIdx.x == 0) begin[experts] = before, *padded = before;
  }
  __syncthreads();
  for (int e = threadIdx.x; e < experts; e += blockDim.x) {
    begins[e] = begin[e];
    for (int at = begin[e]; at < begin[e + 1]; at += block) block_experts[at / block] = e;
  }
}

// Each slot takes the next place of its expert. Grid: cdiv(slots, 256).
extern "C" __global__ void __launch_bounds__(256)
    moe_place(int* begins, int* sorted, const int* ids, int slots) {
  const int s = blockIdx.x * 256 + threadIdx.x;
  if (s < slots) sorted[atomicAdd(begins + ids[s], 1)] = s;
}

// out [tokens, columns]: the sum of each token's top_k rows of x [top_k, tokens, columns]. A CTA a token.
extern "C" __global__ void __launch_bounds__(1024) moe_sum(Bf16* out, const Bf16* x, int top_k, int columns) {
  const size_t token = blockIdx.x;
  for (int i = threadIdx.x * kVector; i < columns; i += blockDim.x * kVector) {
    Vector sum{};
    for (int k = 0; k < top_k; ++k) {
      const Vector v = Load(x + (static_cast<size_t>(k) * gridDim.x + token) * columns + i);
#pragma unroll
      for (int j = 0; j < kVector; ++j) sum.x[j] += v.x[j];
    }
    Store(out + token * columns + i, sum);
  }
}
