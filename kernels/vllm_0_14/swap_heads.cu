// The copies around FlashAttention-2's decode step: vLLM gives queries by key head and the kernel takes them by row of the tile, so that
// PyTorch copies them there and the result back. Its strided copy gives 4 elements to each of 128 threads and divides for each dimension.
#include <cstdint>

// out[n][j][i][e] = in[n][i][j][e] of `count` elements; i < first, j < second, e < row.
extern "C" __global__ void __launch_bounds__(128) swap_heads(const uint16_t* __restrict__ in, uint16_t* __restrict__ out, uint32_t count,
                                                              uint32_t first, uint32_t second, uint32_t row) {
  uint32_t index = blockIdx.x * 512 + threadIdx.x;
#pragma unroll
  for (int k = 0; k < 4; ++k, index += 128) {
    if (index >= count) return;
    const uint32_t e = index % row;
    const uint32_t i = index / row % first;
    const uint32_t j = index / (row * first) % second;
    const uint32_t n = index / (row * first * second);
    out[index] = in[((n * first + i) * second + j) * row + e];
  }
}
