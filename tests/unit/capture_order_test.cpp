// Streams, events, graphs, addresses and merging of captured launches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

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

// The copy is made when the next launch starts, whosever it is: so that one waits for what wrote the source, and what follows in the
// copy's stream waits for it.
TEST(LaunchOrder, ACopyIsMadeBeforeTheNextLaunch) {
  LaunchOrder order;
  order.Launch(kA);  // 0
  order.Copy(kA);
  order.Launch(kB);  // 1
  order.Launch(kA);  // 2
  order.Copy(kA);
  order.Launch(kA);  // 3: no edge, the stream orders them
  order.Copy(kB);
  order.LaunchGraph(kA, {{}, {}, {0, 1}});  // 4, 5, 6: 4 has the copy
  EXPECT_THAT(order.Edges(),
              ElementsAre(trace::Edge{0, 1}, trace::Edge{1, 2}, trace::Edge{1, 4}, trace::Edge{1, 5},
                          trace::Edge{3, 5}, trace::Edge{4, 5}, trace::Edge{5, 6}));
}

// kernel 1 -> copy 2 -> kernel 3: the copy hands the dependence on.
TEST(Graphs, DependencesGoThroughNodesThatAreNoKernels) {
  Graphs graphs;
  graphs.NodeCreated(100, 1, 0, 71);
  graphs.NodeCreated(100, 2, 1, 72);
  graphs.NodeCreated(100, 3, 0, 73);
  graphs.NodeDependsOn(2, 1);
  graphs.NodeDependsOn(3, 2);
  graphs.SetLaunch(1, 0);
  graphs.SetLaunch(3, 1);
  graphs.NodeCloned(200, 11, 1, 0, 81);
  graphs.NodeCloned(200, 12, 2, 1, 82);
  graphs.NodeCloned(200, 13, 3, 0, 83);
  graphs.Instantiated(100, 500);
  graphs.Instantiated(200, 501);
  uint32_t unknown = 0;
  for (const uint64_t executable : {500u, 501u}) {
    const auto kernels = graphs.Kernels(executable, &unknown);
    ASSERT_EQ(kernels.size(), 2u);
    EXPECT_EQ(kernels[1].launch, 1u);
    EXPECT_THAT(kernels[0].depends_on, IsEmpty());
    EXPECT_THAT(kernels[1].depends_on, ElementsAre(0));
    EXPECT_THAT(kernels[1].ids, testing::Contains(83));
  }
  EXPECT_EQ(unknown, 0u);
  graphs.NodeCreated(100, 4, 0, 74);
  EXPECT_EQ(graphs.Kernels(500, &unknown).size(), 2u);
  EXPECT_EQ(unknown, 1u);
}

TEST(AddressSpace, OverlappingAllocationsBecomeOneBufferAndContentsKeepTheirTime) {
  AddressSpace memory;
  memory.Allocate(0x1000, 0x100);
  memory.Allocate(0x1080, 0x100);  // after the first was freed
  memory.Allocate(0x8000, 16);
  memory.Write(0x1090, "abcd", 0);
  memory.Write(0x1090, "efgh", 2);
  memory.Write(0x1090, "late", 3);  // behind the last launch
  memory.Write(0x9000, "lost", 0);  // memory whose allocation was not seen
  memory.Fill(0x8000, 0, 4, 4, 1);
  trace::Trace trace;
  EXPECT_EQ(memory.MoveTo(&trace, 3), 0u);
  ASSERT_EQ(trace.buffers.size(), 3u);
  EXPECT_EQ(trace.buffers[0].shape[0].value, 0x180);
  ASSERT_EQ(trace.contents.size(), 4u);
  EXPECT_EQ(trace.contents[0].offset_bytes.value, 0x90);
  EXPECT_EQ(trace.contents[1].before_launch, 2u);
  EXPECT_EQ(trace.contents[2].buffer, 2u);
  EXPECT_EQ(trace.contents[3].rule.kind, trace::RuleKind::kZeros);
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
