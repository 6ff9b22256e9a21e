// Micro kernels of one SM, with the loops and the instruction mix of the public Accel-Sim `ubench` programs of the same
// names: reads that hit L1 by width, shared memory, both at once, integer multiply-add, a transpose with and without
// bank conflicts. What is compared is the time of the whole kernel, warming included.
#include <cstdint>

namespace {
constexpr uint32_t kL1Floats = 16384;  // 64 KiB: half of what an L1 has at least
constexpr uint32_t kL1Doubles = 8192;
constexpr uint32_t kSharedWords = 8192;  // 32 KiB
constexpr uint32_t kSteps =
    256;  // of a round: the compiler knows how often the inner loops run, as in the original

__device__ __forceinline__ float LoadCached(const float* p) {
  float v;
  asm volatile("ld.global.ca.f32 %0, [%1];" : "=f"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ double LoadCached(const double* p) {
  double v;
  asm volatile("ld.global.ca.f64 %0, [%1];" : "=d"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ float4 LoadCached(const float4* p) {
  float4 v;
  asm volatile("ld.global.ca.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(p)
               : "memory");
  return v;
}
__device__ __forceinline__ void Barrier() { asm volatile("bar.sync 0;" ::: "memory"); }
__device__ __forceinline__ int64_t Clock() {
  int64_t v;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(v)::"memory");
  return v;
}
}  // namespace

// Four loads of 4 bytes a lane and step, 128 bytes apart; in [kL1Floats]. out = the sum of what the thread read.
extern "C" __global__ void l1_read_32(float* __restrict__ out, int64_t* __restrict__ start,
                                      int64_t* __restrict__ stop, const float* __restrict__ in, int rounds) {
  const uint32_t thread = threadIdx.x;
  float a = 0, b = 0, c = 0, d = 0;
  for (uint32_t i = thread; i < kL1Floats; i += blockDim.x) a += LoadCached(in + i);
  Barrier();
  const int64_t begin = Clock();
  for (int round = 0; round < rounds; ++round) {
#pragma unroll 8
    for (uint32_t j = 0; j < kSteps; ++j) {
      const float* p = in + (thread + j * warpSize * 4) % kL1Floats;
      const float v0 = LoadCached(p);
      const float v1 = LoadCached(p + 32);
      const float v2 = LoadCached(p + 64);
      const float v3 = LoadCached(p + 96);
      a += v0;
      b += v1;
      c += v2;
      d += v3;
    }
  }
  Barrier();
  const int64_t end = Clock();
  start[thread] = begin;
  stop[thread] = end;
  out[thread] = a + b + c + d;
}

// Two loads of 8 bytes a lane and step.
extern "C" __global__ void l1_read_64(double* out, int64_t* start, int64_t* stop, const double* in,
                                      int rounds) {
  const uint32_t thread = threadIdx.x;
  double a = 0, b = 0;
  for (uint32_t i = thread; i < kL1Doubles; i += blockDim.x) a += LoadCached(in + i);
  Barrier();
  const int64_t begin = Clock();
  for (int round = 0; round < rounds; ++round) {
#pragma unroll 32
    for (uint32_t j = 0; j < kSteps; ++j) {
      const double* p = in + (thread + j * warpSize * 2) % kL1Doubles;
      const double v0 = LoadCached(p);
      const double v1 = LoadCached(p + 32);
      a += v0;
      b += v1;
    }
  }
  Barrier();
  const int64_t end = Clock();
  start[thread] = begin;
  stop[thread] = end;
  out[thread] = a + b;
}

// One load of 16 bytes a lane and step.
extern "C" __global__ void l1_read_128(float* out, int64_t* start, int64_t* stop, const float* in,
                                       int rounds) {
  const uint32_t thread = threadIdx.x;
  float4 sum = {0, 0, 0, 0};
  const auto add = [&](float4 v) {
    sum.x += v.x;
    sum.y += v.y;
    sum.z += v.z;
    sum.w += v.w;
  };
  for (uint32_t i = thread * 4; i < kL1Floats; i += blockDim.x * 4) {
    add(LoadCached(reinterpret_cast<const float4*>(in + i)));
  }
  Barrier();
  const int64_t begin = Clock();
  for (int round = 0; round < rounds; ++round) {
#pragma unroll 16
    for (uint32_t j = 0; j < kSteps; ++j) {
      add(LoadCached(reinterpret_cast<const float4*>(in + (thread * 4 + j * warpSize * 4) % kL1Floats)));
    }
  }
  Barrier();
  const int64_t end = Clock();
  start[thread] = begin;
  stop[thread] = end;
  out[thread] = sum.x + sum.y + sum.z + sum.w;
}

// One load of 4 bytes a lane and step, a warp's width further each time; wraps at kL1Floats.
extern "C" __global__ void l1_read_rolling(float* out, int* start, int* stop, const float* in, int rounds) {
  const uint32_t thread = threadIdx.x;
  float sum = 0;
  for (uint32_t i = thread; i < kL1Floats; i += blockDim.x) sum += LoadCached(in + i);
  Barrier();
  const int begin = static_cast<int>(clock());
  for (int round = 0; round < rounds; ++round) {
#pragma unroll 32
    for (uint32_t j = 0; j < 2 * kSteps; ++j) sum += LoadCached(in + (thread + j * warpSize) % kL1Floats);
  }
  Barrier();
  const int end = static_cast<int>(clock());
  start[thread] = begin;
  stop[thread] = end;
  out[thread] = sum;
}

// The same without wrapping: rounds * 512 * 32 floats are read, the first 32768 of which have been warmed.
extern "C" __global__ void l1_read_large(float* out, int* start, int* stop, const float* in, int rounds) {
  const uint32_t thread = threadIdx.x;
  float sum = 0;
  for (uint32_t i = thread; i < 32768; i += blockDim.x) sum += LoadCached(in + i);
  Barrier();
  const int begin = static_cast<int>(clock());
  const uint32_t steps = rounds * 2 * kSteps;
#pragma unroll 32
  for (uint32_t j = 0; j < steps; ++j) sum += LoadCached(in + thread + j * warpSize);
  Barrier();
  const int end = static_cast<int>(clock());
  start[thread] = begin;
  stop[thread] = end;
  out[thread] = sum;
}

// One thread writes `count` links of 8 bytes and follows `steps` of them in L1. last = the last link's byte offset.
extern "C" __global__ void l1_chase(uint64_t* last, int* start, int* stop, uint64_t* links, uint32_t count,
                                    uint32_t steps) {
  const uint32_t thread = threadIdx.x;
  if (thread == 0) {
    for (uint32_t i = 0; i < count - 1; ++i) links[i] = reinterpret_cast<uint64_t>(links + i + 1);
    links[count - 1] = reinterpret_cast<uint64_t>(links);
  }
  if (thread >= 1) return;
  uint64_t p, q;
  asm volatile("ld.global.ca.u64 %0, [%1];" : "=l"(p) : "l"(links + thread) : "memory");
  Barrier();
  const int begin = static_cast<int>(clock());
#pragma unroll 16
  for (uint32_t i = 0; i < steps; ++i) {
    asm volatile("ld.global.ca.u64 %0, [%1];" : "=l"(q) : "l"(p) : "memory");
    p = q;
  }
  const int end = static_cast<int>(clock());
  start[thread] = begin;
  stop[thread] = end;
  last[thread] = p - reinterpret_cast<uint64_t>(links);
}

// Every thread follows links in shared memory that lead a block's width on: no conflicts.
extern "C" __global__ void shared_chase_all(uint32_t* out, int64_t* start, int64_t* stop, uint32_t stride,
                                            int repeats) {
  __shared__ uint32_t words[kSharedWords];
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (uint32_t i = thread; i < kSharedWords; i += blockDim.x * gridDim.x)
    words[i] = (i + stride) % kSharedWords;
  uint32_t at = thread;
  Barrier();
  const int64_t begin = Clock();
#pragma unroll 64
  for (uint32_t i = 0; i < repeats; ++i) at = words[at];
  Barrier();
  const int64_t end = Clock();
  start[thread] = begin;
  stop[thread] = end;
  out[thread] = at;
}

// One thread writes links of 8 bytes into shared memory and follows `steps` of them.
extern "C" __global__ void shared_chase_one(uint64_t* out, int* start, int* stop, uint32_t stride,
                                            int steps) {
  constexpr uint32_t kLinks = 32 * 1024 / 8;
  __shared__ uint64_t links[kLinks];
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (uint32_t i = thread; i < kLinks - stride; i += blockDim.x * gridDim.x)
    links[i] = (i + stride) % kLinks;
  if (thread != 0) return;
  uint64_t at = 0;
  const int begin = static_cast<int>(clock());
#pragma unroll 4
  for (uint32_t i = 0; i < steps; ++i) at = links[at];
  const int end = static_cast<int>(clock());
  start[thread] = begin;
  stop[thread] = end;
  out[thread] = at;
}

// links[thread] = thread + distance.
extern "C" __global__ void first_links(uint32_t* links, uint32_t distance) {
  links[threadIdx.x] = threadIdx.x + distance;
}

// Links in shared memory and links in L1 followed side by side, after `warm` steps in L1 alone. `links` has nothing but
// zeros behind its first blockDim.x words, as the program that was measured leaves it: lanes soon meet in one word.
extern "C" __global__ void shared_and_l1_chase(uint32_t* out, int* start, int* stop, const uint32_t* links,
                                               uint32_t stride, int warm, int repeats) {
  __shared__ uint32_t words[kSharedWords];
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t in_shared = thread;
  uint32_t in_l1 = thread;
  for (uint32_t i = thread; i < kSharedWords; i += blockDim.x * gridDim.x)
    words[i] = (i + stride + 7) % kSharedWords;
#pragma unroll 32
  for (uint32_t i = 0; i < warm; ++i) in_l1 = links[in_l1];
  Barrier();
  const int begin = static_cast<int>(clock());
#pragma unroll 32
  for (uint32_t i = 0; i < repeats; ++i) {
    in_shared = words[in_shared];
    in_l1 = links[in_l1];
  }
  Barrier();
  const int end = static_cast<int>(clock());
  start[thread] = begin;
  stop[thread] = end;
  out[thread] = in_shared + in_l1;
}

// Four dependent integer multiply-adds a step.
extern "C" __global__ void imad_chain(int* out, int* start, int* stop, const int* a, const int* b,
                                      int repeats) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  int x = a[thread];
  int y = b[thread];
  int sum = 0;
  Barrier();
  const int begin = static_cast<int>(clock());
#pragma unroll 64
  for (int j = 0; j < repeats; ++j) {
    asm volatile(
        "mad.lo.s32 %0, %1, %2, %0;\n\tmad.lo.s32 %0, %1, %2, %0;\n\t"
        "mad.lo.s32 %0, %1, %2, %0;\n\tmad.lo.s32 %0, %1, %2, %0;"
        : "+r"(sum), "+r"(x), "+r"(y));
  }
  Barrier();
  const int end = static_cast<int>(clock());
  start[thread] = begin;
  stop[thread] = end;
  out[thread] = sum;
}

// out [columns, rows] = the transpose of in [rows, columns] by tiles of 32 x 32 through shared memory, 32 x 8 threads.
namespace {
template <int kPadding>
__device__ __forceinline__ void Transpose(float* out, const float* in, int columns, int rows) {
  __shared__ float tile[32][32 + kPadding];
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
  const int from = x + y * columns;
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  const int to = x + y * rows;
  for (int i = 0; i < 32; i += 8) tile[threadIdx.y + i][threadIdx.x] = in[from + i * columns];
  __syncthreads();
  for (int i = 0; i < 32; i += 8) out[to + i * rows] = tile[threadIdx.x][threadIdx.y + i];
}
}  // namespace
extern "C" __global__ void transpose_conflicts(float* out, float* in, int columns, int rows) {
  Transpose<0>(out, in, columns, rows);
}
extern "C" __global__ void transpose_padded(float* out, float* in, int columns, int rows) {
  Transpose<1>(out, in, columns, rows);
}
