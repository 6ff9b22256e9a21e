// GEMM of sm_90a with wgmma and plain loads: C [m, n] (bf16) = A [m, k] B [n, k]^T, both row-major. Two warp groups compute
// 64 x 64 each of a tile of 128 x 64; two stages of 128 bytes of K lie in shared memory with the 128-byte swizzle.
// Any m; n even; k a multiple of 16 bytes. Grid: cdiv(m, 128) * cdiv(n, 64), 256 threads, kSharedBytes.
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <cstdint>

namespace {

constexpr int kTileM = 128, kTileN = 64, kRowBytes = 128, kThreads = 256;
constexpr int kUnitsPerRow = kRowBytes / 16;
constexpr int kStageBytes = (kTileM + kTileN) * kRowBytes;

// Descriptor of an operand with the 128-byte swizzle whose groups of eight rows are 1024 bytes apart.
__device__ uint64_t Descriptor(uint32_t shared_address) {
  return static_cast<uint64_t>(shared_address >> 4 & 0x3fff) | uint64_t{1} << 16 | uint64_t{64} << 32 | uint64_t{1} << 62;
}

#define ACCUMULATORS(d)                                                                                              \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),        \
      "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),         \
      "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),        \
      "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define REGISTERS                                                                                             \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22," \
  " %23, %24, %25, %26, %27, %28, %29, %30, %31}"

__device__ void Multiply(float (&d)[32], uint64_t a, uint64_t b, __nv_bfloat16) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " REGISTERS ", %32, %33, 1, 1, 1, 0, 0;"
               : ACCUMULATORS(d)
               : "l"(a), "l"(b));
}

__device__ void Multiply(float (&d)[32], uint64_t a, uint64_t b, __nv_fp8_e4m3) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 " REGISTERS ", %32, %33, 1, 1, 1;"
               : ACCUMULATORS(d)
               : "l"(a), "l"(b));
}

__device__ void Multiply(float (&d)[32], const uint32_t (&a)[4], uint64_t b, __nv_bfloat16) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " REGISTERS
               ", {%32, %33, %34, %35}, %36, 1, 1, 1, 0;"
               : ACCUMULATORS(d)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

__device__ void LoadFragment(uint32_t (&a)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
               : "r"(address));
}

// Rows [first, first + rows) of a matrix, 128 bytes from byte `at` on, into shared memory; zeros beyond its edges.
template <int kRows>
__device__ void CopyTile(uint8_t* shared, const uint8_t* matrix, int first, int rows, int at, int row_bytes) {
  for (int i = threadIdx.x; i < kRows * kUnitsPerRow; i += kThreads) {
    const int row = i / kUnitsPerRow, unit = i % kUnitsPerRow;
    uint4 value{};
    if (first + row < rows && at + unit * 16 < row_bytes)
      value = *reinterpret_cast<const uint4*>(matrix + static_cast<size_t>(first + row) * row_bytes + at + unit * 16);
    *reinterpret_cast<uint4*>(shared + row * kRowBytes + ((unit ^ row % 8) << 4)) = value;
  }
}

template <typename T, bool kRegisterA>
__device__ void Gemm(__nv_bfloat16* c, const T* a, const T* b, int m, int n, int k) {
  extern __shared__ __align__(1024) uint8_t shared[];
  const int tiles_n = (n + kTileN - 1) / kTileN;
  const int first_m = blockIdx.x / tiles_n * kTileM, first_n = blockIdx.x % tiles_n * kTileN;
  const int group = threadIdx.x / 128, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const int row_bytes = k * static_cast<int>(sizeof(T));
  float d[32] = {};
  for (int at = 0, stage = 0; at < row_bytes; at += kRowBytes, stage ^= 1) {
    uint8_t* tile_a = shared + stage * kStageBytes;
    uint8_t* tile_b = tile_a + kTileM * kRowBytes;
    CopyTile<kTileM>(tile_a, reinterpret_cast<const uint8_t*>(a), first_m, m, at, row_bytes);
    CopyTile<kTileN>(tile_b, reinterpret_cast<const uint8_t*>(b), first_n, n, at, row_bytes);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const auto group_a = static_cast<uint32_t>(__cvta_generic_to_shared(tile_a)) + group * 64 * kRowBytes;
    const uint64_t descriptor_a = Descriptor(group_a);
    const uint64_t descriptor_b = Descriptor(static_cast<uint32_t>(__cvta_generic_to_shared(tile_b)));
    // 32 bytes of K a product: the descriptors' addresses count 16 bytes.
    if constexpr (kRegisterA) {
      uint32_t fragments[4][4];
      const int row = warp * 16 + lane % 16;
#pragma unroll
      for (int step = 0; step < 4; ++step)
        LoadFragment(fragments[step], group_a + row * kRowBytes + (((2 * step + lane / 16) ^ row % 8) << 4));
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
      for (int step = 0; step < 4; ++step) Multiply(d, fragments[step], descriptor_b + 2 * step, T());
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    } else {
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
      for (int step = 0; step < 4; ++step) Multiply(d, descriptor_a + 2 * step, descriptor_b + 2 * step, T());
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    }
    __syncthreads();  // the other stage is free
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  const int row = first_m + group * 64 + warp * 16 + lane / 4;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const int column = first_n + 8 * j + lane % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half)
      if (row + 8 * half < m && column < n)
        *reinterpret_cast<__nv_bfloat162*>(c + static_cast<size_t>(row + 8 * half) * n + column) =
            __floats2bfloat162_rn(d[4 * j + 2 * half], d[4 * j + 2 * half + 1]);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    wgmma_gemm_bf16(__nv_bfloat16* c, const __nv_bfloat16* a, const __nv_bfloat16* b, int m, int n, int k) {
  Gemm<__nv_bfloat16, false>(c, a, b, m, n, k);
}

// A from registers.
extern "C" __global__ void __launch_bounds__(kThreads)
    wgmma_gemm_bf16_rs(__nv_bfloat16* c, const __nv_bfloat16* a, const __nv_bfloat16* b, int m, int n, int k) {
  Gemm<__nv_bfloat16, true>(c, a, b, m, n, k);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    wgmma_gemm_e4m3(__nv_bfloat16* c, const __nv_fp8_e4m3* a, const __nv_fp8_e4m3* b, int m, int n, int k) {
  Gemm<__nv_fp8_e4m3, false>(c, a, b, m, n, k);
}
