// Which buffers `heddle trace plan` names: those whose contents steer a kernel, and no other. On committed traces, whose SASS is decoded,
// so that no tool of NVIDIA's is needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/emulator/call_expansion.h"
#include "frontend/emulator/index_parameters.h"
#include "frontend/sass/cubin.h"
#include "frontend/trace/htrace.h"

namespace heddle {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<uint32_t> Plan(const std::string& name,
                           emulator::SliceKind kind = emulator::SliceKind::kOptimistic) {
  const Result<trace::Trace> trace = trace::ReadTrace(HEDDLE_SOURCE_DIR "/traces/" + name);
  EXPECT_TRUE(trace.ok()) << trace.error().ToString();
  const trace::Function& function = trace->functions.at(0);
  const Result<sass::Cubin> cubin = sass::ReadCubin(trace->modules.at(function.module).cubin, name);
  EXPECT_TRUE(cubin.ok()) << cubin.error().ToString();
  return emulator::IndexParameters(trace->sass.at(0).code, *cubin->FindKernel(function.name), kind);
}

// (out, q, key_cache, value_cache, block_table, lengths, table_stride, page_size, scale): warp shuffles of divergent warps are calls of one
// function from many places there, on sm_80.
TEST(IndexParameters, PagedDecodeNeedsItsBlockTableAndItsLengths) {
  EXPECT_THAT(Plan("paged_decode.sm_80.htrace"), ElementsAre(32, 40));
  EXPECT_THAT(Plan("paged_decode.sm_90.htrace"), ElementsAre(32, 40));
  // Triton's: (partial, lse, q, k_cache, v_cache, block_table, lengths, ...).
  EXPECT_THAT(Plan("bench/paged_decode.sm_80.htrace"), ElementsAre(40, 48));
}

// (c, a, b, weights, sorted_slots, expert_ids, padded_slots, ...).
TEST(IndexParameters, GroupedGemmNeedsItsSlotsAndExperts) {
  EXPECT_THAT(Plan("fused_moe.sm_80.htrace"), ElementsAre(32, 40, 48));
}

TEST(IndexParameters, KernelsThatNothingSteersNeedNothing) {
  for (const char* name :
       {"gemm.sm_80.htrace", "gemm.sm_90.htrace", "flash_attention.sm_80.htrace", "rms_norm.sm_90.htrace",
        "softmax.sm_80.htrace", "matmul_wgmma.sm_90.htrace", "attention_wgmma.sm_90.htrace"})
    EXPECT_THAT(Plan(name), IsEmpty()) << name;
}

// split_k(..., partial at 8, counters at 16): the last CTA of a tile is known by an atomic of a counter.
TEST(IndexParameters, SemaphoresSteer) {
  EXPECT_THAT(Plan("tests/split_k.sm_80.htrace"), testing::Contains(16));
  EXPECT_THAT(Plan("tests/grid_barrier.sm_80.htrace"), ElementsAre(16));
}

isa::Instruction Plain(isa::Op op, int64_t target = -1) {
  isa::Instruction instruction;
  instruction.op = op;
  if (target >= 0) {
    instruction.operand_count = 1;
    instruction.operands[0].kind = isa::OperandKind::kTarget;
    instruction.operands[0].value = target * isa::kInstructionBytes;
  }
  return instruction;
}

// 0 CALL 4; 1 CALL 4; 2 CALL 6; 3 EXIT; 4 NOP; 5 RET; 6 EXIT: each call of 4 has a body of its own, the third is a jump.
TEST(CallExpansion, ReturnsGoBehindTheirOwnCall) {
  using isa::Op;
  isa::KernelCode code;
  for (const auto& [op, target] : std::initializer_list<std::pair<Op, int64_t>>{{Op::kCALL, 4},
                                                                                {Op::kCALL, 4},
                                                                                {Op::kCALL, 6},
                                                                                {Op::kEXIT, -1},
                                                                                {Op::kNOP, -1},
                                                                                {Op::kRET, -1},
                                                                                {Op::kEXIT, -1}})
    code.instructions.push_back(Plain(op, target));
  const emulator::Successors successors = {{4}, {4}, {6}, {}, {5}, {1, 2, 3}, {}};
  const emulator::ExpandedCode expanded = emulator::ExpandCalls(code, successors);
  EXPECT_THAT(expanded.original, ElementsAre(0, 1, 2, 3, 4, 5, 6, 4, 5, 4, 5));
  const emulator::Successors expected = {{7}, {9}, {6}, {}, {5}, {}, {}, {8}, {1}, {10}, {2}};
  EXPECT_EQ(expanded.successors, expected);
}

}  // namespace
}  // namespace heddle
