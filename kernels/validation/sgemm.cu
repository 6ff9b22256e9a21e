// FP32 matrix products with the tiles, the threads and the grids of cuBLAS's sgemm kernels for Ampere, re-created: a slab of 8
// (k) through double-buffered shared memory, an 8x8 block of results a thread as two by two quarters of 4x4.
//
// c[m, n] = a[m, k] times b, which is [n, k] ("tn": a linear layer's weight) or [k, n] ("nn": batched products). CTAs along x
// tile n, along y tile m; z is the batch, or where `split` is above 1 a part of k that is added to c.
#include <cstdint>

namespace {

constexpr int kSlab = 8;

struct Shape {
  int m, n, k;
  int split;
};

template <int kTileN, int kTileM, bool kTransposed>
struct Sgemm {
  static constexpr int kThreads = kTileN * kTileM / 64;
  static constexpr int kColumns = kTileN / 8;  // of threads
  static constexpr int kLoadsA = kTileM * kSlab / 4 / kThreads;
  static constexpr int kLoadsB = kTileN * kSlab / 4 / kThreads;
  static constexpr int kPad = 4;

  // Four values along k of one row of a (and of b, where it is transposed).
  static __device__ float4 LoadAlongK(const float* matrix, int row, int rows, int k, int k_end, int stride) {
    if (row >= rows) return make_float4(0, 0, 0, 0);
    const float* from = matrix + static_cast<size_t>(row) * stride + k;
    if (k + 3 < k_end && stride % 4 == 0) return *reinterpret_cast<const float4*>(from);
    return make_float4(k < k_end ? from[0] : 0, k + 1 < k_end ? from[1] : 0, k + 2 < k_end ? from[2] : 0,
                       k + 3 < k_end ? from[3] : 0);
  }
  // Four values along n of one row of b.
  static __device__ float4 LoadAlongN(const float* matrix, int k, int k_end, int column, int columns) {
    if (k >= k_end) return make_float4(0, 0, 0, 0);
    const float* from = matrix + static_cast<size_t>(k) * columns + column;
    if (column + 3 < columns && columns % 4 == 0) return *reinterpret_cast<const float4*>(from);
    return make_float4(column < columns ? from[0] : 0, column + 1 < columns ? from[1] : 0,
                       column + 2 < columns ? from[2] : 0, column + 3 < columns ? from[3] : 0);
  }

  static __device__ void Run(float* c, const float* a, const float* b, const Shape& shape) {
    __shared__ float a_tile[2][kSlab][kTileM + kPad];
    __shared__ float b_tile[2][kSlab][kTileN + kPad];
    const int first_m = kTileM * blockIdx.y, first_n = kTileN * blockIdx.x;
    int k_begin = 0, k_end = shape.k;
    if (shape.split > 1) {
      const int part = (shape.k + shape.split * kSlab - 1) / (shape.split * kSlab) * kSlab;
      k_begin = part * blockIdx.z;
      k_end = min(shape.k, k_begin + part);
    } else {
      a += static_cast<size_t>(blockIdx.z) * shape.m * shape.k;
      b += static_cast<size_t>(blockIdx.z) * shape.n * shape.k;
      c += static_cast<size_t>(blockIdx.z) * shape.m * shape.n;
    }
    const int thread = threadIdx.x;
    const int column = thread % kColumns * 4, row = thread / kColumns * 4;
    float4 a_next[kLoadsA], b_next[kLoadsB];

    const auto load = [&](int k) {
#pragma unroll
      for (int i = 0; i < kLoadsA; ++i) {
        const int index = thread + i * kThreads;
        a_next[i] = LoadAlongK(a, first_m + index / 2, shape.m, k + index % 2 * 4, k_end, shape.k);
      }
#pragma unroll
      for (int i = 0; i < kLoadsB; ++i) {
        const int index = thread + i * kThreads;
        b_next[i] = kTransposed
                        ? LoadAlongK(b, first_n + index / 2, shape.n, k + index % 2 * 4, k_end, shape.k)
                        : LoadAlongN(b, k + index / (kTileN / 4), k_end, first_n + index % (kTileN / 4) * 4, shape.n);
      }
    };
    const auto store = [&](int buffer) {
#pragma unroll
      for (int i = 0; i < kLoadsA; ++i) {
        const int index = thread + i * kThreads, at = index / 2, k = index % 2 * 4;
        a_tile[buffer][k][at] = a_next[i].x;
        a_tile[buffer][k + 1][at] = a_next[i].y;
        a_tile[buffer][k + 2][at] = a_next[i].z;
        a_tile[buffer][k + 3][at] = a_next[i].w;
      }
#pragma unroll
      for (int i = 0; i < kLoadsB; ++i) {
        const int index = thread + i * kThreads;
        if (kTransposed) {
          const int at = index / 2, k = index % 2 * 4;
          b_tile[buffer][k][at] = b_next[i].x;
          b_tile[buffer][k + 1][at] = b_next[i].y;
          b_tile[buffer][k + 2][at] = b_next[i].z;
          b_tile[buffer][k + 3][at] = b_next[i].w;
        } else {
          *reinterpret_cast<float4*>(&b_tile[buffer][index / (kTileN / 4)][index % (kTileN / 4) * 4]) = b_next[i];
        }
      }
    };

    float sum[8][8] = {};
    load(k_begin);
    store(0);
    __syncthreads();
    int buffer = 0;
    for (int k = k_begin; k < k_end; k += kSlab) {
      const bool more = k + kSlab < k_end;
      if (more) load(k + kSlab);
#pragma unroll
      for (int step = 0; step < kSlab; ++step) {
        float u[8], v[8];
        *reinterpret_cast<float4*>(&u[0]) = *reinterpret_cast<const float4*>(&a_tile[buffer][step][row]);
        *reinterpret_cast<float4*>(&u[4]) = *reinterpret_cast<const float4*>(&a_tile[buffer][step][row + kTileM / 2]);
        *reinterpret_cast<float4*>(&v[0]) = *reinterpret_cast<const float4*>(&b_tile[buffer][step][column]);
        *reinterpret_cast<float4*>(&v[4]) = *reinterpret_cast<const float4*>(&b_tile[buffer][step][column + kTileN / 2]);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
#pragma unroll
          for (int j = 0; j < 8; ++j) sum[i][j] = fmaf(u[i], v[j], sum[i][j]);
        }
      }
      if (more) store(buffer ^ 1);
      __syncthreads();
      buffer ^= 1;
    }

#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int to_m = first_m + row + (i < 4 ? i : kTileM / 2 + i - 4);
      if (to_m >= shape.m) continue;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int to_n = first_n + column + half * kTileN / 2;
        float* to = c + static_cast<size_t>(to_m) * shape.n + to_n;
        if (shape.split > 1) {
          for (int j = 0; j < 4; ++j)
            if (to_n + j < shape.n) atomicAdd(to + j, sum[i][4 * half + j]);
        } else if (to_n + 3 < shape.n && shape.n % 4 == 0) {
          *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(&sum[i][4 * half]);
        } else {
          for (int j = 0; j < 4; ++j)
            if (to_n + j < shape.n) to[j] = sum[i][4 * half + j];
        }
      }
    }
  }
};

}  // namespace

#define SGEMM(tile_n, tile_m, layout, transposed)                                                             \
  extern "C" __global__ void __launch_bounds__(tile_n* tile_m / 64)                                           \
      sgemm_##tile_n##x##tile_m##_##layout(float* c, const float* a, const float* b, int m, int n, int k,     \
                                           int split) {                                                       \
    Sgemm<tile_n, tile_m, transposed>::Run(c, a, b, Shape{m, n, k, split});                                   \
  }
SGEMM(128, 128, nn, false)
SGEMM(128, 128, tn, true)
SGEMM(128, 64, nn, false)
SGEMM(128, 64, tn, true)
SGEMM(64, 64, nn, false)
SGEMM(64, 64, tn, true)
