// Element-wise operators on n floats with the access pattern of PyTorch 2.1's vectorised kernels: 128 threads a CTA, four
// elements a thread, one 16-byte access for each operand; the CTA that is not complete goes element by element.
#include <cstdint>

namespace {
constexpr int kThreads = 128;
constexpr int kElements = 4;  // of a thread
constexpr int kTile = kThreads * kElements;

template <typename Op>
__device__ __forceinline__ void Unary(float* out, const float* in, int n, Op op) {
  const int first = kTile * blockIdx.x;
  const int left = n - first;
  if (left < kTile) {
    float v[kElements];
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      const int index = threadIdx.x + i * kThreads;
      if (index < left) v[i] = in[first + index];
    }
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      const int index = threadIdx.x + i * kThreads;
      if (index < left) out[first + index] = op(v[i]);
    }
    return;
  }
  const float4 v = reinterpret_cast<const float4*>(in + first)[threadIdx.x];
  reinterpret_cast<float4*>(out + first)[threadIdx.x] = make_float4(op(v.x), op(v.y), op(v.z), op(v.w));
}

template <typename Op>
__device__ __forceinline__ void Binary(float* out, const float* a, const float* b, int n, Op op) {
  const int first = kTile * blockIdx.x;
  const int left = n - first;
  if (left < kTile) {
    float u[kElements], v[kElements];
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      const int index = threadIdx.x + i * kThreads;
      if (index < left) u[i] = a[first + index], v[i] = b[first + index];
    }
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      const int index = threadIdx.x + i * kThreads;
      if (index < left) out[first + index] = op(u[i], v[i]);
    }
    return;
  }
  const float4 u = reinterpret_cast<const float4*>(a + first)[threadIdx.x];
  const float4 v = reinterpret_cast<const float4*>(b + first)[threadIdx.x];
  reinterpret_cast<float4*>(out + first)[threadIdx.x] =
      make_float4(op(u.x, v.x), op(u.y, v.y), op(u.z, v.z), op(u.w, v.w));
}
}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads) relu(float* out, const float* in, int n) {
  Unary(out, in, n, [](float x) { return isnan(x) ? x : fmaxf(x, 0.0f); });
}

// An operand that is a number: x + 2, and times or divided by it, which takes the same way.
extern "C" __global__ void __launch_bounds__(kThreads) add_scalar(float* out, const float* in, int n, float scalar) {
  Unary(out, in, n, [scalar](float x) { return x + scalar; });
}

extern "C" __global__ void __launch_bounds__(kThreads) gelu(float* out, const float* in, int n) {
  Unary(out, in, n, [](float x) { return x * 0.5f * (1.0f + erff(x * 0.70710678f)); });
}

extern "C" __global__ void __launch_bounds__(kThreads) add(float* out, const float* a, const float* b, int n, float alpha) {
  Binary(out, a, b, n, [alpha](float x, float y) { return x + alpha * y; });
}

extern "C" __global__ void __launch_bounds__(kThreads) multiply(float* out, const float* a, const float* b, int n) {
  Binary(out, a, b, n, [](float x, float y) { return x * y; });
}

extern "C" __global__ void __launch_bounds__(kThreads) divide(float* out, const float* a, const float* b, int n) {
  Binary(out, a, b, n, [](float x, float y) { return x / y; });
}
