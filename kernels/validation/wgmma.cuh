// wgmma with both operands in shared memory, 128 bytes of K a row, swizzled by 128 bytes. Overloads by the accumulators a thread
// has: half the instruction's columns.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <cstdint>

// clang-format off
#define REGISTERS_0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define REGISTERS_1 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define REGISTERS_2 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define REGISTERS_3 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define REGISTERS_4 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define REGISTERS_5 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define REGISTERS_6 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define REGISTERS_7 "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define ACCUMULATORS_8(d) "+f"((d)[0]), "+f"((d)[1]), "+f"((d)[2]), "+f"((d)[3]), "+f"((d)[4]), "+f"((d)[5]), "+f"((d)[6]), "+f"((d)[7])
#define SIXTEEN(d, at) "+f"((d)[at + 0]), "+f"((d)[at + 1]), "+f"((d)[at + 2]), "+f"((d)[at + 3]), "+f"((d)[at + 4]), "+f"((d)[at + 5]), "+f"((d)[at + 6]), "+f"((d)[at + 7]), "+f"((d)[at + 8]), "+f"((d)[at + 9]), "+f"((d)[at + 10]), "+f"((d)[at + 11]), "+f"((d)[at + 12]), "+f"((d)[at + 13]), "+f"((d)[at + 14]), "+f"((d)[at + 15])
#define ACCUMULATORS_16(d) SIXTEEN(d, 0)
#define ACCUMULATORS_32(d) SIXTEEN(d, 0), SIXTEEN(d, 16)
#define ACCUMULATORS_64(d) SIXTEEN(d, 0), SIXTEEN(d, 16), SIXTEEN(d, 32), SIXTEEN(d, 48)
#define ACCUMULATORS_128(d) SIXTEEN(d, 0), SIXTEEN(d, 16), SIXTEEN(d, 32), SIXTEEN(d, 48), SIXTEEN(d, 64), SIXTEEN(d, 80), SIXTEEN(d, 96), SIXTEEN(d, 112)
// clang-format on

// Groups of eight rows are 1024 bytes apart; the address counts 16 bytes.
__device__ inline uint64_t Descriptor(uint32_t shared_address) {
  return static_cast<uint64_t>(shared_address >> 4 & 0x3fff) | uint64_t{1} << 16 | uint64_t{64} << 32 |
         uint64_t{1} << 62;
}
__device__ inline void WgmmaFence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void WgmmaCommit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kGroupsInFlight>
__device__ inline void WgmmaWait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kGroupsInFlight) : "memory");
}

__device__ inline void Wgmma(float (&d)[8], uint64_t a, uint64_t b, bool add, __nv_bfloat16) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %10, 0; wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7"
      "}, %8, %9, p, 1, 1, 0, 0;}"
      : ACCUMULATORS_8(d)
      : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}
__device__ inline void Wgmma(float (&d)[8], uint64_t a, uint64_t b, bool add, __nv_fp8_e4m3) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %10, 0; wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e4m3 {"
      "%0, %1, %2, %3, %4, %5, %6, %7"
      "}, %8, %9, p, 1, 1;}"
      : ACCUMULATORS_8(d)
      : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}
__device__ inline void Wgmma(float (&d)[16], uint64_t a, uint64_t b, bool add, __nv_bfloat16) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %18, 0; wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
      "{" REGISTERS_0 "}, %16, %17, p, 1, 1, 0, 0;}"
      : ACCUMULATORS_16(d)
      : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}
__device__ inline void Wgmma(float (&d)[16], uint64_t a, uint64_t b, bool add, __nv_fp8_e4m3) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %18, 0; wgmma.mma_async.sync.aligned.m64n32k32.f32.e4m3.e4m3 "
      "{" REGISTERS_0 "}, %16, %17, p, 1, 1;}"
      : ACCUMULATORS_16(d)
      : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}
__device__ inline void Wgmma(float (&d)[32], uint64_t a, uint64_t b, bool add, __nv_bfloat16) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{" REGISTERS_0 ", " REGISTERS_1 "}, %32, %33, p, 1, 1, 0, 0;}"
      : ACCUMULATORS_32(d)
      : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}
__device__ inline void Wgmma(float (&d)[32], uint64_t a, uint64_t b, bool add, __nv_fp8_e4m3) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %34, 0; wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 "
      "{" REGISTERS_0 ", " REGISTERS_1 "}, %32, %33, p, 1, 1;}"
      : ACCUMULATORS_32(d)
      : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}
__device__ inline void Wgmma(float (&d)[64], uint64_t a, uint64_t b, bool add, __nv_bfloat16) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{" REGISTERS_0 ", " REGISTERS_1 ", " REGISTERS_2 ", " REGISTERS_3 "}, %64, %65, p, 1, 1, 0, 0;}"
      : ACCUMULATORS_64(d)
      : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}
__device__ inline void Wgmma(float (&d)[64], uint64_t a, uint64_t b, bool add, __nv_fp8_e4m3) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 "
      "{" REGISTERS_0 ", " REGISTERS_1 ", " REGISTERS_2 ", " REGISTERS_3 "}, %64, %65, p, 1, 1;}"
      : ACCUMULATORS_64(d)
      : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}
__device__ inline void Wgmma(float (&d)[128], uint64_t a, uint64_t b, bool add, __nv_bfloat16) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %130, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
      "{" REGISTERS_0 ", " REGISTERS_1 ", " REGISTERS_2 ", " REGISTERS_3 ", " REGISTERS_4 ", " REGISTERS_5
      ", " REGISTERS_6 ", " REGISTERS_7 "}, %128, %129, p, 1, 1, 0, 0;}"
      : ACCUMULATORS_128(d)
      : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}
__device__ inline void Wgmma(float (&d)[128], uint64_t a, uint64_t b, bool add, __nv_fp8_e4m3) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %130, 0; wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3 "
      "{" REGISTERS_0 ", " REGISTERS_1 ", " REGISTERS_2 ", " REGISTERS_3 ", " REGISTERS_4 ", " REGISTERS_5
      ", " REGISTERS_6 ", " REGISTERS_7 "}, %128, %129, p, 1, 1;}"
      : ACCUMULATORS_128(d)
      : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}

// V: rows are keys, 64 columns of 128 bytes beside each other; the next 64 columns lie `columns_bytes` behind. Groups of eight keys are
// 1024 bytes apart.
__device__ inline uint64_t DescriptorOfColumns(uint32_t shared_address, uint32_t columns_bytes) {
  return static_cast<uint64_t>(shared_address >> 4 & 0x3fff) |
         static_cast<uint64_t>(columns_bytes >> 4) << 16 | uint64_t{64} << 32 | uint64_t{1} << 62;
}

// A from registers, B by columns.
__device__ inline void WgmmaOfColumns(float (&d)[64], const uint32_t (&a)[4], uint64_t b, bool add) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %69, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{" REGISTERS_0 ", " REGISTERS_1 ", " REGISTERS_2 ", " REGISTERS_3
      "}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;}"
      : ACCUMULATORS_64(d)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(add)));
}
