// Integer and double-precision matrix multiply-accumulate, and the transposition of half tiles.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "frontend/emulator/matrix.h"

namespace heddle::emulator {
namespace {

constexpr int kTileRows = 8;
constexpr int kMaxElements = 64;  // k of IMMA.16864

bool IsNibble(MatrixInteger type) { return type == MatrixInteger::kS4 || type == MatrixInteger::kU4; }
bool IsSigned(MatrixInteger type) { return type == MatrixInteger::kS8 || type == MatrixInteger::kS4; }

// One 16-byte row of a tile, to 16 or 32 elements.
int WidenRow(MatrixInteger type, const uint32_t* words, int16_t* out) {
  uint8_t bytes[16];
  std::memcpy(bytes, words, sizeof bytes);
  if (!IsNibble(type)) {
    for (int i = 0; i < 16; ++i)
      out[i] = IsSigned(type) ? static_cast<int16_t>(static_cast<int8_t>(bytes[i]))
                              : static_cast<int16_t>(bytes[i]);
    return 16;
  }
  for (int i = 0; i < 32; ++i) {
    const int nibble = (bytes[i / 2] >> (4 * (i % 2))) & 0xf;
    out[i] = static_cast<int16_t>(IsSigned(type) && nibble >= 8 ? nibble - 16 : nibble);
  }
  return 32;
}

void WidenRows(MatrixInteger type, const FragmentRow* tiles, int tile_stride, int k_tiles,
               int16_t (*out)[kMaxElements]) {
  for (int row = 0; row < kTileRows; ++row) {
    int done = 0;
    for (int tile = 0; tile < k_tiles; ++tile)
      done += WidenRow(type, tiles[tile * tile_stride] + 4 * row, out[row] + done);
  }
}

double PairAt(const FragmentRow* pair, int lane) {
  const uint64_t bits = pair[0][lane] | uint64_t{pair[1][lane]} << 32;
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

void SetPair(FragmentRow* pair, int lane, double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  pair[0][lane] = static_cast<uint32_t>(bits);
  pair[1][lane] = static_cast<uint32_t>(bits >> 32);
}

}  // namespace

void MultiplyInteger(const IntegerMatrixShape& shape, const FragmentRow* a, const FragmentRow* b,
                     const FragmentRow* c, FragmentRow* d) {
  const int k_count = shape.k_tiles * (IsNibble(shape.a) ? 32 : 16);
  int16_t columns[kTileRows][kMaxElements];
  WidenRows(shape.b, b, 1, shape.k_tiles, columns);
  uint32_t results[4][32];
  for (int half = 0; half < shape.m_tiles; ++half) {
    int16_t rows[kTileRows][kMaxElements];
    WidenRows(shape.a, a + half, shape.m_tiles, shape.k_tiles, rows);
    for (int m = 0; m < kTileRows; ++m) {
      for (int n = 0; n < 8; ++n) {
        int32_t dot = 0;  // at most 64 * 255 * 255: no overflow
        for (int k = 0; k < k_count; ++k) dot += rows[m][k] * columns[n][k];
        const int reg = 2 * half + n % 2, lane = 4 * m + n / 2;
        const int64_t sum = int64_t{c == nullptr ? 0 : static_cast<int32_t>(c[reg][lane])} + dot;
        results[reg][lane] = static_cast<uint32_t>(
            shape.saturate ? std::clamp<int64_t>(sum, std::numeric_limits<int32_t>::min(),
                                                 std::numeric_limits<int32_t>::max())
                           : sum);
      }
    }
  }
  std::memcpy(d, results, static_cast<size_t>(2 * shape.m_tiles) * sizeof(FragmentRow));
}

void MultiplyDouble(const DoubleMatrixShape& shape, const FragmentRow* a, const FragmentRow* b,
                    const FragmentRow* c, FragmentRow* d) {
  double results[2][kTileRows][8];
  for (int half = 0; half < shape.m_tiles; ++half) {
    for (int m = 0; m < kTileRows; ++m) {
      for (int n = 0; n < 8; ++n) {
        double sum = c == nullptr ? 0.0 : PairAt(c + 2 * (2 * half + n % 2), 4 * m + n / 2);
        for (int k = 0; k < 4 * shape.k_tiles; ++k)
          sum = std::fma(PairAt(a + 2 * (k / 4 * shape.m_tiles + half), 4 * m + k % 4),
                         PairAt(b + 2 * (k / 4), 4 * n + k % 4), sum);
        results[half][m][n] = sum;
      }
    }
  }
  for (int half = 0; half < shape.m_tiles; ++half)
    for (int m = 0; m < kTileRows; ++m)
      for (int n = 0; n < 8; ++n) SetPair(d + 2 * (2 * half + n % 2), 4 * m + n / 2, results[half][m][n]);
}

void TransposeHalfTile(const FragmentRow& s, FragmentRow& d) {
  uint16_t in[8][8], out[8][8];
  std::memcpy(in, s, sizeof in);
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) out[i][j] = in[j][i];
  std::memcpy(d, out, sizeof out);
}

}  // namespace heddle::emulator
