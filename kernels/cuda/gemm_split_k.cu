// C = A * B^T with the k range split over gridDim.y CTAs a tile and a serial reduction under a semaphore:
// slice s waits until slices 0..s-1 have added their part to the float workspace, adds its own and passes the
// tile on; the last one writes C. The order of the additions is fixed, so the result is deterministic. All
// slices of a tile must be able to run at once or in the order of blockIdx.y. Grid: (ceil(m / 128) * ceil(n /
// 128), slices); 256 threads; 65536 bytes of dynamic shared memory. n is even, k a multiple of 8.
#include "gemm_tile.cuh"

using namespace kernels;

namespace {

__device__ __forceinline__ int LoadAcquire(const int* p) {
  int value;
  asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
  return value;
}
__device__ __forceinline__ void StoreRelease(int* p, int value) {
  asm volatile("st.global.release.gpu.b32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}

__device__ __forceinline__ void WaitFor(const int* semaphore, int turn) {
  if (threadIdx.x == 0) {
    while (LoadAcquire(semaphore) != turn) __nanosleep(64);
  }
  __syncthreads();
}

__device__ __forceinline__ void Release(int* semaphore, int turn) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    StoreRelease(semaphore, turn);
  }
}

}  // namespace

// workspace [m, n] float, any contents; semaphores [tiles] int32, zero before and after.
extern "C" __global__ void __launch_bounds__(GemmTile::kThreads, 2)
    gemm_split_k_bf16(bf16* __restrict__ c, float* workspace, int* semaphores, const bf16* __restrict__ a,
                      const bf16* __restrict__ b, int m, int n, int k) {
  int tile_m, tile_n;
  GroupedTile(blockIdx.x, (m + GemmTile::kM - 1) / GemmTile::kM, (n + GemmTile::kN - 1) / GemmTile::kN,
              tile_m, tile_n);
  const int m0 = tile_m * GemmTile::kM;
  const int n0 = tile_n * GemmTile::kN;
  const int slices = gridDim.y;
  const int slice = blockIdx.y;
  const int k_steps = (k + GemmTile::kK - 1) / GemmTile::kK;
  const int k_slice = (k_steps + slices - 1) / slices * GemmTile::kK;
  const int k_begin = min(slice * k_slice, k);
  const int k_end = min(k_begin + k_slice, k);

  GemmTile tile;
  tile.Run(a, b, m, n, k, m0, n0, k_begin, k_end);

  int* semaphore = semaphores + blockIdx.x;
  const bool first = slice == 0;
  const bool last = slice == slices - 1;
  if (!first) WaitFor(semaphore, slice);
  tile.ForEachPair(m0, n0, [&](int row, int column, float x, float y) {
    if (row >= m || column >= n) return;
    const int64_t index = static_cast<int64_t>(row) * n + column;
    auto* partial = reinterpret_cast<float2*>(workspace + index);
    if (!first) {
      const float2 before = __ldcg(partial);  // written by another SM: not from L1
      x += before.x;
      y += before.y;
    }
    if (last) {
      *reinterpret_cast<uint32_t*>(c + index) = PackPair(x, y);
    } else {
      __stcg(partial, make_float2(x, y));
    }
  });
  Release(semaphore, last ? 0 : slice + 1);
}
