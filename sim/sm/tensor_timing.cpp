#include "sim/sm/tensor_timing.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "sim/base/types.h"
#include "sim/isa/matrix.h"

namespace heddle::sm {
namespace {

using isa::Mod;

constexpr uint32_t kWarpgroupWarps = 4;

struct Shape {
  Mod mod;
  uint16_t m, n, k;
};
constexpr auto kShapes = std::to_array<Shape>({{Mod::k16816, 16, 8, 16},
                                               {Mod::k1688, 16, 8, 8},
                                               {Mod::k16832, 16, 8, 32},
                                               {Mod::k16864, 16, 8, 64},
                                               {Mod::k168128, 16, 8, 128},
                                               {Mod::k168256, 16, 8, 256},
                                               {Mod::k884, 8, 8, 4},
                                               {Mod::k88, 8, 8, 16},
                                               {Mod::k8832, 8, 8, 32},
                                               {Mod::k88128, 8, 8, 128}});

struct Type {
  Mod mod;
  std::string_view name;
  uint8_t bits;
};
constexpr auto kTypes = std::to_array<Type>({{Mod::kBF16, "bf16", 16},
                                             {Mod::kTF32, "tf32", 32},
                                             {Mod::kS8, "s8", 8},
                                             {Mod::kU8, "u8", 8},
                                             {Mod::kS4, "s4", 4},
                                             {Mod::kU4, "u4", 4},
                                             {Mod::kE4M3, "e4m3", 8},
                                             {Mod::kE5M2, "e5m2", 8},
                                             {Mod::kE2M3, "e2m3", 8},
                                             {Mod::kE3M2, "e3m2", 8},
                                             {Mod::kE2M1, "e2m1", 4}});

struct Matrix {
  std::string_view op;
  uint32_t m = 16, n = 8, k = 16;
  std::string_view type;
  std::string_view accumulator;
  uint32_t bits = 16;
  bool sparse = false;

  double Work() const { return double(m) * n * k * bits; }
};

Matrix Describe(const isa::Instruction& instruction, const isa::Matrix& group) {
  Matrix matrix;
  matrix.op = isa::Name(instruction.op);
  matrix.m = group.m, matrix.n = group.n, matrix.k = group.k;
  matrix.type = isa::Name(group.a);
  matrix.accumulator = isa::Name(group.accumulator);
  matrix.bits = group.a_bits;
  matrix.sparse = group.sparse;
  return matrix;
}

Matrix Describe(const isa::Instruction& instruction) {
  Matrix matrix;
  matrix.op = isa::Name(instruction.op);
  matrix.sparse = instruction.Has(Mod::kSP);
  for (const Shape& shape : kShapes)
    if (instruction.Has(shape.mod)) matrix.m = shape.m, matrix.n = shape.n, matrix.k = shape.k;
  switch (instruction.op) {
    case isa::Op::kDMMA:
      matrix.type = matrix.accumulator = "f64", matrix.bits = 64;
      break;
    case isa::Op::kIMMA:
      matrix.type = "s8", matrix.accumulator = "s32", matrix.bits = 8;
      break;
    case isa::Op::kBMMA:
      matrix.type = "b1", matrix.accumulator = "s32", matrix.bits = 1;
      break;
    default:
      matrix.type = "f16", matrix.accumulator = instruction.Has(Mod::kF32) ? "f32" : "f16";
  }
  if (instruction.op != isa::Op::kDMMA && instruction.op != isa::Op::kBMMA)
    for (const Type& type : kTypes)
      if (instruction.Has(type.mod)) matrix.type = type.name, matrix.bits = type.bits;
  return matrix;
}

double Work(const config::TensorTiming& entry) {
  uint32_t bits = 16;
  for (const Type& type : kTypes)
    if (type.name == entry.type) bits = type.bits;
  if (entry.type.empty()) bits = entry.op[0] == 'I' || entry.op[0] == 'Q' ? 8 : entry.op == "DMMA" ? 64 : 16;
  return double(entry.m) * entry.n * entry.k * bits * (entry.sparse ? 0.5 : 1);
}

// The higher the nearer; negative: not comparable.
int Likeness(const config::TensorTiming& entry, const Matrix& matrix) {
  if (entry.op != matrix.op && entry.op != "HMMA") return -1;
  int score = entry.op == matrix.op ? 64 : 0;
  if (entry.accumulator == matrix.accumulator) score += 16;
  if (entry.type == matrix.type) score += 8;
  if (entry.type.empty()) score += 4;
  if (entry.sparse == matrix.sparse) score += 2;
  if (entry.m == matrix.m && entry.n == matrix.n && entry.k == matrix.k) score += 32;
  return score;
}

}  // namespace

TensorTiming TensorTimingOf(const config::Gpu& gpu, const isa::Instruction& instruction) {
  Matrix matrix = Describe(instruction);
  TensorTiming timing;
  timing.ops = 2 * matrix.m * matrix.n * matrix.k;
  if (isa::IsWarpGroupMatrix(instruction.op)) {
    if (const std::optional<isa::Matrix> group = isa::MatrixOf(instruction)) {
      matrix = Describe(instruction, *group);
      timing.ops = static_cast<uint32_t>(2 * group->MultiplyAdds() / kWarpgroupWarps);
      timing.shared_bytes = (group->a_in_shared ? group->BytesOfA() : 0) + group->BytesOfB();
      timing.closes_group = group->closes_group;
    }
  }
  const config::TensorTiming* best = nullptr;
  for (const config::TensorTiming& entry : gpu.sm.tensor) {
    const int score = Likeness(entry, matrix);
    if (score >= 0 && (best == nullptr || score > Likeness(*best, matrix))) best = &entry;
  }
  if (best == nullptr) {  // a machine without tensor cores: as if its FMA pipe did the work
    timing.interval_cycles = gpu.sm.pipes.fma.initiation_interval_cycles * timing.ops / (2.0 * kWarpLanes);
    timing.latency_cycles = static_cast<uint32_t>(timing.interval_cycles) + gpu.sm.pipes.fma.latency_cycles;
    return timing;
  }
  const double scale = matrix.Work() * (matrix.sparse ? 0.5 : 1) / Work(*best);
  timing.interval_cycles = best->initiation_interval_cycles * scale;
  // The part of the latency that is not the matrix passing through stays.
  timing.latency_cycles = best->latency_cycles;
  if (scale != 1)
    timing.latency_cycles = static_cast<uint32_t>(
        std::max(1.0, best->latency_cycles + timing.interval_cycles - best->initiation_interval_cycles));
  return timing;
}

}  // namespace heddle::sm
