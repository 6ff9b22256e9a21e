// The check of an output: right passes, and every kind of wrong fails.
#include <gtest/gtest.h>

#include <algorithm>
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

// Zeros equal zeros: a reference that is computed from contents nobody gave says nothing of the output.
TEST(TraceCheck, AnInputThatIsNotKnownIsNoReference) {
  Result<Trace> trace = BuildTraceFromText(kScaleDescription, "d", {}, FakeToolchain());
  const ReadMemory zeros = [](uint64_t, std::span<std::byte> out) -> Status {
    std::fill(out.begin(), out.end(), std::byte{0});
    return Ok();
  };
  const auto none = [&] {
    const Result<ResolvedTrace> resolved = Resolve(*trace, TypicalDevice());
    const Result<CheckReport> report = RunCheck(*trace, *resolved, zeros);
    EXPECT_TRUE(report.ok()) << (report.ok() ? "" : report.error().ToString());
    EXPECT_FALSE(report->passed());
    return report->none;
  };
  EXPECT_EQ(none(), "");  // it is known, and the zeros are wrong
  const Content whole = trace->contents[0];
  const std::string name = trace->buffers[whole.buffer].name;
  Content zero = whole, unknown = whole, part = whole;
  zero.rule = {RuleKind::kZeros, DType::kU8, 0, "", "", "", "", {}};
  unknown.rule = {};
  unknown.rule.copy_bytes = 4;
  part.rule = {RuleKind::kBytes, DType::kU8, 0, "", "", "", "", std::vector<std::byte>(3996)};
  for (const std::vector<Content>& contents : {std::vector<Content>{}, {unknown}, {zero, unknown}, {part}}) {
    trace->contents = contents;
    EXPECT_NE(none().find(name), std::string::npos) << contents.size();
  }
  trace->contents = {zero};
  const Result<ResolvedTrace> resolved = Resolve(*trace, TypicalDevice());
  EXPECT_TRUE(RunCheck(*trace, *resolved, zeros)->passed());
}

}  // namespace
}  // namespace heddle::trace
