// Device code that makes ptxas use as many opcodes and forms as can be had, for the decoder. Nothing here is run.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

using u32 = uint32_t;
using u64 = unsigned long long;

#define OUT(T) reinterpret_cast<T*>(out)[i++]

__global__ void AtomicsGlobal(char* out, u32* a, u64* b, float* f, double* d, __half2* h, __nv_bfloat162* bf, int* s) {
  int i = threadIdx.x;
  OUT(u32) = atomicAdd(a, i) + atomicSub(a + 1, i) + atomicExch(a + 2, i) + atomicMin(a + 3, i) + atomicMax(a + 4, i);
  OUT(u32) = atomicInc(a + 5, i) + atomicDec(a + 6, i) + atomicAnd(a + 7, i) + atomicOr(a + 8, i) + atomicXor(a + 9, i);
  OUT(u32) = atomicCAS(a + 10, i, i + 1) + atomicMin(s, i) + atomicMax(s + 1, i);
  OUT(u64) = atomicAdd(b, u64(i)) + atomicExch(b + 1, u64(i)) + atomicCAS(b + 2, u64(i), 7ull) + atomicMin(b + 3, u64(i));
  OUT(u64) = atomicMax(b + 4, u64(i)) + atomicAnd(b + 5, u64(i)) + atomicOr(b + 6, u64(i)) + atomicXor(b + 7, u64(i));
  OUT(float) = atomicAdd(f, 1.0f) + atomicExch(f + 1, 2.0f);
  OUT(double) = atomicAdd(d, 1.0);
  OUT(__half2) = atomicAdd(h, __half2(1, 2));
  OUT(__nv_bfloat162) = atomicAdd(bf, __nv_bfloat162(1, 2));
  atomicAdd(a + 20, i);
  atomicMax(s + 20, i);
  atomicAdd(f + 20, 1.0f);
  atomicAdd(d + 20, 1.0);
  atomicAdd(b + 20, u64(i));
  atomicOr(a + 21, i);
  atomicAdd_system(a + 22, i);
  atomicAdd_block(a + 23, i);
}

__global__ void AtomicsShared(char* out) {
  __shared__ u32 a[32];
  __shared__ u64 b[8];
  __shared__ float f[2];
  __shared__ double d[2];
  int i = threadIdx.x;
  a[i] = i;
  b[i & 7] = i;
  __syncthreads();
  OUT(u32) = atomicAdd(a, i) + atomicExch(a + 2, i) + atomicMin(a + 3, i) + atomicMax(a + 4, i) + atomicInc(a + 5, i);
  OUT(u32) = atomicDec(a + 6, i) + atomicAnd(a + 7, i) + atomicOr(a + 8, i) + atomicXor(a + 9, i) + atomicCAS(a + 1, i, 2);
  OUT(u64) = atomicAdd(b, u64(i)) + atomicExch(b + 1, u64(i)) + atomicCAS(b + 2, u64(i), 7ull) + atomicMax(b + 4, u64(i));
  OUT(float) = atomicAdd(f, 1.0f);
  OUT(double) = atomicAdd(d, 1.0);
  atomicAdd(a + 12, i);
  atomicAdd(a + 13, 1);
  if (a[i] > 4) OUT(u32) = *reinterpret_cast<volatile u32*>(a + 3);
}

__global__ void AtomicsGeneric(char* out, u32* p, int which) {
  __shared__ u32 a[32];
  int i = threadIdx.x;
  a[i] = i;
  u32* q = which ? p : a;
  OUT(u32) = atomicAdd(q, 3) + atomicCAS(q + 1, 3u, 4u) + *q;
  atomicMax(q + 2, 5);
  q[5] = i;
  *reinterpret_cast<uint4*>(q + 8) = *reinterpret_cast<uint4*>(q + 4);
}

#define VIDEO(name) asm volatile(name " %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); OUT(u32) = r
__global__ void Video(char* out, u32 x, u32 y, u32 z) {
  int i = threadIdx.x;
  u32 r;
  VIDEO("vadd.s32.u32.u32.sat.add");
  VIDEO("vsub.s32.s32.u32.max");
  VIDEO("vabsdiff.u32.u32.u32.add");
  VIDEO("vmin.s32.s32.s32.add");
  VIDEO("vmax.u32.u32.u32.min");
  VIDEO("vshl.u32.u32.u32.clamp.add");
  VIDEO("vshr.s32.s32.u32.wrap.add");
  VIDEO("vmad.s32.s32.s32.sat");
  VIDEO("vset.u32.u32.lt.add");
  VIDEO("vadd2.s32.s32.s32.sat");
  VIDEO("vsub2.s32.s32.s32");
  VIDEO("vabsdiff4.u32.u32.u32.add");
  VIDEO("vadd4.u32.u32.u32.sat");
  VIDEO("vavrg4.u32.u32.u32");
  VIDEO("vmin4.s32.s32.s32");
  VIDEO("vset4.u32.u32.ge");
  VIDEO("dp4a.s32.u32");
  VIDEO("dp4a.u32.u32");
  VIDEO("dp2a.lo.s32.s32");
  VIDEO("dp2a.hi.u32.s32");
  VIDEO("sad.s32");
  VIDEO("mad24.lo.s32");
  VIDEO("mad24.hi.u32");
  VIDEO("bfe.u32");
  VIDEO("bfe.s32");
  VIDEO("prmt.b32");
  VIDEO("prmt.b32.f4e");
  VIDEO("prmt.b32.b4e");
  VIDEO("prmt.b32.rc8");
  VIDEO("prmt.b32.ecl");
  VIDEO("prmt.b32.rc16");
  VIDEO("shf.l.wrap.b32");
  VIDEO("shf.r.clamp.b32");
  VIDEO("lop3.b32 %0, %1, %2, %3, 0x1e; //");
  asm volatile("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(x), "r"(y), "r"(z), "r"(i));
  OUT(u32) = r + __popc(x) + __clz(y) + __brev(z) + __ffs(x) + __byte_perm(x, y, z);
  asm volatile("bfind.shiftamt.u32 %0, %1;" : "=r"(r) : "r"(x));
  OUT(u32) = r;
  asm volatile("bfind.s32 %0, %1;" : "=r"(r) : "r"(x));
  OUT(u32) = r;
  asm volatile("fns.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  OUT(u32) = r + __vabsdiffu4(x, y) + __vmaxs2(x, y) + __vminu2(x, y) + __vcmpgts4(x, y) + __viaddmax_s32(x, y, z);
  bool low, high;
  OUT(u32) = __vimax3_s16x2(x, y, z) + __vibmax_u16x2(x, y, &high, &low) + __viaddmax_s16x2_relu(x, y, z);
  OUT(bool) = low != high;
}

__global__ void Wide(char* out, u64 a, u64 b, long long s, double d, u32 x) {
  int i = threadIdx.x;
  OUT(u64) = a * b + a / (b | 1) + a % (b | 3) + __umul64hi(a, b) + (a << x) + (a >> (x & 31));
  OUT(long long) = s / (long long)(b | 1) + s % 17 + __mul64hi(s, (long long)a) + (s >> x) + min(s, (long long)b);
  OUT(u64) = __popcll(a) + __clzll(b) + __brevll(a) + __ffsll(b) + (a > b ? a : b) + (a & b) + (a ^ s);
  OUT(u32) = __umulhi(x, 77) + __mulhi(int(x), -5) + x / 7 + x % 10 + int(x) / 3 + x / (i + 1);
  OUT(double) = d * d + 1.5 / d + sqrt(d) + fma(d, d, d) + fmin(d, 2.0) + fmax(d, -1.0) + floor(d) + rint(d);
  OUT(double) = double(x) + double(a) + double(s) + __ll2double_rz(s) + __dadd_ru(d, 1.0) + __dmul_rd(d, 3.0);
  OUT(int) = int(d) + __double2int_ru(d) + __double2uint_rd(d) + (d > 1.0) + (d != d);
  OUT(u64) = __double2ull_rz(d) + __double2ll_rn(d) + __double_as_longlong(d);
  OUT(float) = float(d) + __double2float_ru(d) + float(a) + float(s) + __ull2float_rd(a);
}

__global__ void Floats(char* out, float a, float b, float c, __half h, __nv_bfloat16 w, int x) {
  int i = threadIdx.x;
  OUT(float) = __fadd_ru(a, b) + __fmul_rd(a, b) + __fmaf_rz(a, b, c) + __fdividef(a, b) + a / b + __frcp_ru(a);
  OUT(float) = sqrtf(a) + rsqrtf(b) + __sinf(a) + __cosf(b) + __expf(c) + __logf(a) + exp2f(b) + log2f(c) + tanhf(a);
  OUT(float) = sinf(a) + cosf(b) + powf(a, b) + fmodf(a, b) + fminf(a, b) + fmaxf(b, c) + __saturatef(a) + fabsf(b);
  OUT(float) = floorf(a) + ceilf(b) + truncf(c) + rintf(a) + roundf(b) + copysignf(a, b) + ldexpf(a, x);
  OUT(int) = __float2int_rn(a) + __float2int_rd(b) + __float2uint_ru(c) + int(a) + (a < b) + (a == c) + isnan(a);
  OUT(u64) = __float2ull_rz(a) + __float2ll_rd(b);
  OUT(float) = __int2float_rz(x) + __uint2float_ru(x) + float(short(x)) + float((unsigned char)x) + float(char(x >> 8));
  OUT(float) = __half2float(h) + __bfloat162float(w) + float(__hadd(h, h)) + float(hsqrt(h)) + float(hexp2(h));
  OUT(__half) = __float2half_ru(a) + __int2half_rn(x) + __hfma(h, h, h) * h - __hmax(h, __half(2)) + hrint(h);
  OUT(__nv_bfloat16) = __float2bfloat16_rn(a) + __hfma(w, w, w) * w + __hmin(w, __nv_bfloat16(3));
  OUT(__half2) = __hadd2(__half2(h, h), __half2(a, b)) * __half2(1.5, 2.5) + __hfma2_relu(__half2(h, h), __half2(a, c), __half2(h, c));
  OUT(__half2) = __hmax2_nan(__half2(h, a), __half2(b, c)) + __habs2(__half2(a, h)) + __hgt2(__half2(h, a), __half2(b, h));
  OUT(bool) = __hblt2(__half2(h, a), __half2(b, h)) || __heq(w, __nv_bfloat16(a)) || __hgtu(h, __half(b));
  OUT(__nv_bfloat162) = __hmul2(__nv_bfloat162(w, w), __floats2bfloat162_rn(a, b)) + __hmin2(__nv_bfloat162(a, w), __nv_bfloat162(b, c));
  OUT(int) = __half2int_rd(h) + __half2uint_rz(h) + __bfloat162int_ru(w) + __half2short_rn(h);
  u32 r;
  asm volatile("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(a));
  OUT(u32) = r;
  asm volatile("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(a), "f"(b));
  OUT(u32) = r;
  asm volatile("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(i), "r"(3));
  OUT(u32) = r;
  asm volatile("tanh.approx.f16x2 %0, %1;" : "=r"(r) : "r"(x));
  OUT(u32) = r;
#if __CUDA_ARCH__ >= 900
  asm volatile("ex2.approx.ftz.bf16x2 %0, %1;" : "=r"(r) : "r"(x));
  OUT(u32) = r;
#endif
#if __CUDA_ARCH__ >= 890
  unsigned short q;
  asm volatile("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(q) : "f"(a), "f"(b));
  asm volatile("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(r) : "h"(q));
  OUT(u32) = r;
#endif
}

__global__ void Lanes(char* out, u32 x, float f, u64 b) {
  int i = threadIdx.x;
  OUT(u32) = __shfl_sync(~0u, x, i) + __shfl_up_sync(~0u, x, 1) + __shfl_down_sync(0xffff, x, 2, 16) + __shfl_xor_sync(~0u, x, 4);
  OUT(u32) = __ballot_sync(~0u, x > 3) + __any_sync(~0u, x) + __all_sync(~0u, x > 1) + __activemask();
  int all;
  OUT(u32) = __match_any_sync(~0u, x) + __match_any_sync(~0u, b) + __match_all_sync(~0u, x, &all) + __match_all_sync(~0u, b, &all) + all;
  OUT(u32) = __reduce_add_sync(~0u, x) + __reduce_min_sync(~0u, x) + __reduce_max_sync(~0u, int(x)) + __reduce_or_sync(~0u, x) + __reduce_xor_sync(~0u, x);
  OUT(int) = __syncthreads_count(x > 2) + __syncthreads_and(x > 3) + __syncthreads_or(x > 4);
  __syncwarp();
  if (x == 5) __syncwarp(0xff);
  asm volatile("barrier.cta.arrive 1, 64; barrier.cta.sync 2, 64; barrier.cta.sync.aligned %0;" ::"r"(x & 15));
  OUT(u32) = clock() + u32(clock64());
  u64 t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  OUT(u64) = t;
  u32 id;
  asm volatile("{ .reg .u32 a, b; mov.u32 a, %smid; mov.u32 b, %warpid; add.u32 %0, a, b; mov.u32 a, %lanemask_lt; add.u32 %0, %0, a; mov.u32 a, %lanemask_ge; add.u32 %0, %0, a; mov.u32 a, %total_smem_size; add.u32 %0, %0, a; }" : "=r"(id));
  OUT(u32) = id;
  __nanosleep(100);
  __nanosleep(x);
  __threadfence_block();
  __threadfence();
  __threadfence_system();
  if (x == 77) asm volatile("trap;");
  if (x == 78) asm volatile("exit;");
}
__device__ __noinline__ int Fibonacci(int n) { return n < 2 ? n : Fibonacci(n - 1) + Fibonacci(n - 2); }
__device__ __noinline__ int Twice(int n) { return 2 * n; }
__device__ __noinline__ int Square(int n) { return n * n; }
__device__ int (*table[2])(int) = {Twice, Square};
__constant__ int constants[64];
__device__ int counters[64];

__global__ void Control(char* out, int n, int* p, const int* __restrict__ q) {
  int i = threadIdx.x;
  int local[16];
  for (int k = 0; k < 16; ++k) local[k] = q[k] + n;
  OUT(int) = Fibonacci(n) + table[n & 1](n) + local[p[0] & 15] + constants[p[1] & 63] + counters[p[2] & 63];
  switch (n) {
    case 0: OUT(int) = p[1]; break;
    case 1: OUT(int) = p[2] * 3; break;
    case 2: OUT(int) = p[3] ^ 5; break;
    case 3: OUT(int) = p[4] / 5; break;
    case 4: OUT(int) = __popc(p[5]); break;
    case 5: OUT(int) = p[6] % 7; break;
    case 6: OUT(int) = atomicAdd(p + 7, 1); break;
    case 7: OUT(int) = __ldg(q + 8); break;
    default: break;
  }
  for (int k = i; k < n; ++k) {
    if (p[k] < 0) continue;
    if (p[k] > 100) break;
    while (atomicCAS(p + k, 0, 1) != 0) {
    }
  }
  __ldcg(q);
  OUT(int) = __ldcg(q + 9) + __ldca(q + 10) + __ldcs(q + 11) + __ldlu(q + 12) + __ldcv(q + 13);
  __stwb(p + 9, 1);
  __stcg(p + 10, 1);
  __stcs(p + 11, 1);
  __stwt(p + 12, 1);
  int v;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(p + 14));
  asm volatile("st.release.sys.global.s32 [%0], %1;" ::"l"(p + 15), "r"(v));
  asm volatile("ld.relaxed.cta.global.s32 %0, [%1];" : "=r"(v) : "l"(p + 16));
  asm volatile("ld.volatile.global.s32 %0, [%1];" : "=r"(v) : "l"(p + 17));
  asm volatile("prefetch.global.L2 [%0]; prefetch.global.L1 [%0];" ::"l"(p + 18));
  asm volatile("ld.global.L2::128B.s32 %0, [%1];" : "=r"(v) : "l"(p + 19));
  asm volatile("discard.global.L2 [%0], 128;" ::"l"(p + 32));
  OUT(int) = v;
  asm volatile("{ .reg .pred p, q; .reg .b32 r; isspacep.shared p, %1; isspacep.local q, %1; selp.b32 r, 1, 2, p; selp.b32 %0, r, 3, q; }" : "=r"(v) : "l"(p));
  OUT(int) = v;
}

#define MMA4(shape, types, A, B)                                                                                   \
  asm volatile("mma.sync.aligned." shape ".row.col." types " {%0,%1,%2,%3}, " A ", " B ", {%0,%1,%2,%3};"       \
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#define MMA2(shape, types, A, B)                                                                                   \
  asm volatile("mma.sync.aligned." shape ".row.col." types " {%0,%1}, " A ", " B ", {%0,%1};"                   \
               : "+r"(d[0]), "+r"(d[1]) : "r"(d[2]), "r"(d[3]), "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
__global__ void Matrices(u32* out, u32* in) {
  u32 d[4], a[4], b[2];
  for (int k = 0; k < 4; ++k) {
    d[k] = in[k];
    a[k] = in[k + 4];
  }
  b[0] = in[8];
  b[1] = in[9];
  MMA4("m16n8k16", "f32.f16.f16.f32", "{%4,%5,%6,%7}", "{%8,%9}");
  MMA4("m16n8k16", "f32.bf16.bf16.f32", "{%4,%5,%6,%7}", "{%8,%9}");
  MMA4("m16n8k8", "f32.f16.f16.f32", "{%4,%5}", "{%8}");
  MMA4("m16n8k8", "f32.tf32.tf32.f32", "{%4,%5,%6,%7}", "{%8,%9}");
  MMA4("m16n8k4", "f32.tf32.tf32.f32", "{%4,%5}", "{%8}");
  MMA4("m16n8k32", "s32.s8.u8.s32", "{%4,%5,%6,%7}", "{%8,%9}");
  MMA4("m16n8k16", "s32.u8.s8.s32", "{%4,%5}", "{%8}");
  MMA4("m16n8k64", "s32.s4.s4.s32", "{%4,%5,%6,%7}", "{%8,%9}");
  MMA4("m16n8k32", "s32.u4.u4.s32", "{%4,%5}", "{%8}");
  MMA2("m16n8k16", "f16.f16.f16.f16", "{%4,%5,%6,%7}", "{%8,%9}");
  MMA2("m16n8k8", "f16.f16.f16.f16", "{%4,%5}", "{%8}");
  MMA2("m8n8k16", "s32.s8.s8.s32", "{%4}", "{%8}");
  MMA2("m8n8k32", "s32.u4.u4.s32", "{%4}", "{%8}");
  asm volatile("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  asm volatile("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.xor.popc {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(b[0]));
  asm volatile("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;"
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(a[0]), "r"(a[1]), "r"(in[12]));
  asm volatile("mma.sp.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4,%5}, {%0,%1}, %6, 0x1;"
               : "+r"(d[0]), "+r"(d[1]) : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]), "r"(in[12]));
  asm volatile("mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;"
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(a[0]), "r"(a[1]), "r"(in[12]));
  double c0 = in[10], c1 = in[11];
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(c0), "+d"(c1) : "d"(c0 * 3), "d"(c1 * 5));
  for (int k = 0; k < 4; ++k) out[k] = d[k];
  reinterpret_cast<double*>(out)[4] = c0 + c1;
}

__global__ void Copies(char* out, const float4* in, int n) {
  extern __shared__ float4 shared[];
  int i = threadIdx.x;
  const u32 at = static_cast<u32>(__cvta_generic_to_shared(shared + i));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(in));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(at + 64), "l"(in + 2));
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(at + 128), "l"(in + i));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at + 256), "l"(in + 8), "r"(n));
  asm volatile("cp.async.commit_group; cp.async.wait_group 1; cp.async.wait_all;");
  __syncthreads();
  u32 r[4];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
  OUT(u32) = r[0] + r[1] + r[2] + r[3];
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(at + 32));
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[2]) : "r"(at + 64));
  OUT(u32) = r[0] + r[1] + r[2];
  u64 state;
  bool done;
  asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(at));
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(at));
  asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(r[0]) : "r"(at), "l"(state));
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at));
  asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(at));
  done = r[0] != 0;
  OUT(bool) = done;
  OUT(u64) = state;
  reinterpret_cast<volatile char*>(out)[7] = reinterpret_cast<volatile signed char*>(shared)[i];
  reinterpret_cast<volatile short*>(out)[9] = reinterpret_cast<volatile unsigned short*>(shared)[i];
  reinterpret_cast<double2*>(out)[5] = reinterpret_cast<double2*>(shared)[i];
}

#if __CUDA_ARCH__ >= 900
__global__ void __cluster_dims__(2, 1, 1) Cluster(char* out, char* in, float* f, int n) {
  extern __shared__ __align__(128) char buffer[];
  int i = threadIdx.x;
  const u32 at = static_cast<u32>(__cvta_generic_to_shared(buffer));
  u32 remote, rank, value;
  asm volatile("mov.u32 %0, %cluster_ctarank;" : "=r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(at), "r"(rank ^ 1));
  asm volatile("mbarrier.init.shared.b64 [%0], 1; fence.mbarrier_init.release.cluster; fence.proxy.async;" ::"r"(at));
  asm volatile("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;");
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(remote + 64));
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(remote + 64), "r"(value));
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(remote + 64), "r"(value), "r"(remote));
  asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" ::"r"(remote + 64), "r"(value), "r"(remote));
  asm volatile("atom.shared::cluster.add.u32 %0, [%1], 1;" : "=r"(value) : "r"(remote + 64));
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 128;" ::"r"(at));
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];" ::"r"(at + 128), "l"(in), "r"(at));
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;" ::"l"(out), "r"(at + 128));
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 128;" ::"l"(f), "r"(at + 128));
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], 128;" ::"l"(in));
  asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;");
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %2}], [%3];" ::"r"(at + 128), "l"(in), "r"(n), "r"(at));
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %1, %1}], [%2];" ::"l"(in), "r"(n), "r"(at + 128));
  asm volatile("cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%0, {%1}], [%2];" ::"l"(in), "r"(n), "r"(at + 128));
  asm volatile("prefetch.tensormap [%0];" ::"l"(in));
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra L; }" ::"r"(at));
  asm volatile("red.global.add.v4.f32 [%0], {%1, %1, %1, %1};" ::"l"(f), "f"(1.0f));
  asm volatile("red.global.add.noftz.v4.f16x2 [%0], {%1, %1, %1, %1};" ::"l"(f), "r"(value));
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(value));
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %1};" ::"r"(at), "r"(value));
  asm volatile("griddepcontrol.wait; griddepcontrol.launch_dependents;");
  double d[4] = {1, 2, 3, 4}, a[4] = {5.0 * n, 6, 7, 8}, b[2] = {9.0 * n, 10};
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3]) : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
  OUT(double) = d[0] + d[1] + d[2] + d[3];
  OUT(u32) = value;
}
#endif

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
__global__ void WarpGroup(float* out, u64 a, u64 b) {
  float d[4] = {};
  u32 h[2] = {};
  asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
  asm volatile("wgmma.fence.sync.aligned;");
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 1;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b));
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0,%1}, %2, %3, 0, 1, 1, 0, 0;" : "+r"(h[0]), "+r"(h[1]) : "l"(a), "l"(b));
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%0,%1,%2,%3}, %4, %5, 1, 1, 1;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b));
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2 {%0,%1,%2,%3}, %4, %5, 1, 1, 1;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b));
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.u8 {%0,%1,%2,%3}, %4, %5, 1;" : "+r"(reinterpret_cast<u32&>(d[0])), "+r"(reinterpret_cast<u32&>(d[1])), "+r"(reinterpret_cast<u32&>(d[2])), "+r"(reinterpret_cast<u32&>(d[3])) : "l"(a), "l"(b));
  asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;");
  for (int i = 0; i < 4; ++i) out[i] = d[i];
  out[4] = h[0] + h[1];
}
#endif
