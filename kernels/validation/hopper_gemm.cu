// Hopper's way of multiplying: D = A B^T by TMA, mbarriers and wgmma. One warp loads, warpgroups of 64 rows multiply, CTAs of a
// cluster share the tile of B by multicast, and a grid of at most one CTA an SM walks over tiles. K is cut into steps of 128 bytes.
// Library kernels for sm_90 are built like this; kernels at the end differ in tile, stages, cluster and in what is written.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <cstdint>

#include "wgmma.cuh"

namespace {

constexpr int kStepBytes = 128;

enum class Output {
  kRows,     // bf16 D [m, n]
  kColumns,  // bf16 D [n, m]: A are the weights, B the few rows of a linear layer's input
  kPartial,  // float [splits, n, m], added up by another kernel
};

// group_rows: so many rows of A, a multiple of a tile's, have an n x k of B of their own; 0: all share one.
struct Shape {
  int m, n, k, splits, group_rows;
};

__device__ uint32_t SharedAddress(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ void Init(uint32_t barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count));
}
__device__ void Expect(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ void Wait(uint32_t barrier, int parity) {
  asm volatile(
      "{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra done;\nbra "
      "again;\ndone:\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
__device__ void Arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// At the barrier of the same place in another CTA of the cluster.
__device__ void ArriveAt(uint32_t barrier, int rank) {
  asm volatile(
      "{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(barrier),
      "r"(rank)
      : "memory");
}

__device__ void Load(uint32_t to, const CUtensorMap* map, uint32_t barrier, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], "
      "[%2];" ::"r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(y)
      : "memory");
}
__device__ void LoadToAll(uint32_t to, const CUtensorMap* map, uint32_t barrier, int x, int y,
                          uint16_t ctas) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
      "[%1, {%3, %4}], "
      "[%2], %5;" ::"r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "h"(ctas)
      : "memory");
}
__device__ void Store(const CUtensorMap* map, uint32_t from, int x, int y) {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
               "r"(from), "r"(x), "r"(y)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
__device__ void WaitStoresRead() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

__device__ int ClusterRank() {
  int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ void ClusterBarrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ void GroupBarrier(int group) { asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory"); }

__device__ uint32_t Pair(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}
template <bool kTransposed>
__device__ void StoreMatrices(uint32_t to, const float* d) {
  if constexpr (kTransposed)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(Pair(d[0], d[1])), "r"(Pair(d[2], d[3])), "r"(Pair(d[4], d[5])), "r"(Pair(d[6], d[7])));
  else
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(Pair(d[0], d[1])), "r"(Pair(d[2], d[3])), "r"(Pair(d[4], d[5])), "r"(Pair(d[6], d[7])));
}

// The nth use of a ring of stages.
template <int kStages>
struct Turn {
  int stage = 0, parity = 0;
  __device__ void Next() {
    if (++stage == kStages) stage = 0, parity ^= 1;
  }
};

template <typename T, int kM, int kN, int kStages, int kCluster, Output kOutput, bool kBlockScales>
struct Gemm {
  static constexpr int kGroups = kM / 64, kThreads = 128 * (kGroups + 1);
  static constexpr int kStepK = kStepBytes / static_cast<int>(sizeof(T));
  static constexpr int kBytesA = kM * kStepBytes, kBytesB = kN * kStepBytes,
                       kBytesScales = kBlockScales ? kM * 4 : 0;
  static constexpr int kColumnsStored = kN < 64 ? kN : 64, kPitch = 2 * kColumnsStored;  // of a box of D
  static constexpr int kBytesD = kOutput == Output::kRows      ? kM * kPitch
                                 : kOutput == Output::kColumns ? kGroups * kN * 128
                                                               : 0;
  static constexpr int kAtB = kStages * kBytesA, kAtD = kAtB + kStages * kBytesB, kAtScales = kAtD + kBytesD;
  static constexpr int kAtBarriers = kAtScales + kStages * kBytesScales,
                       kSharedBytes = kAtBarriers + 16 * kStages;
  static constexpr int kRowsOfClusters = 8 / kCluster;  // of tiles that share their columns of B in L2

  // Where the nth piece of work lies; pieces of a group of rows are neighbours.
  struct Tile {
    int row, column, first_step, last_step, split, group;
  };
  static __device__ Tile At(const Shape& shape, int index, int rank) {
    const int rows = (shape.m + kM * kCluster - 1) / (kM * kCluster), columns = (shape.n + kN - 1) / kN;
    int split = 0;
    if constexpr (kOutput == Output::kPartial) split = index % shape.splits, index /= shape.splits;
    int group = 0, in_group = index, rows_here = rows;
    if (rows > kRowsOfClusters) {
      group = index / (kRowsOfClusters * columns), in_group = index - group * kRowsOfClusters * columns;
      rows_here = min(rows - group * kRowsOfClusters, kRowsOfClusters);
    }
    const int column = in_group / rows_here, row = group * kRowsOfClusters + in_group - column * rows_here;
    const int steps = (shape.k + kStepK - 1) / kStepK;
    const int share = kOutput == Output::kPartial ? (steps + shape.splits - 1) / shape.splits : steps;
    const int first_row = (row * kCluster + rank) * kM;
    const int group_of_rows = kBlockScales && shape.group_rows > 0 ? first_row / shape.group_rows : 0;
    return {first_row, column * kN, split * share, min(steps, (split + 1) * share), split, group_of_rows};
  }
  static __device__ int Count(const Shape& shape) {
    return (shape.m + kM * kCluster - 1) / (kM * kCluster) * ((shape.n + kN - 1) / kN) * shape.splits;
  }

  static __device__ void Produce(uint32_t shared, const CUtensorMap* a, const CUtensorMap* b,
                                 const CUtensorMap* scales, const Shape& shape, int rank) {
    Turn<kStages> turn;
    const int count = Count(shape);
    for (int i = blockIdx.x / kCluster; i < count; i += gridDim.x / kCluster) {
      const Tile tile = At(shape, i, rank);
      for (int k = tile.first_step; k < tile.last_step; ++k, turn.Next()) {
        const int stage = turn.stage;
        const uint32_t full = shared + kAtBarriers + 8 * stage;
        Wait(full + 8 * kStages, turn.parity ^ 1);
        Expect(full, kBytesA + kBytesB + kBytesScales);
        Load(shared + stage * kBytesA, a, full, k * kStepK, tile.row);
        if constexpr (kBlockScales)
          Load(shared + kAtScales + stage * kBytesScales, scales, full, tile.row, k);
        const uint32_t to_b = shared + kAtB + stage * kBytesB;
        if constexpr (kCluster == 1)
          Load(to_b, b, full, k * kStepK, tile.column + tile.group * shape.n);
        else
          LoadToAll(to_b + rank * (kBytesB / kCluster), b, full, k * kStepK,
                    tile.column + tile.group * shape.n + rank * (kN / kCluster), (1 << kCluster) - 1);
      }
    }
  }

  static __device__ void Release(uint32_t shared, int stage) {
    const uint32_t empty = shared + kAtBarriers + 8 * (kStages + stage);
    if constexpr (kCluster == 1) {
      if (threadIdx.x % 128 == 0) Arrive(empty);
    } else {
      if (threadIdx.x % 128 < kCluster) ArriveAt(empty, threadIdx.x % 128);
    }
  }

  // Steps of one tile: d is zeroed, and one step's products stay in flight while the next one's are issued.
  static __device__ void Multiply(uint32_t shared, const Tile& tile, int group, Turn<kStages>* turn,
                                  float (&d)[kN / 2]) {
    int last = -1;  // the stage whose products may still run
    for (int k = tile.first_step; k < tile.last_step; ++k, turn->Next()) {
      const int stage = turn->stage;
      Wait(shared + kAtBarriers + 8 * stage, turn->parity);
      const uint64_t a = Descriptor(shared + stage * kBytesA + group * 64 * kStepBytes);
      const uint64_t b = Descriptor(shared + kAtB + stage * kBytesB);
      WgmmaFence();
#pragma unroll
      for (int i = 0; i < 4; ++i) Wgmma(d, a + 2 * i, b + 2 * i, k != tile.first_step || i != 0, T());
      WgmmaCommit();
      WgmmaWait<1>();
      if (last >= 0) Release(shared, last);
      last = stage;
    }
    WgmmaWait<0>();
    if (last >= 0) Release(shared, last);
  }

  // The same with a factor for each row and step of A and one for each step of B's 128 columns.
  static __device__ void MultiplyScaled(uint32_t shared, const Tile& tile, int group, int steps, int blocks,
                                        const float* b_scales, Turn<kStages>* turn, float (&d)[kN / 2]) {
    float product[kN / 2];
#pragma unroll
    for (int i = 0; i < kN / 2; ++i) d[i] = 0;
    const float* factors = b_scales + static_cast<size_t>(tile.group * blocks + tile.column / 128) * steps;
    const int row = group * 64 + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    float factor = __ldg(factors + tile.first_step);
    for (int k = tile.first_step; k < tile.last_step; ++k, turn->Next()) {
      const int stage = turn->stage;
      const float next = k + 1 < tile.last_step ? __ldg(factors + k + 1) : 0;
      Wait(shared + kAtBarriers + 8 * stage, turn->parity);
      const uint64_t a = Descriptor(shared + stage * kBytesA + group * 64 * kStepBytes);
      const uint64_t b = Descriptor(shared + kAtB + stage * kBytesB);
      WgmmaFence();
#pragma unroll
      for (int i = 0; i < 4; ++i) Wgmma(product, a + 2 * i, b + 2 * i, i != 0, T());
      WgmmaCommit();
      float upper, lower;
      const uint32_t scales = shared + kAtScales + stage * kBytesScales + row * 4;
      asm volatile("ld.shared.f32 %0, [%1];" : "=f"(upper) : "r"(scales));
      asm volatile("ld.shared.f32 %0, [%1];" : "=f"(lower) : "r"(scales + 32));
      WgmmaWait<0>();
      Release(shared, stage);
      upper *= factor, lower *= factor;
#pragma unroll
      for (int j = 0; j < kN / 8; ++j) {
        d[4 * j] += upper * product[4 * j], d[4 * j + 1] += upper * product[4 * j + 1];
        d[4 * j + 2] += lower * product[4 * j + 2], d[4 * j + 3] += lower * product[4 * j + 3];
      }
      factor = next;
    }
  }

  // Factors of fp8 rows and columns, where there are any.
  static __device__ void Scale(const Shape& shape, const Tile& tile, int group, const float* row_scales,
                               const float* column_scales, float (&d)[kN / 2]) {
    const int lane = threadIdx.x % 32, row = tile.row + group * 64 + threadIdx.x % 128 / 32 * 16 + lane / 4;
    const float upper = __ldg(row_scales + min(row, shape.m - 1)),
                lower = __ldg(row_scales + min(row + 8, shape.m - 1));
#pragma unroll
    for (int j = 0; j < kN / 8; ++j) {
      const int column = tile.column + 8 * j + lane % 4 * 2;
      const float left = __ldg(column_scales + min(column, shape.n - 1));
      const float right = __ldg(column_scales + min(column + 1, shape.n - 1));
      d[4 * j] *= upper * left, d[4 * j + 1] *= upper * right, d[4 * j + 2] *= lower * left,
          d[4 * j + 3] *= lower * right;
    }
  }

  static __device__ void Write(uint32_t shared, const CUtensorMap* map, float* partial, const Shape& shape,
                               const Tile& tile, int group, const float (&d)[kN / 2]) {
    const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
    if constexpr (kOutput == Output::kRows) {
      // A warp's 16 rows, at most 64 columns at a time, swizzled by their width.
      const uint32_t buffer = shared + kAtD + (group * 4 + warp) * 16 * kPitch;
      const int row = lane % 16, swizzle = kPitch == 128 ? row % 8 : kPitch == 64 ? row / 2 % 4 : row / 4 % 2;
#pragma unroll
      for (int first = 0; first < kN; first += kColumnsStored) {
        if (lane == 0) WaitStoresRead();
        __syncwarp();
#pragma unroll
        for (int j = 0; j < kColumnsStored / 16; ++j)
          StoreMatrices<false>(buffer + row * kPitch + ((2 * j + lane / 16) ^ swizzle) * 16,
                               d + first / 2 + 8 * j);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncwarp();
        if (lane == 0) Store(map, buffer, tile.column + first, tile.row + group * 64 + warp * 16);
      }
    } else if constexpr (kOutput == Output::kColumns) {
      const uint32_t buffer = shared + kAtD + group * kN * 128;
      if (threadIdx.x % 128 == 0) WaitStoresRead();
      GroupBarrier(group);
#pragma unroll
      for (int j = 0; j < kN / 16; ++j) {
        const int row = 16 * j + lane / 16 * 8 + lane % 8, unit = warp * 2 + lane / 8 % 2;
        StoreMatrices<true>(buffer + row * 128 + (unit ^ row % 8) * 16, d + 8 * j);
      }
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      GroupBarrier(group);
      if (threadIdx.x % 128 == 0) Store(map, buffer, tile.row + group * 64, tile.column);
    } else {
      const int row = tile.row + group * 64 + warp * 16 + lane / 4;
      float* to = partial + static_cast<size_t>(tile.split) * shape.m * shape.n + row;
#pragma unroll
      for (int j = 0; j < kN / 2; ++j) {
        const int column = tile.column + j / 4 * 8 + lane % 4 * 2 + j % 2, below = j % 4 / 2 * 8;
        if (column < shape.n && row + below < shape.m)
          to[static_cast<size_t>(column) * shape.m + below] = d[j];
      }
    }
  }

  static_assert(kSharedBytes <= 232448);
  static_assert(kPitch == 128 || kPitch == 64 || kPitch == 32);

  static __device__ void Run(const CUtensorMap* a, const CUtensorMap* b, const CUtensorMap* d_map,
                             const CUtensorMap* scales, const float* row_scales, const float* column_scales,
                             float* partial, const Shape& shape) {
    extern __shared__ __align__(1024) uint8_t memory[];
    const uint32_t shared = SharedAddress(memory);
    const int rank = kCluster == 1 ? 0 : ClusterRank();
    if (threadIdx.x == 0) {
      for (int i = 0; i < kStages; ++i) {
        Init(shared + kAtBarriers + 8 * i, 1);
        Init(shared + kAtBarriers + 8 * (kStages + i), kGroups * kCluster);
      }
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if constexpr (kCluster == 1)
      __syncthreads();
    else
      ClusterBarrier();
    if (threadIdx.x < 128) {
      if constexpr (kGroups > 1) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
      if (threadIdx.x == 0) Produce(shared, a, b, scales, shape, rank);
    } else {
      if constexpr (kGroups > 1) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
      const int group = threadIdx.x / 128 - 1;
      Turn<kStages> turn;
      const int count = Count(shape);
      for (int i = blockIdx.x / kCluster; i < count; i += gridDim.x / kCluster) {
        const Tile tile = At(shape, i, rank);
        float d[kN / 2];
        if constexpr (kBlockScales)
          MultiplyScaled(shared, tile, group, (shape.k + kStepK - 1) / kStepK, (shape.n + 127) / 128,
                         column_scales, &turn, d);
        else
          Multiply(shared, tile, group, &turn, d);
        if constexpr (!kBlockScales && sizeof(T) == 1)
          Scale(shape, tile, group, row_scales, column_scales, d);
        Write(shared, d_map, partial, shape, tile, group, d);
      }
    }
    if constexpr (kCluster != 1) ClusterBarrier();  // nobody leaves while others may still write to it
  }
};

}  // namespace

#define TILE(name, T, m, n, stages, cluster, output, block_scales)                                        \
  extern "C" __global__ void __launch_bounds__(                                                           \
      Gemm<T, m, n, stages, cluster, output, block_scales>::kThreads, 1)                                  \
      name(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,                  \
           const __grid_constant__ CUtensorMap d, const __grid_constant__ CUtensorMap scales,             \
           const float* row_scales, const float* column_scales, float* partial, int rows, int columns,    \
           int k, int splits, int group_rows) {                                                           \
    Gemm<T, m, n, stages, cluster, output, block_scales>::Run(                                            \
        &a, &b, &d, &scales, row_scales, column_scales, partial, {rows, columns, k, splits, group_rows}); \
  }
#define ROWS(T, name, m, n, stages, cluster) \
  TILE(name##_##m##x##n##_cluster##cluster, T, m, n, stages, cluster, Output::kRows, false)
#define FEW(T, name, m, n, stages)                                        \
  TILE(name##_few_##m##x##n, T, m, n, stages, 1, Output::kColumns, false) \
  TILE(name##_few_##m##x##n##_split, T, m, n, stages, 1, Output::kPartial, false)

using Bf16 = __nv_bfloat16;
using Fp8 = __nv_fp8_e4m3;

#if defined(HOPPER_BF16)
ROWS(Bf16, bf16, 128, 256, 4, 2)
ROWS(Bf16, bf16, 128, 128, 6, 2)
ROWS(Bf16, bf16, 128, 128, 6, 1)
FEW(Bf16, bf16, 128, 128, 6)
FEW(Bf16, bf16, 64, 64, 12)
FEW(Bf16, bf16, 64, 16, 20)
#elif defined(HOPPER_FP8)
ROWS(Fp8, fp8, 128, 256, 4, 2)
ROWS(Fp8, fp8, 128, 128, 6, 2)
ROWS(Fp8, fp8, 128, 128, 6, 1)
FEW(Fp8, fp8, 128, 128, 6)
FEW(Fp8, fp8, 64, 64, 12)
FEW(Fp8, fp8, 64, 16, 20)
#elif defined(HOPPER_FP8_BLOCKS)
TILE(blocks_128x128_cluster2, Fp8, 128, 128, 5, 2, Output::kRows, true)
TILE(blocks_128x128_cluster1, Fp8, 128, 128, 5, 1, Output::kRows, true)
TILE(blocks_64x128, Fp8, 64, 128, 8, 1, Output::kRows, true)
TILE(blocks_64x64, Fp8, 64, 64, 12, 1, Output::kRows, true)
TILE(blocks_64x32, Fp8, 64, 32, 16, 1, Output::kRows, true)
TILE(blocks_64x16, Fp8, 64, 16, 20, 1, Output::kRows, true)
#endif
