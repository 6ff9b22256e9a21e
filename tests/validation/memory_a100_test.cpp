// The memory system alone against published measurements of A100: latency of a pointer chase by footprint and
// bandwidth of reads by footprint (RRZE gpu-benches; sizes are powers of two based). Which levels there are is an input
// (33, 205, +150, +191 ns); what the curve does beyond one partition's 20 MiB is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "tests/support/machines.h"
#include "tests/support/traffic.h"

namespace heddle {
namespace {

constexpr double kMiB = 1024 * 1024;
// What the SM adds to a load that goes to L2: 205 cycles are an L2 hit, of which the A100's description leaves so many
// to the SM.
double SmPart(const config::Gpu& gpu) { return 205.0 - static_cast<double>(engine::ShortestReply(gpu)); }

// One thread follows a random cycle through a buffer, one 32-byte sector a line.
double ChaseLatency(double size_bytes) {
  const config::Gpu gpu = test::A100();
  test::TrafficDriver driver(gpu);
  std::vector<uint32_t> order(static_cast<size_t>(size_bytes / 128));
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  test::Traffic chase;
  chase.requests_per_sm = 3 * order.size();  // three rounds, of which the last half is counted
  chase.make = [&](uint32_t, uint64_t i) {
    memory::MemoryRequest request;
    request.line_address = (uint64_t{1} << 32) + uint64_t{order[i % order.size()]} * 128;
    request.sector_mask = 1;
    return request;
  };
  return driver.Run(chase).mean_latency + SmPart(gpu);
}

TEST(A100, ChaseWithinOnePartition) {
  EXPECT_NEAR(ChaseLatency(0.6 * kMiB), 205, 205 * 0.02);
  EXPECT_NEAR(ChaseLatency(13.8 * kMiB), 206, 206 * 0.02);
}
TEST(A100, ChaseBeyondOnePartition) {
  EXPECT_NEAR(ChaseLatency(21.6 * kMiB), 290.8, 290.8 * 0.05);
  EXPECT_NEAR(ChaseLatency(33.8 * kMiB), 406.9, 406.9 * 0.05);
}
TEST(A100, ChaseBeyondL2) { EXPECT_NEAR(ChaseLatency(52.8 * kMiB), 506.7, 506.7 * 0.07); }

// All SMs read the whole buffer, each from another place on (as gpu-l2-cache does), or each its own part.
double ReadBandwidth(double size_bytes, int rounds, bool shared) {
  const config::Gpu gpu = test::A100();
  test::TrafficDriver driver(gpu);
  const uint64_t lines = static_cast<uint64_t>(size_bytes / 128);
  test::Traffic read;
  read.sms = gpu.sm.count;
  read.in_flight = 192;  // 24 KiB of lines an SM: three times what 34 bytes a cycle need at 205 cycles
  const uint64_t part = lines / gpu.sm.count;
  read.requests_per_sm = part * static_cast<uint64_t>(rounds);
  read.make = [&](uint32_t sm, uint64_t i) {
    memory::MemoryRequest request;
    const uint64_t line = shared ? (i + sm * part * 37) % lines : sm * part + i % part;
    request.line_address = (uint64_t{1} << 32) + line * 128;
    request.sector_mask = 0xf;
    return request;
  };
  driver.Run(read);  // warms
  const test::TrafficResult result = driver.Run(read);
  const double bytes = static_cast<double>(read.requests_per_sm) * 128 * read.sms;
  return bytes / static_cast<double>(result.cycles) * gpu.clocks.sm_mhz / 1000;  // GB/s
}

// Bytes that DRAM moves a cycle while each SM reads its part of 16 MiB, cold or behind a flush that left L2 dirty.
double DramBytesPerCycle(bool flushed) {
  const config::Gpu gpu = test::A100();
  test::TrafficDriver driver(gpu);
  if (flushed) driver.memory().FillWithForeignLines();
  test::Traffic read;
  read.sms = gpu.sm.count;
  read.in_flight = 192;
  read.requests_per_sm = static_cast<uint64_t>(16 * kMiB / 128) / gpu.sm.count;
  read.make = [&](uint32_t sm, uint64_t i) {
    memory::MemoryRequest request;
    request.line_address = (uint64_t{1} << 32) + (sm * read.requests_per_sm + i) * 128;
    request.sector_mask = 0xf;
    return request;
  };
  const test::TrafficResult result = driver.Run(read);
  EXPECT_EQ(result.counters.dram_write_bytes != 0, flushed);
  return static_cast<double>(result.counters.dram_read_bytes + result.counters.dram_write_bytes) /
         static_cast<double>(result.cycles);
}

// A slice's lines are written back to the channels of its own partition: a byte costs what a byte that is read does, and turn-arounds.
TEST(A100, LinesOfAFlushGoToAllChannels) {
  EXPECT_GT(DramBytesPerCycle(true), 0.9 * DramBytesPerCycle(false));
}

TEST(A100, L2ReadBandwidth) { EXPECT_NEAR(ReadBandwidth(5.6 * kMiB, 20, true), 5431, 5431 * 0.08); }
TEST(A100, DramReadBandwidth) { EXPECT_NEAR(ReadBandwidth(110 * kMiB, 1, false), 1879, 1879 * 0.05); }

}  // namespace
}  // namespace heddle
