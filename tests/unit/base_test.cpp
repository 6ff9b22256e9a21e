#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/large_pages.h"
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
// Whether what malloc gives lies where the kernel may use large pages: "hg" among the flags of its mapping.
TEST(LargePages, TheHeapLiesInThem) {
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage/enabled"))
    GTEST_SKIP() << "this kernel knows no large pages";
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers bring a malloc of their own";
#elif defined(__has_feature)
  if (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
    GTEST_SKIP() << "sanitizers bring a malloc of their own";
#endif
  UseLargePages();
  std::vector<std::unique_ptr<std::array<char, 1 << 16>>> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(std::make_unique<std::array<char, 1 << 16>>());
  const auto address = reinterpret_cast<uintptr_t>(blocks.back().get());
  std::ifstream maps("/proc/self/smaps");
  bool is_here = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx ", &begin, &end) == 2)
      is_here = begin <= address && address < end;
    if (is_here && line.starts_with("VmFlags:")) {
      EXPECT_NE(line.find(" hg"), std::string::npos) << line;
      return;
    }
  }
  FAIL() << "the block is in no mapping";
}

}  // namespace heddle
