// The check of an output: right passes, and every kind of wrong fails.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "frontend/trace/check.h"
#include "tests/unit/fake_toolchain.h"

namespace heddle::trace {
namespace {

// y = 2 x, with one element changed by `factor`.
Comparison CheckWith(double factor, size_t index) {
  const Result<Trace> trace = BuildTraceFromText(kScaleDescription, "d", {}, FakeToolchain());
  const Result<ResolvedTrace> resolved = Resolve(*trace, TypicalDevice());
  const ReadMemory read = [&](uint64_t address, std::span<std::byte> out) -> Status {
    EXPECT_EQ(address, resolved->buffers[1].address);
    resolved->contents[0].source->Fill(0, out);
    for (size_t i = 0; i < out.size() / 4; ++i)
      Store(DType::kF32, 2 * Load(DType::kF32, out, i) * (i == index ? factor : 1), out, i);
    return Ok();
  };
  const Result<CheckReport> report = RunCheck(*trace, *resolved, read);
  EXPECT_TRUE(report.ok()) << (report.ok() ? "" : report.error().ToString());
  EXPECT_EQ(report->passed(), report->comparisons[0].passed);
  return report->comparisons[0];
}

TEST(TraceCheck, ComparesEveryElement) {
  const Comparison right = CheckWith(1, 0);
  EXPECT_TRUE(right.passed);
  EXPECT_EQ(right.elements, 1000u);
  EXPECT_EQ(right.max_error, 0);
  for (const size_t index : {0u, 499u, 999u}) {
    for (const double factor :
         {-1.0, 1.5, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      const Comparison wrong = CheckWith(factor, index);
      EXPECT_FALSE(wrong.passed) << factor;
      EXPECT_EQ(wrong.outside, 1u);
      EXPECT_EQ(wrong.worst_index, index);
    }
  }
}

}  // namespace
}  // namespace heddle::trace
