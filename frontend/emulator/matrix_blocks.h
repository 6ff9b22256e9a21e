// Building blocks of matrix products on the CPU: operands are widened to fp32 once, then multiplied in blocks of
// sixteen rows and eight columns. Shared by the products of one warp (matrix.h) and of a warp group (group_matrix.h).
//
// Columns are kept in the order 0,2,4,6,1,3,5,7, in which accumulator registers hold them, so that C and D move without
// shuffles. Fragment rows are described in matrix.h.
#pragma once

#include <cstdint>

#include "frontend/emulator/matrix.h"

namespace heddle::emulator {

inline constexpr int kTileRows = 8;
inline constexpr int kMaxBlockK = 32;

struct alignas(32) EightColumns {
  float v[8];
};

// Sixteen rows of A: rows 0-7, rows 8-15.
struct alignas(64) WidenedRows {
  float v[2][kTileRows][kMaxBlockK];
};

int ElementsPerTileRow(MatrixFloat type);  // of 16 bytes

// `a` points at 2 * k_tiles fragment rows, in the order of registers of A. With `negate` all signs are toggled.
void WidenRows(MatrixFloat type, int k_tiles, const FragmentRow* a, bool negate, WidenedRows* out);

// `b` points at k_tiles fragment rows: tiles of B transposed. `out` receives one entry per k.
void WidenColumns(MatrixFloat type, int k_tiles, const FragmentRow* b, EightColumns* out);

// D = A * B + C for sixteen rows and eight columns. `c` (nullptr: zero) and `d` point at 4 rows of fp32 or s32, or at 2
// of f16; they may be the same.
void MultiplyBlock(const WidenedRows& a, const EightColumns* b, int k_count, MatrixAccumulator accumulator,
                   const FragmentRow* c, FragmentRow* d);

}  // namespace heddle::emulator
