// What an SM has from sm_90 on, to the cycle: matrix instructions of a warpgroup, the bulk-copy unit, mbarriers and registers
// that change hands. Numbers: arch_configs/h100_sxm5.textproto.
#include "tests/component/sm_fixture.h"

namespace heddle::sm {
namespace {

using isa::Mod;
using stats::Stall;

isa::Operand Descriptor() {
  isa::Operand operand;
  operand.kind = isa::OperandKind::kMatrixDescriptor;
  operand.reg = 8;
  operand.width = 4;
  return operand;
}
isa::Operand GroupScoreboard() { return Scoreboard(8); }

isa::BulkOperation Box(isa::BulkKind kind, uint32_t rows, uint32_t bytes, uint64_t address) {
  isa::BulkOperation bulk;
  bulk.kind = kind;
  bulk.destination_ranks = 1;
  bulk.mbarrier = 0x400;
  for (uint32_t row = 0; row < rows; ++row)
    bulk.pieces.push_back({address + row * 4096, bytes, bytes, 0x800 + row * bytes});
  return bulk;
}

class HopperTest : public SmTest {
 protected:
  HopperTest() { machine = "h100_sxm5"; }

  // C += A * B of 64 x n x 16 in bf16; closes a group.
  void Matrix(Mod shape, bool a_in_registers = false, bool closes = true) {
    std::vector<isa::Operand> operands{Destination(24, 4)};
    if (a_in_registers) operands.push_back(Register(4, 4));
    operands.push_back(Descriptor());
    operands.push_back(Register(24, 4));
    if (closes) operands.push_back(GroupScoreboard());
    Append(Make(Op::kHGMMA, Bits(1), operands, {shape, Mod::kF32, Mod::kBF16}));
  }
  void WaitForMatrices(int64_t left) {
    Append(Make(Op::kWARPGROUP, Bits(2), {GroupScoreboard(), Immediate(left)}, {Mod::kDEPBAR, Mod::kLE}));
  }
  void WaitFor(uint32_t mbarrier) {
    stream.waits[static_cast<uint32_t>(code.instructions.size())] = mbarrier;
    Append(Make(Op::kSYNCS, Bits(1, 0, 1), {}, {Mod::kPHASECHK, Mod::kTRANS64, Mod::kTRYWAIT}));
  }
  // All requests but those for instructions.
  std::vector<memory::MemoryRequest> Data() const {
    std::vector<memory::MemoryRequest> data;
    for (const memory::MemoryRequest& request : requests)
      if (request.line_address < 0x6000'0000) data.push_back(request);
    return data;
  }
  void Bulk(Op op, isa::BulkOperation bulk) {
    stream.bulks[static_cast<uint32_t>(code.instructions.size())] = [bulk](uint32_t) { return bulk; };
    Append(Make(op, Bits(1)));
  }
};

// 4 cycles after the last warp's issue the tensor cores begin; n = 256 is 128 cycles, its operands (64x16 and 256x16 of 2
// bytes: 10240 bytes, 80 cycles of shared memory) come in time; 66 cycles later the group has ended.
TEST_F(HopperTest, MatrixOfAWarpgroupEndsWithItsGroup) {
  Matrix(Mod::k64x256x16);
  WaitForMatrices(0);
  Exit();
  Run(4);
  for (uint32_t warp = 0; warp < 4; ++warp) EXPECT_EQ(IssuedAt(1, warp), 4u + 128 + 66) << warp;
  EXPECT_GT(Slots(Stall::k_warpgroup_arrive), 0u);
}

// The second begins when the first has passed: the wait for at most one group ends with the first.
TEST_F(HopperTest, MatricesOfAWarpgroupFollowEachOther) {
  Matrix(Mod::k64x256x16);
  Matrix(Mod::k64x256x16);
  WaitForMatrices(1);
  WaitForMatrices(0);
  Exit();
  Run(4);
  EXPECT_EQ(IssuedAt(1), 4u);  // issue_interval_cycles
  EXPECT_EQ(IssuedAt(2), 4u + 128 + 66);
  EXPECT_EQ(IssuedAt(3), 4u + 2 * 128 + 66);
}

// Only an instruction with gsb0 closes a group.
TEST_F(HopperTest, GroupsAreWhatIsWaitedFor) {
  Matrix(Mod::k64x256x16, false, false);
  Matrix(Mod::k64x256x16);
  WaitForMatrices(1);
  Exit();
  Run(4);
  EXPECT_LT(IssuedAt(2), 20u);  // one group is open: nothing to wait for
}

// n = 8: A (64x16) and B (8x16) are 2304 bytes, 18 cycles of shared memory, more than the 14.5 that the tensor cores take at
// least; with A in registers 256 bytes are left.
TEST_F(HopperTest, NarrowMatricesAreBoundBySharedMemory) {
  Matrix(Mod::k64x8x16);
  WaitForMatrices(0);
  Exit();
  Run(4);
  EXPECT_EQ(IssuedAt(1), 4u + 19 + 66);  // 14.5 and 4 more are 18.5
}

TEST_F(HopperTest, NarrowMatricesWithAInRegistersAreNot) {
  Matrix(Mod::k64x8x16, true);
  WaitForMatrices(0);
  Exit();
  Run(4);
  EXPECT_EQ(IssuedAt(1), 4u + 15 + 66);
}

// A sub-core holds eight that have not begun. The first eight go out every 4 cycles, the ninth too, because the first has
// begun at 4; the tenth waits for the second to begin, at 132.
TEST_F(HopperTest, QueueOfMatricesFills) {
  for (int i = 0; i < 10; ++i) Matrix(Mod::k64x256x16);
  WaitForMatrices(0);
  Exit();
  Run(4);
  EXPECT_EQ(IssuedAt(8), 32u);
  EXPECT_EQ(IssuedAt(9), 4u + 128);
  EXPECT_EQ(IssuedAt(10), 4u + 10 * 128 + 66);
  EXPECT_GT(SlotsAt(9, Stall::k_gmma), 0u);
}

// Two warpgroups share the four tensor cores.
TEST_F(HopperTest, WarpgroupsTakeTurns) {
  Matrix(Mod::k64x256x16);
  WaitForMatrices(0);
  Exit();
  Run(8);
  EXPECT_EQ(std::min(IssuedAt(1, 0), IssuedAt(1, 4)), 4u + 128 + 66);
  EXPECT_EQ(std::max(IssuedAt(1, 0), IssuedAt(1, 4)), 4u + 2 * 128 + 66);
}

TEST_F(HopperTest, EightBitMatricesHaveTwiceTheK) {
  std::vector<isa::Operand> operands{Destination(24, 4), Descriptor(), Register(24, 4), GroupScoreboard()};
  Append(Make(Op::kQGMMA, Bits(1), operands, {Mod::k64x128x32, Mod::kF32, Mod::kE4M3, Mod::kE4M3}));
  WaitForMatrices(0);
  Exit();
  Run(4);
  EXPECT_EQ(IssuedAt(1), 4u + 64 + 66);
}

// Four rows: requests leave at 111 to 114 and are back 200 later; the last fills for 9 cycles, then the mbarrier's phase ends
// and the waiting warp goes on 23 cycles after.
TEST_F(HopperTest, BulkLoadWakesItsWaiter) {
  Bulk(Op::kUTMALDG, Box(isa::BulkKind::kLoad, 4, 128, 0x10'0000));
  WaitFor(0x400);
  Append(Make(Op::kNOP, Bits(1)));
  Exit();
  Run();
  const Cycle first = stream.executed[0].cycle;
  const std::vector<memory::MemoryRequest> data = Data();
  ASSERT_EQ(data.size(), 4u);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(data[i].cycle - first, 111u + i);
  ASSERT_EQ(stream.loaded.size(), 1u);
  EXPECT_EQ(stream.loaded[0].first - first, 114u + 200 + 9);
  EXPECT_EQ(IssuedAt(2), 114u + 200 + 9 + 23);
  EXPECT_GT(SlotsAt(1, Stall::k_short_scoreboard) + SlotsAt(2, Stall::k_short_scoreboard), 100u);
  ASSERT_EQ(stats.waits.size(), 1u);
  EXPECT_EQ(stats.waits.begin()->first, (std::pair<uint32_t, uint32_t>{1, 0}));  // SYNCS waited for UTMALDG
}

// A row that begins 64 bytes into a line is two requests of half a line.
TEST_F(HopperTest, RequestsDoNotCrossLines) {
  Bulk(Op::kUTMALDG, Box(isa::BulkKind::kLoad, 1, 128, 0x10'0040));
  WaitFor(0x400);
  Exit();
  Run();
  const std::vector<memory::MemoryRequest> data = Data();
  ASSERT_EQ(data.size(), 2u);
  EXPECT_EQ(data[0].sector_mask, 0b1100);
  EXPECT_EQ(data[1].sector_mask, 0b0011);
  EXPECT_EQ(data[1].line_address, 0x10'0080u);
  EXPECT_EQ(stats.counters.tma_inst_executed, 1u);
  EXPECT_EQ(stats.counters.tma_requests, 2u);
  EXPECT_EQ(stats.per_pc[0].memory.requests, 2u);
  EXPECT_EQ(stats.per_pc[0].memory.sectors, 4u);
  EXPECT_EQ(stats.per_pc[0].memory.ideal_sectors, 4u);
}

// With two places the third request leaves when the first answer comes, 200 cycles after 111.
TEST_F(HopperTest, BytesInFlightAreLimited) {
  overrides = {"sm.tma.requests_in_flight=2"};
  Bulk(Op::kUTMALDG, Box(isa::BulkKind::kLoad, 4, 128, 0x10'0000));
  WaitFor(0x400);
  Append(Make(Op::kNOP, Bits(1)));
  Exit();
  Run();
  const Cycle first = stream.executed[0].cycle;
  const std::vector<memory::MemoryRequest> data = Data();
  ASSERT_EQ(data.size(), 4u);
  EXPECT_EQ(data[2].cycle - first, 311u);
  EXPECT_EQ(data[3].cycle - first, 312u);
  EXPECT_EQ(IssuedAt(2), 512u + 9 + 23);
}

// A box outside its tensor has nothing to wait for, but its turn comes when the load before it has sent its last request: at
// the second answer, as above. What the other CTAs are told leaves then.
TEST_F(HopperTest, EmptyBoxForTheClusterLeavesWhenItsTurnComes) {
  overrides = {"sm.tma.requests_in_flight=2"};
  isa::BulkOperation outside = Box(isa::BulkKind::kLoad, 1, 128, 0x20'0000);
  outside.pieces[0].global_bytes = 0;
  outside.destination_ranks = 3;
  Bulk(Op::kUTMALDG, Box(isa::BulkKind::kLoad, 4, 128, 0x10'0000));
  Bulk(Op::kUTMALDG, outside);
  Exit();
  Cluster cluster;
  cluster.size = 2;
  Build(1);
  sm->StartCta(launch, {0, 0, 0}, 0, &cluster, 0);
  RunToEnd();
  std::vector<Cycle> left;
  for (const ClusterMessage& message : sm->cluster_outbox())
    if (message.kind == ClusterMessage::Kind::kBulk) left.push_back(message.cycle - stream.executed[0].cycle);
  EXPECT_EQ(left, (std::vector<Cycle>{312, 312}));
}

// Boxes begin 32 cycles apart, however small.
TEST_F(HopperTest, BoxesHaveAnInterval) {
  stream.bulks_awaited = 2;
  Bulk(Op::kUTMALDG, Box(isa::BulkKind::kLoad, 1, 128, 0x10'0000));
  Bulk(Op::kUTMALDG, Box(isa::BulkKind::kLoad, 1, 128, 0x20'0000));
  WaitFor(0x400);
  Exit();
  Run();
  const std::vector<memory::MemoryRequest> data = Data();
  ASSERT_EQ(data.size(), 2u);
  EXPECT_EQ(data[1].cycle - data[0].cycle, 32u);
}

// A tensor map that the unit does not have is read first: it leaves at 29 and is back at 229. The second box finds it.
TEST_F(HopperTest, TensorMapsAreReadOnce) {
  stream.bulks_awaited = 2;
  isa::BulkOperation box = Box(isa::BulkKind::kLoad, 1, 128, 0x10'0000);
  box.is_tensor = true;
  box.tensor_map_address = 0x5000'0000;
  Bulk(Op::kUTMALDG, box);
  Bulk(Op::kUTMALDG, box);
  WaitFor(0x400);
  Exit();
  Run();
  const Cycle first = stream.executed[0].cycle;
  const std::vector<memory::MemoryRequest> data = Data();
  ASSERT_EQ(data.size(), 3u);
  EXPECT_EQ(data[0].line_address, 0x5000'0000u);
  EXPECT_EQ(data[0].cycle - first, 29u);
  EXPECT_EQ(data[1].cycle - first, 229u);
  EXPECT_EQ(data[2].cycle - first, 229u + 32);
}

// Two rows of a store are taken from shared memory at 111 and, at the pace of the port's 32 bytes a cycle, 4 later; the group
// that UTMACMDFLUSH closes ends then.
TEST_F(HopperTest, GroupOfBulkStoresEndsWhenItsSourceIsRead) {
  Bulk(Op::kUTMASTG, Box(isa::BulkKind::kStore, 2, 128, 0x10'0000));
  Append(Make(Op::kUTMACMDFLUSH, Bits(1, 0, isa::kNoBarrier, 0)));
  Append(Make(Op::kDEPBAR, Bits(4), {Scoreboard(0), Immediate(0)}));
  Append(Make(Op::kNOP, Bits(1)));
  Exit();
  Run();
  const Cycle first = stream.executed[0].cycle;
  const std::vector<memory::MemoryRequest> data = Data();
  ASSERT_EQ(data.size(), 2u);
  EXPECT_EQ(data[0].kind, memory::RequestKind::kWrite);
  EXPECT_EQ(data[0].cycle - first, 112u);
  EXPECT_EQ(data[1].cycle - first, 116u);
  EXPECT_EQ(IssuedAt(2), 116u);
}

TEST_F(HopperTest, PrefetchAsksForNoData) {
  Bulk(Op::kUTMAPF, Box(isa::BulkKind::kPrefetch, 2, 128, 0x10'0000));
  Exit();
  Run();
  const std::vector<memory::MemoryRequest> data = Data();
  ASSERT_EQ(data.size(), 2u);
  EXPECT_EQ(data[0].kind, memory::RequestKind::kPrefetch);
}

// While their tensor map is on its way the unit keeps prefetches, beside what is issued meanwhile.
TEST_F(HopperTest, PrefetchesWaitForTheirTensorMap) {
  for (const uint64_t address : {uint64_t{0x10'0000}, uint64_t{0x20'0000}}) {
    isa::BulkOperation box = Box(isa::BulkKind::kPrefetch, 2, 128, address);
    box.is_tensor = true;
    box.tensor_map_address = 0x5000'0000;
    Bulk(Op::kUTMAPF, box);
  }
  Bulk(Op::kUTMALDG, Box(isa::BulkKind::kLoad, 1, 128, 0x30'0000));
  WaitFor(0x400);
  Exit();
  Run();
  std::vector<uint64_t> lines;
  for (const memory::MemoryRequest& request : Data()) lines.push_back(request.line_address);
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines,
            (std::vector<uint64_t>{0x10'0000, 0x10'1000, 0x20'0000, 0x20'1000, 0x30'0000, 0x5000'0000}));
  EXPECT_EQ(stream.bulks_outstanding, 0u);
}

// Warp 1 wants 8 registers a thread more, which are there one cycle after warp 0 has given 8 back at the end of its sleep.
TEST_F(HopperTest, RegistersChangeHands) {
  Append(Make(Op::kBRA, Bits(5)));
  Append(Make(Op::kNANOSLEEP, Bits(2)));
  Append(Make(Op::kUSETMAXREG, Bits(2), {Immediate(24)}, {Mod::kDEALLOC, Mod::kCTAPOOL}));
  Append(Make(Op::kEXIT, Bits(5)));
  Append(Make(Op::kUSETMAXREG, Bits(2), {Immediate(40)}, {Mod::kTRY_ALLOC, Mod::kCTAPOOL}));
  Append(Make(Op::kEXIT, Bits(5)));
  stream.jumps_of_warp[{1, 0}] = 4;
  stream.sleeps_ns[1] = 500;
  Run(2);
  EXPECT_GT(IssuedAt(2), 900u);
  EXPECT_EQ(IssuedAt(4, 1), IssuedAt(2) + 1);
}

// An arrival by another warp: 9 cycles to the LSU, 23 to the waiter.
TEST_F(HopperTest, ArrivalWakesAWaiter) {
  Append(Make(Op::kBRA, Bits(5)));
  Append(Make(Op::kNANOSLEEP, Bits(2)));
  stream.arrivals[2] = 0x400;
  Append(Make(Op::kSYNCS, Bits(1), {}, {Mod::kARRIVE, Mod::kTRANS64}));
  Append(Make(Op::kEXIT, Bits(5)));
  WaitFor(0x400);
  Append(Make(Op::kNOP, Bits(1)));
  Exit();
  stream.jumps_of_warp[{1, 0}] = 4;
  stream.sleeps_ns[1] = 500;
  Run(2);
  EXPECT_EQ(IssuedAt(5, 1), IssuedAt(2) + 9 + 23);
}

// Nobody completes the phase: the report names the mbarrier and what is on its way to it.
TEST_F(HopperTest, WaitForAnMbarrierIsDescribed) {
  WaitFor(0x408);
  Exit();
  Build(1);
  sm->StartCta(launch, {0, 0, 0}, 0);
  for (int i = 0; i < 10; ++i, now += kWindow) {
    for (memory::MemoryRequest& request : sm->outbox())
      request.reply_cycle = std::max(now, request.cycle + kMemoryLatency);
    sm->TakeReplies(now);
    sm->RunWindow(now, now + kWindow);
  }
  ASSERT_EQ(sm->DescribeWaits().size(), 1u);
  EXPECT_EQ(sm->DescribeWaits()[0].detail, "mbarrier 0x408, phase 0; no bulk load is on its way to it");
}

}  // namespace
}  // namespace heddle::sm
