// Softmax of fp32 rows as PyTorch 2.1 runs it, re-created.
//
// Rows of up to 1024 columns: a warp a row, held in registers, lanes stride over the columns. Longer rows: a CTA a row, three
// passes over memory (maximum, sum of exponentials, result), four elements an access from the first aligned one on.
#include <cfloat>

namespace {

__device__ __forceinline__ float WarpMax(float v) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, step));
  return v;
}
__device__ __forceinline__ float WarpSum(float v) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffff, v, step);
  return v;
}

template <int kColumns>  // rounded up to a power of two
__device__ __forceinline__ void WarpSoftmax(float* out, const float* in, int rows, int columns) {
  constexpr int kParts = kColumns / 32;
  const int row = blockDim.y * blockIdx.x + threadIdx.y;
  if (row >= rows) return;
  in += static_cast<size_t>(row) * columns + threadIdx.x;
  out += static_cast<size_t>(row) * columns + threadIdx.x;
  float v[kParts];
#pragma unroll
  for (int i = 0; i < kParts; ++i) v[i] = threadIdx.x + 32 * i < columns ? in[32 * i] : -INFINITY;
  float most = v[0];
#pragma unroll
  for (int i = 1; i < kParts; ++i) most = fmaxf(most, v[i]);
  most = WarpMax(most);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kParts; ++i) {
    v[i] = expf(v[i] - most);
    sum += v[i];
  }
  sum = WarpSum(sum);
#pragma unroll
  for (int i = 0; i < kParts; ++i) {
    if (threadIdx.x + 32 * i >= columns) break;
    out[32 * i] = v[i] / sum;
  }
}

struct Max {
  static __device__ float Start() { return -FLT_MAX; }
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct AddExp {
  float most;
  __device__ float operator()(float a, float b) const { return a + expf(b - most); }
};
struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};

// The value over the CTA, for every thread: each warp's lanes through shared memory, then warp 0 over the warps.
template <typename Op>
__device__ __forceinline__ float BlockReduce(float* shared, float v, Op op, float start) {
  __syncthreads();
  shared[threadIdx.x] = v;
  __syncthreads();
  const int warps = blockDim.x / 32;
  float warp_value = start;
  if (threadIdx.x < warps) {
#pragma unroll
    for (int i = 0; i < 32; ++i) warp_value = op(warp_value, shared[threadIdx.x * 32 + i]);
  }
  __syncthreads();
  if (threadIdx.x < warps) shared[threadIdx.x] = warp_value;
  __syncthreads();
  if (threadIdx.x == 0) {
    float block_value = start;
    for (int i = 0; i < warps; ++i) block_value = op(block_value, shared[i]);
    shared[0] = block_value;
  }
  __syncthreads();
  return shared[0];
}

template <typename Op>
__device__ __forceinline__ float Reduce(const float* in, int shift, int columns, Op op, float start) {
  float v = start;
  int offset = threadIdx.x;
  if (shift > 0) {
    in -= shift;
    columns += shift;
    if (static_cast<int>(threadIdx.x) >= shift) v = op(v, in[offset]);
    columns -= blockDim.x;
    in += blockDim.x;
  }
  const int last = columns % (4 * blockDim.x);
  for (; offset * 4 < columns - last; offset += blockDim.x) {
    const float4 part = reinterpret_cast<const float4*>(in)[offset];
    v = op(op(op(op(v, part.x), part.y), part.z), part.w);
  }
  for (offset = columns - last + threadIdx.x; offset < columns; offset += blockDim.x) v = op(v, in[offset]);
  return v;
}

}  // namespace

extern "C" __global__ void softmax_warp_256(float* out, const float* in, int rows, int columns) {
  WarpSoftmax<256>(out, in, rows, columns);
}
extern "C" __global__ void softmax_warp_512(float* out, const float* in, int rows, int columns) {
  WarpSoftmax<512>(out, in, rows, columns);
}
extern "C" __global__ void softmax_warp_1024(float* out, const float* in, int rows, int columns) {
  WarpSoftmax<1024>(out, in, rows, columns);
}

// Input and output of a row are misaligned alike.
extern "C" __global__ void softmax_block(float* out, const float* in, int columns) {
  extern __shared__ float shared[];
  in += static_cast<size_t>(blockIdx.x) * columns;
  out += static_cast<size_t>(blockIdx.x) * columns;
  const int shift = static_cast<int>(reinterpret_cast<size_t>(in) % 16 / 4);
  const float most =
      BlockReduce(shared, Reduce(in, shift, columns, Max(), Max::Start()), Max(), Max::Start());
  const float sum = BlockReduce(shared, Reduce(in, shift, columns, AddExp{most}, 0.0f), Add(), 0.0f);
  int size = columns;
  if (shift > 0) {
    in -= shift;
    out -= shift;
    size += shift;
    if (static_cast<int>(threadIdx.x) >= shift) out[threadIdx.x] = expf(in[threadIdx.x] - most) / sum;
    size -= blockDim.x;
    in += blockDim.x;
    out += blockDim.x;
  }
  const int last = size % (4 * blockDim.x);
  for (int offset = threadIdx.x; offset * 4 < size - last; offset += blockDim.x) {
    float4 part = reinterpret_cast<const float4*>(in)[offset];
    part.x = expf(part.x - most) / sum;
    part.y = expf(part.y - most) / sum;
    part.z = expf(part.z - most) / sum;
    part.w = expf(part.w - most) / sum;
    reinterpret_cast<float4*>(out)[offset] = part;
  }
  for (int offset = size - last + threadIdx.x; offset < size; offset += blockDim.x)
    out[offset] = expf(in[offset] - most) / sum;
}
