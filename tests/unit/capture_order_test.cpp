// Streams, events, graphs, addresses and merging of captured launches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>

#include "frontend/capture/address_space.h"
#include "frontend/capture/graphs.h"
#include "frontend/capture/launch_order.h"
#include "frontend/capture/merge.h"

namespace heddle::capture {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr LaunchOrder::Stream kA{1, 10}, kB{1, 11};

TEST(LaunchOrder, AnEventIsWhatItsStreamHadWaitedForWhenItWasRecorded) {
  LaunchOrder order;
  order.Launch(kA);  // 0
  order.RecordEvent(kA, 5);
  order.Launch(kA);  // 1
  order.WaitForEvent(kB, 5);
  order.RecordEvent(kB, 6);   // no launch in B yet: hands on what B waits for
  order.Launch(kB);           // 2, behind 0
  order.WaitForEvent(kA, 6);  // 0 is in A already
  order.Launch(kA);           // 3
  EXPECT_THAT(order.Edges(), ElementsAre(trace::Edge{0, 2}));
}

TEST(LaunchOrder, GraphsSideBySideAreJoinedByWhatFollows) {
  LaunchOrder order;
  order.Launch(kA);                                      // 0
  const auto streams = order.LaunchGraph(kA, {{}, {}});  // 1, 2
  order.Launch(kA);                                      // 3
  ASSERT_EQ(streams.size(), 2u);
  EXPECT_NE(streams[0], streams[1]);
  EXPECT_THAT(order.Edges(), ElementsAre(trace::Edge{0, 2}, trace::Edge{2, 3}));
}

TEST(LaunchOrder, AStreamThatWasDestroyedIsAnotherWhenItsHandleReturns) {
  LaunchOrder order;
  const uint32_t first = order.Launch(kA);
  order.DestroyStream(kA.second);
  EXPECT_NE(order.Launch(kA), first);
}

using Places = std::vector<uint32_t>;
constexpr uint32_t kNowhere = LaunchOrder::kNowhere;

// Work of another stream goes on beside a copy: the copy waits for its own stream's next launch.
TEST(LaunchOrder, ATransferTakesPlaceBeforeTheNextLaunchOfItsStream) {
  LaunchOrder order;
  order.Launch(kA);  // 0
  EXPECT_EQ(order.Transfer(kA, false), 0u);
  order.Launch(kB);  // 1
  order.Launch(kA);  // 2 takes it
  EXPECT_EQ(order.Transfer(kA, false), 1u);
  EXPECT_EQ(order.places(), (Places{2, kNowhere}));
  EXPECT_THAT(order.Edges(), IsEmpty());
}

// Behind an event it belongs to whoever waited first; the others wait for that launch.
TEST(LaunchOrder, ATransferTakesPlaceBeforeWhoeverIsBehindItFirst) {
  LaunchOrder order;
  order.Launch(kA);  // 0
  order.Transfer(kA, false);
  order.RecordEvent(kA, 5);
  order.Transfer(kA, false);  // behind the event
  order.WaitForEvent(kB, 5);
  order.Launch(kB);  // 1 takes the first
  order.Launch(kA);  // 2 takes the second
  EXPECT_EQ(order.places(), (Places{1, 2}));
  EXPECT_THAT(order.Edges(), ElementsAre(trace::Edge{0, 1}, trace::Edge{1, 2}));
}

TEST(LaunchOrder, WhatTheHostWaitedForIsBeforeTheNextLaunchOfAnyStream) {
  const auto place_after = [](auto wait) {
    LaunchOrder order;
    order.Launch(kA);  // 0
    order.Transfer(kA, false);
    order.RecordEvent(kA, 5);
    wait(order);
    order.Launch(kB);  // 1
    return order.places()[0];
  };
  EXPECT_EQ(place_after([](LaunchOrder&) {}), kNowhere);
  EXPECT_EQ(place_after([](LaunchOrder& order) { order.SynchronizeStream(kA); }), 1u);
  EXPECT_EQ(place_after([](LaunchOrder& order) { order.SynchronizeStream(kB); }), kNowhere);
  EXPECT_EQ(place_after([](LaunchOrder& order) { order.SynchronizeEvent(5); }), 1u);
  EXPECT_EQ(place_after([](LaunchOrder& order) { order.SynchronizeContext(kA.first); }), 1u);
  EXPECT_EQ(place_after([](LaunchOrder& order) { order.DestroyStream(kA.second); }), 1u);
  LaunchOrder order;
  order.Transfer(kA, true);
  order.Launch(kB);  // 0
  order.Launch(kA);  // 1 is behind it too
  EXPECT_EQ(order.places(), Places{0});
  EXPECT_THAT(order.Edges(), ElementsAre(trace::Edge{0, 1}));
}

TEST(LaunchOrder, AGraphTakesTransfersWithItsFirstLaunch) {
  LaunchOrder order;
  order.Launch(kA);  // 0
  order.Transfer(kA, false);
  order.LaunchGraph(kA, {{}, {}, {0, 1}});  // 1, 2, 3: 1 has the copy
  EXPECT_EQ(order.places(), Places{1});
  EXPECT_THAT(order.Edges(), ElementsAre(trace::Edge{0, 2}, trace::Edge{1, 2}, trace::Edge{2, 3}));
}

// kernel 1 -> copy 2 -> host function 3 -> kernel 4
TEST(Graphs, StepsAreWhatNodesDoAndOthersHandDependencesOn) {
  Graphs graphs;
  constexpr uint32_t kTypes[] = {0, 1, 3, 0};
  for (uint64_t node = 1; node <= 4; ++node) graphs.NodeCreated(100, node, kTypes[node - 1], 70 + node);
  for (uint64_t node = 2; node <= 4; ++node) graphs.NodeDependsOn(node, node - 1);
  graphs.SetAction(1, 5);
  graphs.SetAction(2, 6);
  graphs.SetAction(4, 7);
  for (uint64_t node = 1; node <= 4; ++node)
    graphs.NodeCloned(200, 10 + node, node, kTypes[node - 1], 80 + node);
  graphs.Instantiated(100, 500);
  graphs.Instantiated(200, 501);
  Graphs::Unknown unknown;
  for (const uint64_t executable : {500u, 501u}) {
    const auto steps = graphs.Steps(executable, &unknown);
    ASSERT_EQ(steps.size(), 3u);
    EXPECT_TRUE(steps[0].is_kernel);
    EXPECT_FALSE(steps[1].is_kernel);
    EXPECT_EQ(steps[1].action, 6u);
    EXPECT_EQ(steps[2].action, 7u);
    EXPECT_THAT(steps[0].depends_on, IsEmpty());
    EXPECT_THAT(steps[1].depends_on, ElementsAre(0));
    EXPECT_THAT(steps[2].depends_on, ElementsAre(1));
    EXPECT_THAT(steps[2].ids, testing::Contains(84));
  }
  EXPECT_EQ(unknown.kernels + unknown.transfers + unknown.nested, 0u);
  graphs.NodeCreated(100, 5, 0, 75);
  graphs.NodeCreated(100, 6, 2, 76);
  graphs.NodeCreated(100, 7, 4, 77);
  EXPECT_EQ(graphs.Steps(500, &unknown).size(), 3u);
  EXPECT_EQ(unknown.kernels, 1u);
  EXPECT_EQ(unknown.transfers, 1u);
  EXPECT_EQ(unknown.nested, 1u);
}

TEST(AddressSpace, OverlappingAllocationsBecomeOneBufferAndContentsKeepTheirTime) {
  AddressSpace memory;
  memory.Allocate(0x1000, 0x100);
  memory.Allocate(0x1080, 0x100);  // after the first was freed
  memory.Allocate(0x8000, 16);
  memory.Write(0x1090, "abcd", {0});
  memory.Write(0x1090, "efgh", {2});
  memory.Write(0x1090, "late", {3});     // behind the last launch
  memory.Write(0x9000, "lost", {0});     // memory whose allocation was not seen
  memory.Fill(0x8000, 0, 4, 4, {0, 0});  // a transfer that takes place before launch 1
  trace::Trace trace;
  EXPECT_EQ(memory.MoveTo(&trace, 3, {1}), 0u);
  ASSERT_EQ(trace.buffers.size(), 3u);
  EXPECT_EQ(trace.buffers[0].shape[0].value, 0x180);
  ASSERT_EQ(trace.contents.size(), 4u);
  EXPECT_EQ(trace.contents[0].offset_bytes.value, 0x90);
  EXPECT_EQ(trace.contents[1].before_launch, 2u);
  EXPECT_EQ(trace.contents[2].buffer, 2u);
  EXPECT_EQ(trace.contents[3].rule.kind, trace::RuleKind::kZeros);
  EXPECT_EQ(trace.contents[3].before_launch, 1u);
}

// What was not kept hides what was there before it: it is no longer known. Before the first launch that needs no word.
TEST(AddressSpace, WhatWasNotKeptIsUnknown) {
  AddressSpace memory;
  memory.Allocate(0x1000, 0x1000);
  memory.Fill(0x1000, 0, 1, 0x100, {0});
  memory.Forget(0x1000, 0x100, {0});  // covers the fill
  memory.Write(0x1400, "kept", {0});
  memory.Forget(0x1402, 2, {0});  // a part of it
  memory.Write(0x1800, "read", {0});
  memory.Copy(0x1900, 0x1800, 4, {0});
  memory.Forget(0x1800, 4, {0});  // covers what the copy needs
  memory.Forget(0x1f00, 0x80, {0});
  memory.Forget(0x1f00, 0x80, {2});  // a launch may have written there
  memory.Forget(0x9000, 16, {2});    // no memory of the device
  trace::Trace trace;
  memory.MoveTo(&trace, 3);
  ASSERT_EQ(trace.buffers.size(), 1u);
  std::vector<std::tuple<int64_t, trace::RuleKind, uint32_t>> found;
  for (const trace::Content& each : trace.contents)
    found.emplace_back(each.offset_bytes.value, each.rule.kind, each.before_launch);
  using trace::RuleKind;
  EXPECT_THAT(
      found, ElementsAre(std::tuple(0x400, RuleKind::kBytes, 0), std::tuple(0x402, RuleKind::kUnknown, 0),
                         std::tuple(0x800, RuleKind::kBytes, 0), std::tuple(0x900, RuleKind::kCopy, 0),
                         std::tuple(0x800, RuleKind::kUnknown, 0), std::tuple(0xf00, RuleKind::kUnknown, 2)));
  EXPECT_EQ(trace.contents[1].rule.copy_bytes, 2u);
  EXPECT_EQ(trace.contents[5].rule.copy_bytes, 0x80u);
}

trace::Trace OneLaunch(uint64_t address, int64_t start) {
  trace::Trace trace;
  trace.modules.push_back({"m", "00", {std::byte{1}}, 80});
  trace.functions.emplace_back().name = "k";
  trace.buffers.emplace_back().address = address;
  trace.buffers[0].shape = {trace::Expr(64)};
  for (const int64_t more : {0, 100}) {
    trace.launches.emplace_back().name = "k";
    trace.launches.back().measured_start_ns = start + more;
  }
  trace.contents.push_back({0, 0, 1, {}});
  return trace;
}

TEST(Merge, LaunchesInterleaveByTimeAndCodeIsKeptOnce) {
  const Result<MergedTraces> result =
      MergeTraces({{"a", OneLaunch(0x1000, 1000)}, {"b", OneLaunch(0x2000, 1050)}});
  ASSERT_TRUE(result.ok()) << result.error().ToString();
  EXPECT_THAT(result->relocated, testing::IsEmpty());
  const trace::Trace* merged = &result->trace;
  EXPECT_EQ(merged->modules.size(), 1u);
  EXPECT_EQ(merged->functions.size(), 1u);
  std::vector<uint32_t> streams;
  for (const trace::Launch& launch : merged->launches) streams.push_back(launch.stream);
  EXPECT_THAT(streams, ElementsAre(0, 1, 0, 1));
  ASSERT_EQ(merged->contents.size(), 2u);
  EXPECT_EQ(merged->contents[0].before_launch, 2u);
  EXPECT_EQ(merged->contents[1].before_launch, 3u);
  EXPECT_EQ(merged->contents[1].buffer, 1u);
}

std::vector<std::byte> Words(std::initializer_list<uint64_t> words) {
  std::vector<std::byte> bytes(8 * words.size());
  std::memcpy(bytes.data(), words.begin(), bytes.size());
  return bytes;
}

// Both processes lie on 0x1000...: the second one's memory moves, and what points into it, in parameters and in memory.
TEST(Merge, ProcessesOnTheSameAddressesAreKeptApart) {
  trace::Trace a = OneLaunch(0x1000, 0), b = OneLaunch(0x1020, 0);
  for (trace::Trace* each : {&a, &b}) {
    each->functions[0].parameter_bytes = 24;
    for (trace::Launch& launch : each->launches) launch.parameters.resize(24);
  }
  a.launches[0].parameters = Words({0x1008, 7, 0});
  b.launches[0].parameters = Words({0x1028, 0x1060, 0x105f});  // in it, behind it, its last byte
  b.contents[0].rule.kind = trace::RuleKind::kBytes;
  b.contents[0].rule.bytes = Words({0x1020, 5});
  const Result<MergedTraces> merged = MergeTraces({{"a", a}, {"b", b}});
  ASSERT_TRUE(merged.ok()) << merged.error().ToString();
  EXPECT_THAT(merged->relocated, ElementsAre("b"));
  const trace::Trace& trace = merged->trace;
  ASSERT_EQ(trace.buffers.size(), 2u);
  EXPECT_EQ(trace.buffers[0].address, 0x1000u);
  const uint64_t moved = trace.buffers[1].address;
  EXPECT_GE(moved, 0x1060u);
  EXPECT_EQ(moved % (2 << 20), 0x1020u);
  std::vector<std::vector<std::byte>> parameters;
  for (const trace::Launch& launch : trace.launches) parameters.push_back(launch.parameters);
  EXPECT_THAT(parameters, testing::Contains(Words({0x1008, 7, 0})));
  EXPECT_THAT(parameters, testing::Contains(Words({moved + 8, 0x1060, moved + 0x3f})));
  const auto bytes = std::find_if(trace.contents.begin(), trace.contents.end(),
                                  [](const trace::Content& each) { return each.buffer == 1; });
  ASSERT_NE(bytes, trace.contents.end());
  EXPECT_EQ(bytes->rule.bytes, Words({moved, 5}));
}

// A third one finds room behind the second.
TEST(Merge, EachProcessHasAnAddressSpaceOfItsOwn) {
  const Result<MergedTraces> merged =
      MergeTraces({{"a", OneLaunch(0x1000, 0)}, {"b", OneLaunch(0x1000, 0)}, {"c", OneLaunch(0x1000, 0)}});
  ASSERT_TRUE(merged.ok()) << merged.error().ToString();
  std::set<uint64_t> addresses;
  for (const trace::Buffer& buffer : merged->trace.buffers) addresses.insert(buffer.address);
  EXPECT_EQ(addresses.size(), 3u);
}

}  // namespace
}  // namespace heddle::capture
