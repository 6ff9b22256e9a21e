// RMSNorm of bf16 rows on Hopper: a cluster of CTAs shares eight rows, each CTA brings its columns in by TMA and takes
// them out by TMA, and the sums of squares meet in distributed shared memory.
// Both maps: two dimensions {hidden, rows}, box {128, 8}, no swizzle. Columns of a CTA: hidden / cluster size, a multiple
// of 128 and at most 128 * kMaxBoxes. Grid: ceil(rows / 8) * cluster size; block: 256.
#include <cuda_bf16.h>

#include <cstdint>

namespace {

constexpr int kRows = 8, kBoxColumns = 128, kMaxBoxes = 8, kMaxCtas = 8;

struct alignas(64) TensorMap {
  uint64_t words[16];
};

__device__ uint32_t Shared(const void* pointer) { return static_cast<uint32_t>(__cvta_generic_to_shared(pointer)); }

__device__ void ClusterSync() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    cluster_rms_norm_bf16(const __grid_constant__ TensorMap out, const __grid_constant__ TensorMap x,
                          const __nv_bfloat16* __restrict__ weight, int hidden, float epsilon) {
  __shared__ alignas(128) __nv_bfloat16 box[kMaxBoxes][kRows][kBoxColumns];
  __shared__ float sums[kMaxCtas][kRows];
  __shared__ uint64_t arrived;
  uint32_t rank, ctas;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(ctas));
  const int columns = hidden / static_cast<int>(ctas), boxes = columns / kBoxColumns;
  const int first_column = static_cast<int>(rank) * columns;
  const int first_row = static_cast<int>(blockIdx.x / ctas) * kRows;

  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(Shared(&arrived)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(Shared(&arrived)),
                 "r"(boxes * static_cast<int>(sizeof box[0]))
                 : "memory");
    for (int b = 0; b < boxes; ++b)
      asm volatile(
          "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
              Shared(box[b])),
          "l"(&x), "r"(Shared(&arrived)), "r"(first_column + b * kBoxColumns), "r"(first_row)
          : "memory");
  }
  __syncthreads();
  asm volatile(
      "{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n@p bra DONE;\nbra AGAIN;\nDONE:\n}" ::"r"(
          Shared(&arrived))
      : "memory");

  // A warp for each row.
  const int row = threadIdx.x / 32, lane = threadIdx.x % 32;
  float sum = 0.0f;
  for (int b = 0; b < boxes; ++b)
    for (int c = lane; c < kBoxColumns; c += 32) {
      const float value = __bfloat162float(box[b][row][c]);
      sum += value * value;
    }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  // Every CTA gets every CTA's sums.
  if (lane < static_cast<int>(ctas)) {
    uint32_t remote;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(Shared(&sums[rank][row])), "r"(lane));
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(remote), "f"(sum) : "memory");
  }
  ClusterSync();

  float total = 0.0f;
  for (uint32_t i = 0; i < ctas; ++i) total += sums[i][row];
  const float scale = rsqrtf(total / static_cast<float>(hidden) + epsilon);
  for (int b = 0; b < boxes; ++b)
    for (int c = lane; c < kBoxColumns; c += 32) {
      const float w = __bfloat162float(weight[first_column + b * kBoxColumns + c]);
      box[b][row][c] = __float2bfloat16(__bfloat162float(box[b][row][c]) * scale * w);
    }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int b = 0; b < boxes; ++b)
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&out),
                 "r"(Shared(box[b])), "r"(first_column + b * kBoxColumns), "r"(first_row)
                 : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
