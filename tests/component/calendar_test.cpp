// Exact cycles of reservations, derived from "first buckets with units left, from a given cycle on".
#include "sim/engine/calendar.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace heddle::engine {
namespace {

TEST(Calendar, AloneTakesAmountOverCapacityRoundedUp) {
  Calendar port(64, 4);                  // 64 bytes a cycle
  EXPECT_EQ(port.Reserve(10, 32), 11U);  // half a cycle
  EXPECT_EQ(port.Reserve(100, 128), 102U);
  EXPECT_EQ(port.Reserve(203, 128), 205U);  // over the end of a bucket (203 | 204)
}

TEST(Calendar, QueuesInOrder) {
  Calendar unit(1, 4);
  // One a cycle: the n-th that asks at cycle 0 is through at n.
  for (Cycle n = 1; n <= 300; ++n) EXPECT_EQ(unit.Reserve(0, 1), n);
}

TEST(Calendar, FirstFitFillsTheGapBeforeAnEarlierReservation) {
  Calendar unit(1, 1);
  EXPECT_EQ(unit.Reserve(20, 4), 24U);  // takes 20..23
  EXPECT_EQ(unit.Reserve(18, 2), 20U);  // 18, 19 are still free
  EXPECT_EQ(unit.Reserve(17, 2), 25U);  // 17 is free, 18..23 are not, 24 is
  EXPECT_EQ(unit.Reserve(17, 1), 26U);
}

TEST(Calendar, FractionalCapacity) {
  Calendar channel(17.25, 8);  // bytes a cycle
  // 128 / 17.25 = 7.42 cycles: rounded up 8; two take 14.84: 15; 100 take 742.03: 743.
  EXPECT_EQ(channel.Reserve(0, 128), 8U);
  EXPECT_EQ(channel.Reserve(0, 128), 15U);
  for (int i = 3; i < 100; ++i) channel.Reserve(0, 128);
  EXPECT_EQ(channel.Reserve(0, 128), 743U);
}

TEST(Calendar, GrowsAheadAndRecyclesBehind) {
  Calendar unit(1, 1);
  EXPECT_EQ(unit.Reserve(0, 1000), 1000U);
  unit.AdvanceTo(900);
  EXPECT_EQ(unit.Reserve(900, 1), 1001U);  // 900..999 are taken still
  unit.AdvanceTo(1'000'000'000);
  EXPECT_EQ(unit.Reserve(1'000'000'000, 2), 1'000'000'002U);
  unit.Reset();
  EXPECT_EQ(unit.Reserve(0, 1), 1U);
}

// Whatever the order of requests, no bucket gives more than it has, nothing is served early, and the total is
// served as soon as capacity allows when everything asks at once.
TEST(Calendar, NeverGivesMoreThanItHas) {
  std::mt19937_64 random(1);
  for (uint32_t bucket : {1U, 4U, 16U}) {
    Calendar calendar(3.5, bucket);
    uint64_t total = 0;
    Cycle last = 0;
    for (int i = 0; i < 20000; ++i) {
      const uint32_t amount = 1 + static_cast<uint32_t>(random() % 200);
      const Cycle from = random() % 500;
      const Cycle done = calendar.Reserve(from, amount);
      ASSERT_GE(static_cast<double>(done), static_cast<double>(from) + amount / 3.5 - 1e-3);
      total += amount;
      last = std::max(last, done);
    }
    EXPECT_GE(static_cast<double>(last), static_cast<double>(total) / 3.5 - 1);
    EXPECT_LE(static_cast<double>(last), static_cast<double>(total) / 3.5 + 501);
  }
}

// The ring of 64 buckets does not begin at a multiple of 64: what lies beyond its end is empty.
TEST(Calendar, FullToTheEndOfTheRing) {
  Calendar calendar(1, 1);
  calendar.AdvanceTo(40);
  EXPECT_EQ(calendar.Reserve(40, 64), 104u);
  EXPECT_EQ(calendar.Reserve(40, 1), 105u);
  EXPECT_EQ(calendar.Reserve(50, 2), 107u);
}

// Trap: with one "next free" time the same set of requests, asked in two orders, ends far apart.
TEST(Calendar, OrderOfAskingHardlyMatters) {
  std::mt19937_64 random(7);
  std::vector<Cycle> from(2000);
  for (Cycle& cycle : from) cycle = random() % 4000;
  const auto last_of = [&](bool reversed) {
    Calendar calendar(1, 4);
    Cycle last = 0;
    for (size_t i = 0; i < from.size(); ++i)
      last = std::max(last, calendar.Reserve(from[reversed ? from.size() - 1 - i : i], 1));
    return last;
  };
  EXPECT_NEAR(static_cast<double>(last_of(false)), static_cast<double>(last_of(true)), 4);
}

}  // namespace
}  // namespace heddle::engine
