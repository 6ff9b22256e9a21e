// Kernels whose results the test computes again on the host, each around one way in which memory can steer a kernel.
#include <cstdint>

__constant__ int table[16];
__device__ int device_counter;

extern "C" {

// Every width of load and store, sign and zero extension.
__global__ void Widths(const int8_t* in, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const uint8_t u8 = reinterpret_cast<const uint8_t*>(in)[i];
  const int16_t s16 = reinterpret_cast<const int16_t*>(in)[i];
  const uint16_t u16 = reinterpret_cast<const uint16_t*>(in)[i];
  const int2 v2 = reinterpret_cast<const int2*>(in)[i];
  const int4 v4 = reinterpret_cast<const int4*>(in)[i];
  out[i] = in[i] + 3 * u8 + 5 * s16 + 7 * u16 + 11 * v2.x + 13 * v2.y + 17 * v4.x + 19 * v4.y + 23 * v4.z + 29 * v4.w;
}

// Shared-memory tree and shuffles; one atomic a CTA.
__global__ void Reduce(const float* in, float* out, int n) {
  __shared__ float partial[32];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x == 0) atomicAdd(out, sum);
  }
}

// Counts that are read back and used as addresses: shared memory steers.
__global__ void Sort(const unsigned* keys, unsigned* out, int n) {
  __shared__ unsigned count[16], start[16];
  if (threadIdx.x < 16) count[threadIdx.x] = 0;
  __syncthreads();
  const unsigned* in = keys + blockIdx.x * n;
  for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&count[in[i] & 15], 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned sum = 0;
    for (int k = 0; k < 16; ++k) start[k] = sum, sum += count[k];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[blockIdx.x * n + atomicAdd(&start[in[i] & 15], 1)] = in[i] & 15;
}

// Every CTA waits for all others, three times.
__global__ void GridBarrier(unsigned* arrived, int* data) {
  for (int round = 0; round < 3; ++round) {
    if (threadIdx.x == 0) {
      data[blockIdx.x] += data[(blockIdx.x + round + 1) % gridDim.x] >= 0 ? 1 : 0;
      __threadfence();
      atomicAdd(arrived, 1);
      while (*reinterpret_cast<volatile unsigned*>(arrived) < (round + 1) * gridDim.x) {
      }
    }
    __syncthreads();
  }
}

// A lock in global memory guards plain data.
__global__ void Lock(int* lock, int* value) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
    const volatile int* v = value;
    *value = *v + static_cast<int>(blockIdx.x);
    __threadfence();
    atomicExch(lock, 0);
  }
}

// Local arrays with computed indices, pointers into all three spaces, a table in constant memory.
__device__ __noinline__ int Take(const int* p, int i) { return p[i]; }
__global__ void Pointers(const int* in, int* out, int n) {
  __shared__ int shared[128];
  int local[24];
  for (int i = 0; i < 24; ++i) local[i] = in[threadIdx.x] * i + table[(i + threadIdx.x) % 16];
  shared[threadIdx.x] = in[threadIdx.x] + 1;
  __syncthreads();
  const int kind = in[threadIdx.x] % 3;
  const int* p = kind == 0 ? shared : kind == 1 ? local : in;
  out[threadIdx.x] = Take(p, (n + threadIdx.x) % 24);
}

// All operations of atomics; the final values do not depend on the order.
__global__ void Atomics(unsigned* u, int* s, unsigned long long* w, double* d) {
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&u[0], t);
  atomicMin(&u[1], 1000 - t);
  atomicMax(&u[2], t * 3);
  atomicAnd(&u[3], ~(1u << t % 32));
  atomicOr(&u[4], 1u << t % 32);
  atomicXor(&u[5], t);
  atomicInc(&u[6], 99);
  atomicDec(&u[7], 99);
  atomicMin(&s[0], 5 - static_cast<int>(t));
  atomicMax(&s[1], -static_cast<int>(t) - 5);
  atomicAdd(&w[0], static_cast<unsigned long long>(t) << 30);
  atomicMax(&w[1], static_cast<unsigned long long>(t) << 33);
  atomicAdd(d, 0.5 * t);
  s[2 + t] = atomicExch(&u[8 + t % 4], t) < 100000u;
}

// Asynchronous copies, the last of them past the end: zero fill.
__global__ void AsyncCopy(const int4* in, int4* out, int n) {
#if __CUDA_ARCH__ >= 800
  __shared__ int4 tile[2][128];
  for (int stage = 0; stage < 4; ++stage) {
    const int i = stage * 128 + threadIdx.x;
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(&tile[stage % 2][threadIdx.x]));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(in + i), "r"(i < n ? 16 : 0));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 0;");
    __syncthreads();
    out[i] = tile[stage % 2][127 - threadIdx.x];
    __syncthreads();
  }
#endif
}

// One tile through ldmatrix and mma: out (16 x 8) = a (16 x 16) * b (16 x 8), halves in, floats out.
__global__ void Tensor(const uint16_t* a, const uint16_t* b, float* out) {
  __shared__ uint16_t sa[16 * 16], sb[16 * 8];
  for (int i = threadIdx.x; i < 256; i += 32) sa[i] = a[i];
  for (int i = threadIdx.x; i < 128; i += 32) sb[i] = b[i];
  __syncwarp();
  unsigned ra[4], rb[2];
  const int lane = threadIdx.x;
  const unsigned pa = static_cast<unsigned>(__cvta_generic_to_shared(&sa[(lane % 16) * 16 + lane / 16 * 8]));
  const unsigned pb = static_cast<unsigned>(__cvta_generic_to_shared(&sb[(lane % 16) * 8]));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3]) : "r"(pa));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(rb[0]), "=r"(rb[1]) : "r"(pb));
  float c[4] = {0, 0, 0, 0};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
  for (int i = 0; i < 4; ++i) out[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = c[i];
}

// IEEE divisions: their slow paths are assumed away by the slice.
__global__ void Divide(const float* a, const float* b, float* out, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = a[i] / b[i] + sqrtf(b[i]);
}

// Reads what nobody may read.
__global__ void OutOfBounds(const int* in, int* out, int n) { out[threadIdx.x] = in[threadIdx.x + n]; }

// Counts launches: state in a __device__ variable.
__global__ void Count(int* out) { out[0] = atomicAdd(&device_counter, 1); }

}
