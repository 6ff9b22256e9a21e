// The copies around FlashAttention-2's decode step: vLLM gives queries by key head and the kernel takes them by row of the tile, so that
// PyTorch copies them there and the result back. Its strided copy gives 4 elements to each of 128 threads and divides by multiplying.
#include <cstdint>

// n / divisor where n * divisor < 2^32: `magic` is 2^32 / divisor, rounded up, or 0 for a divisor of 1.
__device__ uint32_t Divided(uint32_t n, uint32_t magic) { return magic == 0 ? n : __umulhi(n, magic); }

// out[n][j][i][e] = in[n][i][j][e] of `count` elements; i < first, j < second, e < row.
extern "C" __global__ void __launch_bounds__(128, 4)
    swap_heads(const uint16_t* __restrict__ in, uint16_t* __restrict__ out, uint32_t count, uint32_t first, uint32_t first_magic,
               uint32_t second, uint32_t second_magic, uint32_t row, uint32_t row_magic) {
  uint32_t index = blockIdx.x * 512 + threadIdx.x;
#pragma unroll
  for (int k = 0; k < 4; ++k, index += 128) {
    if (index >= count) return;
    const uint32_t rows = Divided(index, row_magic);
    const uint32_t outer = Divided(rows, first_magic);
    const uint32_t n = Divided(outer, second_magic);
    const uint32_t e = index - rows * row, i = rows - outer * first, j = outer - n * second;
    out[index] = in[((n * first + i) * second + j) * row + e];
  }
}
