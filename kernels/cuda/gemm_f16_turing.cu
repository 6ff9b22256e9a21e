// C = A * B^T, fp16 in and out, float accumulation, with what Turing has: 16-byte loads into registers, two stages of shared
// memory, ldmatrix and mma.m16n8k8. A [m, k] and B [n, k] are row-major; k is a multiple of 8, n is even.
// Grid: ceil(n / 128), ceil(m / 128); 256 threads, 64 x 32 of C a warp; 32 KiB of shared memory.
#include <cuda_fp16.h>

#include "common.cuh"

using namespace kernels;

namespace {

constexpr int kTile = 128, kK = 32, kThreads = 256, kChunks = kTile * kK / 8 / kThreads;
constexpr int kRowBytes = kK * 2, kOperandBytes = kTile * kRowBytes;

// Chunk `chunk` (0..3) of 16 bytes of row `row`: eight neighbouring rows lie in different banks.
__device__ __forceinline__ uint32_t Swizzle(int row, int chunk) {
  return row * kRowBytes + ((chunk ^ (row >> 1 & 3)) << 4);
}

// This thread's chunks of rows [row0, row0 + 128) and columns [k0, k0 + 32); zeros outside.
__device__ __forceinline__ void Load(uint4 (&chunks)[kChunks], const half* matrix, int row0, int rows, int k0, int k) {
#pragma unroll
  for (int i = 0; i < kChunks; ++i) {
    const int chunk = i * kThreads + threadIdx.x;
    const int row = row0 + chunk / 4, column = k0 + chunk % 4 * 8;
    chunks[i] = make_uint4(0, 0, 0, 0);
    if (row < rows && column < k) chunks[i] = *reinterpret_cast<const uint4*>(matrix + static_cast<int64_t>(row) * k + column);
  }
}

__device__ __forceinline__ void Keep(uint8_t* operand, const uint4 (&chunks)[kChunks]) {
#pragma unroll
  for (int i = 0; i < kChunks; ++i) {
    const int chunk = i * kThreads + threadIdx.x;
    *reinterpret_cast<uint4*>(operand + Swizzle(chunk / 4, chunk % 4)) = chunks[i];
  }
}

// d[16x8] += a[16x8] * b[8x8]
__device__ __forceinline__ void Mma1688(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t b) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(b));
}

__device__ __forceinline__ void Multiply(float (&acc)[4][4][4], uint32_t stage, int warp_m, int warp_n) {
  const int lane = threadIdx.x % kWarpSize;
#pragma unroll
  for (int kk = 0; kk < kK / 16; ++kk) {
    uint32_t a[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) Ldmatrix(a[i], stage + Swizzle(warp_m + i * 16 + lane % 16, kk * 2 + lane / 16));
#pragma unroll
    for (int j = 0; j < 4; j += 2) {
      uint32_t b[4];
      Ldmatrix(b, stage + kOperandBytes + Swizzle(warp_n + j * 8 + lane % 8 + lane / 16 * 8, kk * 2 + lane / 8 % 2));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        Mma1688(acc[i][j], a[i][0], a[i][1], b[0]);
        Mma1688(acc[i][j + 1], a[i][0], a[i][1], b[2]);
        Mma1688(acc[i][j], a[i][2], a[i][3], b[1]);
        Mma1688(acc[i][j + 1], a[i][2], a[i][3], b[3]);
      }
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    gemm_f16(half* __restrict__ c, const half* __restrict__ a, const half* __restrict__ b, int m, int n, int k) {
  __shared__ __align__(128) uint8_t stages[2][2 * kOperandBytes];
  const int m0 = blockIdx.y * kTile, n0 = blockIdx.x * kTile;
  const int warp_m = threadIdx.x / kWarpSize % 2 * 64, warp_n = threadIdx.x / kWarpSize / 2 * 32;
  float acc[4][4][4] = {};
  uint4 next_a[kChunks], next_b[kChunks];
  Load(next_a, a, m0, m, 0, k);
  Load(next_b, b, n0, n, 0, k);
  const int steps = (k + kK - 1) / kK;
  for (int step = 0; step < steps; ++step) {
    uint8_t* stage = stages[step % 2];
    Keep(stage, next_a);
    Keep(stage + kOperandBytes, next_b);
    __syncthreads();  // the stage before this one has been read by all when the next is written
    if (step + 1 < steps) {
      Load(next_a, a, m0, m, (step + 1) * kK, k);
      Load(next_b, b, n0, n, (step + 1) * kK, k);
    }
    Multiply(acc, SharedAddress(stage), warp_m, warp_n);
  }
  const int lane = threadIdx.x % kWarpSize;
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = m0 + warp_m + i * 16 + h * 8 + lane / 4, column = n0 + warp_n + j * 8 + lane % 4 * 2;
        if (row < m && column < n)
          *reinterpret_cast<half2*>(c + static_cast<int64_t>(row) * n + column) =
              __floats2half2_rn(acc[i][j][2 * h], acc[i][j][2 * h + 1]);
      }
}
