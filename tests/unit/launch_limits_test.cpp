// Which launches could no GPU of an architecture start?
#include "sim/isa/launch_limits.h"

#include <gtest/gtest.h>

namespace heddle::isa {
namespace {

LaunchShape Shape(uint32_t threads, uint32_t registers, uint32_t shared_bytes, uint32_t cluster = 1) {
  LaunchShape shape;
  shape.grid = {64, 1, 1};
  shape.block = {threads, 1, 1};
  shape.cluster = {cluster, 1, 1};
  shape.registers_per_thread = registers;
  shape.shared_bytes_per_cta = shared_bytes;
  return shape;
}

TEST(LaunchLimits, HoldWhatFits) {
  EXPECT_EQ(ExceededLimit(80, Shape(1024, 64, 164 << 10)), "");  // 163 KiB and what is reserved
  EXPECT_EQ(ExceededLimit(90, Shape(256, 255, 228 << 10, 16)), "");
  EXPECT_EQ(ExceededLimit(75, Shape(1024, 64, 64 << 10)), "");
  EXPECT_EQ(ExceededLimit(12345, Shape(4096, 255, 1 << 30)), "");  // not known
}

TEST(LaunchLimits, OfAnUnknownArchitectureAreThoseOfTheOneBefore) {
  for (const auto& [asked, found] : {std::pair{70u, 75u}, {80u, 80u}, {88u, 87u}, {110u, 103u}, {121u, 120u}})
    EXPECT_EQ(NearestLaunchLimits(asked).sm_version, found) << asked;
}

TEST(LaunchLimits, NameTheFirstThatIsExceeded) {
  EXPECT_EQ(ExceededLimit(80, Shape(1056, 32, 0)), "1056 threads a CTA, sm_80 allows 1024");
  // 65 registers are given as 72, to 32 warps of 32 lanes.
  EXPECT_EQ(ExceededLimit(90, Shape(1024, 65, 0)), "73728 registers a CTA, sm_90 allows 65536");
  EXPECT_EQ(ExceededLimit(89, Shape(128, 32, (100 << 10) + 1)),
            "102401 bytes of shared memory a CTA with those reserved, sm_89 allows 102400");
  EXPECT_EQ(ExceededLimit(80, Shape(128, 32, 0, 2)), "2 CTAs a cluster, sm_80 allows 1");
}

}  // namespace
}  // namespace heddle::isa
