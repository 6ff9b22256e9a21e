// Exact cycles of the slice group, the DRAM channel and the crossbar, derived by hand from the A100's description:
//   request 53, hit 66, reply 53, partition 150; slice 64 B/cycle; link 2560 / 40 = 64 B/cycle and slice;
//   ports: SM 64 in, 32 out; TPC 109 in, 62 out; GPC 550 in, 289 out;
//   channel 2039e9 / 80 / 1.41e9 = 18.08 B/cycle; 177 ns = 250 cycles (125 each way), tRCD 14 ns = 20,
//   tRAS + tRP = 47 ns = 66; refresh 367 of every 5499 cycles.
// A transfer of b bytes over r bytes a cycle adds ceil(b / r) - 1 cycles: latencies count from the cycle in which the
// last byte moves.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "sim/interconnect/crossbar.h"
#include "sim/memory/address_map.h"
#include "sim/memory/dram_channel.h"
#include "sim/memory/slice_group.h"
#include "tests/support/machines.h"

namespace heddle::memory {
namespace {

constexpr Cycle kHit = 66;
// 32 bytes over a slice's share of the link between the partitions, 576 * 2 / 80 a cycle: the last of 3 cycles.
constexpr Cycle kLink = 2;
constexpr Cycle kFar = 150;
constexpr Cycle kDram = 250 + 20;  // without the transfer

class SliceGroupTest : public testing::Test {
 protected:
  // The first line of this group whose home is the given partition, from line `from` on.
  uint64_t LineWithHome(uint32_t home, uint64_t from = 0) {
    for (uint64_t line = from;; ++line) {
      const Location where = map_.Locate(line);
      if (where.group == 0 && where.home == home) return line;
    }
  }
  Cycle Serve(RequestKind kind, uint64_t line, uint32_t partition, Cycle arrival, uint8_t sectors = 1,
              uint32_t lanes = 0) {
    MemoryRequest request;
    request.kind = kind;
    request.sector_mask = sectors;
    request.lanes = lanes;
    if (kind != RequestKind::kRead)
      request.payload_bytes = static_cast<uint16_t>(32 * std::popcount(sectors));
    return group_.Serve(RequestFor(&request, line, partition, arrival), &counters_) - arrival;
  }

  SliceRequest RequestFor(MemoryRequest* request, uint64_t line, uint32_t partition, Cycle arrival) {
    const Location where = map_.Locate(line);
    return {request, where,  geometry_.PlaceOf(where.index, where.home), static_cast<uint16_t>(partition),
            0,       arrival};
  }

  config::Gpu gpu_ = test::A100();
  AddressMap map_{gpu_};
  L2Geometry geometry_{gpu_};
  SliceGroup group_{gpu_, 0};
  stats::Counters counters_;
};

TEST_F(SliceGroupTest, MissThenNearHit) {
  const uint64_t line = LineWithHome(0);
  // 32 bytes over the channel: ceil(32 / 18.08) = 2 cycles.
  EXPECT_EQ(Serve(RequestKind::kRead, line, 0, 1000), kHit + kDram + 2);
  EXPECT_EQ(Serve(RequestKind::kRead, line, 0, 2000), kHit);
  EXPECT_EQ(counters_.lts_lookups_sector, 2U);
  EXPECT_EQ(counters_.lts_hits_sector, 1U);
  EXPECT_EQ(counters_.dram_read_bytes, 32U);
  EXPECT_EQ(counters_.dram_row_misses, 1U);
}

TEST_F(SliceGroupTest, WholeLineTakesTheArrayTwoCycles) {
  const uint64_t line = LineWithHome(0);
  // 128 bytes over the channel: ceil(7.08) = 8 cycles; over the array 2 cycles.
  EXPECT_EQ(Serve(RequestKind::kRead, line, 0, 1000, 0xf), kHit + kDram + 8 + 1);
  EXPECT_EQ(Serve(RequestKind::kRead, line, 0, 2000, 0xf), kHit + 1);
}

TEST_F(SliceGroupTest, HitOnASectorThatIsOnItsWayWaitsForIt) {
  const uint64_t line = LineWithHome(0);
  const Cycle first = Serve(RequestKind::kRead, line, 0, 1000);
  EXPECT_EQ(Serve(RequestKind::kRead, line, 0, 1100), first - 100);
  EXPECT_EQ(counters_.dram_read_bytes, 32U);
}

TEST_F(SliceGroupTest, SectorsAreFilledOneByOne) {
  const uint64_t line = LineWithHome(0);
  Serve(RequestKind::kRead, line, 0, 1000, 0b0001);
  EXPECT_GT(Serve(RequestKind::kRead, line, 0, 2000, 0b0010), kHit + kDram - 20);  // its row is open
  EXPECT_EQ(Serve(RequestKind::kRead, line, 0, 3000, 0b0011), kHit);
}

TEST_F(SliceGroupTest, FarHitIsKeptNear) {
  const uint64_t line = LineWithHome(1);
  Serve(RequestKind::kRead, line, 1, 1000);  // the home has it
  EXPECT_EQ(counters_.lts_fabric_bytes, 0U);
  EXPECT_EQ(Serve(RequestKind::kRead, line, 0, 2000), kHit + kFar + kLink);
  EXPECT_EQ(counters_.lts_fabric_bytes, 32U);
  EXPECT_EQ(Serve(RequestKind::kRead, line, 0, 3000), kHit);  // the replica
  EXPECT_EQ(counters_.lts_fabric_bytes, 32U);
}

TEST_F(SliceGroupTest, FarMissPaysBoth) {
  EXPECT_EQ(Serve(RequestKind::kRead, LineWithHome(1), 0, 1000), kHit + kFar + kLink + kDram + 2);
}

TEST_F(SliceGroupTest, WriteDropsTheReplica) {
  const uint64_t line = LineWithHome(1);
  Serve(RequestKind::kRead, line, 0, 1000);
  ASSERT_EQ(Serve(RequestKind::kRead, line, 0, 2000), kHit);
  EXPECT_EQ(Serve(RequestKind::kWrite, line, 1, 3000), kHit);  // near for the writer
  EXPECT_EQ(Serve(RequestKind::kRead, line, 0, 4000), kHit + kFar + kLink);
}

TEST_F(SliceGroupTest, FarWriteIsAcknowledgedFromTheHome) {
  EXPECT_EQ(Serve(RequestKind::kWrite, LineWithHome(1), 0, 1000), kHit + kFar + kLink);
  EXPECT_EQ(counters_.lts_fabric_bytes, 32U);
  EXPECT_EQ(counters_.lts_t_bytes, 64U);     // at the near slice and at home
  EXPECT_EQ(counters_.dram_read_bytes, 0U);  // a whole sector needs no fill
}

TEST_F(SliceGroupTest, TwoHalvesMakeASectorOneHalfDoesNot) {
  MemoryRequest half;
  half.kind = RequestKind::kWrite;
  half.sector_mask = 1;
  half.payload_bytes = 16;
  const auto write_half = [&](uint64_t line, Cycle at) {
    group_.Serve(RequestFor(&half, line, 0, at), &counters_);
  };
  const uint64_t line = LineWithHome(0);
  write_half(line, 1000);
  write_half(line, 1001);
  EXPECT_EQ(Serve(RequestKind::kRead, line, 0, 2000), kHit);
  EXPECT_EQ(counters_.dram_read_bytes, 0U);
  const uint64_t other = LineWithHome(0, line + 1);
  write_half(other, 3000);
  Serve(RequestKind::kRead, other, 0, 4000);
  EXPECT_EQ(counters_.dram_read_bytes, 32U);  // merged with DRAM
}

// Two rows that meet in sector 1: the first ends with 20 of its bytes, the second begins with the other 12.
TEST_F(SliceGroupTest, NeighbouringRowsCompleteTheSectorThatTheyShare) {
  MemoryRequest write;
  write.kind = RequestKind::kWrite;
  const uint64_t line = LineWithHome(0);
  const auto write_row = [&](uint8_t sectors, uint8_t complete, uint16_t pairs, uint16_t bytes, Cycle at) {
    write.sector_mask = sectors;
    write.complete_sectors = complete;
    write.written_pairs = pairs;
    write.payload_bytes = bytes;
    group_.Serve(RequestFor(&write, line, 0, at), &counters_);
  };
  write_row(0b0011, 0b0001, 0x00a0, 52, 1000);
  Serve(RequestKind::kRead, line, 0, 2000, 0b0001);
  EXPECT_EQ(counters_.dram_read_bytes, 0U);
  write_row(0b1110, 0b0100, 0xf060, 74, 3000);  // and two bytes short of the last sector
  Serve(RequestKind::kRead, line, 0, 4000, 0b0111);
  EXPECT_EQ(counters_.dram_read_bytes, 0U);
  Serve(RequestKind::kRead, line, 0, 5000, 0b1000);
  EXPECT_EQ(counters_.dram_read_bytes, 32U);
}

TEST_F(SliceGroupTest, SameAddressAtomicsFollowEachOther) {
  const uint64_t line = LineWithHome(0);
  const Cycle latency = kHit + gpu_.l2.atomic_latency_cycles;
  Serve(RequestKind::kAtomic, line, 0, 1000);  // brings the line
  // One sector operation a cycle: the n-th of those that arrive together is n - 1 cycles later.
  for (Cycle n = 0; n < 10; ++n) EXPECT_EQ(Serve(RequestKind::kAtomic, line, 0, 2000, 1, 1), latency + n);
  // 32 lanes on one sector of 8 words: 1 + 24 operations, the last 24 cycles after the first.
  EXPECT_EQ(Serve(RequestKind::kAtomic, line, 0, 3000, 1, ~0U), latency + 24);
  EXPECT_EQ(counters_.lts_atomics, 12U);
}

TEST_F(SliceGroupTest, BeyondTheDirtyLimitTheOldestIsWrittenBack) {
  // Half of the 4096 lines of a slice may be dirty.
  uint64_t line = 0;
  for (int i = 0; i < 2048; ++i) {
    line = LineWithHome(0, line + 1);
    Serve(RequestKind::kWrite, line, 0, static_cast<Cycle>(1000 + i * 4), 0xf);
  }
  EXPECT_EQ(counters_.dram_write_bytes, 0U);
  EXPECT_EQ(group_.DirtyLines(), 2048U);
  for (int i = 0; i < 10; ++i) {
    line = LineWithHome(0, line + 1);
    Serve(RequestKind::kWrite, line, 0, static_cast<Cycle>(20000 + i * 4), 0xf);
  }
  EXPECT_EQ(counters_.dram_write_bytes, 10U * 128);
  EXPECT_EQ(group_.DirtyLines(), 2048U);
}

TEST(L2SliceTest, EvictionNamesTheDirtyLine) {
  const config::Gpu gpu = test::A100({"l2.replacement=lru"});
  L2Slice slice(gpu, 0);
  ASSERT_EQ(slice.geometry().sets(), 256U);
  Dirt dirt;
  // 16 ways: every 256th line of the slice may share a set; the permutation shifts each round, so go by eviction.
  const auto place = [&](uint64_t index) { return slice.geometry().PlaceOf(index, 0); };
  const Place first = place(7);
  slice.MarkDirty(slice.Allocate(first, &dirt), first, 0b0110);
  slice.Find(first).valid() = 0b0010;
  int evictions = 0;
  for (uint64_t index = 256; index < 256 * 17; ++index) {
    slice.Allocate(place(index), &dirt);
    if (!dirt.Any()) continue;
    ++evictions;
    EXPECT_EQ(dirt.key, (LineKey{7, 0}));
    EXPECT_EQ(dirt.complete, 0b0010);
    EXPECT_EQ(dirt.partial, 0b0100);
  }
  EXPECT_EQ(evictions, 1);
  EXPECT_EQ(slice.Find(first).set, nullptr);
  EXPECT_EQ(slice.dirty_lines(), 0U);
}

TEST(L2SliceTest, LeastRecentlyUsedLeaves) {
  const config::Gpu gpu = test::A100({"l2.replacement=lru"});
  L2Slice slice(gpu, 0);
  const auto place = [&](uint64_t index) { return slice.geometry().PlaceOf(index, 0); };
  Dirt dirt;
  for (uint64_t index = 0; index < 256 * 16; ++index)
    slice.Allocate(place(index), &dirt);  // full, each set 16 lines
  for (uint64_t index = 0; index < 256; ++index) slice.Touch(slice.Find(place(index)));
  for (uint64_t index = 256 * 16; index < 256 * 17; ++index) slice.Allocate(place(index), &dirt);
  for (uint64_t index = 0; index < 256 * 17; ++index) {
    const bool gone = index >= 256 && index < 512;
    EXPECT_EQ(slice.Find(place(index)).set == nullptr, gone) << index;
  }
}

class DramTest : public testing::Test {
 protected:
  Cycle Read(uint64_t line, Cycle at, uint32_t sectors = 1) {
    return channel_.Read(line, sectors, at, &counters_) - at;
  }
  config::Gpu gpu_ = test::A100();
  DramChannel channel_{gpu_, 0};
  stats::Counters counters_;
};

TEST_F(DramTest, RowMissThenRowHit) {
  EXPECT_EQ(Read(0, 1000), kDram + 2);
  EXPECT_EQ(Read(1, 2000), kDram - 20 + 2);  // 8 lines of 128 bytes in a row of 1024
  EXPECT_EQ(Read(7, 3000), kDram - 20 + 2);
  EXPECT_EQ(counters_.dram_row_misses, 1U);
  EXPECT_EQ(Read(8, 4000), kDram + 2);  // the next row
  EXPECT_EQ(counters_.dram_row_misses, 2U);
}

TEST_F(DramTest, TwoRowsOfABankAreARowCycleApart) {
  // 16 banks of 8 lines: line 128 is row 1, which the bank hash moves to bank 1 beside line 8.
  Read(8, 1000);
  EXPECT_EQ(Read(128, 1000), kDram + 66 + 2);
  EXPECT_EQ(Read(256, 1000),
            kDram + 4);  // row 2: bank 2, free; on the bus behind line 8: 64 bytes, ceil(3.54)
}

TEST_F(DramTest, BusIsSharedAndCountsBursts) {
  Read(0, 1000, 4);
  // The second line of the row follows on the bus: 256 bytes take ceil(14.16) = 15 cycles.
  EXPECT_EQ(Read(1, 1000, 4), kDram + 15);
  EXPECT_EQ(counters_.dram_read_bytes, 256U);
}

TEST_F(DramTest, BatchOfWritesCostsATurnAround) {
  // 64 sectors of 32 bytes = 16 lines go out together: 2048 bytes and a turn-around of 12 ns = 17 cycles, 307 bytes:
  // ceil(2355 / 18.08) = 131 cycles of the bus.
  for (uint64_t line = 0; line < 15; ++line) channel_.Write(line, 4, 1000, &counters_);
  EXPECT_EQ(Read(0, 1000, 1),
            250U + 20 + 2);  // the row was opened by the write at the same time; no batch yet
  channel_.Write(15, 4, 2000, &counters_);
  const Cycle blocked = Read(15, 2000, 1);
  EXPECT_GE(blocked, 250U + 131);
  EXPECT_LE(blocked, 250U + 131 + 20 + 2);
  EXPECT_EQ(counters_.dram_write_bytes, 2048U);
}

TEST_F(DramTest, RefreshClosesTheBus) {
  // Channel 0 refreshes from 0 to 367: data that would come at 10 + 145 come when it opens.
  EXPECT_EQ(Read(0, 10) + 10, 367U + 2 + 125);
  // Between refreshes 5499 - 367 cycles remain: reading more than that takes one refresh longer.
  Cycle last = 0;
  uint64_t bytes = 0;
  for (uint64_t line = 8; bytes < 4 * 5132 * 18; ++line, bytes += 128) last = Read(line, 600, 4) + 600;
  EXPECT_NEAR(static_cast<double>(last - 600), static_cast<double>(bytes) / 18.076 + 4 * 367 + 250, 60);
}

TEST(AddressMapTest, EveryRunOfSlicesVisitsEachSliceOnce) {
  for (const char* machine : {"l2.slices=80", "l2.slices=40", "l2.slices=48"}) {
    const bool is48 = std::string(machine) == "l2.slices=48";
    const config::Gpu gpu = test::A100({machine, is48 ? "dram.channels=24" : "dram.channels=40",
                                        is48 ? "l2.size_bytes=50331648" : "l2.size_bytes=41943040"});
    const AddressMap map(gpu);
    const uint32_t slices = gpu.l2.slices;
    bool mixed = false;
    for (uint64_t run = 0; run < 300; ++run) {
      std::vector<int> seen(slices);
      for (uint64_t i = 0; i < slices; ++i) {
        const Location where = map.Locate(run * slices + i);
        EXPECT_EQ(where.index, run);
        const uint32_t flat =
            (where.home * map.slices_per_group() + where.slice) * map.groups() + where.group;
        ++seen[flat];
        mixed = mixed || flat != i;
      }
      for (int times : seen) ASSERT_EQ(times, 1);
    }
    EXPECT_TRUE(mixed);
  }
}

// A stride of the slice count, or of a power of two, must not fall on a few slices.
TEST(AddressMapTest, StridesSpread) {
  const AddressMap map(test::A100());
  for (uint64_t stride : {32U, 80U, 128U, 1024U, 16384U}) {
    std::vector<int> seen(80);
    for (uint64_t i = 0; i < 8000; ++i) {
      const Location where = map.Locate(i * stride);
      ++seen[(where.home * map.slices_per_group() + where.slice) * map.groups() + where.group];
    }
    for (int times : seen) EXPECT_NEAR(times, 100, 50) << "stride " << stride;
  }
}

TEST(AddressMapTest, PlacementIsABijectionOfPages) {
  const AddressMap map(test::A100(), 99);
  std::vector<bool> seen(65536);
  int moved = 0;
  for (uint64_t page = 0; page < 65536; ++page) {
    const uint64_t line = map.PhysicalLine(page << 21 | 0x12380);
    EXPECT_EQ(line & 0x3fff, 0x12380U >> 7);
    ASSERT_FALSE(seen[line >> 14]);
    seen[line >> 14] = true;
    moved += line >> 14 != page;
  }
  EXPECT_GT(moved, 60000);
}

TEST(CrossbarTest, PortsAreSharedByTpcAndGpc) {
  interconnect::Crossbar crossbar(test::A100());
  EXPECT_EQ(crossbar.sm_count(), 108U);
  EXPECT_EQ(crossbar.gpc_count(), 7U);
  EXPECT_EQ(crossbar.Request(0, 1000, 0), 1053U);
  EXPECT_EQ(crossbar.Reply(0, 1000, 32), 1053U);
  EXPECT_EQ(crossbar.Reply(0, 2000, 128), 2053U + 1 + 1);  // TPC: 2 cycles, SM: 2 cycles
  // 100 lines to one SM: 64 bytes a cycle. To two of a TPC: 109. To all 16 of a GPC: 550.
  const auto last_of = [&](std::vector<uint32_t> sms, int lines, Cycle at) {
    Cycle last = 0;
    for (int i = 0; i < lines; ++i)
      for (uint32_t sm : sms) last = std::max(last, crossbar.Reply(sm, at, 128));
    return static_cast<double>(last - at - 53);
  };
  EXPECT_NEAR(last_of({0}, 100, 10000), 100 * 128 / 64.0, 3);
  EXPECT_NEAR(last_of({2, 3}, 100, 20000), 200 * 128 / 109.0, 5);
  std::vector<uint32_t> gpc;
  for (uint32_t sm = 0; sm < 108; ++sm)
    if (crossbar.GpcOf(sm) == 1) gpc.push_back(sm);
  ASSERT_EQ(gpc.size(), 16U);
  EXPECT_NEAR(last_of(gpc, 100, 30000), 1600 * 128 / 550.0, 8);
}

TEST(CrossbarTest, RoutesCrossThePartitionOnce) {
  const config::Gpu gpu = test::A100();
  const interconnect::Crossbar crossbar(gpu);
  EXPECT_EQ(crossbar.PartitionOf(0), 0U);
  EXPECT_EQ(crossbar.PartitionOf(107), 1U);
  EXPECT_EQ(crossbar.RouteTo(0, 0).latency_cycles, 53U);
  EXPECT_EQ(crossbar.RouteTo(0, 0).links.size(), 4U);  // TPC, GPC, partition, slice
  EXPECT_EQ(crossbar.RouteTo(0, 79).latency_cycles, 53U + 75);
  EXPECT_EQ(crossbar.RouteTo(107, 79).latency_cycles, 53U);
}

}  // namespace
}  // namespace heddle::memory
