// Floating-point matrix multiply-accumulate. Operands are widened to fp32 once; the inner loop runs over the eight
// columns of a block as one vector.
#include "frontend/emulator/matrix_blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "frontend/emulator/half.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <immintrin.h>
#define HEDDLE_MATRIX_AVX2 1
#endif

namespace heddle::emulator {
namespace {

constexpr std::array<int, 8> kColumnOrder = {0, 2, 4, 6, 1, 3, 5, 7};

using ByteTable = std::array<float, 256>;

ByteTable MakeByteTable(float (*widen)(uint8_t)) {
  ByteTable table;
  for (int i = 0; i < 256; ++i) table[static_cast<size_t>(i)] = widen(static_cast<uint8_t>(i));
  return table;
}

float SignedByteToFloat(uint8_t byte) { return static_cast<float>(static_cast<int8_t>(byte)); }
float ByteToFloat(uint8_t byte) { return static_cast<float>(byte); }

const ByteTable& TableOf(MatrixFloat type) {
  static const ByteTable e4m3 = MakeByteTable(E4M3ToFloat);
  static const ByteTable e5m2 = MakeByteTable(E5M2ToFloat);
  static const ByteTable s8 = MakeByteTable(SignedByteToFloat);
  static const ByteTable u8 = MakeByteTable(ByteToFloat);
  return type == MatrixFloat::kE4M3   ? e4m3
         : type == MatrixFloat::kE5M2 ? e5m2
         : type == MatrixFloat::kS8   ? s8
                                      : u8;
}

// Calls visit() with the type as a constant.
template <typename Visit>
void ForType(MatrixFloat type, Visit visit) {
  switch (type) {
    case MatrixFloat::kF16:
      return visit(std::integral_constant<MatrixFloat, MatrixFloat::kF16>());
    case MatrixFloat::kBF16:
      return visit(std::integral_constant<MatrixFloat, MatrixFloat::kBF16>());
    case MatrixFloat::kTF32:
      return visit(std::integral_constant<MatrixFloat, MatrixFloat::kTF32>());
    case MatrixFloat::kE4M3:
      return visit(std::integral_constant<MatrixFloat, MatrixFloat::kE4M3>());
    case MatrixFloat::kE5M2:
      return visit(std::integral_constant<MatrixFloat, MatrixFloat::kE5M2>());
    case MatrixFloat::kS8:
      return visit(std::integral_constant<MatrixFloat, MatrixFloat::kS8>());
    case MatrixFloat::kU8:
      return visit(std::integral_constant<MatrixFloat, MatrixFloat::kU8>());
  }
}

void WidenHalves(const uint32_t* words, float* out) {
#ifdef HEDDLE_MATRIX_AVX2
  _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(words))));
#else
  for (int i = 0; i < 4; ++i) {
    out[2 * i] = HalfToFloat(static_cast<uint16_t>(words[i]));
    out[2 * i + 1] = HalfToFloat(static_cast<uint16_t>(words[i] >> 16));
  }
#endif
}

void WidenBFloats(const uint32_t* words, float* out) {
#ifdef HEDDLE_MATRIX_AVX2
  const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(words));
  _mm256_storeu_ps(out, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16)));
#else
  uint32_t bits[8];
  for (int i = 0; i < 4; ++i) {
    bits[2 * i] = words[i] << 16;
    bits[2 * i + 1] = words[i] & 0xffff0000u;
  }
  std::memcpy(out, bits, sizeof bits);
#endif
}

// One row of a tile: 16 bytes, to 8, 4 or 16 floats.
template <MatrixFloat type>
void WidenRow(const uint32_t* words, float* out) {
  if constexpr (type == MatrixFloat::kF16) {
    WidenHalves(words, out);
  } else if constexpr (type == MatrixFloat::kBF16) {
    WidenBFloats(words, out);
  } else if constexpr (type == MatrixFloat::kTF32) {
    uint32_t bits[4];
    for (int i = 0; i < 4; ++i) bits[i] = words[i] & 0xffffe000u;
    std::memcpy(out, bits, sizeof bits);
  } else {
    const ByteTable& table = TableOf(type);
    uint8_t bytes[16];
    std::memcpy(bytes, words, sizeof bytes);
    for (int i = 0; i < 16; ++i) out[i] = table[bytes[i]];
  }
}

// sums[m] += a[m][k] * b[k] for the eight rows of a tile, k ascending.
void MultiplyTile(const float (*a)[kMaxBlockK], const EightColumns* b, int k_count, EightColumns* sums) {
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

// From a row for each column to an entry for each k.
void Transpose(const float (*rows)[16], int width, EightColumns* out) {
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
  if (width >= 8) return;
#endif
  for (int k = 0; k < width; ++k)
    for (int n = 0; n < kTileRows; ++n) out[k].v[n] = rows[n][k];
}

// Rows of the accumulator tile `half` (0: rows 0-7, 1: rows 8-15).
void LoadAccumulator(MatrixAccumulator accumulator, const FragmentRow* c, int half, EightColumns* sums) {
  for (int m = 0; m < kTileRows; ++m) {
    if (c == nullptr) {
      sums[m] = {};
    } else if (accumulator == MatrixAccumulator::kF32) {
      std::memcpy(sums[m].v, c[2 * half] + 4 * m, 16);
      std::memcpy(sums[m].v + 4, c[2 * half + 1] + 4 * m, 16);
    } else {
      float row[8];
      WidenHalves(c[half] + 4 * m, row);
      for (size_t n = 0; n < 8; ++n) sums[m].v[n] = row[kColumnOrder[n]];
    }
  }
}

void StoreHalves(const EightColumns& sums, uint32_t* words) {
  uint16_t halves[8];
#ifdef HEDDLE_MATRIX_AVX2
  _mm_storeu_si128(reinterpret_cast<__m128i*>(halves),
                   _mm256_cvtps_ph(_mm256_load_ps(sums.v), _MM_FROUND_TO_NEAREST_INT));
#else
  for (int j = 0; j < 8; ++j) halves[j] = FloatToHalf(sums.v[j]);
#endif
  for (int j = 0; j < 4; ++j)
    words[j] = static_cast<uint32_t>(halves[j]) | static_cast<uint32_t>(halves[j + 4]) << 16;
}

void StoreAccumulator(MatrixAccumulator accumulator, const EightColumns* sums, int half, FragmentRow* d) {
  for (int m = 0; m < kTileRows; ++m) {
    if (accumulator == MatrixAccumulator::kF32) {
      std::memcpy(d[2 * half] + 4 * m, sums[m].v, 16);
      std::memcpy(d[2 * half + 1] + 4 * m, sums[m].v + 4, 16);
    } else {
      StoreHalves(sums[m], d[half] + 4 * m);
    }
  }
}

// The dot products of bytes are whole numbers below 2^24: exact in fp32. The sum with C is one of integers.
void AddIntegers(bool saturates, const EightColumns* sums, int half, const FragmentRow* c, FragmentRow* d) {
  for (int m = 0; m < kTileRows; ++m) {
    for (int n = 0; n < 8; ++n) {
      const int reg = 2 * half + n / 4, lane = 4 * m + n % 4;
      const int64_t old = c == nullptr ? 0 : static_cast<int32_t>(c[reg][lane]);
      int64_t sum = old + static_cast<int32_t>(sums[m].v[n]);
      if (saturates)
        sum = std::clamp<int64_t>(sum, std::numeric_limits<int32_t>::min(),
                                  std::numeric_limits<int32_t>::max());
      d[reg][lane] = static_cast<uint32_t>(sum);
    }
  }
}

}  // namespace

int ElementsPerTileRow(MatrixFloat type) {
  switch (type) {
    case MatrixFloat::kF16:
    case MatrixFloat::kBF16:
      return 8;
    case MatrixFloat::kTF32:
      return 4;
    case MatrixFloat::kE4M3:
    case MatrixFloat::kE5M2:
    case MatrixFloat::kS8:
    case MatrixFloat::kU8:
      return 16;
  }
  return 0;
}

void WidenRows(MatrixFloat type, int k_tiles, const FragmentRow* a, bool negate, WidenedRows* out) {
  const int width = ElementsPerTileRow(type);
  ForType(type, [&](auto constant) {
    for (int half = 0; half < 2; ++half)
      for (int tile = 0; tile < k_tiles; ++tile)
        for (int m = 0; m < kTileRows; ++m)
          WidenRow<constant>(a[2 * tile + half] + 4 * m, out->v[half][m] + tile * width);
  });
  if (!negate) return;
  for (auto& half : out->v)
    for (auto& row : half)
      for (int k = 0; k < width * k_tiles; ++k) row[k] = -row[k];
}

// [k][column].
void WidenColumns(MatrixFloat type, int k_tiles, const FragmentRow* b, EightColumns* transposed) {
  const int width = ElementsPerTileRow(type);
  for (int tile = 0; tile < k_tiles; ++tile) {
    float rows[kTileRows][16];
    ForType(type, [&](auto constant) {
      for (int n = 0; n < kTileRows; ++n)
        WidenRow<constant>(b[tile] + 4 * kColumnOrder[static_cast<size_t>(n)], rows[n]);
    });
    Transpose(rows, width, transposed + tile * width);
  }
}

void MultiplyBlock(const WidenedRows& a, const EightColumns* b, int k_count, MatrixAccumulator accumulator,
                   const FragmentRow* c, FragmentRow* d) {
  const bool is_integer =
      accumulator == MatrixAccumulator::kS32 || accumulator == MatrixAccumulator::kS32Saturating;
  EightColumns sums[2][kTileRows];
  for (int half = 0; half < 2; ++half) {
    LoadAccumulator(accumulator, is_integer ? nullptr : c, half, sums[half]);
    MultiplyTile(a.v[half], b, k_count, sums[half]);
  }
  for (int half = 0; half < 2; ++half) {
    if (is_integer)
      AddIntegers(accumulator == MatrixAccumulator::kS32Saturating, sums[half], half, c, d);
    else
      StoreAccumulator(accumulator, sums[half], half, d);
  }
}

void MultiplyFloat(const FloatMatrixShape& shape, const FragmentRow* a, const FragmentRow* b,
                   const FragmentRow* c, FragmentRow* d) {
  WidenedRows rows;
  EightColumns columns[kMaxBlockK];
  WidenRows(shape.a, shape.k_tiles, a, false, &rows);
  WidenColumns(shape.b, shape.k_tiles, b, columns);
  const auto accumulator = shape.f16_accumulator ? MatrixAccumulator::kF16 : MatrixAccumulator::kF32;
  MultiplyBlock(rows, columns, ElementsPerTileRow(shape.a) * shape.k_tiles, accumulator, c, d);
}

}  // namespace heddle::emulator
