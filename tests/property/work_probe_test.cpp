// What sampled mode learns of committed kernels before it simulates them: whether their CTAs do equal work, and which launches
// are alike.
#include "tools/replay/work_probe.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "frontend/trace/htrace.h"
#include "sim/config/load.h"
#include "tools/replay/replay.h"

namespace heddle::replay {
namespace {

struct Opened {
  trace::Trace trace;
  config::Gpu machine;
  std::unique_ptr<Replay> replay;
};

std::unique_ptr<Opened> Open(const std::string& name, const trace::Symbols& defines,
                             const std::string& machine = "a100_sxm4_80gb") {
  auto opened = std::make_unique<Opened>();
  opened->trace = *trace::ReadTrace(HEDDLE_SOURCE_DIR "/traces/" + name);
  opened->machine = *config::LoadGpu(machine);
  opened->replay = *Replay::Open(opened->trace, opened->machine, {Mode::kSampled, defines});
  return opened;
}

gpu::SamplingRequest Probe(const std::string& name, const trace::Symbols& defines) {
  const std::unique_ptr<Opened> opened = Open(name, defines);
  EXPECT_TRUE(opened->replay->Prepare(0).ok());
  const auto request = opened->replay->Sampling(0);
  EXPECT_TRUE(request.ok() && *request) << name;
  return request->value_or(gpu::SamplingRequest{});
}

TEST(WorkProbe, RowsOfANormAreAlike) {
  const gpu::SamplingRequest request = Probe("rms_norm.sm_80.htrace", {{"rows", 2000}, {"hidden", 512}});
  EXPECT_EQ(request.period_ctas, 1u);
  EXPECT_EQ(request.whole_because, "");
}

TEST(WorkProbe, CausalAttentionRepeatsWithTheBlocksOfAHead) {
  const gpu::SamplingRequest request =
      Probe("flash_attention.sm_80.htrace",
            {{"q_length", 320}, {"kv_length", 320}, {"q_heads", 256}, {"kv_heads", 64}});
  EXPECT_EQ(request.period_ctas, 5u);
  EXPECT_EQ(request.whole_because, "");
}

TEST(WorkProbe, SequencesOfDifferentLengthsAreNotSampled) {
  const gpu::SamplingRequest request = Probe("paged_decode.sm_80.htrace", {{"sequences", 200}});
  EXPECT_EQ(request.whole_because, "its CTAs do different amounts of work");
}

TEST(WorkProbe, OtherModesAskForNothing) {
  const auto opened = Open("rms_norm.sm_80.htrace", {});
  const auto exact = *Replay::Open(opened->trace, opened->machine, {Mode::kSkeleton, {}});
  ASSERT_TRUE(exact->Prepare(0).ok());
  EXPECT_FALSE((*exact->Sampling(0)).has_value());
}

TEST(WorkProbe, LaunchesAreAlikeWhereOnlyTheirBuffersDiffer) {
  const auto same = Open("validation/rrze_small_kernels.sm_80.htrace", {});
  ASSERT_GE(same->replay->launch_count(), 2u);
  EXPECT_EQ(same->replay->Likeness(0), same->replay->Likeness(1));
  EXPECT_NE(same->replay->Likeness(0), "");
  const auto other = Open("validation/elementwise.sm_80.htrace", {});
  EXPECT_NE(other->replay->Likeness(0), other->replay->Likeness(1));
  EXPECT_EQ(Open("paged_decode.sm_80.htrace", {})->replay->Likeness(0), "");  // memory decides its way
}

}  // namespace
}  // namespace heddle::replay
