// LayerNorm of fp32 rows as PyTorch 2.1 runs it, re-created: a CTA of four warps a row, four elements an access, Welford's
// moments in registers, combined over lanes by shuffles and over warps through shared memory, then a second pass over the row.
#include <cstdint>

namespace {

struct Moments {
  float mean;
  float m2;  // sum of squared distances from the mean
  float count;
};

__device__ __forceinline__ void Take(Moments* moments, float value) {
  const float delta = value - moments->mean;
  moments->count += 1.0f;
  moments->mean += delta * (1.0f / moments->count);
  moments->m2 += delta * (value - moments->mean);
}

__device__ __forceinline__ Moments Combine(const Moments& a, const Moments& b) {
  const float count = a.count + b.count;
  if (!(count > 0.0f)) return {0.0f, 0.0f, 0.0f};
  const float share = 1.0f / count;
  const float delta = b.mean - a.mean;
  return {(a.count * share) * a.mean + (b.count * share) * b.mean,
          a.m2 + b.m2 + delta * delta * a.count * (b.count * share), count};
}

__device__ Moments RowMoments(const float* row, int columns, float* shared) {
  const float4* vectors = reinterpret_cast<const float4*>(row);
  const int threads = blockDim.x * blockDim.y;
  Moments moments{0.0f, 0.0f, 0.0f};
  for (int i = threadIdx.x + threadIdx.y * blockDim.x; i < columns / 4; i += threads) {
    const float4 v = vectors[i];
    Take(&moments, v.x);
    Take(&moments, v.y);
    Take(&moments, v.z);
    Take(&moments, v.w);
  }
  for (int step = 16; step > 0; step /= 2) {
    const Moments other{__shfl_down_sync(0xffffffff, moments.mean, step), __shfl_down_sync(0xffffffff, moments.m2, step),
                        __shfl_down_sync(0xffffffff, moments.count, step)};
    moments = Combine(moments, other);
  }
  float* counts = shared + blockDim.y;
  for (int half = blockDim.y / 2; half > 0; half /= 2) {
    if (threadIdx.x == 0 && threadIdx.y >= half && threadIdx.y < 2 * half) {
      const int place = threadIdx.y - half;
      shared[2 * place] = moments.mean;
      shared[2 * place + 1] = moments.m2;
      counts[place] = moments.count;
    }
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y < half) {
      moments = Combine(moments, {shared[2 * threadIdx.y], shared[2 * threadIdx.y + 1], counts[threadIdx.y]});
    }
    __syncthreads();
  }
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    shared[0] = moments.mean;
    shared[1] = moments.m2 / columns;
  }
  __syncthreads();
  return {shared[0], shared[1], 0.0f};
}

}  // namespace

extern "C" __global__ void layer_norm(int columns, float epsilon, const float* x, const float* gamma, const float* beta,
                                      float* mean, float* rstd, float* out) {
  extern __shared__ float shared[];
  const float* row = x + static_cast<size_t>(blockIdx.x) * columns;
  const Moments moments = RowMoments(row, columns, shared);
  const float scale = rsqrtf(moments.m2 + epsilon);
  const float4* vectors = reinterpret_cast<const float4*>(row);
  float4* results = reinterpret_cast<float4*>(out + static_cast<size_t>(blockIdx.x) * columns);
  const int threads = blockDim.x * blockDim.y;
  for (int i = threadIdx.x + threadIdx.y * blockDim.x; i < columns / 4; i += threads) {
    const float4 v = vectors[i];
    const float4 g = reinterpret_cast<const float4*>(gamma)[i];
    const float4 b = reinterpret_cast<const float4*>(beta)[i];
    results[i] = make_float4(g.x * (scale * (v.x - moments.mean)) + b.x, g.y * (scale * (v.y - moments.mean)) + b.y,
                             g.z * (scale * (v.z - moments.mean)) + b.z, g.w * (scale * (v.w - moments.mean)) + b.w);
  }
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    mean[blockIdx.x] = moments.mean;
    rstd[blockIdx.x] = scale;
  }
}
