#include <gtest/gtest.h>

#include "sim/base/check.h"
#include "sim/base/result.h"
#include "sim/base/types.h"

namespace heddle {
namespace {

Result<int> Half(int x) {
  if (x % 2 != 0) return Error{ExitCode::kUsage, "x", "odd", "give an even number"};
  return x / 2;
}

Result<int> Quarter(int x) {
  HEDDLE_ASSIGN_OR_RETURN(const int half, Half(x));
  return Half(half);
}

TEST(Result, CarriesValueOrError) {
  EXPECT_EQ(Quarter(12).value(), 3);
  ASSERT_FALSE(Quarter(6).ok());
  EXPECT_EQ(Quarter(6).error().ToString(), "x: odd\n  give an even number");
}

TEST(Check, StopsWithComponentAndCycle) {
  EXPECT_EXIT(HEDDLE_CHECK(1 == 2, "gpu[0].sm[3]", 42, "sums differ"), testing::ExitedWithCode(1),
              "cycle 42 in gpu\\[0\\].sm\\[3\\]: sums differ");
}

TEST(CeilDiv, RoundsUp) {
  EXPECT_EQ(CeilDiv(33u, 32u), 2u);
  EXPECT_EQ(CeilDiv(32u, 32u), 1u);
}

}  // namespace
}  // namespace heddle
