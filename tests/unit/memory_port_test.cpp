// Accesses that are performed later than they are issued, at a slice: what a warp may pass, when memory changes, and
// several threads that perform lanes of one stream at once.
#include "frontend/emulator/memory_port.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace heddle::emulator {
namespace {

constexpr uint32_t kLowHalf = 0x0000ffff;
constexpr uint32_t kHighHalf = 0xffff0000;

class MemoryPortTest : public testing::Test {
 protected:
  MemoryPortTest() { port_.device = &memory_; }

  uint64_t Allocate(uint64_t bytes) { return memory_.Allocate({.name = "x", .size_bytes = bytes}).value(); }
  uint32_t Word(uint64_t address) {
    uint32_t word = 0;
    EXPECT_TRUE(memory_.Read(address, std::as_writable_bytes(std::span(&word, 1))).ok());
    return word;
  }
  // Lane i adds i + 1 to the word `stride` * i bytes behind `base`; the old value goes to `destination`.
  uint32_t Add(uint64_t base, uint32_t stride, Row* destination, uint8_t scoreboards) {
    uint32_t token = 0;
    PendingAccess& access = port_.NewPending(&token);
    access.kind = PendingAccess::Kind::kAtomic;
    access.bytes = 4;
    access.op = AtomicOp::kAdd;
    access.type = AtomicType::kU32;
    access.remaining = ~0u;
    access.destination = destination;
    access.scoreboards = scoreboards;
    access.warp = &warp_;
    for (uint32_t i = 0; i < kWarpLanes; ++i) {
      access.address[i] = base + uint64_t{stride} * i;
      access.operand[0].lane[i] = i + 1;
    }
    port_.HoldUp(warp_, scoreboards);
    return token;
  }

  DeviceMemory memory_;
  MemoryPort port_;
  CtaState cta_;
  Warp warp_;
};

TEST_F(MemoryPortTest, ResultsHoldTheWarpUntilEveryLaneIsPerformed) {
  const uint64_t base = Allocate(kWarpLanes * 4);
  Row old{};
  const uint32_t token = Add(base, 4, &old, 0b10);
  EXPECT_EQ(warp_.pending_scoreboards, 0b10);
  EXPECT_EQ(Word(base), 0u);  // nothing happens at issue
  port_.Perform(token, kLowHalf);
  port_.Drain();
  EXPECT_EQ(Word(base + 4), 2u);
  EXPECT_EQ(Word(base + 16 * 4), 0u);
  EXPECT_EQ(warp_.pending_scoreboards, 0b10);
  EXPECT_EQ(port_.outstanding(), 1u);
  port_.Perform(token, kHighHalf);
  EXPECT_EQ(warp_.pending_scoreboards, 0b10);  // not before the stream's own thread asks
  port_.Drain();
  EXPECT_EQ(warp_.pending_scoreboards, 0);
  EXPECT_EQ(port_.outstanding(), 0u);
  for (uint32_t i = 0; i < kWarpLanes; ++i) EXPECT_EQ(Word(base + 4 * i), i + 1);
}

// Lanes that share a word see each other in the order in which they are performed.
TEST_F(MemoryPortTest, LanesOfOneWordFollowEachOther) {
  const uint64_t base = Allocate(4);
  Row old{};
  const uint32_t token = Add(base, 0, &old, 1);
  port_.Perform(token, kHighHalf);
  port_.Perform(token, kLowHalf);
  port_.Drain();
  EXPECT_EQ(Word(base), 32u * 33 / 2);
  EXPECT_EQ(old.lane[16], 0u);
  EXPECT_EQ(old.lane[17], 17u);
  EXPECT_EQ(old.lane[0], 16u * (17 + 32) / 2);  // what lanes 16 to 31 have added
}

TEST_F(MemoryPortTest, AScoreboardCountsItsAccesses) {
  const uint64_t base = Allocate(kWarpLanes * 4);
  Row first{}, second{};
  const uint32_t a = Add(base, 4, &first, 0b1);
  const uint32_t b = Add(base, 4, &second, 0b101);
  EXPECT_EQ(warp_.pending_scoreboards, 0b101);
  port_.Perform(b, ~0u);  // out of order: the second first
  port_.Drain();
  EXPECT_EQ(warp_.pending_scoreboards, 0b1);
  port_.Perform(a, ~0u);
  port_.Drain();
  EXPECT_EQ(warp_.pending_scoreboards, 0);
  EXPECT_EQ(second.lane[3], 0u);
  EXPECT_EQ(first.lane[3], 4u);
}

// A CTA has ended: its atomics still change memory, its registers belong to somebody else.
TEST_F(MemoryPortTest, AnEndedCtaGetsNoResults) {
  const uint64_t base = Allocate(kWarpLanes * 4);
  Row old{};
  for (uint32_t& lane : old.lane) lane = 77;
  warp_.cta = &cta_;
  const uint32_t token = Add(base, 4, &old, 0b1);
  port_.Forget(&cta_);
  warp_.pending_scoreboards = 0b1000;  // of the warp that lives there now
  port_.Perform(token, ~0u);
  port_.Drain();
  EXPECT_EQ(Word(base), 1u);
  EXPECT_EQ(old.lane[0], 77u);
  EXPECT_EQ(warp_.pending_scoreboards, 0b1000);
  EXPECT_EQ(port_.outstanding(), 0u);
}

// Slices on four threads, each with its own lanes, as the seam allows; and tokens that are reused.
TEST_F(MemoryPortTest, ThreadsPerformDifferentLanes) {
  constexpr uint32_t kAccesses = 200;
  constexpr uint32_t kThreads = 4;
  const uint64_t base = Allocate(kWarpLanes * 4);
  std::vector<Row> old(kAccesses);
  for (int round = 0; round < 3; ++round) {
    std::vector<uint32_t> tokens;
    for (uint32_t i = 0; i < kAccesses; ++i)
      tokens.push_back(Add(base, 4, &old[i], static_cast<uint8_t>(1u << i % kScoreboards)));
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (const uint32_t token : tokens) port_.Perform(token, 0xffu << 8 * t);
      });
    }
    for (std::thread& thread : threads) thread.join();
    port_.Drain();
    EXPECT_EQ(port_.outstanding(), 0u);
    EXPECT_EQ(warp_.pending_scoreboards, 0);
  }
  for (uint32_t i = 0; i < kWarpLanes; ++i) {
    EXPECT_EQ(Word(base + 4 * i), 3 * kAccesses * (i + 1));
    // Each lane's additions came in the order of the tokens.
    for (uint32_t k = 0; k < kAccesses; ++k) EXPECT_EQ(old[k].lane[i], (2 * kAccesses + k) * (i + 1));
  }
}

}  // namespace
}  // namespace heddle::emulator
