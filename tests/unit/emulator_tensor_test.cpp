// Do the warp's matrix products put the right numbers into the right lanes? The fragments are built here from
// matrices by the PTX manual's layout formulas, lane by lane, and the product is taken by three plain loops.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "frontend/emulator/half.h"
#include "frontend/emulator/matrix.h"

namespace heddle::emulator {
namespace {

using Matrix = std::vector<std::vector<double>>;

Matrix Random(int rows, int columns, std::mt19937& random, bool integer, int low, int high) {
  Matrix matrix(static_cast<size_t>(rows), std::vector<double>(static_cast<size_t>(columns)));
  std::uniform_int_distribution<int> whole(low, high);
  for (auto& row : matrix)
    for (double& value : row) value = integer ? whole(random) : whole(random) / 16.0;
  return matrix;
}

// PTX: element i of lane's A fragment of m16, with `per_register` elements of a 32-bit register: registers
// alternate between rows g and g + 8, and advance k every second register.
void SplitA(const Matrix& a, int per_register, int m_tiles, auto set) {
  const int k_total = static_cast<int>(a[0].size()), tile_k = 4 * per_register;
  for (int lane = 0; lane < 32; ++lane)
    for (int reg = 0; reg < m_tiles * k_total / tile_k; ++reg)
      for (int i = 0; i < per_register; ++i) {
        const int row = lane / 4 + 8 * (reg % m_tiles),
                  k = reg / m_tiles * tile_k + lane % 4 * per_register + i;
        set(reg, lane, i, a[static_cast<size_t>(row)][static_cast<size_t>(k)]);
      }
}

// PTX: B fragments hold column lane / 4 of the k by 8 matrix.
void SplitB(const Matrix& b, int per_register, auto set) {
  const int tile_k = 4 * per_register, k_total = static_cast<int>(b.size());
  for (int lane = 0; lane < 32; ++lane)
    for (int reg = 0; reg < k_total / tile_k; ++reg)
      for (int i = 0; i < per_register; ++i) {
        const int k = reg * tile_k + lane % 4 * per_register + i;
        set(reg, lane, i, b[static_cast<size_t>(k)][static_cast<size_t>(lane / 4)]);
      }
}

Matrix Product(const Matrix& a, const Matrix& b, const Matrix& c) {
  Matrix d = c;
  for (size_t m = 0; m < a.size(); ++m)
    for (size_t n = 0; n < 8; ++n)
      for (size_t k = 0; k < b.size(); ++k) d[m][n] += a[m][k] * b[k][n];
  return d;
}

// PTX: accumulator register r of m16n8 (32-bit): row lane / 4 + 8 * (r / 2), column 2 * (lane % 4) + r % 2.
double& AccumulatorAt(Matrix& matrix, int reg, int lane) {
  return matrix[static_cast<size_t>(lane / 4 + 8 * (reg / 2))][static_cast<size_t>(2 * (lane % 4) + reg % 2)];
}

uint32_t Encode(MatrixFloat type, double value) {
  const auto f = static_cast<float>(value);
  switch (type) {
    case MatrixFloat::kF16:
      return FloatToHalf(f);
    case MatrixFloat::kBF16:
      return FloatToBFloat(f);
    case MatrixFloat::kTF32:
      return std::bit_cast<uint32_t>(f) | 0x1234;  // the low 13 bits are ignored
    case MatrixFloat::kE4M3:
    case MatrixFloat::kE5M2:
      for (int bits = 0; bits < 256; ++bits) {
        const auto byte = static_cast<uint8_t>(bits);
        if ((type == MatrixFloat::kE4M3 ? E4M3ToFloat(byte) : E5M2ToFloat(byte)) == f) return byte;
      }
      break;
    default:  // bytes of integers: MultiplyInteger's here
      break;
  }
  ADD_FAILURE() << value << " is not representable";
  return 0;
}

struct FloatCase {
  FloatMatrixShape shape;
  int low,
      high;  // of elements, in sixteenths (whole numbers for the 8-bit types): every sum is exact in fp32
};

class FloatMatrix : public testing::TestWithParam<FloatCase> {};

TEST_P(FloatMatrix, EqualsThreeLoops) {
  const auto& parameters = GetParam();
  const auto& shape = parameters.shape;
  const auto low = parameters.low;
  const auto high = parameters.high;
  std::mt19937 random(7);
  const bool bytes = shape.a == MatrixFloat::kE4M3 || shape.a == MatrixFloat::kE5M2;
  const int per_register = bytes ? 4 : shape.a == MatrixFloat::kTF32 ? 1 : 2;
  const int k = 4 * per_register * shape.k_tiles, bits = 32 / per_register;
  const Matrix a = Random(16, k, random, bytes, low, high), b = Random(k, 8, random, bytes, low, high);
  Matrix c = Random(16, 8, random, true, -9, 9);
  FragmentRow rows_a[4] = {}, rows_b[2] = {}, rows_c[4] = {};
  SplitA(a, per_register, 2, [&](int reg, int lane, int i, double value) {
    rows_a[reg][lane] |= Encode(shape.a, value) << (bits * i);
  });
  SplitB(b, per_register, [&](int reg, int lane, int i, double value) {
    rows_b[reg][lane] |= Encode(shape.b, value) << (bits * i);
  });
  for (int lane = 0; lane < 32; ++lane)
    for (int reg = 0; reg < 4; ++reg) {
      if (shape.f16_accumulator)
        rows_c[reg / 2][lane] |= uint32_t{FloatToHalf(static_cast<float>(AccumulatorAt(c, reg, lane)))}
                                 << 16 * (reg % 2);
      else
        rows_c[reg][lane] = std::bit_cast<uint32_t>(static_cast<float>(AccumulatorAt(c, reg, lane)));
    }
  Matrix expected = Product(a, b, c);
  MultiplyFloat(shape, rows_a, rows_b, rows_c, rows_c);
  for (int lane = 0; lane < 32; ++lane)
    for (int reg = 0; reg < 4; ++reg) {
      const auto want = static_cast<float>(AccumulatorAt(expected, reg, lane));
      if (shape.f16_accumulator)
        EXPECT_EQ(rows_c[reg / 2][lane] >> 16 * (reg % 2) & 0xffff, FloatToHalf(want)) << lane << " " << reg;
      else
        EXPECT_EQ(std::bit_cast<float>(rows_c[reg][lane]), want) << lane << " " << reg;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, FloatMatrix,
    testing::Values(FloatCase{{MatrixFloat::kF16, MatrixFloat::kF16, 2, false}, -99, 99},
                    FloatCase{{MatrixFloat::kF16, MatrixFloat::kF16, 1, false}, -99, 99},
                    FloatCase{{MatrixFloat::kF16, MatrixFloat::kF16, 2, true}, -99, 99},
                    FloatCase{{MatrixFloat::kF16, MatrixFloat::kF16, 1, true}, -99, 99},
                    FloatCase{{MatrixFloat::kBF16, MatrixFloat::kBF16, 2, false}, -99, 99},
                    FloatCase{{MatrixFloat::kBF16, MatrixFloat::kBF16, 1, false}, -99, 99},
                    FloatCase{{MatrixFloat::kTF32, MatrixFloat::kTF32, 2, false}, -999, 999},
                    FloatCase{{MatrixFloat::kTF32, MatrixFloat::kTF32, 1, false}, -999, 999},
                    FloatCase{{MatrixFloat::kE4M3, MatrixFloat::kE4M3, 2, false}, -8, 8},
                    FloatCase{{MatrixFloat::kE5M2, MatrixFloat::kE5M2, 2, false}, -4, 4},
                    FloatCase{{MatrixFloat::kE4M3, MatrixFloat::kE5M2, 2, false}, -4, 4},
                    FloatCase{{MatrixFloat::kE5M2, MatrixFloat::kE4M3, 1, false}, -4, 4}));

TEST(FloatMatrix, WithoutAccumulatorStartsAtZero) {
  FragmentRow a[4] = {}, b[2] = {}, d[4];
  std::memset(d, 0xff, sizeof d);
  MultiplyFloat({}, a, b, nullptr, d);
  for (int reg = 0; reg < 4; ++reg)
    for (int lane = 0; lane < 32; ++lane) EXPECT_EQ(d[reg][lane], 0u);
}

struct IntegerCase {
  IntegerMatrixShape shape;
  int low_a, high_a, low_b, high_b;
};

class IntegerMatrix : public testing::TestWithParam<IntegerCase> {};

TEST_P(IntegerMatrix, EqualsThreeLoops) {
  const IntegerCase& param = GetParam();
  const IntegerMatrixShape& shape = param.shape;
  std::mt19937 random(11);
  const int per_register = shape.a == MatrixInteger::kS4 || shape.a == MatrixInteger::kU4 ? 8 : 4;
  const int bits = 32 / per_register, k = 4 * per_register * shape.k_tiles, m = 8 * shape.m_tiles;
  const uint32_t mask = (1u << bits) - 1;
  const Matrix a = Random(m, k, random, true, param.low_a, param.high_a);
  const Matrix b = Random(k, 8, random, true, param.low_b, param.high_b);
  Matrix c = Random(m, 8, random, true, -9000, 9000);
  if (shape.saturate) c[0][0] = 2147483647.0, c[1][2] = -2147483648.0;
  FragmentRow rows_a[4] = {}, rows_b[2] = {}, rows_c[4] = {};
  const auto encode = [&](double value) { return static_cast<uint32_t>(static_cast<int>(value)) & mask; };
  SplitA(a, per_register, shape.m_tiles,
         [&](int reg, int lane, int i, double value) { rows_a[reg][lane] |= encode(value) << (bits * i); });
  SplitB(b, per_register,
         [&](int reg, int lane, int i, double value) { rows_b[reg][lane] |= encode(value) << (bits * i); });
  for (int lane = 0; lane < 32; ++lane)
    for (int reg = 0; reg < 2 * shape.m_tiles; ++reg)
      rows_c[reg][lane] = static_cast<uint32_t>(static_cast<int32_t>(AccumulatorAt(c, reg, lane)));
  Matrix expected = Product(a, b, c);
  MultiplyInteger(shape, rows_a, rows_b, rows_c, rows_c);
  for (int lane = 0; lane < 32; ++lane)
    for (int reg = 0; reg < 2 * shape.m_tiles; ++reg) {
      const double want = std::clamp(AccumulatorAt(expected, reg, lane), -2147483648.0, 2147483647.0);
      EXPECT_EQ(static_cast<int32_t>(rows_c[reg][lane]), static_cast<int32_t>(want)) << lane << " " << reg;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, IntegerMatrix,
    testing::Values(IntegerCase{{MatrixInteger::kS8, MatrixInteger::kS8, 2, 2, false}, -128, 127, -128, 127},
                    IntegerCase{{MatrixInteger::kU8, MatrixInteger::kU8, 2, 2, true}, 0, 255, 0, 255},
                    IntegerCase{{MatrixInteger::kS8, MatrixInteger::kU8, 2, 2, true}, -128, 127, 0, 255},
                    IntegerCase{{MatrixInteger::kU8, MatrixInteger::kS8, 2, 1, false}, 0, 255, -128, 127},
                    IntegerCase{{MatrixInteger::kS8, MatrixInteger::kS8, 1, 1, false}, -128, 127, -128, 127},
                    IntegerCase{{MatrixInteger::kS4, MatrixInteger::kU4, 2, 2, false}, -8, 7, 0, 15},
                    IntegerCase{{MatrixInteger::kU4, MatrixInteger::kS4, 2, 1, false}, 0, 15, -8, 7},
                    IntegerCase{{MatrixInteger::kS4, MatrixInteger::kS4, 1, 1, false}, -8, 7, -8, 7}));

class DoubleMatrix : public testing::TestWithParam<DoubleMatrixShape> {};

TEST_P(DoubleMatrix, EqualsThreeLoops) {
  const DoubleMatrixShape shape = GetParam();
  std::mt19937 random(13);
  const int m = 8 * shape.m_tiles, k = 4 * shape.k_tiles;
  const Matrix a = Random(m, k, random, false, -9999, 9999), b = Random(k, 8, random, false, -9999, 9999);
  Matrix c = Random(m, 8, random, false, -9999, 9999);
  FragmentRow rows_a[16] = {}, rows_b[8] = {}, rows_c[8] = {};
  const auto set = [](FragmentRow* rows, int reg, int lane, double value) {
    const auto bits = std::bit_cast<uint64_t>(value);
    rows[2 * reg][lane] = static_cast<uint32_t>(bits);
    rows[2 * reg + 1][lane] = static_cast<uint32_t>(bits >> 32);
  };
  SplitA(a, 1, shape.m_tiles, [&](int reg, int lane, int, double value) { set(rows_a, reg, lane, value); });
  SplitB(b, 1, [&](int reg, int lane, int, double value) { set(rows_b, reg, lane, value); });
  for (int lane = 0; lane < 32; ++lane)
    for (int reg = 0; reg < 2 * shape.m_tiles; ++reg) set(rows_c, reg, lane, AccumulatorAt(c, reg, lane));
  Matrix expected = Product(a, b, c);
  MultiplyDouble(shape, rows_a, rows_b, rows_c, rows_c);
  for (int lane = 0; lane < 32; ++lane)
    for (int reg = 0; reg < 2 * shape.m_tiles; ++reg) {
      const uint64_t bits = rows_c[2 * reg][lane] | uint64_t{rows_c[2 * reg + 1][lane]} << 32;
      EXPECT_EQ(std::bit_cast<double>(bits), AccumulatorAt(expected, reg, lane)) << lane << " " << reg;
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, DoubleMatrix,
                         testing::Values(DoubleMatrixShape{1, 1}, DoubleMatrixShape{2, 1},
                                         DoubleMatrixShape{2, 2}, DoubleMatrixShape{2, 4}));

TEST(MatrixTranspose, MovesElementsAcrossLanes) {
  FragmentRow s, d;
  for (uint32_t lane = 0; lane < 32; ++lane)
    s[lane] = (2 * lane) | (2 * lane + 1) << 16;  // element i of the tile is i
  TransposeHalfTile(s, d);
  for (uint32_t row = 0; row < 8; ++row)
    for (uint32_t column = 0; column < 8; ++column) {
      const uint32_t word = d[row * 4 + column / 2];
      EXPECT_EQ((column % 2 ? word >> 16 : word & 0xffff), column * 8 + row);
    }
}

TEST(NarrowFloats, KnownValues) {
  EXPECT_EQ(HalfToFloat(0x3c00), 1.0f);
  EXPECT_EQ(HalfToFloat(0x0001), 0x1p-24f);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToHalf(1.0f + 0x1p-11f), 0x3c00);  // tie to even
  EXPECT_EQ(FloatToBFloat(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(FloatToBFloat(1.0f + 0x3p-8f), 0x3f82);
  EXPECT_EQ(E4M3ToFloat(0x7e), 448.0f);
  EXPECT_EQ(E4M3ToFloat(0x01), 0x1p-9f);
  EXPECT_TRUE(std::isnan(E4M3ToFloat(0x7f)));
  EXPECT_EQ(E5M2ToFloat(0x7b), 57344.0f);
  EXPECT_TRUE(std::isinf(E5M2ToFloat(0xfc)));
}

}  // namespace
}  // namespace heddle::emulator
