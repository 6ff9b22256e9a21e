// How many CTAs of a real kernel does an SM hold, and is a CTA refused that no GPU can hold?
#include <gtest/gtest.h>

#include "frontend/trace/htrace.h"
#include "sim/config/load.h"
#include "sim/sm/sm.h"
#include "tools/replay/replay.h"
#include "tools/replay/verify.h"

namespace heddle {
namespace {

config::Gpu Load(const std::string& name, const std::vector<std::string>& overrides = {}) {
  auto gpu = config::LoadGpu(name, overrides);
  EXPECT_TRUE(gpu.ok()) << gpu.error().ToString();
  return *gpu;
}

// Triton's softmax of four rows, with as much dynamic shared memory as asked for.
trace::Trace Softmax(const std::string& architecture, int64_t dynamic_shared_bytes) {
  auto trace = trace::ReadTrace(HEDDLE_SOURCE_DIR "/traces/softmax." + architecture + ".htrace");
  EXPECT_TRUE(trace.ok()) << trace.error().ToString();
  trace->launches[0].dynamic_shared_bytes = dynamic_shared_bytes;
  return *trace;
}

isa::LaunchShape ShapeOf(const trace::Trace& trace, const config::Gpu& gpu) {
  auto replay = replay::Replay::Open(trace, gpu, {replay::Mode::kFull, {{"rows", 4}}});
  EXPECT_TRUE(replay.ok()) << replay.error().ToString();
  auto program = (*replay)->Prepare(0);
  EXPECT_TRUE(program.ok()) << program.error().ToString();
  return (*program)->shape();
}

// CUDA C++ Programming Guide: the system takes 1 KiB of shared memory for each CTA, since compute capability 8.0. A
// cubin of sm_80 does not say so (softmax has 0 bytes of its own), one of sm_90 does (1024).
TEST(Residency, WhatTheSystemReservesIsTakenOnce) {
  const config::Gpu a100 = Load("a100_sxm4_80gb"), h100 = Load("h100_sxm5");
  EXPECT_EQ(ShapeOf(Softmax("sm_80", 32 << 10), a100).shared_bytes_per_cta, 33u << 10);
  EXPECT_EQ(ShapeOf(Softmax("sm_90", 32 << 10), h100).shared_bytes_per_cta, 33u << 10);
}

// Five CTAs of 32 KiB would fit into 164 KiB, were it not for the five that are reserved.
TEST(Residency, SharedMemoryBoundsIt) {
  const trace::Trace trace = Softmax("sm_80", 32 << 10);
  const config::Gpu a100 = Load("a100_sxm4_80gb");
  EXPECT_EQ(sm::MaxResidentCtas(a100, ShapeOf(trace, a100)), 4u);
  const config::Gpu frugal = Load("a100_sxm4_80gb", {"sm.shared_memory.reserved_per_cta_bytes=0"});
  EXPECT_EQ(sm::MaxResidentCtas(frugal, ShapeOf(trace, frugal)), 5u);
}

TEST(Residency, VerifyRefusesWhatNoGpuHolds) {
  const auto verified = replay::Verify(Softmax("sm_80", 200 << 10), Load("a100_sxm4_80gb"), {{"rows", 4}});
  ASSERT_FALSE(verified.ok());
  EXPECT_EQ(verified.error().code, ExitCode::kTrace);
  EXPECT_NE(verified.error().ToString().find(
                "205824 bytes of shared memory a CTA with those reserved, sm_80 allows 167936"),
            std::string::npos)
      << verified.error().ToString();
  // sm_90 holds it, whatever machine the expressions see.
  const auto larger = replay::Verify(Softmax("sm_90", 200 << 10), Load("a100_sxm4_80gb"), {{"rows", 4}});
  EXPECT_TRUE(larger.ok()) << larger.error().ToString();
}

}  // namespace
}  // namespace heddle
