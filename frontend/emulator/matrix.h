// Matrix multiply-accumulate of one warp on register rows, as plain functions: D = A * B + C.
//
// A register row is 32 words, one a lane. Seen as memory, the row of a fragment register is a row-major tile:
// 8 rows of 16 bytes, each row held by 4 lanes (so 8x8 halves, 8x16 bytes, 8x4 words). A is made of such
// tiles in the order (rows 0-7, k low), (rows 8-15, k low), (rows 0-7, k high), (rows 8-15, k high); B of
// tiles of its transpose (n by k); a 32-bit accumulator register holds every other column of a tile: columns
// 0,2,4,6 in the first, 1,3,5,7 in the second.
//
// Numerics. F16, BF16 and TF32 products are exact in fp32; they are added to C by fused multiply-add in fp32,
// round-to-nearest-even, in ascending k. Tensor cores add groups of products with truncation in an order that
// NVIDIA does not state: results agree to fp32 rounding of the sum, not bit by bit. An F16 accumulator is
// widened to fp32 and rounded once at the end. Integer results are exact. FP64 is fused multiply-add in
// ascending k.
#pragma once

#include <cstdint>

namespace heddle::emulator {

using FragmentRow = uint32_t[32];  // what Row::lane is

// Element types whose products are exact in fp32. Bytes are among them for the products of a warp group.
enum class MatrixFloat : uint8_t { kF16, kBF16, kTF32, kE4M3, kE5M2, kS8, kU8 };
enum class MatrixAccumulator : uint8_t { kF32, kF16, kS32, kS32Saturating };
enum class MatrixInteger : uint8_t { kS8, kU8, kS4, kU4 };

// m16n8 with k = 4, 8, 16 or 32: the tiles of one k step are 16 bytes wide, so k = k_tiles * (8, 4 or 16
// elements). `a` points at 2 * k_tiles consecutive rows, `b` at k_tiles rows, `c` and `d` at 4 rows (fp32) or
// 2 rows (f16). `c` may be nullptr for zero; `d` may alias any source.
struct FloatMatrixShape {
  MatrixFloat a = MatrixFloat::kF16;
  MatrixFloat b = MatrixFloat::kF16;
  uint8_t k_tiles = 2;
  bool f16_accumulator = false;
};
void MultiplyFloat(const FloatMatrixShape& shape, const FragmentRow* a, const FragmentRow* b,
                   const FragmentRow* c, FragmentRow* d);

// m = 8 * m_tiles rows (1 or 2), n = 8; k = k_tiles * 16 elements of 8 bits or * 32 of 4 bits. `a` points at
// m_tiles * k_tiles rows, `b` at k_tiles, `c` and `d` at 2 * m_tiles. `saturate` clamps the final sum to s32.
struct IntegerMatrixShape {
  MatrixInteger a = MatrixInteger::kS8;
  MatrixInteger b = MatrixInteger::kS8;
  uint8_t m_tiles = 2;
  uint8_t k_tiles = 2;
  bool saturate = false;
};
void MultiplyInteger(const IntegerMatrixShape& shape, const FragmentRow* a, const FragmentRow* b,
                     const FragmentRow* c, FragmentRow* d);

// m = 8 * m_tiles, n = 8, k = 4 * k_tiles. Every element is a register pair; rows of a pair follow each other
// (low, high). `a` points at 2 * m_tiles * k_tiles rows, `b` at 2 * k_tiles, `c` and `d` at 4 * m_tiles.
struct DoubleMatrixShape {
  uint8_t m_tiles = 1;
  uint8_t k_tiles = 1;
};
void MultiplyDouble(const DoubleMatrixShape& shape, const FragmentRow* a, const FragmentRow* b,
                    const FragmentRow* c, FragmentRow* d);

// MOVM.MT88: transposes the 8x8 tile of halves in a row. `d` may alias `s`.
void TransposeHalfTile(const FragmentRow& s, FragmentRow& d);

}  // namespace heddle::emulator
