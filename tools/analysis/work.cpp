#include "tools/analysis/work.h"

#include <algorithm>
#include <map>
#include <optional>

#include "sim/isa/matrix.h"
#include "sim/sm/tensor_timing.h"

namespace heddle::analysis {
namespace {

using isa::Op;
using isa::Pipe;

constexpr double kWarpgroupWarps = 4;

size_t Index(sm::IssuePort port) { return static_cast<size_t>(port); }

// Operations a lane of instructions that Nsight Compute counts as floating point; 0 for the others of their pipes.
double FloatOpsPerLane(Op op) {
  switch (op) {
    case Op::kFFMA:
    case Op::kFFMA32I:
    case Op::kFHFMA:
    case Op::kDFMA:
    case Op::kHADD2:  // pairs
    case Op::kHADD2_32I:
    case Op::kHMUL2:
    case Op::kHMUL2_32I:
    case Op::kFADD2:
    case Op::kFMUL2:
      return 2;
    case Op::kHFMA2:
    case Op::kHFMA2_32I:
    case Op::kFFMA2:
      return 4;
    case Op::kFADD:
    case Op::kFADD32I:
    case Op::kFMUL:
    case Op::kFMUL32I:
    case Op::kFHADD:
    case Op::kDADD:
    case Op::kDMUL:
      return 1;
    default:
      return 0;
  }
}

bool IsIntegerArithmetic(Op op) {
  switch (op) {
    case Op::kIADD:
    case Op::kIADD3:
    case Op::kIADD32I:
    case Op::kIMNMX:
    case Op::kISCADD:
    case Op::kISETP:
    case Op::kLEA:
    case Op::kIABS:
    case Op::kVIADD:
    case Op::kVIADDMNMX:
    case Op::kVIMNMX:
    case Op::kVIMNMX3:
    case Op::kIMAD:
    case Op::kIMUL:
    case Op::kIDP:
      return true;
    default:
      return false;
  }
}

double IntegerOpsPerLane(Op op) {
  if (!IsIntegerArithmetic(op)) return 0;
  return op == Op::kIMAD || op == Op::kIADD3 ? 2 : op == Op::kIDP ? 8 : 1;
}

// What one instruction adds to which kind, and how fast the machine does such instructions.
struct Share {
  std::string name;
  bool tensor = false;
  double ops = 0;            // a warp instruction
  double ops_per_cycle = 0;  // the whole machine
};

std::optional<Share> ArithmeticOf(const config::Gpu& gpu, const isa::Instruction& instruction) {
  const double sub_cores = double(gpu.sm.count) * gpu.sm.sub_core_count;
  if (isa::IsMatrix(instruction.op)) {
    const std::optional<isa::Matrix> matrix = isa::MatrixOf(instruction);
    const sm::TensorTiming timing = sm::TensorTimingOf(gpu, instruction);
    if (timing.interval_cycles <= 0) return std::nullopt;
    const std::string type = matrix ? std::string(isa::Name(matrix->a)) : "16-bit";
    return Share{type + (matrix && matrix->sparse ? " sparse tensor" : " tensor"), true, double(timing.ops),
                 timing.ops / timing.interval_cycles * sub_cores};
  }
  const double floats = FloatOpsPerLane(instruction.op);
  const double lane_ops = floats != 0 ? floats : IntegerOpsPerLane(instruction.op);
  if (lane_ops == 0) return std::nullopt;
  const sm::PortUse use = sm::PortUseOf(gpu, instruction);
  const double ports = use.is_shared ? gpu.sm.count : sub_cores;
  const Pipe pipe = isa::PipeOf(instruction.op);
  const char* name = floats == 0           ? "int32"
                     : pipe == Pipe::kFp64 ? "fp64"
                     : pipe == Pipe::kFp16 ? "fp16"
                                           : "fp32";
  if (use.interval_cycles <= 0) return std::nullopt;
  return Share{name, false, lane_ops * kWarpLanes, lane_ops * kWarpLanes / use.interval_cycles * ports};
}

// The ceiling of FP32 and FP64 is that of multiply-adds, whether the kernel had any: a kernel of additions alone leaves
// half of it unused, and Nsight Compute draws it so.
double MultiplyAddCeiling(const config::Gpu& gpu, const std::string& name) {
  isa::Instruction multiply_add;
  multiply_add.op = name == "fp64" ? Op::kDFMA : name == "fp16" ? Op::kHFMA2 : Op::kFFMA;
  return ArithmeticOf(gpu, multiply_add)->ops_per_cycle;
}

double CeilingShare(const Arithmetic& a) { return a.ops_per_cycle > 0 ? a.ops / a.ops_per_cycle : 0; }

void AddInstruction(const config::Gpu& gpu, const isa::Instruction& instruction, uint64_t issued,
                    LaunchWork* work, std::map<std::string, Arithmetic>* kinds) {
  const auto count = static_cast<double>(issued);
  const sm::PortUse use = sm::PortUseOf(gpu, instruction);
  work->port_cycles[Index(use.port)] += count * use.interval_cycles;
  work->port_is_shared[Index(use.port)] |= use.is_shared;
  // Integer multiplies take an issue of the whole FMA pipe too.
  if (use.port == sm::IssuePort::kFmaHeavy)
    work->port_cycles[Index(sm::IssuePort::kFma)] += count * gpu.sm.pipes.fma.initiation_interval_cycles;
  work->pipe_instructions[static_cast<size_t>(isa::PipeOf(instruction.op))] += issued;
  if (use.port == sm::IssuePort::kMio || use.port == sm::IssuePort::kGlobal) work->lsu_instructions += count;
  if (isa::IsWarpGroupMatrix(instruction.op))
    work->matrix_shared_bytes += count / kWarpgroupWarps * sm::TensorTimingOf(gpu, instruction).shared_bytes;
  if (const std::optional<Share> share = ArithmeticOf(gpu, instruction)) {
    Arithmetic& kind = (*kinds)[share->name];
    kind.name = share->name;
    kind.tensor = share->tensor;
    kind.ops += count * share->ops;
    kind.ops_per_cycle = std::max(kind.ops_per_cycle, share->ops_per_cycle);
  }
}

}  // namespace

LaunchWork WorkOf(const config::Gpu& gpu, std::span<const isa::Instruction> instructions,
                  std::span<const stats::PcStats> per_pc, const stats::Counters& counters, const Dim3& grid,
                  const Dim3& block, uint64_t cycles) {
  LaunchWork work;
  work.cycles = cycles;
  work.ctas = grid.Count();
  work.warps = work.ctas * CeilDiv<uint64_t>(block.Count(), kWarpLanes);
  work.counters = counters;
  std::map<std::string, Arithmetic> kinds;
  for (size_t i = 0; i < std::min(instructions.size(), per_pc.size()); ++i) {
    if (per_pc[i].issued != 0) AddInstruction(gpu, instructions[i], per_pc[i].issued, &work, &kinds);
  }
  for (auto& [name, kind] : kinds) {
    if (name.starts_with("fp")) kind.ops_per_cycle = MultiplyAddCeiling(gpu, name);
    work.arithmetic.push_back(kind);
  }
  std::stable_sort(
      work.arithmetic.begin(), work.arithmetic.end(),
      [](const Arithmetic& a, const Arithmetic& b) { return CeilingShare(a) > CeilingShare(b); });
  return work;
}

}  // namespace heddle::analysis
