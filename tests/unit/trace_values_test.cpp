// Element types, expressions and contents by rule.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>

#include "frontend/trace/content.h"
#include "frontend/trace/dtype.h"
#include "frontend/trace/expression.h"

namespace heddle::trace {
namespace {

TEST(DType, RoundsTiesToEvenAndSaturatesAsTheTypeDoes) {
  EXPECT_EQ(Encode(DType::kBf16, 1.0), 0x3f80u);
  EXPECT_EQ(Encode(DType::kBf16, 1.0 + 0x1p-8), 0x3f80u);      // tie: to even
  EXPECT_EQ(Encode(DType::kBf16, 1.0 + 3 * 0x1p-8), 0x3f82u);  // tie: to even
  EXPECT_EQ(Encode(DType::kBf16, 1.0 + 0x1p-8 + 0x1p-40),
            0x3f81u);  // one rounding only: through f32 this were a tie
  EXPECT_EQ(Encode(DType::kF16, 65519.0), 0x7bffu);
  EXPECT_EQ(Encode(DType::kF16, 65520.0), 0x7c00u);
  EXPECT_EQ(Encode(DType::kF16, 0x1p-24), 1u);
  EXPECT_EQ(Encode(DType::kF16, 0x1p-25), 0u);
  EXPECT_EQ(Encode(DType::kF16, 3 * 0x1p-25), 2u);
  EXPECT_EQ(Encode(DType::kE4m3, 448.0), 0x7eu);
  EXPECT_EQ(Encode(DType::kE4m3, 1e9), 0x7eu);
  EXPECT_EQ(Encode(DType::kE4m3, -1e9), 0xfeu);
  EXPECT_EQ(Encode(DType::kE5m2, 57344.0), 0x7bu);
  EXPECT_EQ(Encode(DType::kE5m2, 1e9), 0x7cu);
  EXPECT_EQ(Encode(DType::kTf32, 1.0 + 0x1p-10), 0x3f802000u);
  EXPECT_EQ(Encode(DType::kI8, 200.0), 0x7fu);
  EXPECT_EQ(Encode(DType::kI8, -200.0), 0x80u);
  EXPECT_EQ(Encode(DType::kU64, 0x1p64), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(Encode(DType::kI32, std::nan("")), 0u);
}

// Decoding and encoding again gives every number of the small types back.
TEST(DType, SmallTypesRoundTripEveryEncoding) {
  for (const DType type : {DType::kF16, DType::kBf16, DType::kE4m3, DType::kE5m2, DType::kI8, DType::kU8,
                           DType::kI16, DType::kU16}) {
    for (uint64_t bits = 0; bits < uint64_t{1} << (8 * SizeOf(type)); ++bits) {
      const double value = Decode(type, bits);
      if (std::isnan(value)) continue;
      ASSERT_EQ(Encode(type, value), bits) << Name(type) << " " << value;
    }
  }
}

TEST(DType, StepsCountRepresentableValues) {
  EXPECT_EQ(StepsBetween(DType::kBf16, 0x3f80, 0x3f82), 2u);
  EXPECT_EQ(StepsBetween(DType::kE4m3, 0x00, 0x80), 0u);
  EXPECT_EQ(StepsBetween(DType::kE4m3, 0x01, 0x81), 2u);
  EXPECT_EQ(StepsBetween(DType::kI32, 5, 0xfffffffe), 7u);
}

int64_t Eval(std::string_view text) {
  Scope scope;
  scope.symbols = {{"M", 4096}, {"sm_count", 108}};
  scope.buffers["x"] = {{3, 5}, 2};
  const auto value = EvaluateInteger(text, scope, "p");
  EXPECT_TRUE(value.ok()) << text << ": " << (value.ok() ? "" : value.error().ToString());
  return value.ok() ? *value : -1;
}

std::string EvalError(std::string_view text) {
  Scope scope;
  scope.symbols = {{"tokens", 1}};
  scope.buffers["x"] = {{3, 5}, 2};
  const auto value = EvaluateInteger(text, scope, "p");
  EXPECT_FALSE(value.ok()) << text;
  return value.ok() ? "" : value.error().ToString();
}

TEST(Expression, Evaluates) {
  EXPECT_EQ(Eval("1 + 2 * 3"), 7);
  EXPECT_EQ(Eval("(1 + 2) * 3 % 5"), 4);
  EXPECT_EQ(Eval("ceil_div(M + 1, 128)"), 33);
  EXPECT_EQ(Eval("round_up(M + 1, 128)"), 4224);
  EXPECT_EQ(Eval("min(2 * sm_count, M, 300)"), 216);
  EXPECT_EQ(Eval("select(M >= 4096, -3, 4)"), -3);
  EXPECT_EQ(Eval("64Ki + 0x10"), 65552);
  EXPECT_EQ(Eval("numel(x) * 100 + nbytes(x) + dim(x, 1) * 1000"), 6530);
  EXPECT_EQ(Eval("-9223372036854775807 - 1"), std::numeric_limits<int64_t>::min());
  Scope scope;
  scope.symbols = {{"d", 64}};
  EXPECT_DOUBLE_EQ(*EvaluateReal("rsqrt(d) + 1e-3 * log2(8)", scope, ""), 0.128);
}

// Computed by hand from the heuristic in FlashAttention's flash_api.cpp, for the 108 SMs of an A100 and the 132 of an H100.
TEST(Expression, FlashAttentionSplitsAsTheLibraryDoes) {
  EXPECT_EQ(Eval("flash_splits(64, 2 * sm_count, 8)"), 3);    // 192 of 216 places; 4 would need a second round
  EXPECT_EQ(Eval("flash_splits(8, 2 * sm_count, 8)"), 8);     // 7 would leave parts as long as 6 does
  EXPECT_EQ(Eval("flash_splits(1, 2 * sm_count, 256)"), 128);  // no more than 128
  EXPECT_EQ(Eval("flash_splits(172, 2 * sm_count, 64)"), 5);   // 3.98 of four rounds; one part fills 0.8 of one
  EXPECT_EQ(Eval("flash_splits(173, 2 * sm_count, 64)"), 1);   // four fifths of the places are taken
  EXPECT_EQ(Eval("flash_splits(64, 2 * sm_count, 1)"), 1);
  EXPECT_EQ(Eval("flash_splits(8, 132, 64, 1)"), 15);   // 33 would fill two rounds, 15 do 0.91
  EXPECT_EQ(Eval("flash_splits(1, 132, 256, 1)"), 109);
  EXPECT_EQ(Eval("flash_splits(1, 132, 4, 1)"), 1);     // FA3 leaves 4 blocks whole
  EXPECT_EQ(Eval("flash_splits(1, 132, 4)"), 4);
}

TEST(Expression, ErrorsSayWhereAndWhatNext) {
  EXPECT_NE(EvalError("flash_splits(0, 216, 8)").find("from 1 to 2147483648"), std::string::npos);
  EXPECT_EQ(EvalError("1 + tokesn"),
            "p: \"1 + tokesn\", column 5: 'tokesn' is not defined\n  did you mean 'tokens'?");
  EXPECT_NE(EvalError("9223372036854775807 + 1").find("64 bits"), std::string::npos);
  EXPECT_NE(EvalError("4294967296 * 4294967296").find("64 bits"), std::string::npos);
  EXPECT_NE(EvalError("(0 - 9223372036854775807 - 1) / -1").find("64 bits"), std::string::npos);
  EXPECT_NE(EvalError("1 / (tokens - 1)").find("division by zero"), std::string::npos);
  EXPECT_NE(EvalError("ceil_div(1)").find("no function ceil_div of 1"), std::string::npos);
  EXPECT_NE(EvalError("(1").find("')' expected"), std::string::npos);
  EXPECT_NE(EvalError("").find("ends too early"), std::string::npos);
  EXPECT_NE(EvalError("1.5").find("unexpected '.'"), std::string::npos);
  EXPECT_NE(EvalError("99999999999999999999").find("does not fit"), std::string::npos);
  EXPECT_NE(EvalError("dim(x, 2)").find("2 dimensions"), std::string::npos);
  EXPECT_NE(EvalError("numel(y)").find("no buffer"), std::string::npos);
  EXPECT_NE(EvalError(std::string(1000, '(')).find("nested too deeply"), std::string::npos);
  EXPECT_NE(EvalError(std::string(1000, '-') + "1").find("nested too deeply"), std::string::npos);
}

TEST(Expression, NamesAreFound) {
  EXPECT_EQ(NamesIn("ceil_div(M, 64Ki) + min (a_1, 0x1f, 1e3)"), (std::set<std::string>{"M", "a_1"}));
}

std::shared_ptr<const ContentSource> Make(RuleKind kind, DType type, ContentSource::Numbers numbers,
                                          uint64_t count, uint64_t seed = 1) {
  ContentRule rule;
  rule.kind = kind;
  rule.type = type;
  rule.seed = seed;
  auto source = ContentSource::Make(rule, numbers, count, "here");
  EXPECT_TRUE(source.ok()) << (source.ok() ? "" : source.error().ToString());
  return *source;
}

std::vector<double> Values(const ContentSource& source, DType type, uint64_t count) {
  std::vector<std::byte> bytes(count * SizeOf(type));
  source.Fill(0, bytes);
  std::vector<double> values(count);
  for (uint64_t i = 0; i < count; ++i) values[i] = Load(type, bytes, i);
  return values;
}

// Any split of the range gives the same bytes, for every rule: pages may be made in any order.
TEST(Content, IsAFunctionOfThePosition) {
  for (const RuleKind kind : {RuleKind::kZeros, RuleKind::kConstant, RuleKind::kIota, RuleKind::kUniform,
                              RuleKind::kNormal, RuleKind::kPermutation, RuleKind::kOffsets}) {
    const auto source = Make(kind, DType::kI32, {100, 200, 7, 3}, 97);
    std::vector<std::byte> whole(97 * 4 + 8);  // the last 8 bytes lie behind the end
    source->Fill(0, whole);
    for (const uint64_t piece : {1u, 3u, 7u, 64u}) {
      std::vector<std::byte> parts(whole.size(), std::byte{0xee});
      for (uint64_t at = 0; at < parts.size(); at += piece)
        source->Fill(at, std::span(parts).subspan(at, std::min<uint64_t>(piece, parts.size() - at)));
      EXPECT_EQ(parts, whole) << static_cast<int>(kind) << " in pieces of " << piece;
    }
  }
}

TEST(Content, IotaRepeatsAndWraps) {
  const auto source = Make(RuleKind::kIota, DType::kI64, {10, -2, 3, 2}, 8);
  EXPECT_EQ(Values(*source, DType::kI64, 8), (std::vector<double>{10, 10, 8, 8, 6, 6, 10, 10}));
}

TEST(Content, UniformIntegersCoverTheirRange) {
  const auto values = Values(*Make(RuleKind::kUniform, DType::kI8, {-2, 3}, 6000), DType::kI8, 6000);
  for (int v = -2; v <= 3; ++v)
    EXPECT_NEAR(static_cast<double>(std::count(values.begin(), values.end(), v)), 1000, 130)
        << v;  // 4.5 sigma
  EXPECT_EQ(*std::min_element(values.begin(), values.end()), -2);
  EXPECT_EQ(*std::max_element(values.begin(), values.end()), 3);
}

TEST(Content, NormalHasItsMoments) {
  constexpr uint64_t kCount = 200000;
  const auto values = Values(*Make(RuleKind::kNormal, DType::kF64, {3, 2}, kCount), DType::kF64, kCount);
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / kCount;
  double variance = 0;
  double third = 0;
  for (const double v : values) {
    variance += (v - mean) * (v - mean) / kCount;
    third += std::pow((v - mean) / 2, 3) / kCount;
  }
  EXPECT_NEAR(mean, 3, 0.02);
  EXPECT_NEAR(variance, 4, 0.06);
  EXPECT_NEAR(third, 0, 0.03);
  // Values of f32 use the whole mantissa: a grid of 2^-16 would hide errors of the last bits.
  std::set<double> fractions;
  for (uint64_t i = 0; i < 1000; ++i) fractions.insert(std::fmod(std::fabs(values[i]) * 65536, 1.0));
  EXPECT_GT(fractions.size(), 990u);
}

TEST(Content, PermutationHasEveryValueOnce) {
  for (const uint64_t size : {1u, 2u, 3u, 64u, 1000u}) {
    auto values = Values(*Make(RuleKind::kPermutation, DType::kI32, {static_cast<double>(size)}, size),
                         DType::kI32, size);
    if (size > 3) {
      EXPECT_FALSE(std::is_sorted(values.begin(), values.end()));
    }
    std::sort(values.begin(), values.end());
    for (uint64_t i = 0; i < size; ++i) ASSERT_EQ(values[i], static_cast<double>(i));
  }
}

TEST(Content, OffsetsAreSortedFromZeroToTheTotal) {
  for (const double total : {0.0, 5.0, 4096.0}) {
    const auto values = Values(*Make(RuleKind::kOffsets, DType::kI32, {total}, 9), DType::kI32, 9);
    EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
    EXPECT_EQ(values.front(), 0);
    EXPECT_EQ(values.back(), total);
  }
  EXPECT_EQ(Values(*Make(RuleKind::kOffsets, DType::kI32, {8, 1}, 5), DType::kI32, 5),
            (std::vector<double>{0, 2, 4, 6, 8}));
}

TEST(Content, KnowsWhetherItIsConstant) {
  EXPECT_TRUE(Make(RuleKind::kZeros, DType::kF32, {}, 4)->IsConstant());
  EXPECT_TRUE(Make(RuleKind::kUniform, DType::kI32, {3, 3}, 4)->IsConstant());
  EXPECT_TRUE(Make(RuleKind::kNormal, DType::kF32, {3, 0}, 4)->IsConstant());
  EXPECT_FALSE(Make(RuleKind::kNormal, DType::kF32, {0, 1}, 4)->IsConstant());
  EXPECT_FALSE(Make(RuleKind::kPermutation, DType::kI32, {4}, 4)->IsConstant());
}

TEST(Content, RefusesWhatTheTypeCannotTake) {
  const auto error = [](RuleKind kind, DType type, ContentSource::Numbers numbers, uint64_t count) {
    ContentRule rule;
    rule.kind = kind;
    rule.type = type;
    const auto source = ContentSource::Make(rule, numbers, count, "here");
    EXPECT_FALSE(source.ok());
    return source.ok() ? "" : source.error().ToString();
  };
  EXPECT_NE(error(RuleKind::kUniform, DType::kU8, {0, 256}, 4).find("does not fit into u8"),
            std::string::npos);
  EXPECT_NE(error(RuleKind::kUniform, DType::kF32, {1, 0}, 4).find("empty"), std::string::npos);
  EXPECT_NE(error(RuleKind::kUniform, DType::kI32, {0.5, 2}, 4).find("no integers"), std::string::npos);
  EXPECT_NE(error(RuleKind::kPermutation, DType::kI32, {3}, 4).find("4 elements"), std::string::npos);
  EXPECT_NE(error(RuleKind::kConstant, DType::kI8, {1000}, 4).find("does not fit"), std::string::npos);
  EXPECT_NE(error(RuleKind::kNormal, DType::kF32, {0, -1}, 4).find("at least 0"), std::string::npos);
  EXPECT_NE(error(RuleKind::kOffsets, DType::kI32, {4}, 1).find("at least 2"), std::string::npos);
  EXPECT_NE(error(RuleKind::kIota, DType::kI32, {0, 1, 0, 0}, 4).find("repeat is 0"), std::string::npos);
}

}  // namespace
}  // namespace heddle::trace
