// CTAs on one SM: barriers, residency, several launches, and that every issue slot is accounted for.
#include <numeric>

#include "tests/component/sm_fixture.h"

namespace heddle::sm {
namespace {

using isa::AccessKind;
using isa::MemorySpace;
using stats::Stall;

isa::BarrierAccess Barrier(isa::BarrierOp op, uint8_t id, uint32_t expected) {
  return {op, id, kWarpLanes, expected};
}

uint64_t Sum(const stats::StallSlots& slots) {
  return std::accumulate(slots.begin(), slots.end(), uint64_t{0});
}

// Warps 0 and 4 share a sub-core, where the ADU takes one BAR in 2 cycles: the last arrives at 2, and all go on
// barrier_latency_cycles (15) later, those of one sub-core one after the other.
TEST_F(SmTest, BarrierReleasesAllWarps) {
  Append(Make(Op::kBAR, Bits(5)));
  Append(Make(Op::kNOP, Bits(1)));
  Exit();
  stream.barriers[0] = Barrier(isa::BarrierOp::kSync, 0, 0);
  Run(5);
  EXPECT_EQ(IssuedAt(0, 4), 0u);
  EXPECT_EQ(IssuedAt(0, 0), 2u);
  EXPECT_EQ(IssuedAt(1, 1), 17u);
  EXPECT_EQ(IssuedAt(1, 0), 17u);
  EXPECT_GT(Slots(Stall::k_barrier), 0u);
}

// A warp that exits is no longer waited for.
TEST_F(SmTest, ExitedWarpsDoNotBlockBarriers) {
  Append(Make(Op::kBRA, Bits(5)));
  Append(Make(Op::kBAR, Bits(5)));
  Append(Make(Op::kNOP, Bits(1)));
  Exit();
  stream.jumps_of_warp[{1, 0}] = 3;
  stream.barriers[1] = Barrier(isa::BarrierOp::kSync, 0, 0);
  Run(2);
  // Warp 0 arrives at 5; warp 1 jumps to EXIT, which it issues at 11 (branch 9, fetch 2).
  EXPECT_EQ(IssuedAt(3, 1), 11u);
  EXPECT_EQ(IssuedAt(2, 0), 11u + 15);
}

// BAR.ARV counts without waiting: of four warps, two only arrive and run on.
TEST_F(SmTest, NamedBarrierCountsArrivals) {
  Append(Make(Op::kBRA, Bits(5)));
  Append(Make(Op::kBAR, Bits(5)));  // SYNC 1, 128
  Append(Make(Op::kEXIT, Bits(5)));
  Append(Make(Op::kBAR, Bits(5)));  // ARV 1, 128
  Exit();
  stream.jumps_of_warp[{2, 0}] = 3;
  stream.jumps_of_warp[{3, 0}] = 3;
  stream.barriers[1] = Barrier(isa::BarrierOp::kSync, 1, 128);
  stream.barriers[3] = Barrier(isa::BarrierOp::kArrive, 1, 128);
  Run(4);
  EXPECT_EQ(IssuedAt(3, 2), 11u);
  EXPECT_EQ(IssuedAt(4, 2), 16u);       // its stall count only
  EXPECT_EQ(IssuedAt(2, 0), 11u + 15);  // released by the last arrival
}

TEST_F(SmTest, WaitsAreDescribed) {
  Append(Make(Op::kBAR, Bits(5)));
  Exit();
  stream.barriers[0] = Barrier(isa::BarrierOp::kSync, 3, 128);  // 64 threads never come
  Build(2);
  sm->StartCta(launch, {5, 0, 0}, 0);
  for (int i = 0; i < 10; ++i, now += kWindow) {
    for (memory::MemoryRequest& request : sm->outbox())
      request.reply_cycle = std::max(now, request.cycle + kMemoryLatency);
    sm->TakeReplies(now);
    sm->RunWindow(now, now + kWindow);
  }
  EXPECT_EQ(sm->NextEventCycle(), kNever);
  EXPECT_FALSE(sm->Idle());
  const std::vector<WarpWait> waits = sm->DescribeWaits();
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(waits[0].cta.x, 5u);
  EXPECT_EQ(waits[0].reason, Stall::k_barrier);
  EXPECT_EQ(waits[0].detail, "barrier 3: 64 of 128 threads have arrived");
}

// Registers: 64 a thread are 2048 a warp, 8 warps of a sub-core's 16384. Shared memory: 164 KiB over 49 KiB.
TEST_F(SmTest, ResidencyFollowsTheScarcest) {
  Exit();
  Build(4);
  shape.registers_per_thread = 32;
  EXPECT_EQ(MaxResidentCtas(*gpu, shape), 16u);
  shape.registers_per_thread = 64;
  EXPECT_EQ(MaxResidentCtas(*gpu, shape), 8u);
  shape.registers_per_thread = 255;  // 8192 a warp: 2 in each sub-core
  EXPECT_EQ(MaxResidentCtas(*gpu, shape), 2u);
  shape.registers_per_thread = 32;
  shape.shared_bytes_per_cta = 49 * 1024;
  EXPECT_EQ(MaxResidentCtas(*gpu, shape), 3u);
  shape.shared_bytes_per_cta = 0;
  shape.block = {32, 1, 1};
  EXPECT_EQ(MaxResidentCtas(*gpu, shape), 32u);  // max_ctas
  shape.registers_per_thread = 200;              // 6400 a warp: 10 in an SM, but 2 in each sub-core
  EXPECT_EQ(MaxResidentCtas(*gpu, shape), 8u);
  shape.registers_per_thread = 32;
  shape.block = {2048, 1, 1};
  EXPECT_EQ(MaxResidentCtas(*gpu, shape), 0u);
}

// As many CTAs as fit, no more; one that finishes makes room for one.
TEST_F(SmTest, RoomForCtas) {
  Append(Make(Op::kNOP, Bits(1)));
  Exit();
  shape.shared_bytes_per_cta = 80 * 1024;
  Build(1);
  EXPECT_TRUE(sm->CanHost(shape));
  sm->StartCta(launch, {0, 0, 0}, 0);
  EXPECT_TRUE(sm->CanHost(shape));
  sm->StartCta(launch, {1, 0, 0}, 0);
  EXPECT_FALSE(sm->CanHost(shape));
  RunToEnd();
  EXPECT_EQ(finished.size(), 2u);
  EXPECT_TRUE(sm->CanHost(shape));
  EXPECT_EQ(stream.ended, (std::vector<uint32_t>{0, 1}));
}

// ---- Accounting ------------------------------------------------------------------------------------------------------

class SmAccountingTest : public SmTest {
 protected:
  // Every kind of instruction that waits, by 9 warps.
  void AppendEverything() {
    const auto at = [&] { return static_cast<uint32_t>(code.instructions.size()); };
    Append(Make(Op::kFADD, Bits(2), {Destination(1), Register(2), Constant(0x160)}));
    stream.accesses[at()] = [](uint32_t warp) {
      return Access(MemorySpace::kGlobal, AccessKind::kLoad, 4, 0x1000 + 0x400 * warp, 16);
    };
    Append(Make(Op::kLDG, Bits(2, 0, 0), {Destination(8), Memory(2)}));
    stream.accesses[at()] = [](uint32_t) {
      return Access(MemorySpace::kShared, AccessKind::kLoad, 4, 0, 64);
    };
    Append(Make(Op::kLDS, Bits(2, 0, 1), {Destination(9), Memory(2)}));
    Append(Make(Op::kMUFU, Bits(2, 0b10, 2), {Destination(10), Register(9)}));
    Append(Make(Op::kFFMA, Bits(4, 0b101), {Destination(11), Register(8), Register(10), Register(12)}));
    stream.barriers[at()] = Barrier(isa::BarrierOp::kSync, 0, 0);
    Append(Make(Op::kBAR, Bits(5)));
    stream.accesses[at()] = [](uint32_t warp) {
      return Access(MemorySpace::kGlobal, AccessKind::kStore, 4, 0x8000 + 0x80 * warp, 4);
    };
    Append(Make(Op::kSTG, Bits(2), {Memory(2), Register(11)}));
    Append(Make(Op::kMEMBAR, Bits(2), {}, {isa::Mod::kSC, isa::Mod::kGPU}));
    stream.jumps[at()] = {0};
    Append(Make(Op::kBRA, Bits(5)));
    Exit();
  }
};

// CloseLaunch itself checks that the slots of each launch are those of its time; here also per instruction.
TEST_F(SmAccountingTest, SlotsAreClosed) {
  AppendEverything();
  Run(9);
  EXPECT_EQ(Sum(stats.slots), 4 * now);
  EXPECT_EQ(stats.counters.smsp_issue_slots, 4 * now);
  EXPECT_EQ(Slots(Stall::k_selected), 9u * (9 + 9 + 1));
  stats::StallSlots by_pc{};
  for (const stats::PcStats& pc : stats.per_pc)
    for (size_t i = 0; i < by_pc.size(); ++i) by_pc[i] += pc.slots[i];
  for (size_t i = 0; i < by_pc.size(); ++i) {
    const bool without_pc =
        i == static_cast<size_t>(Stall::k_no_warp) || i == static_cast<size_t>(Stall::k_drain);
    EXPECT_EQ(by_pc[i], without_pc ? 0 : stats.slots[i]) << stats::StallDefs()[i].name;
  }
}

// What an SM does depends on the answers, not on where windows end.
TEST_F(SmAccountingTest, WindowsDoNotMatter) {
  AppendEverything();
  Run(9, 100);
  const std::vector<ScriptedStream::Event> expected = stream.executed;
  for (const Cycle window : {Cycle{13}, Cycle{50}, Cycle{200}}) {
    stream = ScriptedStream{};
    code.instructions.clear();
    stats = {};
    now = 0;
    AppendEverything();
    Run(9, window);
    EXPECT_EQ(stream.executed, expected) << "windows of " << window;
  }
}

// Two launches on one SM: each slot belongs to one of them, and the sum is that of the SM's time.
TEST_F(SmAccountingTest, TwoLaunchesShareTheSlots) {
  AppendEverything();
  Build(9);
  ScriptedStream other_stream = stream;
  stats::LaunchStats other_stats;
  const LaunchHandle other = sm->OpenLaunch(*timing, shape, &other_stream, &other_stats, 0);
  sm->StartCta(launch, {0, 0, 0}, 0);
  sm->StartCta(other, {0, 0, 0}, 0);
  RunToEnd();
  sm->CloseLaunch(other, now);
  EXPECT_EQ(Sum(stats.slots) + Sum(other_stats.slots), 4 * now);
  EXPECT_EQ(Slots(Stall::k_selected), 9u * 19);
  EXPECT_EQ(other_stats.slots[static_cast<size_t>(Stall::k_selected)], 9u * 19);
}

// A CTA may be announced windows before it starts; the others run on meanwhile.
TEST_F(SmAccountingTest, CtaStartsLater) {
  AppendEverything();
  Build(9);
  sm->StartCta(launch, {0, 0, 0}, 0);
  sm->StartCta(launch, {1, 0, 0}, 350);
  RunToEnd();
  EXPECT_EQ(Sum(stats.slots), 4 * now);
  EXPECT_EQ(stats.counters.sm_ctas_launched, 2u);
  for (const ScriptedStream::Event& event : stream.executed)
    EXPECT_GE(event.cycle, event.warp < 9 ? 280u : 350u);
}

// Before a CTA comes and after it has gone, slots are without a warp.
TEST_F(SmAccountingTest, IdleSlotsAreCharged) {
  Append(Make(Op::kNOP, Bits(1)));
  Exit();
  Build(1);
  now = 1000;
  sm->TakeReplies(now);
  sm->StartCta(launch, {}, now);
  RunToEnd();
  EXPECT_EQ(Slots(Stall::k_selected), 2u);
  EXPECT_EQ(Slots(Stall::k_no_instruction), 280u);
  EXPECT_EQ(Slots(Stall::k_no_warp) + Slots(Stall::k_drain), 4 * now - 282);
}

// Before sm_90 nothing starts early: PREEXIT of foreign code says nothing, and the CTA's end is what is heard.
TEST_F(SmTest, TriggerWithoutDependentLaunches) {
  stream.triggers.insert(0);
  Append(Make(Op::kPREEXIT, Bits(1)));
  Exit();
  Run();
  EXPECT_TRUE(sm->triggered().empty());
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_FALSE(finished[0].triggered);
}

}  // namespace
}  // namespace heddle::sm
