// A small trace that uses every table and every kind of field.
#pragma once

#include "frontend/trace/blob.h"
#include "frontend/trace/trace.h"
#include "sim/base/digest.h"

namespace heddle::trace {

inline isa::KernelCode SampleCode() {
  isa::KernelCode code;
  code.name = "_Z6kernelPf";
  code.sm_version = 80;
  code.instructions.resize(2);
  isa::Instruction& add = code.instructions[0];
  add.op = isa::Op::kIADD3;
  add.guard = 2;
  add.guard_negated = true;
  add.control = {5, true, 3, 2, 0x15, 9};
  add.encoding = {0x123456789abcdef0, 0x0fedcba987654321};
  add.modifier_count = 2;
  add.modifiers[0] = isa::Mod::kX;
  add.modifiers[1] = isa::Mod::k16816;
  add.operand_count = 2;
  add.operands[0].kind = isa::OperandKind::kRegister;
  add.operands[0].reg = 17;
  add.operands[0].width = 2;
  add.operands[0].is_destination = true;
  isa::Operand& memory = add.operands[1];
  memory.kind = isa::OperandKind::kMemory;
  memory.reg = 4;
  memory.uniform_reg = 6;
  memory.descriptor = 8;
  memory.scale = 16;
  memory.bank = 3;
  memory.flags = isa::kAddress64 | isa::kRow;
  memory.value = -0x123456789;
  code.instructions[1].pc = 16;
  code.instructions[1].op = isa::Op::kEXIT;
  code.instructions[1].guard_uniform = true;
  return code;
}

inline Trace SampleTrace() {
  const auto bytes = [](size_t size, int first) {
    std::vector<std::byte> out(size);
    for (size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>(first + static_cast<int>(i) * 7);
    return out;
  };
  Trace t;
  t.name = "sample";
  t.doc = "every \"table\"\nand field";
  t.defines = {{"M", Expr{64}}, {"tiles", Expr{"ceil_div(M, 16)"}}};
  t.device = {"Some GPU", 80, {{"sm_count", 108}, {"l2_bytes", -1}}};
  t.modules = {{"m", "", bytes(300, 1), 80}};
  t.modules[0].sha256 = Sha256Hex(t.modules[0].cubin);
  t.functions = {{0, "_Z6kernelPf", {{0, 0, 8}, {1, 8, 4}}, 136, 40, 1024, 16, 1, 256}};
  t.sass = {{0, 3, SampleCode()}};
  t.buffers = {{"a", DType::kBf16, {Expr{"M"}, Expr{3}}, Expr{256}, 0},
               {"b", DType::kI32, {Expr{4}}, Expr{4096}, 0x7fff00000000}};
  ContentRule uniform{RuleKind::kUniform, DType::kBf16, 7, "-1", "1", "", "", {}};
  ContentRule iota{RuleKind::kIota, DType::kI32, 0, "0", "2", "M", "3", {}};
  t.contents = {{0, Expr{0}, 0, uniform},
                {1, Expr{4}, 1, {RuleKind::kBytes, DType::kI32, 0, "", "", "", "", bytes(12, 5)}},
                {1, Expr{"M - 64"}, 0, iota}};
  Launch first;
  first.name = "first";
  first.stream = 1;
  first.grid = {Expr{"tiles * sm_count"}, Expr{2}, Expr{1}};
  first.block = {Expr{128}, Expr{1}, Expr{1}};
  first.dynamic_shared_bytes = Expr{"M * 4"};
  first.parameters = bytes(136, 9);
  first.patches = {{0, DType::kU64, 1, Expr{16}, ""}, {8, DType::kF32, kNone, Expr{0}, "rsqrt(M)"}};
  Launch second = first;
  second.name = "second";
  second.cluster = {Expr{2}, Expr{1}, Expr{1}};
  second.programmatic = true;
  second.frozen_grid = true;
  second.measured_start_ns = 5;
  second.measured_end_ns = 4000000000000;
  t.launches = {first, second};
  t.edges = {{0, 1}};
  TensorMap map;
  map.launch = 1;
  map.parameter_offset = 8;
  map.buffer = 0;
  map.offset = Expr{32};
  map.element = isa::TensorElement::kBF16;
  map.size = {Expr{64}, Expr{"M"}};
  map.stride_bytes = {Expr{128}};
  map.box = {Expr{64}, Expr{8}};
  map.element_stride = {Expr{1}, Expr{2}};
  map.swizzle = isa::TensorSwizzle::k128B;
  map.fill = isa::TensorFill::kNan;
  map.promotion = isa::TensorPromotion::k256B;
  t.tensor_maps = {map};
  t.counters = {{0, "sm__cycles_active.avg", 0.1, "cycle"}};
  t.collectives = {{1, "all_reduce", 1 << 20, 8}};
  t.warp_streams = {{1, uint64_t{1} << 40, 3, bytes(40, 2)}};
  t.check = std::string("\x0a\x00\xff check", 9);
  return t;
}

}  // namespace heddle::trace
