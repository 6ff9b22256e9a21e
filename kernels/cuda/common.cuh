// Building blocks that the kernels of this folder share: 16-byte bf16 vectors, warp and block reductions, and
// the PTX of the asynchronous copy, matrix load and tensor instructions of sm_80 and later.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace kernels {

using bf16 = __nv_bfloat16;

constexpr int kWarpSize = 32;
constexpr unsigned kFullMask = 0xffffffffu;

// Eight bf16 values: the widest vector that one lane loads or stores at once.
struct alignas(16) Bf16x8 {
  static constexpr int kSize = 8;
  __nv_bfloat162 pair[4];
};

__device__ __forceinline__ Bf16x8 LoadBf16x8(const bf16* p) { return *reinterpret_cast<const Bf16x8*>(p); }

// Through the read-only path and without keeping the line in L1: for data that is read once.
__device__ __forceinline__ Bf16x8 LoadStreaming(const bf16* p) {
  union {
    uint4 raw;
    Bf16x8 v;
  } u;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(u.raw.x), "=r"(u.raw.y), "=r"(u.raw.z), "=r"(u.raw.w)
               : "l"(p));
  return u.v;
}

__device__ __forceinline__ void Store(bf16* p, const Bf16x8& v) { *reinterpret_cast<Bf16x8*>(p) = v; }

__device__ __forceinline__ void Unpack(const Bf16x8& v, float (&f)[8]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 x = __bfloat1622float2(v.pair[i]);
    f[2 * i] = x.x;
    f[2 * i + 1] = x.y;
  }
}

__device__ __forceinline__ Bf16x8 Pack(const float (&f)[8]) {
  Bf16x8 v;
#pragma unroll
  for (int i = 0; i < 4; ++i) v.pair[i] = __floats2bfloat162_rn(f[2 * i], f[2 * i + 1]);
  return v;
}

struct Sum {
  __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
  static constexpr float kIdentity = 0.0f;
};
struct Max {
  __device__ __forceinline__ float operator()(float a, float b) const { return fmaxf(a, b); }
  static constexpr float kIdentity = -3.402823466e+38f;
};

// Reduces over groups of `width` neighbouring lanes; every lane receives the result.
template <typename Op, int width = kWarpSize>
__device__ __forceinline__ float WarpReduce(float x) {
#pragma unroll
  for (int offset = width / 2; offset > 0; offset /= 2) x = Op()(x, __shfl_xor_sync(kFullMask, x, offset));
  return x;
}

// Reduces over the CTA (a multiple of 32 threads, at most 1024); every thread receives the result. May be
// called repeatedly.
template <typename Op>
__device__ __forceinline__ float BlockReduce(float x) {
  __shared__ float partial[kWarpSize];
  const int lane = threadIdx.x % kWarpSize;
  const int warp = threadIdx.x / kWarpSize;
  const int warps = blockDim.x / kWarpSize;
  x = WarpReduce<Op>(x);
  __syncthreads();  // the previous call's readers are done
  if (lane == 0) partial[warp] = x;
  __syncthreads();
  x = lane < warps ? partial[lane] : Op::kIdentity;
  return WarpReduce<Op>(x);
}

__device__ __forceinline__ uint32_t SharedAddress(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// 16 bytes from global to shared memory past the registers; zeros where !valid (nothing is read then).
__device__ __forceinline__ void CpAsync16(uint32_t shared, const void* global, bool valid) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void CpAsyncCommit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most `pending` of the newest groups are still in flight.
template <int pending>
__device__ __forceinline__ void CpAsyncWait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// Four 8x8 matrices of 16-bit elements; lane i gives the address of row i%8 of matrix i/8.
__device__ __forceinline__ void Ldmatrix(uint32_t (&r)[4], uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared)
               : "memory");
}
__device__ __forceinline__ void LdmatrixTranspose(uint32_t (&r)[4], uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared)
               : "memory");
}

// d[16x8] += a[16x16] * b[16x8], bf16 inputs, float accumulators.
__device__ __forceinline__ void Mma16816(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ uint32_t PackPair(float lo, float hi) {
  const __nv_bfloat162 v = __floats2bfloat162_rn(lo, hi);
  return *reinterpret_cast<const uint32_t*>(&v);
}

}  // namespace kernels
