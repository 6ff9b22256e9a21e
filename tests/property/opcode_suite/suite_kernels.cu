// The device side of the opcode suite: a kernel per family, a thread per input, a row of outputs per case.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "common.h"

namespace {

__device__ __forceinline__ uint32_t Raw(float x) { return __float_as_uint(x); }
__device__ __forceinline__ uint32_t Fb(float x) { return __float_as_uint(x); }
__device__ __forceinline__ uint64_t Db(double x) {
  return x != x ? 0x7ff8000000000000ull : static_cast<uint64_t>(__double_as_longlong(x));
}
__device__ __forceinline__ uint32_t lane_id() { return threadIdx.x & 31; }

#define HEDDLE_PTX3(name, instruction)                                                      \
  __device__ __forceinline__ uint32_t name(uint32_t x, uint32_t y, uint32_t z) {            \
    uint32_t d;                                                                             \
    asm(instruction " %0, %1, %2, %3;" : "=r"(d) : "r"(x), "r"(y), "r"(z));                 \
    return d;                                                                               \
  }
#define HEDDLE_PTX2(name, instruction)                                     \
  __device__ __forceinline__ uint32_t name(uint32_t x, uint32_t y) {       \
    uint32_t d;                                                            \
    asm(instruction " %0, %1, %2;" : "=r"(d) : "r"(x), "r"(y));            \
    return d;                                                              \
  }
#define HEDDLE_PTX1(name, instruction)                          \
  __device__ __forceinline__ uint32_t name(uint32_t x) {        \
    uint32_t d;                                                 \
    asm(instruction " %0, %1;" : "=r"(d) : "r"(x));             \
    return d;                                                   \
  }
HEDDLE_PTX2(ShiftLeft, "shl.b32")
HEDDLE_PTX2(ShiftRight, "shr.u32")
HEDDLE_PTX2(ShiftRightSigned, "shr.s32")
HEDDLE_PTX1(BitFindSigned, "bfind.s32")
HEDDLE_PTX1(BitFindUnsigned, "bfind.u32")
HEDDLE_PTX1(BitFindShift, "bfind.shiftamt.u32")
HEDDLE_PTX3(Prmt, "prmt.b32")
HEDDLE_PTX3(PrmtF4e, "prmt.b32.f4e")
HEDDLE_PTX3(PrmtB4e, "prmt.b32.b4e")
HEDDLE_PTX3(PrmtRc8, "prmt.b32.rc8")
HEDDLE_PTX3(PrmtRc16, "prmt.b32.rc16")
HEDDLE_PTX3(PrmtEcl, "prmt.b32.ecl")
HEDDLE_PTX3(PrmtEcr, "prmt.b32.ecr")
HEDDLE_PTX2(BmskClamp, "bmsk.clamp.b32")
HEDDLE_PTX2(BmskWrap, "bmsk.wrap.b32")
HEDDLE_PTX2(SzextSigned, "szext.clamp.s32")
HEDDLE_PTX2(SzextUnsignedWrap, "szext.wrap.u32")
HEDDLE_PTX3(Bfe, "bfe.u32")
HEDDLE_PTX3(Dp4aMixed, "dp4a.s32.u32")
HEDDLE_PTX3(PackS8, "cvt.pack.sat.s8.s32.b32")
HEDDLE_PTX2(PackU16, "cvt.pack.sat.u16.s32")

template <int kTable>
__device__ __forceinline__ uint32_t Lop3(uint32_t x, uint32_t y, uint32_t z) {
  uint32_t d;
  asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(d) : "r"(x), "r"(y), "r"(z), "n"(kTable));
  return d;
}
__device__ __forceinline__ uint64_t ShiftLeft64(uint64_t x, uint32_t s) {
  uint64_t d;
  asm("shl.b64 %0, %1, %2;" : "=l"(d) : "l"(x), "r"(s));
  return d;
}
__device__ __forceinline__ uint64_t ShiftRight64(uint64_t x, uint32_t s) {
  uint64_t d;
  asm("shr.u64 %0, %1, %2;" : "=l"(d) : "l"(x), "r"(s));
  return d;
}
__device__ __forceinline__ uint64_t ShiftRightSigned64(uint64_t x, uint32_t s) {
  uint64_t d;
  asm("shr.s64 %0, %1, %2;" : "=l"(d) : "l"(x), "r"(s));
  return d;
}
__device__ __forceinline__ uint32_t Bfi(uint32_t x, uint32_t y, uint32_t start, uint32_t length) {
  uint32_t d;
  asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(d) : "r"(x), "r"(y), "r"(start), "r"(length));
  return d;
}
__device__ __forceinline__ uint64_t CarryChain(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  uint32_t x, y, z;
  asm("add.cc.u32 %0, %3, %4; addc.cc.u32 %1, %5, %6; addc.u32 %2, 0, 0;"
      : "=&r"(x), "=&r"(y), "=r"(z)
      : "r"(a), "r"(b), "r"(c), "r"(d));
  return (static_cast<uint64_t>(y) << 32 | x) ^ static_cast<uint64_t>(z) << 7;
}
__device__ __forceinline__ uint64_t BorrowChain(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  uint32_t x, y, z;
  asm("sub.cc.u32 %0, %3, %4; subc.cc.u32 %1, %5, %6; subc.u32 %2, 0, 0;"
      : "=&r"(x), "=&r"(y), "=r"(z)
      : "r"(a), "r"(b), "r"(c), "r"(d));
  return (static_cast<uint64_t>(y) << 32 | x) ^ static_cast<uint64_t>(z) << 7;
}
__device__ __forceinline__ uint64_t Add128High(uint64_t a, uint64_t b, uint64_t c) {
  uint64_t x, y;
  asm("add.cc.u64 %0, %2, %3; addc.u64 %1, %4, %2;" : "=&l"(x), "=l"(y) : "l"(a), "l"(b), "l"(c));
  return y;
}
__device__ __forceinline__ uint64_t MadCarry(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  uint32_t x, y;
  asm("mad.lo.cc.u32 %0, %2, %3, %4; madc.hi.u32 %1, %2, %3, %5;"
      : "=&r"(x), "=r"(y)
      : "r"(a), "r"(b), "r"(c), "r"(d));
  return static_cast<uint64_t>(y) << 32 | x;
}
__device__ __forceinline__ int Divisor(int x) { return x == 0 || x == -1 ? 3 : x; }
__device__ __forceinline__ int64_t Divisor64(int64_t x) { return x == 0 || x == -1 ? 5 : x; }
template <typename T>
__device__ __forceinline__ uint32_t Compare(T x, T y) {
  return (x < y ? 1 : 0) | (x <= y ? 2 : 0) | (x == y ? 4 : 0) | (x > y ? 8 : 0) | (x >= y ? 16 : 0) | (x != y ? 32 : 0);
}
template <typename T>
__device__ __forceinline__ uint32_t FloatCompare(T x, T y) {
  return Compare(x, y) | (!(x < y) ? 64 : 0) | (!(x >= y) ? 128 : 0);
}
__device__ __forceinline__ uint32_t UnorderedCompare(float x, float y) {
  uint32_t d;
  asm("{ .reg .pred p; .reg .u32 t; mov.u32 %0, 0;\n"
      "setp.ltu.f32 p, %1, %2; selp.u32 t, 1, 0, p; or.b32 %0, %0, t;\n"
      "setp.leu.f32 p, %1, %2; selp.u32 t, 2, 0, p; or.b32 %0, %0, t;\n"
      "setp.equ.f32 p, %1, %2; selp.u32 t, 4, 0, p; or.b32 %0, %0, t;\n"
      "setp.gtu.f32 p, %1, %2; selp.u32 t, 8, 0, p; or.b32 %0, %0, t;\n"
      "setp.geu.f32 p, %1, %2; selp.u32 t, 16, 0, p; or.b32 %0, %0, t;\n"
      "setp.neu.f32 p, %1, %2; selp.u32 t, 32, 0, p; or.b32 %0, %0, t;\n"
      "setp.num.f32 p, %1, %2; selp.u32 t, 64, 0, p; or.b32 %0, %0, t;\n"
      "setp.nan.f32 p, %1, %2; selp.u32 t, 128, 0, p; or.b32 %0, %0, t; }"
      : "=&r"(d)
      : "f"(x), "f"(y));
  return d;
}
// The product keeps ptxas 13.0 from merging the result with a comparison into the integer 1.
__device__ __forceinline__ float SetGe(float x, float y) {
  float d;
  asm("set.ge.f32.f32 %0, %1, %2;" : "=f"(d) : "f"(x), "f"(y));
  return d;
}
__device__ __forceinline__ float AddFtz(float x, float y) {
  float d;
  asm("add.rn.ftz.f32 %0, %1, %2;" : "=f"(d) : "f"(x), "f"(y));
  return d;
}
__device__ __forceinline__ float MulFtz(float x, float y) {
  float d;
  asm("mul.rn.ftz.f32 %0, %1, %2;" : "=f"(d) : "f"(x), "f"(y));
  return d;
}
__device__ __forceinline__ float FmaFtz(float x, float y, float z) {
  float d;
  asm("fma.rn.ftz.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(x), "f"(y), "f"(z));
  return d;
}
__device__ __forceinline__ float MinNan(float x, float y) {
  float d;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(d) : "f"(x), "f"(y));
  return d;
}

__device__ __forceinline__ __half AsHalf(uint32_t bits) { return __ushort_as_half(static_cast<unsigned short>(bits)); }
__device__ __forceinline__ __half2 AsHalf2(uint32_t bits) { return *reinterpret_cast<__half2*>(&bits); }
__device__ __forceinline__ uint32_t HalfBits(__half x) { return __half_as_ushort(x); }
__device__ __forceinline__ uint32_t Half2Bits(__half2 x) { return *reinterpret_cast<uint32_t*>(&x); }
__device__ __forceinline__ __nv_bfloat16 AsBfloat(uint32_t bits) {
  return __ushort_as_bfloat16(static_cast<unsigned short>(bits));
}
__device__ __forceinline__ __nv_bfloat162 AsBfloat2(uint32_t bits) { return *reinterpret_cast<__nv_bfloat162*>(&bits); }
__device__ __forceinline__ uint32_t BfloatBits(__nv_bfloat16 x) { return __bfloat16_as_ushort(x); }
__device__ __forceinline__ uint32_t Bfloat2Bits(__nv_bfloat162 x) { return *reinterpret_cast<uint32_t*>(&x); }

__device__ uint32_t DivergentBallot(uint32_t x, uint32_t y) {
  const uint32_t odd = __ballot_sync(~0u, x & 1);
  if (x & 1) return __ballot_sync(odd, y & 4);
  return __ballot_sync(~odd, y & 8) * 3;
}
__device__ uint64_t MatchAll(uint32_t x) {
  int agree = 0;
  const uint32_t mask = __match_all_sync(~0u, x, &agree);
  return mask | static_cast<uint64_t>(agree != 0) << 32;
}
__device__ uint32_t WarpScan(uint32_t x) {
  for (uint32_t d = 1; d < 32; d *= 2) {
    const uint32_t y = __shfl_up_sync(~0u, x, d);
    if (lane_id() >= d) x += y;
  }
  return x;
}
__device__ uint32_t DivergentLoop(uint32_t x) {
  uint32_t sum = x;
  for (uint32_t i = 0; i < x % 23; ++i) sum = sum * 5 + (i & 1 ? suite::Gcd(sum & 255, i) : i);
  return sum + __shfl_xor_sync(~0u, sum, 1);
}
__device__ uint32_t ActiveMaskInBranch(uint32_t x) {
  uint32_t mask;
  if (x & 1) {
    asm volatile("activemask.b32 %0;" : "=r"(mask));
    mask ^= x & 0;
  } else {
    asm volatile("activemask.b32 %0;" : "=r"(mask));
  }
  return mask;
}

#if __CUDA_ARCH__ >= 890
#define HEDDLE_FP8_OF_F32(name, instruction)                                          \
  __device__ __forceinline__ uint32_t name(float high, float low) {                   \
    uint16_t d;                                                                       \
    asm(instruction " %0, %1, %2;" : "=h"(d) : "f"(high), "f"(low));                  \
    return d;                                                                         \
  }
#define HEDDLE_FP8_OF_F16(name, instruction)                   \
  __device__ __forceinline__ uint32_t name(uint32_t halves) {  \
    uint16_t d;                                                \
    asm(instruction " %0, %1;" : "=h"(d) : "r"(halves));       \
    return d;                                                  \
  }
#define HEDDLE_F16_OF_FP8(name, instruction)                                     \
  __device__ __forceinline__ uint32_t name(uint32_t bytes) {                     \
    uint32_t d;                                                                  \
    asm(instruction " %0, %1;" : "=r"(d) : "h"(static_cast<uint16_t>(bytes)));   \
    return d;                                                                    \
  }
HEDDLE_FP8_OF_F32(E4m3OfF32, "cvt.rn.satfinite.e4m3x2.f32")
HEDDLE_FP8_OF_F32(E5m2OfF32, "cvt.rn.satfinite.e5m2x2.f32")
HEDDLE_FP8_OF_F32(E4m3ReluOfF32, "cvt.rn.satfinite.relu.e4m3x2.f32")
HEDDLE_FP8_OF_F32(E5m2ReluOfF32, "cvt.rn.satfinite.relu.e5m2x2.f32")
HEDDLE_FP8_OF_F16(E4m3OfF16, "cvt.rn.satfinite.e4m3x2.f16x2")
HEDDLE_FP8_OF_F16(E5m2OfF16, "cvt.rn.satfinite.e5m2x2.f16x2")
HEDDLE_F16_OF_FP8(F16OfE4m3, "cvt.rn.f16x2.e4m3x2")
HEDDLE_F16_OF_FP8(F16OfE5m2, "cvt.rn.f16x2.e5m2x2")
#endif

}  // namespace

#define HEDDLE_KERNEL_BEGIN(name)                                                                             \
  extern "C" __global__ void name(const suite::Input* __restrict__ in, uint64_t* __restrict__ out, uint32_t n) { \
    const uint32_t t = threadIdx.x;                                                                           \
    const uint64_t a = in[t].a, b = in[t].b, c = in[t].c;                                                     \
    const uint32_t ua = static_cast<uint32_t>(a), ub = static_cast<uint32_t>(b), uc = static_cast<uint32_t>(c); \
    const uint32_t hia = static_cast<uint32_t>(a >> 32), hib = static_cast<uint32_t>(b >> 32);                \
    const int ia = static_cast<int>(ua), ib = static_cast<int>(ub);                                           \
    const int64_t la = static_cast<int64_t>(a), lb = static_cast<int64_t>(b);                                 \
    const float fa = __uint_as_float(ua), fb = __uint_as_float(ub), fc = __uint_as_float(uc);                 \
    const double da = __longlong_as_double(a), db = __longlong_as_double(b), dc = __longlong_as_double(c);    \
    uint64_t* row = out + t;
#define HEDDLE_KERNEL_END() }
#define HEDDLE_CASE(name, device, host) \
  *row = static_cast<uint64_t>(device); \
  row += n;

HEDDLE_KERNEL_BEGIN(suite_integer)
#include "cases_integer.inc"
HEDDLE_KERNEL_END()

HEDDLE_KERNEL_BEGIN(suite_float)
#include "cases_float.inc"
HEDDLE_KERNEL_END()

HEDDLE_KERNEL_BEGIN(suite_convert)
#include "cases_convert.inc"
HEDDLE_KERNEL_END()

HEDDLE_KERNEL_BEGIN(suite_half)
#include "cases_half.inc"
HEDDLE_KERNEL_END()

HEDDLE_KERNEL_BEGIN(suite_warp)
#include "cases_warp.inc"
HEDDLE_KERNEL_END()

#if __CUDA_ARCH__ >= 800
HEDDLE_KERNEL_BEGIN(suite_float_ampere)
#include "cases_float_ampere.inc"
HEDDLE_KERNEL_END()

HEDDLE_KERNEL_BEGIN(suite_half_ampere)
#include "cases_half_ampere.inc"
HEDDLE_KERNEL_END()

HEDDLE_KERNEL_BEGIN(suite_warp_ampere)
#include "cases_warp_ampere.inc"
HEDDLE_KERNEL_END()
#endif

#if __CUDA_ARCH__ >= 890
HEDDLE_KERNEL_BEGIN(suite_fp8)
#include "cases_fp8.inc"
HEDDLE_KERNEL_END()
#endif
