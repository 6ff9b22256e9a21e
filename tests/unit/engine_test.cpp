#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/engine/wait_graph.h"
#include "sim/engine/workers.h"

namespace heddle::engine {
namespace {

TEST(Workers, EveryItemOnceOnAnyNumberOfThreads) {
  for (uint32_t threads : {1U, 2U, 7U}) {
    for (uint64_t seed : {0U, 42U}) {
      Workers workers(threads, seed);
      EXPECT_EQ(workers.threads(), threads);
      for (uint32_t count : {0U, 1U, 3U, 1000U}) {
        std::vector<uint32_t> seen(count, 0);
        workers.ForEach(count, [&](uint32_t i) { ++seen[i]; });
        for (uint32_t times : seen) ASSERT_EQ(times, 1U);
      }
    }
  }
}

TEST(Workers, ShuffleChangesTheOrder) {
  Workers workers(1, 5);
  std::vector<uint32_t> order;
  workers.ForEach(100, [&](uint32_t i) { order.push_back(i); });
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
}

TEST(WaitGraph, NamesTheCycle) {
  WaitGraph graph;
  graph.Add("warp[0]", "barrier 1", "warp[1]");
  graph.Add("warp[1]", "lock", "warp[2]");
  graph.Add("warp[2]", "barrier 2", "warp[1]");
  EXPECT_EQ(graph.FindCycle(), (std::vector<std::string>{"warp[1]", "warp[2]"}));
  EXPECT_EQ(graph.ToString(),
            "warp[0] waits for barrier 1, held by warp[1]\n"
            "warp[1] waits for lock, held by warp[2]\n"
            "warp[2] waits for barrier 2, held by warp[1]\n"
            "cycle: warp[1] -> warp[2] -> warp[1]\n");
}

TEST(WaitGraph, ChainWithoutCycle) {
  WaitGraph graph;
  for (int i = 0; i < 100000; ++i) graph.Add(std::to_string(i), "r", std::to_string(i + 1));
  EXPECT_TRUE(graph.FindCycle().empty());
  EXPECT_NE(graph.ToString(2).find("and 99998 more"), std::string::npos);
}

}  // namespace
}  // namespace heddle::engine
