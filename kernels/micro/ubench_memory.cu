// Micro kernels beyond the SM, with the loops and the instruction mix of the public Accel-Sim `ubench` programs of the
// same names: L2 read bandwidth past L1, latency of L2 and of DRAM with chains that the kernel itself writes, DRAM
// bandwidth with five streams read and one written. What is compared is the time of the whole kernel.
#include <cstdint>

namespace {
__device__ __forceinline__ float LoadPastL1(const float* p) {
  float v;
  asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ double LoadPastL1(const double* p) {
  double v;
  asm volatile("ld.global.cg.f64 %0, [%1];" : "=d"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ void Barrier() { asm volatile("bar.sync 0;" ::: "memory"); }
__device__ __forceinline__ int64_t Clock64() {
  int64_t v;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(v)::"memory");
  return v;
}
__device__ __forceinline__ int Clock32() {
  int v;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(v)::"memory");
  return v;
}

template <class T, class Time>
__device__ __forceinline__ void ReadPastL1(T* out, Time* start, Time* stop, const T* in, uint32_t count,
                                           uint32_t repeats, Time (*clock)()) {
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  T sum = 0;
  for (uint32_t i = thread; i < count; i += blockDim.x * gridDim.x) sum += LoadPastL1(in + i);
  Barrier();
  const Time begin = clock();
  for (uint32_t i = 0; i < repeats; ++i) sum += LoadPastL1(in + i * warpSize + thread);
  Barrier();
  const Time end = clock();
  start[thread] = begin;
  stop[thread] = end;
  out[thread] = sum;
}
}  // namespace

// Every thread reads `repeats` elements of in [count], a warp's width apart, after all have read all once.
// count = threads of the grid + 32 * repeats.
extern "C" __global__ void l2_read_32(float* out, int64_t* start, int64_t* stop, const float* in,
                                      uint32_t count, uint32_t repeats) {
  ReadPastL1<float, int64_t>(out, start, stop, in, count, repeats, Clock64);
}
extern "C" __global__ void l2_read_64(double* out, int* start, int* stop, const double* in, uint32_t count,
                                      uint32_t repeats) {
  ReadPastL1<double, int>(out, start, stop, in, count, repeats, Clock32);
}

// One thread writes `count` links of 8 bytes and follows `steps` of them past L1.
extern "C" __global__ void l2_chase(uint64_t* last, int* start, int* stop, uint64_t* links, uint32_t count,
                                    uint32_t steps) {
  const uint32_t thread = threadIdx.x;
  if (thread != 0) return;
  for (uint32_t i = 0; i < count - 1; ++i) links[i] = reinterpret_cast<uint64_t>(links + i + 1);
  links[count - 1] = reinterpret_cast<uint64_t>(links);
  uint64_t p, q;
  asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(p) : "l"(links) : "memory");
  Barrier();
  const int begin = Clock32();
#pragma unroll 16
  for (uint32_t i = 0; i < steps; ++i) {
    asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(q) : "l"(p) : "memory");
    p = q;
  }
  const int end = Clock32();
  start[thread] = begin;
  stop[thread] = end;
  last[thread] = p - reinterpret_cast<uint64_t>(links);
}

// A warp writes `count` links of 8 bytes, four side by side; then four lanes follow `steps` of them, a sector at a time,
// with volatile loads.
extern "C" __global__ void dram_chase(uint64_t* last, int* start, int* stop, uint64_t* links, uint32_t count,
                                      uint32_t steps) {
  constexpr uint32_t kLanes = 4;
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
  for (uint32_t i = thread; i < count - kLanes; i += blockDim.x * gridDim.x) {
    links[i] = reinterpret_cast<uint64_t>(links + i + kLanes);
  }
  if (thread >= kLanes) return;
  links[count - (kLanes - thread)] = reinterpret_cast<uint64_t>(links) + thread;
  uint64_t p, q;
  asm volatile("ld.global.cv.u64 %0, [%1];" : "=l"(p) : "l"(links + thread) : "memory");
  Barrier();
  const int begin = Clock32();
#pragma unroll 4
  for (uint32_t i = 0; i < steps; ++i) {
    asm volatile("ld.global.cv.u64 %0, [%1];" : "=l"(q) : "l"(p) : "memory");
    p = q;
  }
  const int end = Clock32();
  start[thread] = begin;
  stop[thread] = end;
  last[thread] = p - reinterpret_cast<uint64_t>(links);
}

// f = a + b + c + d + e, 16 bytes a thread and step; n counts float4 vectors.
extern "C" __global__ void dram_five_streams(float4* f, int* start, int* stop, float4* a, float4* b,
                                             float4* c, float4* d, float4* e, int n) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  Barrier();
  const int begin = Clock32();
  for (int i = thread; i < n; i += blockDim.x * gridDim.x) {
    const float4 va = a[i], vb = b[i], vc = c[i], vd = d[i], ve = e[i];
    float4 sum;
    sum.x = va.x + vb.x + vc.x + vd.x + ve.x;
    sum.y = va.y + vb.y + vc.y + vd.y + ve.y;
    sum.z = va.z + vb.z + vc.z + vd.z + ve.z;
    sum.w = va.w + vb.w + vc.w + vd.w + ve.w;
    f[i] = sum;
  }
  Barrier();
  const int end = Clock32();
  start[thread] = begin;
  stop[thread] = end;
}
