// Shared memory, L1, asynchronous copies, stores, atomics and fences. Latencies are those of a100_sxm4_80gb; L2 answers
// kMemoryLatency (200) cycles after a request leaves the SM.
#include "tests/component/sm_fixture.h"

namespace heddle::sm {
namespace {

using isa::AccessKind;
using isa::MemorySpace;
using isa::Mod;
using stats::Stall;

// sm.operations LDG.32.regular: result after 31 on a hit. l1: a miss leaves 25 cycles behind the issue, and its result
// comes 8 after the last sector.
constexpr Cycle kHit = 31;
constexpr Cycle kSent = 25;
constexpr Cycle kMiss = kSent + 200 + 8;

class SmMemoryTest : public SmTest {
 protected:
  // A load of `bytes` a lane and an instruction that waits for it. Returns the index of the load.
  uint32_t AppendLoad(Op op, MemorySpace space, uint8_t bytes, uint64_t base, uint64_t stride,
                      std::vector<Mod> modifiers = {}) {
    const auto index = static_cast<uint32_t>(code.instructions.size());
    Append(Make(op, Bits(2, 0, 0), {Destination(8, static_cast<uint8_t>(std::max(1, bytes / 4))), Memory(2)},
                modifiers));
    stream.accesses[index] = [=](uint32_t) { return Access(space, AccessKind::kLoad, bytes, base, stride); };
    Append(Make(Op::kNOP, Bits(1, 0b1)));
    return index;
  }
  Cycle SharedLoad(uint8_t bytes, uint64_t stride, Op op = Op::kLDS, std::vector<Mod> modifiers = {}) {
    AppendLoad(op, MemorySpace::kShared, bytes, 0, stride, modifiers);
    Exit();
    Run();
    return IssuedAt(1);
  }
};

// ---- Shared memory -------------------------------------------------------------------------------------------------

// LDS.32: 24 cycles; n-way conflicts take n - 1 wavefronts more.
TEST_F(SmMemoryTest, SharedLoadWithoutConflict) {
  EXPECT_EQ(SharedLoad(4, 4), 24u);
  EXPECT_EQ(stats.counters.smem_wavefronts, 1u);
  EXPECT_EQ(Slots(Stall::k_short_scoreboard), 22u);  // the first two are the stall count
}
TEST_F(SmMemoryTest, SharedLoadBroadcast) { EXPECT_EQ(SharedLoad(4, 0), 24u); }
TEST_F(SmMemoryTest, SharedLoadTwoWayConflict) { EXPECT_EQ(SharedLoad(4, 8), 25u); }
TEST_F(SmMemoryTest, SharedLoadFourWayConflict) { EXPECT_EQ(SharedLoad(4, 16), 27u); }
TEST_F(SmMemoryTest, SharedLoadAllInOneBank) {
  EXPECT_EQ(SharedLoad(4, 128), 55u);
  EXPECT_EQ(stats.counters.smem_bank_conflicts, 31u);
  const stats::MemorySums& sums = stats.per_pc[0].memory;
  EXPECT_EQ(sums.requests, 1u);
  EXPECT_EQ(sums.wavefronts, 32u);
  EXPECT_EQ(sums.bank_conflicts, 31u);
  EXPECT_EQ(sums.sectors, 0u);
  EXPECT_FALSE(stats.per_pc[1].memory.any());
}
// The same access, and atomics on one word, where the machine has no conflicts: as without one.
TEST_F(SmMemoryTest, MachineWithoutBankConflicts) {
  overrides = {"sm.shared_memory.bank_conflicts=false"};
  EXPECT_EQ(SharedLoad(4, 128), 24u);
  EXPECT_EQ(stats.counters.smem_wavefronts, 1u);
  EXPECT_EQ(stats.counters.smem_bank_conflicts, 0u);
}
TEST_F(SmMemoryTest, MachineWithoutBankConflictsStillMovesEveryByte) {
  overrides = {"sm.shared_memory.bank_conflicts=false"};
  EXPECT_EQ(SharedLoad(16, 256, Op::kLDS, {Mod::k128}), 26u);  // four quarters, not 32 wavefronts
  EXPECT_EQ(stats.counters.smem_wavefronts, 4u);
}
TEST_F(SmMemoryTest, SharedLoadOddStride) { EXPECT_EQ(SharedLoad(4, 132), 24u); }
// Two half warps of 64 bits: a wavefront each. 26 for 128 bits, four quarters.
TEST_F(SmMemoryTest, SharedLoad64) {
  EXPECT_EQ(SharedLoad(8, 8, Op::kLDS, {Mod::k64}), 24u);
  EXPECT_EQ(stats.counters.smem_wavefronts, 2u);
}
TEST_F(SmMemoryTest, SharedLoad128) {
  EXPECT_EQ(SharedLoad(16, 16, Op::kLDS, {Mod::k128}), 26u);
  EXPECT_EQ(stats.counters.smem_bank_conflicts, 0u);
}
// Eight lanes 256 bytes apart hit the same four banks: each quarter takes 8 wavefronts instead of 1.
TEST_F(SmMemoryTest, SharedLoad128Conflict) {
  EXPECT_EQ(SharedLoad(16, 256, Op::kLDS, {Mod::k128}), 26u + 28);
}
// LDSM.x4: rows of 16 bytes side by side, or one below the other in a tile 128 bytes wide.
TEST_F(SmMemoryTest, MatrixLoad) { EXPECT_EQ(SharedLoad(16, 16, Op::kLDSM, {Mod::kM88, Mod::k4}), 26u); }
TEST_F(SmMemoryTest, MatrixLoadConflict) {
  EXPECT_EQ(SharedLoad(16, 128, Op::kLDSM, {Mod::kM88, Mod::k4}), 26u + 28);
  EXPECT_EQ(stats.counters.smem_wavefronts, 32u);
}

// Atomics of all lanes on one word take turns.
TEST_F(SmMemoryTest, SharedAtomicsOnOneWord) {
  Append(Make(Op::kATOMS, Bits(2, 0, 0), {Destination(8), Memory(2)}));
  stream.accesses[0] = [](uint32_t) { return Access(MemorySpace::kShared, AccessKind::kAtomic, 4, 64, 0); };
  Append(Make(Op::kNOP, Bits(1, 0b1)));
  Exit();
  Run();
  EXPECT_EQ(IssuedAt(1), 30u + 31);
}

// The queue holds 5; the LSU takes one every 4 cycles from one sub-core (address generation), the first 9 cycles behind
// its issue. So 5 issue at once, the sixth at 9, then one every 4.
TEST_F(SmMemoryTest, MemoryQueueFills) {
  for (uint32_t i = 0; i < 8; ++i) {
    Append(Make(Op::kLDS, Bits(1), {Destination(static_cast<uint8_t>(8 + i)), Memory(2)}));
    stream.accesses[i] = [](uint32_t) { return Access(MemorySpace::kShared, AccessKind::kLoad, 4, 0, 4); };
  }
  Exit();
  Run();
  for (uint32_t i = 0; i < 5; ++i) EXPECT_EQ(IssuedAt(i), i);
  EXPECT_EQ(IssuedAt(5), 9u);
  EXPECT_EQ(IssuedAt(6), 13u);
  EXPECT_EQ(IssuedAt(7), 17u);
  EXPECT_EQ(Slots(Stall::k_mio_throttle), 4u + 3 + 3);
}

// Four sub-cores at once: the LSU takes one a cycle, so each gets one in 4.
TEST_F(SmMemoryTest, SubCoresShareTheLsu) {
  for (uint32_t i = 0; i < 12; ++i) {
    Append(Make(Op::kLDS, Bits(1), {Destination(static_cast<uint8_t>(8 + i)), Memory(2)}));
    stream.accesses[i] = [](uint32_t) { return Access(MemorySpace::kShared, AccessKind::kLoad, 4, 0, 4); };
  }
  Exit();
  Run(4);
  Cycle last = 0;
  for (uint32_t warp = 0; warp < 4; ++warp) last = std::max(last, IssuedAt(11, warp));
  // The queue's place for the last of a sub-core is free when its seventh is taken: the 28th of all, 27 cycles behind
  // the first, which is taken at 9.
  EXPECT_EQ(last, 9u + 27);
}

// 512 bytes at 64 a cycle into the sub-core's registers: the second result comes 8 cycles behind the first, although the
// LSU took it 4 cycles later.
TEST_F(SmMemoryTest, ReturnPathIsShared) {
  for (uint32_t i = 0; i < 2; ++i) {
    Append(Make(Op::kLDS, Bits(1, 0, static_cast<uint8_t>(i)),
                {Destination(static_cast<uint8_t>(8 + 4 * i), 4), Memory(2)}, {Mod::k128}));
    stream.accesses[i] = [](uint32_t) { return Access(MemorySpace::kShared, AccessKind::kLoad, 16, 0, 16); };
  }
  Append(Make(Op::kNOP, Bits(1, 0b1)));
  Append(Make(Op::kNOP, Bits(1, 0b10)));
  Exit();
  Run();
  EXPECT_EQ(IssuedAt(2), 26u);
  EXPECT_EQ(IssuedAt(3), 34u);
}

// ---- L1 ------------------------------------------------------------------------------------------------------------

// 32 lanes of 4 bytes, 32 apart: a sector each, where 4 would hold 128 bytes. Side by side: 4 of 4. The same address in
// all lanes: one sector, although 128 bytes are asked for.
TEST_F(SmMemoryTest, SectorsOfARequest) {
  for (const uint64_t stride : std::initializer_list<uint64_t>{32, 4, 0})
    AppendLoad(Op::kLDG, MemorySpace::kGlobal, 4, 0x1000, stride);
  AppendLoad(Op::kLDG, MemorySpace::kGlobal, 4, 0x1010, 4);  // from the middle of a sector: 5
  Exit();
  Run();
  const uint64_t sectors[] = {32, 4, 1, 5}, ideal[] = {4, 4, 1, 4};
  for (uint32_t load = 0; load < 4; ++load) {
    const stats::MemorySums& sums = stats.per_pc[2 * load].memory;
    EXPECT_EQ(sums.requests, 1u);
    EXPECT_EQ(sums.sectors, sectors[load]) << load;
    EXPECT_EQ(sums.ideal_sectors, ideal[load]) << load;
    EXPECT_EQ(sums.wavefronts, 0u);
  }
}

TEST_F(SmMemoryTest, LoadMissesThenHits) {
  AppendLoad(Op::kLDG, MemorySpace::kGlobal, 4, 0x1000, 4);
  AppendLoad(Op::kLDG, MemorySpace::kGlobal, 4, 0x1000, 4);
  Exit();
  Run();
  EXPECT_EQ(IssuedAt(1), kMiss);
  EXPECT_EQ(IssuedAt(3) - IssuedAt(2), kHit);
  EXPECT_EQ(stats.counters.l1tex_lookups_sector, 8u);
  EXPECT_EQ(stats.counters.l1tex_hits_sector, 4u);
  EXPECT_EQ(stats.counters.l1tex_m_read_bytes, 128u);
  EXPECT_EQ(SlotsAt(1, Stall::k_long_scoreboard), kMiss - 2);
}

// A second load of a line that is on its way asks nobody and waits for the same answer.
TEST_F(SmMemoryTest, MissesMerge) {
  for (uint32_t i = 0; i < 2; ++i) {
    Append(Make(Op::kLDG, Bits(1, 0, static_cast<uint8_t>(i)), {Destination(8), Memory(2)}));
    stream.accesses[i] = [](uint32_t) {
      return Access(MemorySpace::kGlobal, AccessKind::kLoad, 4, 0x1000, 4);
    };
  }
  Append(Make(Op::kNOP, Bits(1, 0b11)));
  Exit();
  Run();
  size_t reads = 0;
  for (const memory::MemoryRequest& request : requests) reads += request.line_address == 0x1000;
  EXPECT_EQ(reads, 1u);
  // Both arrive at 225 and want the return path in the two cycles before 233; it is shared to within 4 cycles.
  EXPECT_GT(IssuedAt(2), kMiss);
  EXPECT_LE(IssuedAt(2), kMiss + 2);
}

// 16 bytes a lane: four lines, looked up one a cycle; the last decides.
TEST_F(SmMemoryTest, WideLoadTakesFourLines) {
  AppendLoad(Op::kLDG, MemorySpace::kGlobal, 16, 0x1000, 16, {Mod::k128});
  Exit();
  Run();
  EXPECT_EQ(IssuedAt(1), kMiss + 3);
  EXPECT_EQ(stats.counters.l1tex_m_read_bytes, 512u);
}

// Lanes 64 bytes apart, 4 bytes each: 16 lines, every other sector of each.
TEST_F(SmMemoryTest, StridedLoadAsksForSectors) {
  AppendLoad(Op::kLDG, MemorySpace::kGlobal, 4, 0x1000, 64);
  Exit();
  Run();
  EXPECT_EQ(stats.counters.l1tex_lookups_sector, 32u);
  for (const memory::MemoryRequest& request : requests) {
    if (request.line_address < 0x1000 || request.line_address >= 0x2000) continue;
    EXPECT_EQ(request.sector_mask, 0b0101);
  }
}

// With room for one line on its way, a second load waits until the first has come: at 225.
TEST_F(SmMemoryTest, MissLimitHoldsLoads) {
  overrides = {"sm.l1.pending_lines=1"};
  for (uint32_t i = 0; i < 2; ++i) {
    Append(Make(Op::kLDG, Bits(1, 0, 0), {Destination(8), Memory(2)}));
    stream.accesses[i] = [i](uint32_t) {
      return Access(MemorySpace::kGlobal, AccessKind::kLoad, 4, 0x1000 + 0x80 * i, 4);
    };
  }
  Exit();
  Run();
  EXPECT_EQ(IssuedAt(1), kSent + 200);
  EXPECT_GT(Slots(Stall::k_lg_throttle), 200u);
}

// Local memory is kept in L1 when it is written.
TEST_F(SmMemoryTest, LocalStoreThenLoadHits) {
  Append(Make(Op::kSTL, Bits(1), {Memory(2), Register(8)}));
  stream.accesses[0] = [](uint32_t) { return Access(MemorySpace::kLocal, AccessKind::kStore, 4, 0x9000, 4); };
  const uint32_t load = AppendLoad(Op::kLDL, MemorySpace::kLocal, 4, 0x9000, 4);
  Exit();
  Run();
  // The LDL issues one cycle behind the store; its address is generated 4 cycles behind the store's: 3 late.
  EXPECT_EQ(IssuedAt(load + 1) - IssuedAt(load), kHit + 3);
}

// ---- Asynchronous copies ---------------------------------------------------------------------------------------------

class SmCopyTest : public SmMemoryTest {
 protected:
  void AppendCopy(uint32_t token, uint64_t line) {
    const auto index = static_cast<uint32_t>(code.instructions.size());
    Append(Make(Op::kLDGSTS, Bits(2), {Memory(2), Memory(4)}, {Mod::kE, Mod::kBYPASS, Mod::k128}));
    stream.accesses[index] = [=](uint32_t) {
      isa::MemoryAccess access = Access(MemorySpace::kGlobal, AccessKind::kAsyncCopy, 16, line, 16);
      access.bypass_l1 = true;
      access.token = token;
      return access;
    };
  }
  void AppendWait(uint8_t count) {
    Append(Make(Op::kDEPBAR, Bits(4), {Scoreboard(0), Immediate(count)}, {Mod::kLE}));
  }
};

// 512 bytes: four lines, the last leaves at 28 and is here at 228; 8 to fill, 6 to write shared memory.
constexpr Cycle kCopied = 28 + 200 + 8 + 6;

TEST_F(SmCopyTest, GroupsAreWaitedForInOrder) {
  AppendCopy(7, 0x1000);
  Append(Make(Op::kLDGDEPBAR, Bits(2, 0, 0)));
  AppendCopy(8, 0x2000);
  Append(Make(Op::kLDGDEPBAR, Bits(2, 0, 0)));
  AppendWait(1);
  AppendWait(0);
  Exit();
  Run();
  EXPECT_EQ(IssuedAt(4), kCopied);
  EXPECT_EQ(IssuedAt(5), kCopied + 4);
  const Cycle first = stream.executed[0].cycle;
  ASSERT_EQ(stream.copies.size(), 2u);
  EXPECT_EQ(stream.copies[0], std::make_pair(first + kCopied, 7u));
  EXPECT_EQ(stream.copies[1], std::make_pair(first + kCopied + 4, 8u));
}

// A group without copies is complete at once; one behind an unfinished group is not.
TEST_F(SmCopyTest, EmptyGroups) {
  Append(Make(Op::kLDGDEPBAR, Bits(2, 0, 0)));
  AppendWait(0);
  AppendCopy(1, 0x1000);
  Append(Make(Op::kLDGDEPBAR, Bits(2, 0, 0)));
  Append(Make(Op::kLDGDEPBAR, Bits(2, 0, 0)));
  AppendWait(0);
  Exit();
  Run();
  EXPECT_EQ(IssuedAt(1), 2u);
  EXPECT_EQ(IssuedAt(5) - IssuedAt(2), kCopied);
}

// A CTA keeps its place until its copies have arrived.
TEST_F(SmCopyTest, CtaOutlivesItsCopies) {
  AppendCopy(1, 0x1000);
  Exit();
  Run();
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].cycle, stream.executed[0].cycle + kCopied);
  EXPECT_EQ(stream.copies.size(), 1u);
  EXPECT_GT(Slots(Stall::k_drain), 200u);
}

// DEPBAR.LE on plain loads that share a barrier: at most one outstanding when the first has come.
TEST_F(SmMemoryTest, DepbarCountsLoads) {
  for (uint32_t i = 0; i < 2; ++i) {
    Append(Make(Op::kLDG, Bits(10, 0, 0), {Destination(8), Memory(2)}));
    stream.accesses[i] = [i](uint32_t) {
      return Access(MemorySpace::kGlobal, AccessKind::kLoad, 4, 0x1000 + 0x80 * i, 4);
    };
  }
  Append(Make(Op::kDEPBAR, Bits(4), {Scoreboard(0), Immediate(1)}, {Mod::kLE}));
  Append(Make(Op::kDEPBAR, Bits(4), {Scoreboard(0), Immediate(0)}, {Mod::kLE}));
  Exit();
  Run();
  EXPECT_EQ(IssuedAt(2), kMiss);
  EXPECT_EQ(IssuedAt(3), kMiss + 10);
}

// ---- Stores, atomics, fences -------------------------------------------------------------------------------------------

TEST_F(SmMemoryTest, FenceWaitsForAcknowledgements) {
  Append(Make(Op::kSTG, Bits(1), {Memory(2), Register(8)}, {Mod::kE}));
  stream.accesses[0] = [](uint32_t) {
    return Access(MemorySpace::kGlobal, AccessKind::kStore, 4, 0x1000, 4);
  };
  Append(Make(Op::kMEMBAR, Bits(1), {}, {Mod::kSC, Mod::kGPU}));
  Exit();
  Run();
  EXPECT_EQ(IssuedAt(2), kSent + 200 + 186);  // fences.gpu_cycles
  EXPECT_EQ(Slots(Stall::k_membar), kSent + 200 + 186 - 2);
  EXPECT_EQ(stats.counters.l1tex_m_write_bytes, 128u);
}

TEST_F(SmMemoryTest, CtaFenceIsCheap) {
  Append(Make(Op::kSTG, Bits(1), {Memory(2), Register(8)}, {Mod::kE}));
  stream.accesses[0] = [](uint32_t) {
    return Access(MemorySpace::kGlobal, AccessKind::kStore, 4, 0x1000, 4);
  };
  Append(Make(Op::kMEMBAR, Bits(1), {}, {Mod::kSC, Mod::kCTA}));
  Exit();
  Run();
  EXPECT_EQ(IssuedAt(2), 1u + 53);
}

// A store's sources are free after 19 cycles (STG.32.regular), whatever L2 does.
TEST_F(SmMemoryTest, StoreReleasesItsSources) {
  Append(Make(Op::kSTG, Bits(2, 0, isa::kNoBarrier, 1), {Memory(2), Register(8)}, {Mod::kE}));
  stream.accesses[0] = [](uint32_t) {
    return Access(MemorySpace::kGlobal, AccessKind::kStore, 4, 0x1000, 4);
  };
  Append(Make(Op::kNOP, Bits(1, 0b10)));
  Exit();
  Run();
  EXPECT_EQ(IssuedAt(1), 19u);
}

// Atomics and strong loads bypass L1 and carry what the slice needs to perform them.
TEST_F(SmMemoryTest, AtomicsGoToTheSlice) {
  Append(Make(Op::kATOMG, Bits(2, 0, 0), {Destination(8), Memory(2)}, {Mod::kADD}));
  stream.accesses[0] = [](uint32_t) {
    isa::MemoryAccess access = Access(MemorySpace::kGlobal, AccessKind::kAtomic, 4, 0x1000, 0, 0xff);
    access.at_slice = true;
    access.token = 42;
    return access;
  };
  Append(Make(Op::kNOP, Bits(1, 0b1)));
  Exit();
  Run();
  EXPECT_EQ(IssuedAt(1), kMiss);
  bool found = false;
  for (const memory::MemoryRequest& request : requests) {
    if (request.kind != memory::RequestKind::kAtomic) continue;
    found = true;
    EXPECT_EQ(request.stream, &stream);
    EXPECT_EQ(request.token, 42u);
    EXPECT_EQ(request.lanes, 0xffu);
    EXPECT_EQ(request.sector_mask, 0b1);
  }
  EXPECT_TRUE(found);
}

TEST_F(SmMemoryTest, PredicatedOffLoadsNothing) {
  Append(Make(Op::kLDG, Bits(2, 0, 0), {Destination(8), Memory(2)}));
  Append(Make(Op::kNOP, Bits(1, 0b1)));
  Exit();
  Run();
  EXPECT_EQ(IssuedAt(1), kHit);
  EXPECT_EQ(stats.counters.l1tex_lookups_sector, 0u);
}

// CCTL.IVALL: what was in L1 must be fetched again.
TEST_F(SmMemoryTest, InvalidateForgetsLines) {
  AppendLoad(Op::kLDG, MemorySpace::kGlobal, 4, 0x1000, 4);
  Append(Make(Op::kCCTL, Bits(1), {}, {Mod::kIVALL}));
  const uint32_t again = AppendLoad(Op::kLDG, MemorySpace::kGlobal, 4, 0x1000, 4);
  Exit();
  Run();
  EXPECT_EQ(IssuedAt(again + 1) - IssuedAt(again), kMiss);
}

// LDC of an address that is in no cache: L2, then L1.5 to L1; its own 26 cycles pass meanwhile.
TEST_F(SmMemoryTest, ConstantLoadMissesThenHits) {
  for (int i = 0; i < 2; ++i) {
    Append(Make(Op::kLDC, Bits(2, 0, 0), {Destination(8), Constant(0x20)}));
    Append(Make(Op::kNOP, Bits(100, 0b1)));
  }
  code.instructions[1].control.stall = 15;
  code.instructions[3].control.stall = 1;
  Exit();
  Run();
  EXPECT_EQ(IssuedAt(1), 200u + 79);
  // The second finds it in L1.5, which costs 79 on the way to L1, and then takes 26.
  EXPECT_EQ(IssuedAt(3) - IssuedAt(2), 79u + 26);
}

}  // namespace
}  // namespace heddle::sm
