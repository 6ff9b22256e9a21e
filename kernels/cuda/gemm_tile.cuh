// One output tile of C = A * B^T with bf16 tensor cores: a multi-stage cp.async pipeline into swizzled shared
// memory, ldmatrix, mma.m16n8k16. A [m, k] and B [n, k] are row-major ("TN", as a linear layer has them); k
// is a multiple of 8, m and n are any.
#pragma once

#include "common.cuh"

namespace kernels {

struct GemmTile {
  static constexpr int kM = 128, kN = 128, kK = 32;
  static constexpr int kStages = 4;
  static constexpr int kThreads = 256;
  static constexpr int kWarpsM = 2, kWarpsN = 4;
  static constexpr int kWarpM = kM / kWarpsM, kWarpN = kN / kWarpsN;  // 64 x 32 a warp
  static constexpr int kMmaM = kWarpM / 16, kMmaN = kWarpN / 8;
  static constexpr int kRowBytes = kK * 2;
  static constexpr int kABytes = kM * kRowBytes, kBBytes = kN * kRowBytes;
  static constexpr int kStageBytes = kABytes + kBBytes;
  static constexpr int kSharedBytes = kStages * kStageBytes;
  static_assert(kM == kN && kRowBytes == 64 && kM * 4 % kThreads == 0, "what LoadOperand and Swizzle assume");

  float acc[kMmaM][kMmaN][4];

  // Shared-memory offset of 16-byte chunk `chunk` (0..3) of row `row`. Two rows share 128 bytes; the chunk is
  // XORed with the row pair so that the 8 rows that one ldmatrix phase or one store phase touches lie in
  // different banks.
  __device__ static __forceinline__ uint32_t Swizzle(int row, int chunk) {
    return row * kRowBytes + ((chunk ^ (row >> 1 & 3)) << 4);
  }

  // Copies k-columns [k0, k0 + kK) of rows [row0, row0 + kM) of `matrix`; what lies outside rows x k_end is
  // zero.
  __device__ static __forceinline__ void LoadOperand(uint32_t shared, const bf16* matrix, int row0, int rows,
                                                     int k0, int k_end, int stride) {
    constexpr int kChunks = kM * kRowBytes / 16;
#pragma unroll
    for (int i = 0; i < kChunks / kThreads; ++i) {
      const int chunk = i * kThreads + threadIdx.x;
      const int row = chunk / 4;
      const int k = k0 + chunk % 4 * 8;
      const bool valid = row0 + row < rows && k < k_end;
      const bf16* from = valid ? matrix + static_cast<int64_t>(row0 + row) * stride + k : matrix;
      CpAsync16(shared + Swizzle(row, chunk % 4), from, valid);
    }
  }

  // Accumulates over k in [k_begin, k_end).
  __device__ __forceinline__ void Run(const bf16* a, const bf16* b, int m, int n, int k, int m0, int n0,
                                      int k_begin, int k_end) {
    extern __shared__ __align__(128) uint8_t shared_bytes[];
    const uint32_t shared = SharedAddress(shared_bytes);
    const int steps = (k_end - k_begin + kK - 1) / kK;
    auto load = [&](int step) {
      const uint32_t stage = shared + step % kStages * kStageBytes;
      LoadOperand(stage, a, m0, m, k_begin + step * kK, k_end, k);
      LoadOperand(stage + kABytes, b, n0, n, k_begin + step * kK, k_end, k);
    };
#pragma unroll
    for (int s = 0; s < kStages - 1; ++s) {
      if (s < steps) load(s);
      CpAsyncCommit();  // empty groups keep the count of groups equal to the count of steps
    }
#pragma unroll
    for (int i = 0; i < kMmaM; ++i)
#pragma unroll
      for (int j = 0; j < kMmaN; ++j)
#pragma unroll
        for (int r = 0; r < 4; ++r) acc[i][j][r] = 0.0f;

    for (int step = 0; step < steps; ++step) {
      CpAsyncWait<kStages - 2>();
      __syncthreads();  // this step's tiles are visible, and everyone has left the stage that is overwritten
                        // next
      if (step + kStages - 1 < steps) load(step + kStages - 1);
      CpAsyncCommit();
      Multiply(shared + step % kStages * kStageBytes);
    }
  }

  __device__ __forceinline__ void Multiply(uint32_t stage) {
    const int lane = threadIdx.x % kWarpSize;
    const int warp_m = threadIdx.x / kWarpSize % kWarpsM * kWarpM;
    const int warp_n = threadIdx.x / kWarpSize / kWarpsM * kWarpN;
#pragma unroll
    for (int kk = 0; kk < kK / 16; ++kk) {
      uint32_t a[kMmaM][4];
#pragma unroll
      for (int i = 0; i < kMmaM;
           ++i) {  // matrices: (rows 0-7, k 0-7), (8-15, 0-7), (0-7, 8-15), (8-15, 8-15)
        Ldmatrix(a[i], stage + Swizzle(warp_m + i * 16 + lane % 16, kk * 2 + lane / 16));
      }
#pragma unroll
      for (int j = 0; j < kMmaN;
           j += 2) {  // matrices: (n 0-7, k 0-7), (0-7, 8-15), (8-15, 0-7), (8-15, 8-15)
        uint32_t b[4];
        Ldmatrix(b,
                 stage + kABytes + Swizzle(warp_n + j * 8 + lane % 8 + lane / 16 * 8, kk * 2 + lane / 8 % 2));
#pragma unroll
        for (int i = 0; i < kMmaM; ++i) {
          Mma16816(acc[i][j], a[i], b[0], b[1]);
          Mma16816(acc[i][j + 1], a[i], b[2], b[3]);
        }
      }
    }
  }

  // Calls f(row, column, accumulators of (row, column) and (row, column + 1)) for all pairs this thread
  // holds, in or out of C.
  template <typename F>
  __device__ __forceinline__ void ForEachPair(int m0, int n0, F f) {
    const int lane = threadIdx.x % kWarpSize;
    const int row = m0 + threadIdx.x / kWarpSize % kWarpsM * kWarpM + lane / 4;
    const int column = n0 + threadIdx.x / kWarpSize / kWarpsM * kWarpN + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < kMmaM; ++i)
#pragma unroll
      for (int j = 0; j < kMmaN; ++j) {
        f(row + i * 16, column + j * 8, acc[i][j][0], acc[i][j][1]);
        f(row + i * 16 + 8, column + j * 8, acc[i][j][2], acc[i][j][3]);
      }
  }
};

// CTAs walk the tiles in groups of 8 tile rows, so that CTAs that run together share operands in the L2
// cache.
__device__ __forceinline__ void GroupedTile(int index, int tiles_m, int tiles_n, int& tile_m, int& tile_n) {
  constexpr int kGroup = 8;
  const int group = index / (kGroup * tiles_n);
  const int rows = min(tiles_m - group * kGroup, kGroup);
  const int within = index - group * kGroup * tiles_n;
  tile_m = group * kGroup + within % rows;
  tile_n = within / rows;
}

}  // namespace kernels
