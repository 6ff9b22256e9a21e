// C = A * B^T, bf16 in and out, float accumulation. See gemm_tile.cuh for the layout. n is even.
// Grid: ceil(m / 128) * ceil(n / 128); 256 threads; 65536 bytes of dynamic shared memory.
#include "gemm_tile.cuh"

using namespace kernels;

extern "C" __global__ void __launch_bounds__(GemmTile::kThreads, 2)
    gemm_bf16(bf16* __restrict__ c, const bf16* __restrict__ a, const bf16* __restrict__ b, int m, int n,
              int k) {
  int tile_m, tile_n;
  GroupedTile(blockIdx.x, (m + GemmTile::kM - 1) / GemmTile::kM, (n + GemmTile::kN - 1) / GemmTile::kN,
              tile_m, tile_n);
  const int m0 = tile_m * GemmTile::kM;
  const int n0 = tile_n * GemmTile::kN;
  GemmTile tile;
  tile.Run(a, b, m, n, k, m0, n0, 0, k);
  tile.ForEachPair(m0, n0, [&](int row, int column, float x, float y) {
    if (row < m && column < n) {
      *reinterpret_cast<uint32_t*>(c + static_cast<int64_t>(row) * n + column) = PackPair(x, y);
    }
  });
}
