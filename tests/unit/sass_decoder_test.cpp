// Text and bytes of single instructions to records: operands, widths, control bits, errors.
#include "frontend/sass/decoder.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "sim/isa/matrix.h"
#include "sim/isa/registers.h"
#include "sim/isa/special_registers.h"

namespace heddle::sass {
namespace {

using isa::Instruction;
using isa::Mod;
using isa::Op;
using isa::Operand;
using isa::OperandKind;

constexpr uint64_t kAlways = 0x7000;  // guard PT

struct Source {
  std::string opcode;
  std::string operands;
  uint64_t low = kAlways;
  uint64_t high = 0;
  std::string predicate = "";
};

Result<isa::KernelCode> DecodeAll(const std::vector<Source>& sources, uint32_t sm_version) {
  CubinKernel kernel;
  kernel.name = "k";
  kernel.functions = {{"k", 0, 16}, {"$helper", 0x20, 16}};
  nlohmann::json lines = nlohmann::json::array();
  for (const Source& source : sources) {
    nlohmann::json line = {{"opcode", source.opcode}, {"operands", source.operands}};
    if (!source.predicate.empty()) line["predicate"] = source.predicate;
    lines.push_back(line);
    for (const uint64_t word : {source.low, source.high})
      for (int i = 0; i < 8; ++i) kernel.code.push_back(static_cast<std::byte>(word >> (8 * i)));
  }
  const nlohmann::json document = {nlohmann::json::object(),
                                   {{{"function-name", "k"}, {"sass-instructions", lines}}}};
  return DecodeListing(document.dump(), kernel, sm_version, "a.cubin");
}

Instruction Decode(const Source& source, uint32_t sm_version = 90) {
  auto code = DecodeAll({source}, sm_version);
  EXPECT_TRUE(code.ok()) << code.error().ToString();
  return code.ok() ? code->instructions.at(0) : Instruction{};
}

std::vector<int> Bits(const auto& set) {
  std::vector<int> indices;
  for (size_t i = 0; i < set.size(); ++i)
    if (set.test(i)) indices.push_back(static_cast<int>(i));
  return indices;
}

// The word of a real instruction: control bits 105 to 125 of 000ea200_0c1e1d00 are 0x751 = stall 1, yield,
// write barrier 2, read barrier 7 (none), no waits; bits 12 to 15 of the low half are 0xa = not P2.
TEST(DecodeListing, ControlGuardAndHiddenDescriptor) {
  const Instruction ldg =
      Decode({"LDG.E.128", "R16,[R24.64]", 0x000000061810a981, 0x000ea2000c1e1d00, "@!P2"}, 80);
  EXPECT_EQ(ldg.op, Op::kLDG);
  EXPECT_TRUE(ldg.Has(Mod::kE) && ldg.Has(Mod::k128));
  EXPECT_EQ(ldg.guard, 2);
  EXPECT_TRUE(ldg.guard_negated);
  EXPECT_EQ(ldg.control.stall, 1);
  EXPECT_TRUE(ldg.control.yield);
  EXPECT_EQ(ldg.control.write_barrier, 2);
  EXPECT_EQ(ldg.control.read_barrier, isa::kNoBarrier);
  EXPECT_EQ(ldg.control.wait_mask, 0);
  const isa::RegisterUse use = isa::RegistersOf(ldg);
  EXPECT_EQ(Bits(use.writes.r), (std::vector<int>{16, 17, 18, 19}));
  EXPECT_EQ(Bits(use.reads.r), (std::vector<int>{24, 25}));
  EXPECT_EQ(Bits(use.reads.ur), (std::vector<int>{6, 7}));
  EXPECT_EQ(Bits(use.reads.p), (std::vector<int>{2}));
  EXPECT_EQ(isa::ToString(ldg), "@!P2 LDG.E.128 R16, desc[UR6][R24.64]");
}

TEST(DecodeListing, DescriptorWithTheCommaBehindIt) {
  const Instruction ldg =
      Decode({"LDG.E.EL.128", "R4desc,[UR4][R18.64]", 0x0000000412047981, 0x000ea2200c2e1d00}, 80);
  EXPECT_EQ(isa::ToString(ldg), "LDG.E.EL.128 R4, desc[UR4][R18.64]");
}

TEST(DecodeListing, FloatImmediatesAreRawBits) {
  const Instruction fadd = Decode({"FADD", "R0,-R2,-INF ", 0xff80000002007421});
  ASSERT_EQ(fadd.operand_count, 3);
  EXPECT_TRUE(fadd.operands[1].Has(isa::kNegate));
  EXPECT_EQ(fadd.operands[2].value, 0xff800000);
  const Instruction pair = Decode({"HFMA2.MMA", "R7,-RZ,RZ,1.875,-0.0022", 0x3f80982aff077435});
  ASSERT_EQ(pair.operand_count, 4);  // two halves, one word
  EXPECT_EQ(pair.operands[3].value, 0x3f80982a);
  const Instruction dadd = Decode({"DADD", "R22,-R22,1", 0x3ff0000016167429});
  EXPECT_EQ(dadd.operands[2].value, 0x3ff0000000000000);
  EXPECT_EQ(dadd.operands[0].width, 2);
  EXPECT_EQ(dadd.operands[1].width, 2);
}

TEST(DecodeListing, IntegersKeepTheirSign) {
  EXPECT_EQ(Decode({"IADD3", "R1,R1,-0x48,RZ"}).operands[2].value, -0x48);
  EXPECT_EQ(Decode({"MOV", "R1,0xffffffff"}).operands[1].value, 0xffffffff);
}

TEST(DecodeListing, Addresses) {
  const Instruction sts = Decode({"STS.128", "[R30.X4+UR6+-0x10],R8"});
  const Operand& address = sts.operands[0];
  EXPECT_EQ(address.kind, OperandKind::kMemory);
  EXPECT_EQ(address.reg, 30);
  EXPECT_EQ(address.scale, 4);
  EXPECT_EQ(address.uniform_reg, 6);
  EXPECT_EQ(address.value, -0x10);
  EXPECT_EQ(address.width, 1);
  EXPECT_EQ(sts.operands[1].width, 4);
  EXPECT_FALSE(sts.operands[1].is_destination);

  const Instruction copy = Decode({"LDGSTS.E.BYPASS.LTC128B.128", "[R201+0x4000][R10.64+0x80],!P3"}, 80);
  ASSERT_EQ(copy.operand_count, 3);
  EXPECT_EQ(copy.operands[0].width, 1);
  EXPECT_EQ(copy.operands[1].width, 2);
  EXPECT_EQ(copy.operands[2].kind, OperandKind::kPredicate);
  EXPECT_TRUE(copy.operands[2].Has(isa::kInvert));
  EXPECT_EQ(isa::RegistersOf(copy).writes.r.count(), 0u);

  // .E makes the address a pair even where the text shows one register.
  const Instruction atomic = Decode({"ATOMG.E.CAS.STRONG.GPU", "PT,R3,[R4],R2,R3"}, 80);
  EXPECT_EQ(Bits(isa::RegistersOf(atomic).reads.r), (std::vector<int>{2, 3, 4, 5}));
  EXPECT_EQ(Bits(isa::RegistersOf(atomic).writes.r), (std::vector<int>{3}));
}

TEST(DecodeListing, Constants) {
  const Instruction ldc = Decode({"LDC.64", "R6,c[0x2][R3+0xc]"});
  EXPECT_EQ(ldc.operands[1].bank, 2);
  EXPECT_EQ(ldc.operands[1].uniform_reg, 3);
  EXPECT_FALSE(ldc.operands[1].Has(isa::kIsUniform));
  EXPECT_EQ(ldc.operands[1].value, 0xc);
  EXPECT_EQ(isa::EffectOf(ldc), isa::Effect::kMemory);
  const Instruction uldc = Decode({"ULDC.64", "UR10,c[0x0][0x118]"});
  EXPECT_EQ(uldc.operands[0].width, 2);
  EXPECT_EQ(isa::EffectOf(uldc), isa::Effect::kLocal);
  const Instruction negated = Decode({"IADD3", "R0,R1,-c[0x0][0x160],RZ"});
  EXPECT_TRUE(negated.operands[2].Has(isa::kNegate));
}

TEST(DecodeListing, MultiplyAddWidths) {
  const Instruction wide = Decode({"IMAD.WIDE.U32", "R12,P0,R10,R17,R12"});
  EXPECT_EQ(Bits(isa::RegistersOf(wide).reads.r), (std::vector<int>{10, 12, 13, 17}));
  EXPECT_EQ(Bits(isa::RegistersOf(wide).writes.r), (std::vector<int>{12, 13}));
  EXPECT_EQ(Bits(isa::RegistersOf(wide).writes.p), (std::vector<int>{0}));
  const Instruction constant = Decode({"IMAD.WIDE", "R2,R0,R5,c[0x0][0x160]"}, 80);
  EXPECT_EQ(Bits(isa::RegistersOf(constant).reads.r), (std::vector<int>{0, 5}));
}

// Rows of 32 lanes: A of m16n8k16 is 16 * 16 * 16 bit / 32 bit / 32 lanes = 4 registers, B 2, C and D 4 for
// F32, 2 for F16.
TEST(DecodeListing, MatrixWidths) {
  const auto widths = [](const Instruction& instruction) {
    std::vector<int> all;
    for (int i = 0; i < instruction.operand_count; ++i)
      all.push_back(instruction.operands[static_cast<size_t>(i)].width);
    return all;
  };
  EXPECT_EQ(widths(Decode({"HMMA.16816.F32.BF16", "R32,R92,R84,RZ"})), (std::vector<int>{4, 4, 2, 4}));
  EXPECT_EQ(widths(Decode({"HMMA.16816.F16", "R32,R92,R84,R32"})), (std::vector<int>{2, 4, 2, 2}));
  EXPECT_EQ(widths(Decode({"HMMA.1688.F32.TF32", "R4,R8,R12,R4"})), (std::vector<int>{4, 4, 2, 4}));
  EXPECT_EQ(widths(Decode({"IMMA.16832.S8.S8.SAT", "R152,R52.ROW,R108.COL,RZ"})),
            (std::vector<int>{4, 4, 2, 4}));
  EXPECT_EQ(widths(Decode({"DMMA.884", "R4,R8,R10,R4"})), (std::vector<int>{4, 2, 2, 4}));
  // 64 * 256 * 32 bit / 32 bit / 128 lanes = 128 registers; descriptors of A and B: four uniform registers.
  EXPECT_EQ(widths(Decode({"HGMMA.64x256x16.F32.BF16", "R24,gdesc[UR8],R24,gsb0"})),
            (std::vector<int>{128, 4, 128, 1}));
  EXPECT_EQ(widths(Decode({"LDSM.16.MT88.4", "R84,[R6+0x8000]"})), (std::vector<int>{4, 1}));
}

// Texts as nvdisasm prints what ptxas makes of wgmma.mma_async.
TEST(DecodeListing, WarpGroupMatrices) {
  using isa::MatrixType;
  const auto of = [](const char* opcode, const char* operands) {
    const auto matrix = isa::MatrixOf(Decode({opcode, operands}));
    EXPECT_TRUE(matrix.has_value()) << opcode;
    return matrix.value_or(isa::Matrix{});
  };
  const isa::Matrix ss = of("HGMMA.64x16x16.F32.BF16", "R24,gdesc[UR8].negB.tnspA.tnspB,R24,UP0,gsb0");
  EXPECT_EQ(ss.m * 1000000 + ss.n * 1000 + ss.k, 64016016);
  EXPECT_TRUE(ss.warp_group && ss.a_in_shared && ss.b_in_shared && ss.transposed_a && ss.transposed_b);
  EXPECT_TRUE(!ss.negated_a && ss.negated_b && ss.closes_group && !ss.sparse);
  EXPECT_EQ(ss.a, MatrixType::kBF16);
  const isa::Matrix rs = of("HGMMA.64x200x8.F32.TF32", "R24,-R28,gdesc[UR4].negB,RZ,!UPT");
  EXPECT_TRUE(!rs.a_in_shared && rs.b_in_shared && rs.negated_a && rs.negated_b && !rs.closes_group);
  EXPECT_EQ(rs.BytesOfA(), 64u * 8 * 4);
  EXPECT_EQ(rs.BytesOfB(), 200u * 8 * 4);
  const isa::Matrix fp8 = of("QGMMA.64x8x32.F16.E5M2.E4M3", "R24,gdesc[UR8],R24");
  EXPECT_EQ(fp8.a, MatrixType::kE5M2);
  EXPECT_EQ(fp8.b, MatrixType::kE4M3);
  EXPECT_EQ(fp8.accumulator, MatrixType::kF16);
  const isa::Matrix half = of("HGMMA.64x8x16.F16", "R24,gdesc[UR8],R24");
  EXPECT_EQ(half.a, MatrixType::kF16);
  EXPECT_EQ(half.accumulator, MatrixType::kF16);
  const isa::Matrix bits = of("BGMMA.64x16x256.AND.POPC", "R24,R32,gdesc[UR4],R24,UP0,gsb0");
  EXPECT_EQ(bits.BytesOfB(), 16u * 256 / 8);
  EXPECT_EQ(bits.accumulator, MatrixType::kS32);
  const isa::Matrix sparse = of("HGMMA.SP.64x8x32.F32.BF16", "R24,R28,gdesc[UR4],R24,UP0,R33,0x0,gsb0");
  EXPECT_TRUE(sparse.sparse);
  EXPECT_EQ(sparse.BytesOfA(), 64u * 16 * 2);
  EXPECT_EQ(isa::MatrixOf(Decode({"FFMA", "R0,R1,R2,R3"})), std::nullopt);
}

TEST(DecodeListing, PredicateFile) {
  const Instruction p2r = Decode({"P2R", "R11,RZ,0x6", kAlways, 0, "PR"});
  ASSERT_EQ(p2r.operand_count, 4);
  EXPECT_EQ(p2r.operands[1].kind, OperandKind::kAllPredicates);
  EXPECT_EQ(p2r.guard, isa::kTruePredicate);
  EXPECT_EQ(Bits(isa::RegistersOf(p2r).reads.p), (std::vector<int>{1, 2}));
  const Instruction r2p = Decode({"R2P", "PR,R248.B1,0x18"});
  EXPECT_EQ(Bits(isa::RegistersOf(r2p).writes.p), (std::vector<int>{3, 4}));
  EXPECT_TRUE(r2p.operands[1].Has(isa::kByteSelect));
  EXPECT_EQ(r2p.operands[1].scale, 1);
}

TEST(DecodeListing, Destinations) {
  const Instruction vote = Decode({"VOTE.ANY", "R2,P1,P3"});
  EXPECT_EQ(Bits(isa::RegistersOf(vote).writes.p), (std::vector<int>{1}));
  EXPECT_EQ(Bits(isa::RegistersOf(vote).reads.p), (std::vector<int>{3}));
  const Instruction shfl = Decode({"SHFL.IDX", "P0,R7,R0,R9,R11"});
  EXPECT_EQ(Bits(isa::RegistersOf(shfl).writes.r), (std::vector<int>{7}));
  EXPECT_EQ(Bits(isa::RegistersOf(shfl).reads.r), (std::vector<int>{0, 9, 11}));
  const Instruction carry = Decode({"IADD3.X", "R9,P2,PT,R23,R16,RZ,P1,!PT"});
  EXPECT_EQ(Bits(isa::RegistersOf(carry).writes.p), (std::vector<int>{2}));
  EXPECT_EQ(Bits(isa::RegistersOf(carry).reads.p), (std::vector<int>{1}));
  const Instruction compare = Decode({"ISETP.GE.AND", "P0,PT,R0,R1,P5"});
  EXPECT_EQ(Bits(isa::RegistersOf(compare).writes.p), (std::vector<int>{0}));
  EXPECT_EQ(Bits(isa::RegistersOf(compare).reads.p), (std::vector<int>{5}));
}

TEST(DecodeListing, TargetsAndSpecialRegisters) {
  auto code = DecodeAll({{"BRA", "0x20"}, {"CALL.REL.NOINC", "$helper"}, {"S2R", "R0,SR_TID.X"}}, 80);
  ASSERT_TRUE(code.ok()) << code.error().ToString();
  EXPECT_EQ(code->instructions[0].operands[0].kind, OperandKind::kTarget);
  EXPECT_EQ(code->instructions[0].operands[0].value, 0x20);
  EXPECT_EQ(code->instructions[1].operands[0].value, 0x20);
  EXPECT_EQ(code->instructions[2].operands[1].value, static_cast<int64_t>(isa::SpecialRegister::kTID_X));
  EXPECT_EQ(code->instructions[2].pc, 0x20u);
}

TEST(DecodeListing, ZeroRegistersAreNotRead) {
  const isa::RegisterUse use = isa::RegistersOf(Decode({"UIADD3", "URZ,URZ,UR4,URZ"}));
  EXPECT_EQ(Bits(use.reads.ur), (std::vector<int>{4}));
  EXPECT_EQ(use.writes.ur.count(), 0u);
}

TEST(DecodeListing, ErrorsStateKernelPcAndText) {
  const auto unknown = DecodeAll({{"NOP", ""}, {"FROB.X", "R1"}}, 80);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().place, "a.cubin: kernel k @ pc 0x10");
  EXPECT_NE(unknown.error().message.find("FROB.X R1"), std::string::npos);
  EXPECT_FALSE(DecodeAll({{"MOV.FROB", "R1,R2"}}, 80).ok());
  EXPECT_FALSE(DecodeAll({{"MOV", "R1,Q2"}}, 80).ok());
  EXPECT_FALSE(DecodeAll({{"MOV", "R1,R255"}}, 80).ok());
  EXPECT_FALSE(DecodeAll({{"MOV", "R1,"}}, 80).ok());
  EXPECT_FALSE(DecodeAll({{"LDG.E", "R1,[R2.64"}}, 80).ok());
  EXPECT_FALSE(DecodeAll({{"CALL.ABS", "no_such_function"}}, 80).ok());
  CubinKernel kernel;
  kernel.name = "k";
  EXPECT_FALSE(DecodeListing("{", kernel, 80, "a").ok());
  EXPECT_FALSE(DecodeListing("[]", kernel, 80, "a").ok());
}

}  // namespace
}  // namespace heddle::sass
