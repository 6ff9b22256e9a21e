// What tools/analysis makes of counts: each number by hand on the A100's description.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/config/load.h"
#include "sim/sm/sm.h"
#include "tools/analysis/bounds.h"
#include "tools/analysis/code_text.h"
#include "tools/analysis/roofline.h"
#include "tools/analysis/speed_of_light.h"
#include "tools/analysis/stalls.h"

namespace heddle::analysis {
namespace {

const config::Gpu& A100() {
  static const config::Gpu gpu = *config::LoadGpu("a100_sxm4_80gb");
  return gpu;
}
const config::Gpu& H100() {
  static const config::Gpu gpu = *config::LoadGpu("h100_sxm5");
  return gpu;
}

// A kernel of these instructions, each issued as often as is said, on 1080 CTAs of 128 threads.
struct Case {
  std::vector<isa::Instruction> code;
  std::vector<stats::PcStats> per_pc;
  stats::Counters counters;

  void Add(const std::string& text, uint64_t issued) {
    code.push_back(ReadInstructionText(text));
    per_pc.emplace_back().issued = issued;
    counters.smsp_inst_executed += issued;
  }
  LaunchWork Work(const config::Gpu& gpu = A100(), uint32_t ctas = 1080, uint64_t cycles = 100'000) const {
    return WorkOf(gpu, code, per_pc, counters, {ctas, 1, 1}, {128, 1, 1}, cycles);
  }
};

TEST(CodeText, OpcodeModifiersGuardAndMatrixOperands) {
  const isa::Instruction load = ReadInstructionText("@!P0 LDG.E.128 R4, desc[UR6][R2.64+0x10]");
  EXPECT_EQ(load.op, isa::Op::kLDG);
  EXPECT_TRUE(load.Has(isa::Mod::k128));
  EXPECT_TRUE(load.IsPredicated());
  EXPECT_EQ(ReadInstructionText("no such instruction").op, isa::Op::kNOP);
  const isa::Instruction shared = ReadInstructionText("HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], R24, gsb0");
  const isa::Instruction registers = ReadInstructionText("HGMMA.64x128x16.F32.BF16 R24, R8, gdesc[UR4], R24");
  EXPECT_EQ(sm::PortUseOf(H100(), shared).port, sm::IssuePort::kTensor);
  // Both read B, 16 x 128 halves; one reads A, 64 x 16 halves, as well.
  Case a, b;
  a.code = {shared}, a.per_pc.resize(1), a.per_pc[0].issued = 4;
  b.code = {registers}, b.per_pc.resize(1), b.per_pc[0].issued = 4;
  EXPECT_EQ(a.Work(H100()).matrix_shared_bytes, 16 * 128 * 2 + 64 * 16 * 2);
  EXPECT_EQ(b.Work(H100()).matrix_shared_bytes, 16 * 128 * 2);
}

TEST(Work, ArithmeticByKindAndItsCeiling) {
  Case kernel;
  kernel.Add("HMMA.16816.F32.BF16 R4, R8, R12, R4", 1000);
  kernel.Add("FFMA R1, R2, R3, R4", 500);
  kernel.Add("FADD R1, R2, R3", 100);
  kernel.Add("IMAD R1, R2, R3, R4", 50);
  const LaunchWork work = kernel.Work();
  ASSERT_EQ(work.arithmetic.size(), 3u);
  EXPECT_EQ(work.arithmetic[0].name, "bf16 tensor");
  EXPECT_EQ(work.arithmetic[0].ops, 1000.0 * 16 * 8 * 16 * 2);
  EXPECT_EQ(work.arithmetic[0].ops_per_cycle, 16 * 8 * 16 * 2 / 8.0 * 4 * 108);  // one in 8 cycles a sub-core
  EXPECT_EQ(work.arithmetic[1].name, "fp32");
  EXPECT_EQ(work.arithmetic[1].ops, 500.0 * 64 + 100 * 32);
  EXPECT_EQ(work.arithmetic[1].ops_per_cycle, 64 / 2.0 * 4 * 108);
  EXPECT_EQ(work.arithmetic[2].name, "int32");
  // Integer multiplies take the FMA pipe's issue as well: (500 + 100 + 50) x 2 cycles.
  EXPECT_EQ(work.port_cycles[static_cast<size_t>(sm::IssuePort::kFma)], 1300);
  EXPECT_EQ(work.port_cycles[static_cast<size_t>(sm::IssuePort::kFmaHeavy)], 100);
}

TEST(Bounds, EachResourceByHand) {
  Case kernel;
  kernel.Add("HMMA.16816.F32.BF16 R4, R8, R12, R4", 432'000);
  kernel.counters.dram_read_bytes = 20'390'000;    // 2039 GB/s at 1410 MHz: 1446.1 bytes a cycle
  kernel.counters.lts_lookups_sector = 512'000;    // 80 slices x 64 bytes
  kernel.counters.l1tex_m_read_bytes = 3'850'000;  // 7 GPCs x 550 bytes
  kernel.counters.smem_wavefronts = 108'000;
  const LowerBound bound = LowerBoundOf(A100(), kernel.Work());
  const auto cycles = [&](Resource resource) {
    for (const ResourceBound& each : bound.resources)
      if (each.resource == resource) return each.cycles;
    return 0.0;
  };
  EXPECT_NEAR(cycles(Resource::kDram), 14'100, 1e-6);
  EXPECT_EQ(cycles(Resource::kL2), 512'000 * 32 / 5120.0);
  EXPECT_EQ(cycles(Resource::kNetworkRead), 1000);
  EXPECT_EQ(cycles(Resource::kL1), 1000);
  EXPECT_EQ(cycles(Resource::kTensor), 432'000 * 8 / 432.0);
  EXPECT_EQ(cycles(Resource::kIssue), 1000);
  EXPECT_EQ(bound.resources[0].resource, Resource::kDram);
  EXPECT_EQ(bound.fixed_cycles, 1800 + 400 + 200);
  EXPECT_NEAR(bound.cycles, 14'100 + 2400, 1e-6);
  EXPECT_NEAR(bound.reached, 0.165, 1e-6);
  EXPECT_EQ(LowerBoundOf(A100(), kernel.Work(), false).fixed_cycles, 200);
}

// A CTA stays on its SM and a warp on its sub-core: few of them cannot use the whole machine.
TEST(Bounds, FewCtasUseFewPipes) {
  Case kernel;
  kernel.Add("FFMA R1, R2, R3, R4", 800);
  const auto cycles = [&](uint32_t ctas) {
    for (const ResourceBound& each : LowerBoundOf(A100(), kernel.Work(A100(), ctas)).resources)
      if (each.resource == Resource::kFma) return each.cycles;
    return 0.0;
  };
  EXPECT_EQ(cycles(1), 800 * 2 / 4.0);
  EXPECT_EQ(cycles(10), 800 * 2 / 40.0);
  EXPECT_EQ(cycles(10'000), 800 * 2 / 432.0);
}

TEST(Bounds, AtomicsPassTheirOwnUnit) {
  Case kernel;
  kernel.counters.lts_lookups_sector = 4000;
  kernel.counters.lts_atomics = 1000;  // of four sectors each, at most
  const LowerBound bound = LowerBoundOf(A100(), kernel.Work());
  for (const ResourceBound& each : bound.resources) EXPECT_NE(each.resource, Resource::kL2);
  EXPECT_EQ(bound.resources[0].resource, Resource::kDispatch);  // 1079 CTAs x 2.1 cycles
}

Machine MachineOf(const config::Gpu& gpu) { return {1, gpu.name, "", "", gpu}; }

TEST(Roofline, PointsAndShareOfTheRoof) {
  Case kernel;
  kernel.Add("HMMA.16816.F32.BF16 R4, R8, R12, R4", 432'000);
  kernel.counters.dram_read_bytes = 8'847'360;
  LaunchInfo launch;
  launch.end_cycle = 100'000;
  launch.duration_ps = 70'921'986;  // at 1410 MHz
  const double ops = 432'000.0 * 4096;
  const Measurement measured{"A100", "k", "paper", "", {{"duration_ps", 2 * 70'921'986.0}}};
  const Roofline roofline = RooflineOf(MachineOf(A100()), launch, kernel.Work(), {measured});
  EXPECT_EQ(roofline.kind, "bf16 tensor");
  EXPECT_NEAR(roofline.rate_percent, 8.0, 1e-9);  // 8,000 of 100,000 cycles
  ASSERT_EQ(roofline.points.size(), 1u);
  EXPECT_DOUBLE_EQ(roofline.points[0].ops_per_byte, ops / 8'847'360);
  EXPECT_NEAR(roofline.points[0].bytes_per_second, 124.7e9, 0.1e9);
  // 6118 cycles of DRAM, 8000 of tensor cores: the roof there is the tensor cores'.
  EXPECT_NEAR(roofline.points[0].roof_percent, 8.0, 1e-9);
  EXPECT_NEAR(roofline.rates[0].per_second, 312e12, 0.5e12);  // the whitepaper's
  ASSERT_EQ(roofline.measured.size(), 1u);
  EXPECT_NEAR(roofline.measured[0].ops_per_second * 2, roofline.ops_per_second,
              1e-3 * roofline.ops_per_second);
}

TEST(Stalls, LadderAndPcTable) {
  LaunchInfo launch;
  launch.end_cycle = 1000;
  LaunchCounts counts;
  counts.slots[static_cast<size_t>(stats::Stall::k_selected)] = 100;
  counts.slots[static_cast<size_t>(stats::Stall::k_long_scoreboard)] = 300;
  counts.per_pc.resize(3);
  counts.per_pc[1].issued = 100;
  counts.per_pc[1].slots[static_cast<size_t>(stats::Stall::k_selected)] = 100;
  counts.per_pc[2].slots[static_cast<size_t>(stats::Stall::k_long_scoreboard)] = 300;
  const std::vector<StallShare> ladder = StallLadder(launch, counts);
  ASSERT_EQ(ladder.size(), 2u);
  EXPECT_EQ(Name(ladder[0].stall), "long_scoreboard");
  EXPECT_EQ(ladder[0].share, 0.75);
  EXPECT_EQ(ladder[0].cycles, 750);
  const std::vector<PcRow> table = PcTable(launch, counts);
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table[0].index, 1u);
  EXPECT_EQ(table[0].waited, 0u);
  EXPECT_EQ(table[1].waited, 300u);
  EXPECT_EQ(table[1].share, 0.75);
}

TEST(Memory, WordsAndRowsByKind) {
  EXPECT_EQ(MemoryText({}, false), "");
  EXPECT_EQ(MemoryText({.requests = 2, .sectors = 8, .ideal_sectors = 8}, false), "4.0 sectors a request");
  EXPECT_EQ(MemoryText({.requests = 2, .sectors = 8, .ideal_sectors = 8}, true), "");
  EXPECT_EQ(MemoryText({.requests = 2, .sectors = 64, .ideal_sectors = 8}, true),
            "32.0 sectors a request where 4.0 would do");
  EXPECT_EQ(MemoryText({.requests = 4, .wavefronts = 12, .bank_conflicts = 8}, true),
            "3.0 wavefronts a request, 2.0 of them bank conflicts");
  Kernel kernel;
  LaunchCounts counts;
  for (const char* text : {"LDG.E R1, [R2]", "LDS R3, [R4]", "LDG.E.128 R4, [R8]", "FADD R1, R2, R3"})
    kernel.instructions.push_back(ReadInstructionText(text));
  counts.per_pc.resize(4);
  counts.per_pc[0].memory = {.requests = 1, .sectors = 4, .ideal_sectors = 4};
  counts.per_pc[1].memory = {.requests = 5, .wavefronts = 10, .bank_conflicts = 5};
  counts.per_pc[2].memory = {.requests = 1, .sectors = 20, .ideal_sectors = 16};
  const std::vector<MemoryTraffic> table = MemoryTable(kernel, counts);
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table[0].name, "Global Load");
  EXPECT_EQ(table[0].sums.requests, 2u);
  EXPECT_EQ(table[0].sums.sectors, 24u);
  EXPECT_EQ(table[1].name, "Shared Load");
  EXPECT_EQ(table[1].sums.bank_conflicts, 5u);
}

TEST(Occupancy, LimitsByEachResource) {
  // 256 threads of 64 registers: 8 warps x 2048 registers; 65536 / 16384 = 4 CTAs. 40 KiB of 164 KiB: 4 CTAs.
  const OccupancyLimits limits = OccupancyOf(A100(), {256, 1, 1}, 64, 40 << 10);
  EXPECT_EQ(limits.by_registers, 4u);
  EXPECT_EQ(limits.by_shared_memory, 4u);
  EXPECT_EQ(limits.by_warps, 8u);
  EXPECT_EQ(limits.by_sm, 32u);
  EXPECT_EQ(limits.ctas, 4u);
  for (const uint32_t registers : {32u, 40u, 96u, 168u, 255u}) {
    for (const uint32_t shared : {0u, 1024u, 20'000u, 100'000u}) {
      const OccupancyLimits each = OccupancyOf(A100(), {192, 1, 1}, registers, shared);
      EXPECT_EQ(each.ctas, std::min({each.by_sm, each.by_registers, each.by_shared_memory, each.by_warps}))
          << registers << " registers, " << shared << " bytes";
    }
  }
}

TEST(SpeedOfLight, NcuSectionsInTheirOrder) {
  Case kernel;
  kernel.Add("FFMA R1, R2, R3, R4", 43'200);
  kernel.counters.sm_cycles_active = 108 * 1000;
  kernel.counters.smsp_warps_active = 108 * 1000 * 16;
  kernel.counters.dram_read_bytes = 1'446'099;
  LaunchInfo launch;
  launch.grid = {864, 1, 1}, launch.block = {128, 1, 1};
  launch.end_cycle = 2000;
  launch.duration_ps = 1'418'440;
  LaunchCounts counts{kernel.counters, {}, kernel.per_pc};
  Kernel code;
  code.registers_per_thread = 32;
  const std::vector<Section> sections =
      SpeedOfLight(MachineOf(A100()), code, launch, counts, kernel.Work(A100(), 864, 2000), {});
  std::vector<std::string> titles;
  for (const Section& section : sections) titles.push_back(section.title);
  EXPECT_THAT(titles, testing::ElementsAre("GPU Speed Of Light Throughput", "Compute Workload Analysis",
                                           "Memory Workload Analysis", "Scheduler Statistics",
                                           "Warp State Statistics", "Launch Statistics", "Occupancy"));
  const auto value = [&](size_t section, const std::string& label) {
    for (const Metric& metric : sections[section].metrics)
      if (metric.label == label) return metric.value;
    return -1.0;
  };
  EXPECT_NEAR(value(0, "DRAM Throughput"), 50, 0.01);          // 1000 of 2000 cycles
  EXPECT_NEAR(value(0, "Compute (SM) Throughput"), 10, 0.01);  // 43,200 x 2 of 432 x 2000
  EXPECT_NEAR(value(1, "FMA Pipe Utilization"), 20, 0.01);     // of active cycles
  EXPECT_NEAR(value(1, "Executed Ipc Active"), 0.4, 1e-9);
  EXPECT_NEAR(value(2, "Mem Busy"), 50, 0.01);  // DRAM, which is the busiest of everything here
  EXPECT_NEAR(value(2, "Max Bandwidth"), 50, 0.01);
  EXPECT_EQ(value(2, "Mem Pipes Busy"), 0);  // no memory instruction
  EXPECT_NEAR(value(3, "No Eligible"), 90, 1e-9);
  EXPECT_EQ(value(3, "Theoretical Warps Per Scheduler"), 16);
  EXPECT_NEAR(value(5, "Waves Per SM"), 864 / (108 * 16.0), 1e-9);  // 16 CTAs of 4 warps
  EXPECT_NEAR(value(6, "Achieved Occupancy"), 25, 1e-9);
  EXPECT_NEAR(value(6, "Theoretical Occupancy"), 100, 1e-9);
}

}  // namespace
}  // namespace heddle::analysis
