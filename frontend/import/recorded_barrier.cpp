#include "frontend/import/recorded_barrier.h"

namespace heddle::importer {

isa::BarrierAccess BarrierOf(const isa::Instruction& instruction) {
  constexpr uint32_t kBarriers = 16;
  isa::BarrierAccess barrier;
  barrier.op = instruction.Has(isa::Mod::kARV) ? isa::BarrierOp::kArrive : isa::BarrierOp::kSync;
  barrier.arriving_threads = kWarpLanes;
  uint64_t number = 0;
  for (size_t i = 0; i < instruction.operand_count; ++i)
    if (instruction.operands[i].kind == isa::OperandKind::kImmediate)
      number = static_cast<uint64_t>(instruction.operands[i].value);
  if (number < kBarriers) {
    barrier.id = static_cast<uint8_t>(number);
  } else if (number % kWarpLanes == 0 && number <= 1024) {
    barrier.expected_threads = static_cast<uint32_t>(number);
    barrier.id = static_cast<uint8_t>(1 + (number / kWarpLanes - 1) % (kBarriers - 1));
  }
  return barrier;
}

}  // namespace heddle::importer
