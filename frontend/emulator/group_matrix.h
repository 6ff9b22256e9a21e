// Matrix products of a warp group (wgmma: HGMMA, QGMMA, IGMMA, BGMMA) as plain functions.
//
// Four warps compute 64 x N; each of them 16 rows, independently of the others, so one call is one warp's share. K is
// 32 bytes whatever the type: 16 halves, 8 TF32, 32 bytes, 256 bits. Registers of A are the fragment rows of m16n8k(32
// bytes) (matrix.h); D and C are the accumulator rows of N / 8 such blocks, one after the other.
//
// Operands in shared memory are described by a 64-bit matrix descriptor (PTX ISA, "Matrix descriptor format" of wgmma):
// bits 0-13 start address, 16-29 leading and 32-45 stride byte offset (all / 16), 49-51 base offset, 62-63 swizzle
// (0 none, 1 128 B, 2 64 B, 3 32 B). An operand is made of core matrices of eight rows of 16 bytes. With S the bytes of
// the swizzle, row r of core matrix (i, j) (i-th eight rows of M or N, j-th 16 bytes of K) starts at
//   K-major               i * stride + r * S + j * 16
//   M- or N-major         (i % (S/16)) * 16 + i / (S/16) * leading + r * S + j * stride, r counting K
//   either, no swizzle    i * stride + r * 16 + j * leading
// and the address bits 4 to 6 are toggled by bits 7 to 9 (two or one of them for 64 B and 32 B). The base offset moves
// the pattern of the toggling: it is subtracted from bits 7 to 9 before.
#pragma once

#include <cstdint>

#include "frontend/emulator/matrix.h"

namespace heddle::emulator {

inline constexpr uint32_t kMaxGroupColumns = 256;

struct GroupMatrixShape {
  MatrixFloat a = MatrixFloat::kF16;
  MatrixFloat b = MatrixFloat::kF16;
  MatrixAccumulator accumulator = MatrixAccumulator::kF32;
  bool is_binary = false;     // BGMMA: AND and population count, accumulated in s32; a and b mean nothing
  uint16_t n = 8;             // columns: a multiple of 8, at most kMaxGroupColumns
  bool transposed_a = false;  // M-major in shared memory, types of 16 bits only
  bool transposed_b = false;
  bool negated = false;  // A * B is subtracted
};

// The shared memory of a CTA.
struct SharedBytes {
  const uint8_t* data = nullptr;
  uint32_t size = 0;
};

// Rows 16 * warp to 16 * warp + 15 of A from shared memory, as four fragment rows. False when the descriptor leads
// outside of `shared`; those bytes are zero.
bool LoadGroupRows(const GroupMatrixShape& shape, SharedBytes shared, uint64_t descriptor, uint32_t warp,
                   FragmentRow* a);

// D = A * B + C for sixteen rows. `a`: four fragment rows; `c` (nullptr: zero) and `d`: n / 2 rows, or n / 4 of f16.
// False when the descriptor leads outside of `shared`; those elements are zero.
bool MultiplyGroup(const GroupMatrixShape& shape, const FragmentRow* a, SharedBytes shared,
                   uint64_t descriptor_b, const FragmentRow* c, FragmentRow* d);

}  // namespace heddle::emulator
