// ReLU of n floats as an element-wise framework kernel does it: 128 threads a CTA, four elements a thread; CTAs whose part
// is complete load and store 16 bytes a lane, the last one element by element. Published counters of such a kernel
// under Nsight Compute are what launch overhead is fitted to.
#include <cstdint>

namespace {
constexpr int kThreads = 128;
constexpr int kElements = 4;  // of a thread

__device__ __forceinline__ float Relu(float v) { return isnan(v) ? v : fminf(fmaxf(v, 0.0f), 3.4e38f); }
}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads) relu(float* out, const float* in, int n) {
  const int first = kThreads * kElements * blockIdx.x;
  const int left = n - first;
  if (left < kThreads * kElements) {
    float v[kElements];
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      const int index = threadIdx.x + i * kThreads;
      v[i] = index < left ? in[first + index] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kElements; ++i) v[i] = Relu(v[i]);
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      const int index = threadIdx.x + i * kThreads;
      if (index < left) out[first + index] = v[i];
    }
    return;
  }
  float4 v = reinterpret_cast<const float4*>(in + first)[threadIdx.x];
  v.x = Relu(v.x);
  v.y = Relu(v.y);
  v.z = Relu(v.z);
  v.w = Relu(v.w);
  reinterpret_cast<float4*>(out + first)[threadIdx.x] = v;
}
