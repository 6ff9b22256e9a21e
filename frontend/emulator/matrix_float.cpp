// Floating-point matrix multiply-accumulate. Fragments are widened to fp32 once; the inner loop runs over the
// eight columns of the result as one vector. Columns are kept in the order 0,2,4,6,1,3,5,7, the order in
// which accumulator registers hold them, so that C and D move without shuffles.
#include <array>
#include <cmath>
#include <cstring>

#include "frontend/emulator/half.h"
#include "frontend/emulator/matrix.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <immintrin.h>
#define HEDDLE_MATRIX_AVX2 1
#endif

namespace heddle::emulator {
namespace {

constexpr int kMaxK = 32;
constexpr int kTileRows = 8;
constexpr std::array<int, 8> kColumnOrder = {0, 2, 4, 6, 1, 3, 5, 7};

struct alignas(32) Eight {
  float v[8];
};

int ElementsPerTileRow(MatrixFloat type) {
  switch (type) {
    case MatrixFloat::kF16:
    case MatrixFloat::kBF16:
      return 8;
    case MatrixFloat::kTF32:
      return 4;
    case MatrixFloat::kE4M3:
    case MatrixFloat::kE5M2:
      return 16;
  }
  return 0;
}

using ByteTable = std::array<float, 256>;

ByteTable MakeByteTable(float (*widen)(uint8_t)) {
  ByteTable table;
  for (int i = 0; i < 256; ++i) table[static_cast<size_t>(i)] = widen(static_cast<uint8_t>(i));
  return table;
}

// One row of a tile: 16 bytes, to 8, 4 or 16 floats.
void WidenRow(MatrixFloat type, const uint32_t* words, float* out) {
  switch (type) {
    case MatrixFloat::kF16:
#ifdef HEDDLE_MATRIX_AVX2
      _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(words))));
#else
      for (int i = 0; i < 4; ++i) {
        out[2 * i] = HalfToFloat(static_cast<uint16_t>(words[i]));
        out[2 * i + 1] = HalfToFloat(static_cast<uint16_t>(words[i] >> 16));
      }
#endif
      return;
    case MatrixFloat::kBF16: {
      uint32_t bits[8];
      for (int i = 0; i < 4; ++i) {
        bits[2 * i] = words[i] << 16;
        bits[2 * i + 1] = words[i] & 0xffff0000u;
      }
      std::memcpy(out, bits, sizeof bits);
      return;
    }
    case MatrixFloat::kTF32: {
      uint32_t bits[4];
      for (int i = 0; i < 4; ++i) bits[i] = words[i] & 0xffffe000u;
      std::memcpy(out, bits, sizeof bits);
      return;
    }
    case MatrixFloat::kE4M3:
    case MatrixFloat::kE5M2: {
      static const ByteTable e4m3 = MakeByteTable(E4M3ToFloat);
      static const ByteTable e5m2 = MakeByteTable(E5M2ToFloat);
      const ByteTable& table = type == MatrixFloat::kE4M3 ? e4m3 : e5m2;
      uint8_t bytes[16];
      std::memcpy(bytes, words, sizeof bytes);
      for (int i = 0; i < 16; ++i) out[i] = table[bytes[i]];
      return;
    }
  }
}

// b^T as [k][column in kColumnOrder].
void WidenB(const FloatMatrixShape& shape, const FragmentRow* b, Eight* transposed) {
  const int width = ElementsPerTileRow(shape.b);
  for (int tile = 0; tile < shape.k_tiles; ++tile) {
    float rows[kTileRows][16];
    for (int n = 0; n < kTileRows; ++n)
      WidenRow(shape.b, b[tile] + 4 * kColumnOrder[static_cast<size_t>(n)], rows[n]);
    Eight* out = transposed + tile * width;
#ifdef HEDDLE_MATRIX_AVX2
    for (int block = 0; block + 8 <= width; block += 8) {
      __m256 r[8], t[8];
      for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(rows[i] + block);
      for (int i = 0; i < 4; ++i) {
        t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
      }
      for (int i = 0; i < 2; ++i) {
        r[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
        r[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xee);
        r[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
        r[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xee);
      }
      for (int i = 0; i < 4; ++i) {
        _mm256_store_ps(out[block + i].v, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
        _mm256_store_ps(out[block + i + 4].v, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
      }
    }
    if (width >= 8) continue;
#endif
    for (int k = 0; k < width; ++k)
      for (int n = 0; n < kTileRows; ++n) out[k].v[n] = rows[n][k];
  }
}

// sums[m] += a[m][k] * b[k] for the eight rows of a tile, k ascending.
void MultiplyTile(const float (*a)[kMaxK], const Eight* b, int k_count, Eight* sums) {
#ifdef HEDDLE_MATRIX_AVX2
  __m256 s[kTileRows];
  for (int m = 0; m < kTileRows; ++m) s[m] = _mm256_load_ps(sums[m].v);
  for (int k = 0; k < k_count; ++k) {
    const __m256 column = _mm256_load_ps(b[k].v);
    for (int m = 0; m < kTileRows; ++m) s[m] = _mm256_fmadd_ps(_mm256_broadcast_ss(&a[m][k]), column, s[m]);
  }
  for (int m = 0; m < kTileRows; ++m) _mm256_store_ps(sums[m].v, s[m]);
#else
  for (int k = 0; k < k_count; ++k)
    for (int m = 0; m < kTileRows; ++m)
      for (int n = 0; n < 8; ++n) sums[m].v[n] = std::fma(a[m][k], b[k].v[n], sums[m].v[n]);
#endif
}

// Rows of the accumulator tile `half` (0: rows 0-7, 1: rows 8-15) in kColumnOrder.
void LoadAccumulator(const FloatMatrixShape& shape, const FragmentRow* c, int half, Eight* sums) {
  for (int m = 0; m < kTileRows; ++m) {
    if (c == nullptr) {
      sums[m] = {};
    } else if (!shape.f16_accumulator) {
      std::memcpy(sums[m].v, c[2 * half] + 4 * m, 16);
      std::memcpy(sums[m].v + 4, c[2 * half + 1] + 4 * m, 16);
    } else {
      float row[8];
      WidenRow(MatrixFloat::kF16, c[half] + 4 * m, row);
      for (size_t n = 0; n < 8; ++n) sums[m].v[n] = row[kColumnOrder[n]];
    }
  }
}

void StoreAccumulator(const FloatMatrixShape& shape, const Eight* sums, int half, FragmentRow* d) {
  for (int m = 0; m < kTileRows; ++m) {
    if (!shape.f16_accumulator) {
      std::memcpy(d[2 * half] + 4 * m, sums[m].v, 16);
      std::memcpy(d[2 * half + 1] + 4 * m, sums[m].v + 4, 16);
    } else {
      for (int j = 0; j < 4; ++j)
        d[half][4 * m + j] = static_cast<uint32_t>(FloatToHalf(sums[m].v[j])) |
                             static_cast<uint32_t>(FloatToHalf(sums[m].v[j + 4])) << 16;
    }
  }
}

}  // namespace

void MultiplyFloat(const FloatMatrixShape& shape, const FragmentRow* a, const FragmentRow* b,
                   const FragmentRow* c, FragmentRow* d) {
  const int width = ElementsPerTileRow(shape.a);
  const int k_count = width * shape.k_tiles;
  Eight columns[kMaxK];
  WidenB(shape, b, columns);
  Eight sums[2][kTileRows];
  for (int half = 0; half < 2; ++half) {
    float rows[kTileRows][kMaxK];
    for (int tile = 0; tile < shape.k_tiles; ++tile)
      for (int m = 0; m < kTileRows; ++m)
        WidenRow(shape.a, a[2 * tile + half] + 4 * m, rows[m] + tile * width);
    LoadAccumulator(shape, c, half, sums[half]);
    MultiplyTile(rows, columns, k_count, sums[half]);
  }
  // Only now: d may be any of the sources.
  for (int half = 0; half < 2; ++half) StoreAccumulator(shape, sums[half], half, d);
}

}  // namespace heddle::emulator
