// When instructions issue: stall counts, yield, pipes, register ports, dependence barriers, scheduling, fetch.
// Numbers are those of arch_configs/a100_sxm4_80gb unless a test overrides them.
#include "tests/component/sm_fixture.h"

namespace heddle::sm {
namespace {

using isa::Mod;
using stats::Stall;

// A chain of IADD3 whose compiler left 4 cycles (pipes.alu.latency_cycles) issues every 4 cycles.
TEST_F(SmTest, DependentChainFollowsStallCounts) {
  for (int i = 0; i < 20; ++i) Append(Make(Op::kIADD3, Bits(4), {Destination(1), Register(1)}));
  Exit();
  Run();
  for (uint32_t i = 0; i < 20; ++i) EXPECT_EQ(IssuedAt(i), 4 * i);
  EXPECT_EQ(IssuedAt(20), 80u);
}

// The same instructions as runs give the same cycles as one by one.
TEST_F(SmTest, RunsTakeTheSameTime) {
  for (int i = 0; i < 20; ++i) Append(Make(Op::kIADD3, Bits(4), {Destination(1), Register(1)}));
  Append(Make(Op::kCS2R, Bits(1), {Destination(2)}));
  Exit();
  stream.runs = true;
  Run();
  EXPECT_EQ(stats.counters.smsp_inst_executed, 22u);
  // 20 adds, CS2R 80 cycles after the first issue, EXIT one later; first issue: see FirstFetchMissesToL2.
  EXPECT_EQ(stream.executed.back().index, 21u);
  EXPECT_EQ(stream.executed.back().cycle, 280u + 81u);
}

// A stall count of 1 with the yield bit clear gives the next cycle to another warp: back after 2.
TEST_F(SmTest, YieldLeavesTheNextCycle) {
  isa::Control yields = Bits(1);
  yields.yield = false;
  Append(Make(Op::kNOP, yields));
  Append(Make(Op::kNOP, Bits(1)));
  Append(Make(Op::kNOP, Bits(1)));
  Exit();
  Run();
  EXPECT_EQ(IssuedAt(1), 2u);
  EXPECT_EQ(IssuedAt(2), 3u);
}

// alu.initiation_interval_cycles: 2. Stall counts of 1 do not help.
TEST_F(SmTest, PipeTakesOneInstructionAnInterval) {
  for (uint8_t i = 0; i < 8; ++i) Append(Make(Op::kIADD3, Bits(1), {Destination(i)}));
  Exit();
  Run();
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(IssuedAt(i), 2 * i);
  // Between two of them one slot is lost to the pipe: 7 in all.
  EXPECT_EQ(Slots(Stall::k_math_pipe_throttle), 7u);
}

// ALU and FMA are two pipes: alternating, they fill every cycle; an IMAD takes the FMA pipe like an FFMA.
TEST_F(SmTest, TwoPipesAlternate) {
  for (uint8_t i = 0; i < 8; i += 2) {
    Append(Make(Op::kIADD3, Bits(1), {Destination(i)}));
    Append(Make(Op::kFFMA, Bits(1), {Destination(static_cast<uint8_t>(i + 1))}));
  }
  Append(Make(Op::kIMAD, Bits(1), {Destination(20)}));
  Append(Make(Op::kFFMA, Bits(1), {Destination(21)}));
  Exit();
  Run();
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(IssuedAt(i), i);
  // FFMA 7 issued at 7 and keeps FMA until 9; the IMAD goes at 9, the FFMA behind it at 11.
  EXPECT_EQ(IssuedAt(8), 9u);
  EXPECT_EQ(IssuedAt(9), 11u);
}

// HMMA.16816.F32: interval 8.
TEST_F(SmTest, MatrixInstructionsBackToBack) {
  for (uint8_t i = 0; i < 4; ++i)
    Append(Make(Op::kHMMA, Bits(1),
                {Destination(static_cast<uint8_t>(64 + 4 * i), 4), Register(0, 4), Register(8, 2),
                 Register(static_cast<uint8_t>(64 + 4 * i), 4)},
                {Mod::k16816, Mod::kF32}));
  Exit();
  Run();
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(IssuedAt(i), 8 * i);
  EXPECT_EQ(stats.counters.sm_ops_tensor, 4u * 2 * 16 * 8 * 16);
  EXPECT_EQ(stats.counters.sm_pipe_tensor_cycles_active, 32u);
}

// Half the depth, half the time: interval 4.
TEST_F(SmTest, SmallerMatrixInstructionsAreFaster) {
  for (int i = 0; i < 4; ++i) Append(Make(Op::kHMMA, Bits(1), {Destination(64, 4)}, {Mod::k1688, Mod::kF32}));
  Exit();
  Run();
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(IssuedAt(i), 4 * i);
}

// A bank gives one register a cycle, an instruction has 3 cycles to read: three operands of one bank fill its window.
// At fp16's interval of 1, instructions with all operands in bank 0 therefore issue every 3 cycles.
TEST_F(SmTest, OperandsOfOneBankTakeTurns) {
  for (int i = 0; i < 4; ++i)
    Append(Make(Op::kHFMA2, Bits(1), {Destination(20), Register(2), Register(4), Register(6)}));
  Exit();
  Run();
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(IssuedAt(i), 3 * i);
  EXPECT_EQ(Slots(Stall::k_dispatch_stall), 6u);
}

// Two operands in bank 0 and one in bank 1: 2 cycles each, once the window's slack of one cycle is used up:
// reads of bank 0 end at 2, 4, 6, 8; the i-th window ends 3 cycles behind its issue.
TEST_F(SmTest, TwoBanksShareTheReads) {
  for (int i = 0; i < 4; ++i)
    Append(Make(Op::kHFMA2, Bits(1), {Destination(20), Register(2), Register(4), Register(7)}));
  Exit();
  Run();
  EXPECT_EQ(IssuedAt(0), 0u);
  EXPECT_EQ(IssuedAt(1), 1u);  // reads in 2 and 3 lie in [1, 4)
  EXPECT_EQ(IssuedAt(2), 3u);  // reads in 4 and 5 lie in [3, 6)
  EXPECT_EQ(IssuedAt(3), 5u);
}

// .reuse keeps an operand for the same slot of the next instruction: 1 + 1 reads instead of 3 in bank 0.
TEST_F(SmTest, ReuseCacheSavesReads) {
  for (int i = 0; i < 4; ++i)
    Append(Make(Op::kHFMA2, Bits(1), {Destination(20), Reused(2), Reused(4), Register(7)}));
  Exit();
  Run();
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(IssuedAt(i), i);
}

TEST_F(SmTest, ReuseCacheCanBeSwitchedOff) {
  overrides = {"sm.sub_core.reuse_cache=false"};
  for (int i = 0; i < 4; ++i)
    Append(Make(Op::kHFMA2, Bits(1), {Destination(20), Reused(2), Reused(4), Register(7)}));
  Exit();
  Run();
  EXPECT_EQ(IssuedAt(3), 5u);  // as in TwoBanksShareTheReads
}

// MUFU: result after 23 cycles (its barrier), interval 8.
TEST_F(SmTest, VariableLatencyHoldsWaitersOnly) {
  Append(Make(Op::kMUFU, Bits(2, 0, 0), {Destination(1), Register(2)}));
  Append(Make(Op::kMUFU, Bits(1, 0, 1), {Destination(3), Register(4)}));
  Append(Make(Op::kIADD3, Bits(1), {Destination(5), Register(6)}));
  Append(Make(Op::kFADD, Bits(1, 0b01), {Destination(7), Register(1)}));
  Append(Make(Op::kFADD, Bits(1, 0b10), {Destination(8), Register(3)}));
  Exit();
  Run();
  EXPECT_EQ(IssuedAt(1), 8u);
  EXPECT_EQ(IssuedAt(2), 9u);
  EXPECT_EQ(IssuedAt(3), 23u);
  EXPECT_EQ(IssuedAt(4), 31u);
  EXPECT_EQ(SlotsAt(3, Stall::k_short_scoreboard), 13u);  // cycles 10 to 22
}

// Greedy, then youngest: warps 0, 4, 8 share sub-core 0. The youngest runs while it can; when it stalls for 4 cycles,
// the next youngest takes over, and both are back in turn.
TEST_F(SmTest, GreedyThenYoungest) {
  for (int i = 0; i < 2; ++i) Append(Make(Op::kNOP, Bits(1)));
  Append(Make(Op::kNOP, Bits(6)));
  Append(Make(Op::kNOP, Bits(1)));
  Exit();
  Run(9);
  EXPECT_EQ(IssuedAt(0, 8), 0u);
  EXPECT_EQ(IssuedAt(1, 8), 1u);
  EXPECT_EQ(IssuedAt(2, 8), 2u);
  EXPECT_EQ(IssuedAt(0, 4), 3u);
  EXPECT_EQ(IssuedAt(2, 4), 5u);
  EXPECT_EQ(IssuedAt(0, 0), 6u);
  EXPECT_EQ(IssuedAt(1, 0), 7u);
  // Warp 8 is ready again at 8, but warp 0 is the greedy one and goes on.
  EXPECT_EQ(IssuedAt(2, 0), 8u);
  EXPECT_EQ(IssuedAt(3, 8), 9u);
  EXPECT_EQ(IssuedAt(4, 8), 10u);  // EXIT
  EXPECT_EQ(IssuedAt(3, 4), 11u);
}

TEST_F(SmTest, GreedyThenOldest) {
  overrides = {"sm.sub_core.scheduler=greedy_then_oldest"};
  Append(Make(Op::kNOP, Bits(6)));
  Exit();
  Run(9);
  EXPECT_EQ(IssuedAt(0, 0), 0u);
  EXPECT_EQ(IssuedAt(0, 4), 1u);
  EXPECT_EQ(IssuedAt(0, 8), 2u);
}

// A constant operand that is in no cache: L2 is asked at once, answers after 200, then L1.5 gives it to L1 and L1 to
// L0, 79 cycles each. The next operand of the same line is there.
TEST_F(SmTest, ConstantMiss) {
  Append(Make(Op::kFADD, Bits(1), {Destination(1), Register(2), Constant(0x160)}));
  Append(Make(Op::kFADD, Bits(1), {Destination(3), Register(4), Constant(0x164)}));
  Exit();
  Build(1);
  sm->StartCta(launch, {}, 0);
  RunToEnd();
  // The first instruction is in the buffer at 280 (FirstFetchMissesToL2).
  EXPECT_EQ(stream.executed[0].cycle, 280u + 200 + 79 + 79);
  EXPECT_EQ(IssuedAt(1), 2u);  // interval of FMA
  EXPECT_EQ(Slots(Stall::k_imc_miss), 200u + 79 + 79);
  EXPECT_EQ(stats.counters.idc_misses, 2u);  // L1.5 has lines of 256 bytes: two of the memory's
}

// Nothing is cached: the first fetch asks L2 in cycle 0, the answer comes after 200, the way from L1 to L0 takes 78
// and decode 2.
TEST_F(SmTest, FirstFetchMissesToL2) {
  Append(Make(Op::kNOP, Bits(1)));
  Exit();
  Run();
  EXPECT_EQ(stream.executed[0].cycle, 280u);
  EXPECT_EQ(Slots(Stall::k_no_instruction), 280u);
  // The line, and 8 behind it for the stream buffer.
  EXPECT_EQ(stats.counters.icc_requests, 9u);
  EXPECT_EQ(stats.counters.icc_misses, 9u);
}

// With the stream buffer, straight code runs on at full speed. Without it, each line of 8 instructions is asked for when
// the buffer of 3 has room for its first: 5 instructions into the line before, and comes 280 cycles later.
TEST_F(SmTest, StreamBufferHidesMisses) {
  for (int i = 0; i < 32; ++i) Append(Make(Op::kNOP, Bits(1)));
  Exit();
  Run();
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(IssuedAt(i), i);
}

TEST_F(SmTest, WithoutStreamBufferEachLineWaits) {
  overrides = {"sm.instruction_caches.stream_buffer_lines=0"};
  for (int i = 0; i < 32; ++i) Append(Make(Op::kNOP, Bits(1)));
  Exit();
  Run();
  EXPECT_EQ(IssuedAt(7), 7u);
  EXPECT_EQ(IssuedAt(8), 5u + 280);  // asked for when instruction 5 had left the buffer
  EXPECT_EQ(IssuedAt(16), 2 * (5u + 280));
}

// A taken branch: 9 cycles until the target is fetched, 2 for fetch and decode from L0. Not taken: its stall count.
TEST_F(SmTest, TakenBranchRefetches) {
  Append(Make(Op::kNOP, Bits(1)));
  Append(Make(Op::kBRA, Bits(5)));
  Exit();
  stream.jumps[1] = {0, 0};
  Run();
  EXPECT_EQ(IssuedAt(1, 0, 0), 1u);
  EXPECT_EQ(IssuedAt(0, 0, 1), 12u);
  EXPECT_EQ(IssuedAt(1, 0, 1), 13u);
  EXPECT_EQ(IssuedAt(0, 0, 2), 24u);
  EXPECT_EQ(IssuedAt(2, 0, 0), 25u + 5);
  EXPECT_EQ(Slots(Stall::k_branch_resolving), 2u * 8);
}

// NANOSLEEP of 100 ns at 1410 MHz: 141 cycles.
TEST_F(SmTest, SleepTakesItsTime) {
  Append(Make(Op::kNANOSLEEP, Bits(5)));
  Exit();
  stream.sleeps_ns[0] = 100;
  Run();
  EXPECT_EQ(IssuedAt(1), 141u);
  EXPECT_EQ(Slots(Stall::k_sleeping), 141u - 5);
}

// A consumer that the cubin lets issue 4 cycles behind its producer, on a machine whose ALU takes 9.
TEST_F(SmTest, SlowerMachineHoldsConsumersBack) {
  overrides = {"sm.dependences[class_alu].to_same_cycles=9", "sm.dependences[class_alu].to_alu_cycles=9"};
  Append(Make(Op::kIADD3, Bits(4), {Destination(1), Register(2)}));
  Append(Make(Op::kIADD3, Bits(4), {Destination(3), Register(1)}));
  Append(Make(Op::kIADD3, Bits(4), {Destination(4), Register(2)}));
  Exit();
  Run();
  EXPECT_EQ(timing->early_reads, 1u);
  EXPECT_EQ(IssuedAt(1), 9u);
  EXPECT_EQ(IssuedAt(2), 13u);
  EXPECT_EQ(SlotsAt(1, Stall::k_dispatch_stall), 5u);
}

TEST_F(SmTest, OwnMachineNeedsNoHazardCheck) {
  Append(Make(Op::kIADD3, Bits(4), {Destination(1), Register(2)}));
  Append(Make(Op::kIADD3, Bits(4), {Destination(3), Register(1)}));
  Exit();
  Run();
  EXPECT_EQ(timing->early_reads, 0u);
  EXPECT_FALSE(timing->tracks_registers);
}

// Rescheduled, on an ALU of 9 cycles: the producer's consumer is placed there, and what the stall count left beside it
// stays. The cubin: 0, 1, 4 (reads), 6.
TEST_F(SmTest, RescheduledStallCountsGrowWithTheMachine) {
  overrides = {"dependence=rescheduled", "sm.dependences[class_alu].to_same_cycles=9"};
  Append(Make(Op::kIADD3, Bits(2), {Destination(1), Register(2)}));
  Append(Make(Op::kIADD3, Bits(2), {Destination(3), Register(2)}));
  Append(Make(Op::kIADD3, Bits(2), {Destination(4), Register(1)}));
  Append(Make(Op::kIADD3, Bits(2), {Destination(5), Register(2)}));
  Exit();
  Run();
  EXPECT_EQ(timing->instructions[1].stall_cycles, 7u);
  EXPECT_EQ(IssuedAt(1), 2u);
  EXPECT_EQ(IssuedAt(2), 2u + 7);
  EXPECT_EQ(IssuedAt(3), 2u + 7 + 2);
  EXPECT_EQ(SlotsAt(2, Stall::k_dispatch_stall), 0u);
  EXPECT_EQ(SlotsAt(2, Stall::k_wait), 6u);
}

// On an ALU of 2 they shrink; a stall count that no dependence explains does not.
TEST_F(SmTest, RescheduledStallCountsShrinkWithTheMachine) {
  overrides = {"dependence=rescheduled", "sm.dependences[class_alu].to_same_cycles=2"};
  Append(Make(Op::kIADD3, Bits(4), {Destination(1), Register(2)}));
  Append(Make(Op::kIADD3, Bits(6), {Destination(3), Register(1)}));
  Append(Make(Op::kIADD3, Bits(5), {Destination(4), Register(2)}));
  Exit();
  Run();
  EXPECT_EQ(IssuedAt(1), 2u);
  EXPECT_EQ(IssuedAt(2), 2u + 6);
  EXPECT_FALSE(timing->tracks_registers);
}

// Interlocked: stall counts are ignored, registers are waited for.
TEST_F(SmTest, InterlockedIgnoresStallCounts) {
  overrides = {"dependence=interlocked"};
  Append(Make(Op::kIADD3, Bits(15), {Destination(1), Register(2)}));
  Append(Make(Op::kIADD3, Bits(15), {Destination(3), Register(1)}));
  Append(Make(Op::kFADD, Bits(15), {Destination(4), Register(5)}));
  Exit();
  Run();
  EXPECT_EQ(IssuedAt(1), 4u);
  EXPECT_EQ(IssuedAt(2), 5u);
}

}  // namespace
}  // namespace heddle::sm
