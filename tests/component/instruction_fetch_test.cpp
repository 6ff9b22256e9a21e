// Which lines of code wait for L1, and which ones a stream buffer has fetched before.
#include "sim/sm/units/instruction_fetch.h"

#include <gtest/gtest.h>

namespace heddle::sm {
namespace {

constexpr uint64_t kLine = 128;
constexpr Cycle kMiss = 78;

config::InstructionCaches Caches(uint32_t stream_buffers) {
  config::InstructionCaches caches;
  caches.instruction_bytes = 16;
  caches.stream_buffer_lines = 8;
  caches.stream_buffers = stream_buffers;
  caches.l1_lines_per_cycle = 1;
  caches.l0 = {.size_bytes = 4096, .line_bytes = kLine, .ways = 8, .miss_latency_cycles = kMiss};
  caches.l1 = {.size_bytes = 131072, .line_bytes = kLine, .ways = 16, .miss_latency_cycles = 0};
  return caches;
}

// Warps of one sub-core walk through `walks` stretches of code, turn about, a line every 200 cycles. Returns how many lines
// were not there when they were asked for.
uint32_t LinesWaitedFor(uint32_t stream_buffers, uint32_t walks) {
  InstructionFetch fetch(Caches(stream_buffers), 1);
  RequestPort port(0);
  fetch.Warm(0, 131072);
  uint32_t waited = 0;
  Cycle now = 0;
  for (uint64_t line = 0; line < 20; ++line)
    for (uint64_t walk = 0; walk < walks; ++walk) {
      if (fetch.Fetch(0, (walk * 200 + line) * kLine, now, &port) > now) ++waited;
      now += 200;
      fetch.AdvanceTo(now);
    }
  EXPECT_EQ(fetch.misses(), 0u);
  return waited;
}

TEST(InstructionFetch, OneStreamBufferFollowsOneWalk) { EXPECT_EQ(LinesWaitedFor(1, 1), 1u); }

// Each walk takes the only buffer from the other: nothing that was fetched ahead is ever used.
TEST(InstructionFetch, TwoWalksTakeOneBufferFromEachOther) { EXPECT_EQ(LinesWaitedFor(1, 2), 40u); }

TEST(InstructionFetch, AsManyBuffersAsWalksFollowThemAll) {
  EXPECT_EQ(LinesWaitedFor(2, 2), 2u);
  EXPECT_EQ(LinesWaitedFor(4, 4), 4u);
}

// The buffer that was not used for longest is taken: with five walks in turn that is always the one that is needed next.
TEST(InstructionFetch, OneWalkTooManyLeavesNothing) { EXPECT_EQ(LinesWaitedFor(4, 5), 100u); }

}  // namespace
}  // namespace heddle::sm
