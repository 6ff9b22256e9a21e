// Units that answer for all lanes at once, against the plain definition of what they compute.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "sim/sm/units/coalescer.h"
#include "sim/sm/units/cycle_port.h"
#include "sim/sm/units/ready_list.h"
#include "sim/sm/units/shared_memory.h"
#include "sim/sm/units/tag_array.h"

namespace heddle::sm {
namespace {

constexpr uint32_t kBytes[] = {1, 2, 4, 8, 16};

struct Pattern {
  std::array<uint64_t, kWarpLanes> address{};
  uint32_t lanes = ~0u;
  uint32_t bytes = 4;
};

// Strides, rows, broadcasts and scatter, of all or some lanes.
Pattern MakePattern(std::mt19937_64* random, uint64_t range) {
  Pattern pattern;
  const auto pick = [&](uint64_t below) { return (*random)() % below; };
  pattern.bytes = kBytes[pick(5)];
  if (pick(3) == 0) pattern.lanes = static_cast<uint32_t>((*random)());
  const uint64_t stride = pattern.bytes * pick(pick(2) == 0 ? 3 : 40);
  const uint64_t row = pattern.bytes * pick(200);
  const uint64_t row_lanes = uint64_t{1} << pick(6);
  const uint64_t base = pick(range / 2) / pattern.bytes * pattern.bytes;
  const bool scatter = pick(4) == 0;
  for (uint64_t lane = 0; lane < kWarpLanes; ++lane)
    pattern.address[lane] = scatter ? pick(range) / pattern.bytes * pattern.bytes
                                    : base + lane % row_lanes * stride + lane / row_lanes * row;
  return pattern;
}

void ExpectCoalesced(const Pattern& pattern) {
  LineAccesses got;
  Coalesce(pattern.address.data(), pattern.lanes, pattern.bytes, &got, true);
  std::vector<LineAccess> expected;
  for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if ((pattern.lanes >> lane & 1) == 0) continue;
    for (uint64_t byte = pattern.address[lane]; byte < pattern.address[lane] + pattern.bytes; ++byte) {
      const uint64_t line = byte / memory::kLineBytes * memory::kLineBytes;
      auto at = std::find_if(expected.begin(), expected.end(),
                             [&](const LineAccess& each) { return each.line_address == line; });
      if (at == expected.end()) at = expected.insert(at, LineAccess{line});
      at->lanes |= 1u << lane;
      at->sector_mask = static_cast<uint8_t>(at->sector_mask | 1u << (byte - line) / memory::kSectorBytes);
      ++at->bytes;
      uint8_t& in_sector = at->sector_bytes[(byte - line) / memory::kSectorBytes];
      if (in_sector < memory::kSectorBytes) ++in_sector;
    }
  }
  ASSERT_EQ(got.count, expected.size());
  for (uint32_t i = 0; i < got.count; ++i) {
    EXPECT_EQ(got.lines[i].line_address, expected[i].line_address);
    EXPECT_EQ(got.lines[i].lanes, expected[i].lanes);
    EXPECT_EQ(got.lines[i].sector_mask, expected[i].sector_mask);
    EXPECT_EQ(got.lines[i].bytes, expected[i].bytes);
    EXPECT_EQ(got.lines[i].sector_bytes, expected[i].sector_bytes);
  }
}

TEST(Coalescer, LinesSectorsAndBytesOfEveryPattern) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000 && !testing::Test::HasFailure(); ++i) {
    Pattern pattern = MakePattern(&random, uint64_t{1} << (8 + i % 30));
    if (i % 5 == 0)
      for (uint64_t& address : pattern.address) address += random() % 16;  // unaligned: may cross a line
    ExpectCoalesced(pattern);
  }
}

// A phase takes as many wavefronts as its busiest bank has different words (atomics: lanes).
uint32_t WavefrontsByWord(const Pattern& pattern, bool atomic) {
  const uint32_t words = std::max(1u, pattern.bytes / 4);
  uint32_t wavefronts = 0;
  for (uint32_t first = 0; first < kWarpLanes; first += kWarpLanes / words) {
    std::map<uint64_t, std::multiset<uint64_t>> by_bank;
    for (uint32_t lane = first; lane < first + kWarpLanes / words; ++lane) {
      if ((pattern.lanes >> lane & 1) == 0) continue;
      for (uint64_t word = pattern.address[lane] / 4; word < pattern.address[lane] / 4 + words; ++word)
        if (auto& bank = by_bank[word % 32]; atomic || !bank.contains(word)) bank.insert(word);
    }
    size_t most = 0;
    for (const auto& [bank, asked] : by_bank) most = std::max(most, asked.size());
    wavefronts += static_cast<uint32_t>(most);
  }
  return wavefronts;
}

TEST(SharedMemory, WavefrontsOfEveryPattern) {
  config::SharedMemory config;
  config.banks = 32;
  config.bank_bytes = 4;
  config.bank_conflicts = true;
  const SharedMemory shared(config);
  std::mt19937_64 random(2);
  for (int i = 0; i < 20000 && !testing::Test::HasFailure(); ++i) {
    const Pattern pattern = MakePattern(&random, 4096);
    const bool atomic = i % 4 == 0 && pattern.bytes <= 8;
    EXPECT_EQ(shared.WavefrontsOf(pattern.address.data(), pattern.lanes, pattern.bytes, atomic).count,
              WavefrontsByWord(pattern, atomic));
  }
}

TEST(CyclePort, TakesTheFirstFreeCycles) {
  std::mt19937_64 random(3);
  CyclePort port;
  std::set<Cycle> taken;
  Cycle begin = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 100 == 0) {
      begin += random() % (random() % 20 == 0 ? 5000 : 300);
      port.AdvanceTo(begin);
    }
    const Cycle from = begin + random() % (random() % 50 == 0 ? 20000 : 400);
    const auto cycles = static_cast<uint32_t>(1 + random() % (random() % 10 == 0 ? 20 : 2));
    Cycle last = from;
    for (uint32_t left = cycles; left > 0; ++last) left -= taken.insert(last).second;
    ASSERT_EQ(port.Reserve(from, cycles), last) << from << " " << cycles;
  }
}

// Warps come, go, get ready and wait for ports; the list must say what a look at all of them says.
TEST(ReadyList, ChoosesAsALookAtAllWarps) {
  std::mt19937_64 random(4);
  const auto pick = [&](uint64_t below) { return static_cast<uint32_t>(random() % below); };
  ReadyList list;
  std::vector<uint32_t> order;  // front first
  std::array<Cycle, kWarpsPerSubCore> ready{};
  std::array<IssuePort, kWarpsPerSubCore> port{};
  std::array<Cycle, kIssuePortCount> port_free{};
  Cycle floor = 0;
  uint32_t greedy = kNoIndex;
  for (int i = 0; i < 200'000; ++i) {
    const uint32_t warp = pick(kWarpsPerSubCore);
    const auto at = std::find(order.begin(), order.end(), warp);
    const uint32_t action = pick(20);
    if (at == order.end()) {
      if (action >= 3) continue;
      const bool in_front = pick(2) == 0;
      order.insert(in_front ? order.begin() : order.end(), warp);
      list.Insert(warp, in_front);
      ready[warp] = kNever;
      port[warp] = IssuePort::kNone;
    } else if (action == 0) {
      order.erase(at);
      list.Remove(warp);
      if (greedy == warp) greedy = kNoIndex;
    } else if (action < 12) {
      ready[warp] = pick(10) == 0 ? kNever : floor + pick(20);
      port[warp] = static_cast<IssuePort>(pick(4));
      list.Set(warp, ready[warp], port[warp]);
    } else {
      const uint32_t which = pick(4);
      port_free[which] = pick(20) == 0 ? kNever : floor + pick(10);
      list.SetPortFree(static_cast<IssuePort>(which), port_free[which]);
    }
    ReadyList::Choice expected;
    const auto consider = [&](uint32_t each) {
      const Cycle cycle = std::max({floor, ready[each], port_free[static_cast<size_t>(port[each])]});
      if (cycle < expected.cycle) expected = {cycle, each};
    };
    if (greedy != kNoIndex) consider(greedy);
    for (const uint32_t each : order) consider(each);
    const ReadyList::Choice choice = list.Next(floor, greedy);
    ASSERT_EQ(choice.cycle, expected.cycle);
    ASSERT_EQ(choice.warp, expected.warp);
    if (choice.warp != kNoIndex && pick(3) == 0) {
      greedy = choice.warp;
      floor = choice.cycle + 1;
    }
  }
}

// Least recently used among what has arrived, also where the numbers of uses begin anew; lines whose lower halves are
// the same are told apart.
TEST(SmUnits, TagsReplaceTheLeastRecentlyUsedLine) {
  constexpr uint32_t kWays = 8, kSets = 4;
  config::CacheGeometry geometry;
  geometry.size_bytes = 128 * kWays * kSets;
  geometry.line_bytes = 128;
  geometry.ways = kWays;
  TagArray tags(geometry, 0, ~0u - 5000);
  struct Held {
    uint64_t line;
    Cycle arrival;
  };
  std::array<std::vector<Held>, kSets> sets;  // least recently used first
  std::mt19937_64 random(3);
  for (int step = 0; step < 20000; ++step) {
    const uint64_t line = random() % 60 | (random() % 4 == 0 ? uint64_t{1} << 32 : 0);
    std::vector<Held>& set = sets[line % kSets];
    const auto held =
        std::find_if(set.begin(), set.end(), [&](const Held& each) { return each.line == line; });
    Cycle* const found = tags.Find(line);
    ASSERT_EQ(found != nullptr, held != set.end()) << step;
    if (found != nullptr) {
      ASSERT_EQ(*found, held->arrival);
      if (random() % 2 == 0) *found = held->arrival = static_cast<Cycle>(step);
      std::rotate(held, held + 1, set.end());
      continue;
    }
    const Cycle arrival = random() % 2 == 0 ? TagArray::kOnItsWay : static_cast<Cycle>(step);
    std::optional<uint64_t> replaced;
    if (set.size() < kWays) {
      set.push_back({line, arrival});
    } else if (const auto victim =
                   std::find_if(set.begin(), set.end(),
                                [](const Held& each) { return each.arrival != TagArray::kOnItsWay; });
               victim != set.end()) {
      replaced = victim->line;
      set.erase(victim);
      set.push_back({line, arrival});
    }
    ASSERT_EQ(tags.Insert(line, arrival), replaced.value_or(TagArray::kNoLine));
  }
}

}  // namespace
}  // namespace heddle::sm
