// What must hold of a GPU whatever it runs: it drains to empty, a cold start forgets everything, a deadlock is reported
// with who waits for what, replies are never early.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sim/gpu/dispatcher.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/launch_graph.h"
#include "tests/support/machines.h"
#include "tests/support/scripted_kernel.h"
#include "tests/support/traffic.h"

namespace heddle {
namespace {

using gpu::LaunchRequest;

config::Gpu Small() {
  return test::A100({"sm.count=8", "gpc_count=2", "l2.slices=8", "l2.size_bytes=4194304", "dram.channels=8"});
}

test::ScriptedKernel Copy(uint32_t ctas) {
  test::ScriptedKernel kernel;
  kernel.grid = {ctas, 1, 1};
  kernel.iterations = 3;
  kernel.stores = true;
  kernel.bytes_per_lane = 16;
  kernel.load_address = [](uint64_t warp, uint32_t i) { return (uint64_t{1} << 32) + (warp * 3 + i) * 512; };
  kernel.store_address = [](uint64_t warp, uint32_t i) { return (uint64_t{1} << 33) + (warp * 3 + i) * 512; };
  return kernel;
}

TEST(GpuContract, AColdLaunchAfterOthersIsLikeTheFirst) {
  test::ScriptedMemory memory;
  test::ScriptedProgram program(Copy(40), &memory);
  gpu::Gpu gpu(Small(), {});
  const LaunchRequest launch{&program, "copy", 0, {}};
  const auto first = gpu.Run({&launch, 1});
  ASSERT_TRUE(first.ok());
  const Cycle between = gpu.now();
  const auto second = gpu.Run({&launch, 1});
  ASSERT_TRUE(second.ok());
  EXPECT_GE((*second)[0].start_cycle, between);
  // Bytes are the same; cycles may differ by where the launch meets DRAM's refreshes.
  EXPECT_EQ((*first)[0].counters.dram_read_bytes, (*second)[0].counters.dram_read_bytes);
  EXPECT_EQ((*first)[0].counters.lts_lookups_sector, (*second)[0].counters.lts_lookups_sector);
  EXPECT_NEAR(static_cast<double>((*first)[0].counters.sm_cycles_elapsed),
              static_cast<double>((*second)[0].counters.sm_cycles_elapsed), 400);
}

TEST(GpuContract, EveryWarpAndByteIsAccountedFor) {
  test::ScriptedMemory memory;
  test::ScriptedProgram program(Copy(40), &memory);
  gpu::Gpu gpu(Small(), {});
  const LaunchRequest launch{&program, "copy", 0, {}};
  const auto result = gpu.Run({&launch, 1});
  ASSERT_TRUE(result.ok());
  const stats::LaunchStats& stats = (*result)[0];
  const uint64_t warps = 40 * 4;
  EXPECT_EQ(stats.counters.smsp_warps_launched, warps);
  EXPECT_EQ(stats.counters.smsp_inst_executed,
            warps * (3 * 4 + 1));  // LDG, IADD3, STG, BRA three times; EXIT
  EXPECT_EQ(stats.counters.l1tex_m_write_bytes, warps * 3 * 512);
  uint64_t issued = 0;
  for (const stats::PcStats& pc : stats.per_pc) issued += pc.issued;
  EXPECT_EQ(issued, stats.counters.smsp_inst_executed);
  EXPECT_GT(memory.published, 0U);
}

// A warp that waits at a barrier for a partner that never comes.
class BlockedStream : public isa::WarpStream {
 public:
  void StartCta(const isa::CtaStart&) override {}
  void EndCta(uint32_t) override {}
  isa::InstructionRun NextRun(uint32_t) override {
    return {0, 0, ~0U, blocked_ ? isa::WarpState::kBlocked : isa::WarpState::kRunnable};
  }
  void Execute(uint32_t, Cycle, isa::WarpStep* step) override {
    blocked_ = true;
    step->kind = isa::StepKind::kBarrier;
    step->state = isa::WarpState::kBlocked;
    step->index = 0;
    step->lanes = ~0U;
    step->barrier = {isa::BarrierOp::kSync, 3, 32, 64};
  }
  void ReleaseBarrier(uint32_t, uint8_t) override {}
  void CompleteAsyncCopy(uint32_t, Cycle) override {}
  void PerformAtSlice(uint32_t, uint32_t, Cycle) override {}

 private:
  bool blocked_ = false;
};

// Instructions without operands, and a stream that knows what they do.
template <typename Stream>
class ListedProgram : public isa::LaunchProgram {
 public:
  ListedProgram(uint32_t sm_version, const std::vector<isa::Op>& ops, uint32_t ctas = 1, uint32_t warps = 1) {
    code_.sm_version = sm_version;
    for (const isa::Op op : ops) {
      isa::Instruction& instruction = code_.instructions.emplace_back();
      instruction.op = op;
      instruction.pc = static_cast<uint32_t>(code_.instructions.size() - 1) * isa::kInstructionBytes;
    }
    shape_.grid = {ctas, 1, 1};
    shape_.block = {kWarpLanes * warps, 1, 1};
    shape_.registers_per_thread = 16;
    shape_.code_address = 1 << 20;
  }
  const isa::KernelCode& code() const override { return code_; }
  const isa::LaunchShape& shape() const override { return shape_; }
  isa::MemoryImage& memory() override { return memory_; }
  std::unique_ptr<isa::WarpStream> OpenOnSm(uint32_t) override { return std::make_unique<Stream>(); }
  std::vector<isa::StreamIssue> Issues() const override { return {}; }

 private:
  isa::KernelCode code_;
  isa::LaunchShape shape_;
  test::ScriptedMemory memory_;
};

TEST(GpuContract, DeadlockSaysWhoWaitsForWhat) {
  ListedProgram<BlockedStream> blocked(80, {isa::Op::kBAR, isa::Op::kEXIT});
  test::ScriptedMemory memory;
  test::ScriptedProgram after(Copy(1), &memory);
  gpu::Gpu gpu(Small(), {});
  const std::vector<LaunchRequest> launches = {{&blocked, "stuck", 0, {}}, {&after, "after", 0, {}}};
  const auto result = gpu.Run(launches);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ExitCode::kDidNotFinish);
  EXPECT_NE(result.error().message.find("deadlock"), std::string::npos);
  EXPECT_NE(result.error().message.find("cta[0,0,0].warp[0] waits for barrier"), std::string::npos)
      << result.error().message;
  EXPECT_NE(
      result.error().message.find("launch after waits for a launch before it to end, held by launch stuck"),
      std::string::npos)
      << result.error().message;
  EXPECT_FALSE(gpu.Run(launches).ok());  // the machine is not used again
}

// What a machine lacks is said before anything runs, also where its cubins are not the machine's own.
TEST(GpuContract, RefusesUnitsThatTheMachineDoesNotHave) {
  gpu::RunOptions options;
  options.allow_foreign_cubins = true;
  const auto refusal = [&](const config::Gpu& machine, isa::Op op) {
    ListedProgram<BlockedStream> program(90, {op, isa::Op::kEXIT});
    const LaunchRequest launch{&program, "foreign", 0, {}};
    const auto result = gpu::Gpu(machine, options).Run({&launch, 1});
    EXPECT_FALSE(result.ok());
    if (result.ok()) return std::string();
    EXPECT_EQ(result.error().code, ExitCode::kTrace);
    return result.error().message;
  };
  for (const isa::Op op : {isa::Op::kUCGABAR_ARV, isa::Op::kUCGABAR_WAIT, isa::Op::kSYNCS, isa::Op::kSTAS,
                           isa::Op::kREDAS, isa::Op::kUTMALDG, isa::Op::kHGMMA})
    EXPECT_NE(refusal(Small(), op).find("the kernel needs the bulk-copy unit, mbarriers, cluster barriers"),
              std::string::npos)
        << isa::Name(op);

  config::Gpu without_gmma = config::LoadGpu("h100_sxm5", {}).value();  // as machines after sm_90 are
  without_gmma.sm.gmma.reset();
  for (const isa::Op op : {isa::Op::kHGMMA, isa::Op::kQGMMA, isa::Op::kIGMMA, isa::Op::kBGMMA})
    EXPECT_NE(refusal(without_gmma, op)
                  .find("matrix instructions of a warpgroup (" + std::string(isa::Name(op)) + "), "),
              std::string::npos)
        << isa::Name(op);
}

// Two warps a CTA: 0 waits for an mbarrier (instruction 0), 1 sleeps and arrives at it (3).
class MbarrierStream : public isa::WarpStream {
 public:
  void StartCta(const isa::CtaStart& start) override {
    next_.resize(std::max<size_t>(next_.size(), 2 * (start.slot + 1)));
    next_[2 * start.slot] = 0;
    next_[2 * start.slot + 1] = 2;
  }
  void EndCta(uint32_t) override {}
  isa::InstructionRun NextRun(uint32_t warp) override {
    return {next_[warp], 0, ~0U, isa::WarpState::kRunnable};
  }
  void Execute(uint32_t warp, Cycle, isa::WarpStep* step) override {
    step->kind = isa::StepKind::kMbarrier;
    step->state = isa::WarpState::kRunnable;
    step->lanes = ~0U;
    step->index = next_[warp]++;
    switch (step->index) {
      case 0:
        step->mbarrier = {.op = isa::MbarrierOp::kWait, .blocked = true, .lanes = 1};
        step->state = isa::WarpState::kBlocked;
        break;
      case 2:
        step->kind = isa::StepKind::kSleep;
        step->sleep_ns = 500;
        break;
      case 3:
        step->mbarrier = {.op = isa::MbarrierOp::kArrive, .lanes = 1};
        woken_.push_back(warp - 1);
        break;
      default:
        step->kind = isa::StepKind::kExit;
        step->state = isa::WarpState::kFinished;
    }
  }
  void ReleaseBarrier(uint32_t, uint8_t) override {}
  void CompleteAsyncCopy(uint32_t, Cycle) override {}
  void PerformAtSlice(uint32_t, uint32_t, Cycle) override {}

 private:
  std::vector<uint32_t> next_;
};

// Which instruction ended which wait, of all SMs and on any number of threads.
TEST(GpuContract, WaitsAreAddedUpOverSms) {
  using isa::Op;
  constexpr uint32_t kCtas = 40;
  const config::Gpu machine = config::LoadGpu("h100_sxm5", {}).value();
  stats::WaitSum expected;
  for (const uint32_t threads : {1U, 3U}) {
    ListedProgram<MbarrierStream> program(90, {Op::kSYNCS, Op::kEXIT, Op::kNANOSLEEP, Op::kSYNCS, Op::kEXIT},
                                          kCtas, 2);
    const LaunchRequest launch{&program, "waits", 0, {}};
    gpu::RunOptions options;
    options.threads = threads;
    const auto result = gpu::Gpu(machine, options).Run({&launch, 1});
    ASSERT_TRUE(result.ok()) << result.error().ToString();
    const stats::WaitSums& waits = (*result)[0].waits;
    ASSERT_EQ(waits.size(), 1U);
    EXPECT_EQ(waits.begin()->first, (std::pair<uint32_t, uint32_t>{0, 3}));
    const stats::WaitSum& sum = waits.begin()->second;
    EXPECT_EQ(sum.count, kCtas);
    EXPECT_EQ(sum.count, (*result)[0].counters.mbarrier_waits);
    EXPECT_GT(sum.cycles, kCtas * 500U);  // 500 ns are more cycles
    if (threads == 1) expected = sum;
    EXPECT_EQ(sum.cycles, expected.cycles);
  }
}

TEST(GpuContract, RepliesAreNeverEarlyAndDoNotDependOnThreads) {
  const config::Gpu gpu = Small();
  test::Traffic mixed;
  mixed.sms = 8;
  mixed.in_flight = 32;
  mixed.requests_per_sm = 1500;
  mixed.make = [](uint32_t sm, uint64_t i) {
    memory::MemoryRequest request;
    const uint64_t random = memory::MixBits(sm * 100000 + i);
    request.line_address = (uint64_t{1} << 32) + random % 100000 * 128;
    request.sector_mask = static_cast<uint8_t>(1 + random / 1000000 % 15);
    if (random % 3 == 0) {
      request.kind = memory::RequestKind::kWrite;
      request.payload_bytes = 8;
    } else if (random % 7 == 0) {
      request.kind = memory::RequestKind::kReduction;
      request.lanes = 0xff;
      request.payload_bytes = 32;
    }
    return request;
  };
  test::TrafficDriver reference(gpu);  // the memory system itself checks each reply against the shortest way
  const test::TrafficResult expected = reference.Run(mixed);
  EXPECT_GT(expected.cycles, 1000U);
  for (uint32_t threads : {2U, 5U}) {
    test::TrafficDriver driver(gpu, threads, threads);
    const test::TrafficResult result = driver.Run(mixed);
    EXPECT_EQ(result.checksum, expected.checksum);
    EXPECT_EQ(result.counters.dram_write_bytes, expected.counters.dram_write_bytes);
  }
  test::TrafficDriver quarter(gpu, 1, 0, 0.25);
  EXPECT_NEAR(static_cast<double>(quarter.Run(mixed).cycles) / static_cast<double>(expected.cycles), 1, 0.01);
}

// Clusters of 3: a GPC of 4 SMs takes one, with a common start; the fourth SM of each stays empty, and the third cluster
// waits.
TEST(DispatcherTest, ClustersGoToOneGpcTogether) {
  const config::Gpu gpu = Small();
  const interconnect::Crossbar crossbar(gpu);
  struct Start {
    uint32_t sm;
    uint32_t cta;
    Cycle at;
  };
  std::vector<Start> started;
  gpu::Dispatcher dispatcher(gpu, gpu::PlacementOrder(crossbar), {0, 0, 0, 0, 1, 1, 1, 1}, 172,
                             {[](uint32_t, uint32_t) { return true; },
                              [&](uint32_t sm, uint32_t, Dim3 cta, Cycle at) {
                                started.push_back({sm, cta.x, at});
                              }});
  isa::LaunchShape shape;
  shape.grid = {9, 1, 1};
  shape.block = {64, 1, 1};
  shape.cluster = {3, 1, 1};
  dispatcher.Add(0, shape, 1, 1000);
  dispatcher.Run(1000, 1172);
  dispatcher.Run(1172, 1344);
  ASSERT_EQ(started.size(), 6U);
  for (uint32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(started[i].cta, i);
    EXPECT_EQ(started[i].sm / 4, i / 3);                   // a GPC each
    EXPECT_EQ(started[i].at, i < 3 ? 1204U : 1210U) << i;  // slots of 2.1 cycles: the third and the sixth
  }
  EXPECT_EQ(dispatcher.Waiting(), (std::vector<uint32_t>{0}));
  for (const Start& start : started)
    if (start.sm < 4) dispatcher.Finished(start.sm, 0, 1500);
  dispatcher.Run(1672, 1844);
  dispatcher.Run(1844, 2016);
  EXPECT_EQ(started.size(), 9U);
  EXPECT_EQ(started.back().sm / 4, 0U);
}

TEST(DispatcherTest, FillsOneSmOfEachTpcFirstAtTheStatedRate) {
  const config::Gpu gpu = Small();
  const interconnect::Crossbar crossbar(gpu);
  // GPCs of 4 SMs in TPCs of 2: SMs 0 and 4 (first TPCs), 2 and 6 (second TPCs), then their second SMs.
  EXPECT_EQ(gpu::PlacementOrder(crossbar), (std::vector<uint32_t>{0, 4, 2, 6, 1, 5, 3, 7}));
  std::vector<std::pair<uint32_t, Cycle>> started;
  gpu::Dispatcher dispatcher(gpu, gpu::PlacementOrder(crossbar), {0, 0, 0, 0, 1, 1, 1, 1}, 172,
                             {[](uint32_t, uint32_t) { return true; },
                              [&](uint32_t sm, uint32_t, Dim3, Cycle at) { started.emplace_back(sm, at); }});
  isa::LaunchShape shape;
  shape.grid = {10, 1, 1};
  shape.block = {64, 1, 1};
  dispatcher.Add(0, shape, 1, 1000);
  EXPECT_EQ(dispatcher.NextEvent(0), 1000U);
  dispatcher.Run(1000, 1172);
  dispatcher.Run(1172, 1344);
  // One CTA in 2.1 cycles, 200 cycles before it starts; one CTA an SM.
  const std::vector<std::pair<uint32_t, Cycle>> expected = {{0, 1200}, {4, 1202}, {2, 1204}, {6, 1206},
                                                            {1, 1208}, {5, 1210}, {3, 1212}, {7, 1214}};
  EXPECT_EQ(started, expected);
  EXPECT_EQ(dispatcher.NextEvent(1344), ~Cycle{0});
  // An end at 1500 is heard at 1672.
  dispatcher.Finished(6, 0, 1500);
  EXPECT_EQ(dispatcher.NextEvent(1516), 1672U);
  dispatcher.Run(1516, 1688);
  dispatcher.Run(1860, 2032);
  ASSERT_EQ(started.size(), 9U);
  EXPECT_EQ(started.back(), (std::pair<uint32_t, Cycle>{6, 1872}));
}

TEST(LaunchGraphTest, StreamsAreChainsAndEdgesAdd) {
  const std::vector<LaunchRequest> launches = {
      {nullptr, "a", 0, {}}, {nullptr, "b", 1, {}}, {nullptr, "c", 0, {1}}, {nullptr, "d", 1, {}}};
  auto graph = gpu::LaunchGraph::Build(launches);
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(graph->Roots(), (std::vector<uint32_t>{0, 1}));
  EXPECT_TRUE(graph->Release(0).empty());  // c waits for b as well
  EXPECT_EQ(graph->WaitsFor(2), (std::vector<uint32_t>{1}));
  EXPECT_EQ(graph->Release(1), (std::vector<uint32_t>{2, 3}));
}

}  // namespace
}  // namespace heddle
