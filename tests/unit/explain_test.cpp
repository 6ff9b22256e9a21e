// Reliefs: does every one of them change a machine into one that passes its checks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "sim/config/load.h"
#include "tools/explain/relief.h"

namespace heddle::explain {
namespace {

using testing::ElementsAre;

TEST(Relief, EveryOneIsAMachine) {
  for (const char* name : {"a100_sxm4_80gb", "h100_sxm5"}) {
    const auto gpu = config::LoadGpu(name);
    ASSERT_TRUE(gpu.ok()) << gpu.error().ToString();
    for (const Relief& relief : Reliefs()) {
      const std::vector<std::string> overrides = OverridesOf(relief, *gpu);
      if (relief.key == "tma" && !gpu->sm.tma) {
        EXPECT_TRUE(overrides.empty());
        continue;
      }
      EXPECT_FALSE(overrides.empty()) << relief.key;
      const auto relieved = config::LoadGpu(name, overrides);
      ASSERT_TRUE(relieved.ok()) << name << ", " << relief.key << ": " << relieved.error().ToString();
      EXPECT_NE(config::Digest(*relieved), config::Digest(*gpu)) << relief.key;
    }
  }
}

// Each wait that an issue slot can be charged to has something that may help it, and each name is a stall.
TEST(Relief, EveryStallHasOne) {
  const std::set<std::string_view> without = {"selected", "sleeping", "misc"};
  for (size_t i = 0; i < stats::StallDefs().size(); ++i) {
    const auto stall = static_cast<stats::Stall>(i);
    const bool helped = std::any_of(Reliefs().begin(), Reliefs().end(), [&](const Relief& relief) {
      return relief.stalls != "*" && relief.Helps(stall);
    });
    EXPECT_EQ(helped, !without.contains(stats::StallDefs()[i].name)) << stats::StallDefs()[i].name;
  }
}

TEST(Relief, FactorsAreAppliedToWhatTheMachineHas) {
  const config::Gpu gpu = *config::LoadGpu("a100_sxm4_80gb");
  const Relief relief{"x", "", "",
                      "dram.bandwidth_gb_s*2 launch.overhead_cycles=0 sm.tma.queue_entries*2 "
                      "sm.dependences[*].to_same_cycles*0.1"};
  const std::vector<std::string> overrides = OverridesOf(relief, gpu);
  ASSERT_GT(overrides.size(), 3u);
  EXPECT_EQ(overrides[0], "dram.bandwidth_gb_s=4078");
  EXPECT_EQ(overrides[1], "launch.overhead_cycles=0");
  EXPECT_EQ(overrides[2], "sm.dependences[class_alu].to_same_cycles=1");  // whole, and not 0
}

TEST(Command, SplitsAsAShellDoes) {
  EXPECT_THAT(SplitCommand("heddle run 'a b.htrace' -d m=3  --set 'x='"),
              ElementsAre("heddle", "run", "a b.htrace", "-d", "m=3", "--set", "x="));
  EXPECT_THAT(SplitCommand("a 'it'\\''s' ''"), ElementsAre("a", "it's", ""));
  EXPECT_THAT(SplitCommand(""), ElementsAre());
}

}  // namespace
}  // namespace heddle::explain
