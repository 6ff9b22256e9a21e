// Special registers: S2R, S2UR, CS2R.
#include "sim/isa/special_registers.h"

#include "frontend/emulator/issue_log.h"
#include "frontend/emulator/lowering.h"

namespace heddle::emulator {
namespace {

using isa::Mod;
using isa::SpecialRegister;

uint32_t Thread(const Context& c, uint32_t lane) { return c.warp->id_in_cta * kWarpLanes + lane; }

uint64_t Nanoseconds(const Context& c) {
  return static_cast<uint64_t>(static_cast<double>(c.now) * c.launch->nanoseconds_per_cycle);
}

// Registers that differ between lanes.
uint32_t LaneValue(const Context& c, SpecialRegister reg, uint32_t lane) {
  const Dim3& block = c.launch->block;
  const uint32_t thread = Thread(c, lane);
  const uint32_t x = thread % block.x;
  const uint32_t y = thread / block.x % block.y;
  const uint32_t z = thread / block.x / block.y;
  switch (reg) {
    case SpecialRegister::kTID_X:
      return x;
    case SpecialRegister::kTID_Y:
      return y;
    case SpecialRegister::kTID_Z:
      return z;
    case SpecialRegister::kTID:  // packed: z in bits 26..31, y in 16..25, x in 0..15
      return z << 26 | y << 16 | x;
    case SpecialRegister::kLANEID:
      return lane;
    case SpecialRegister::kEQMASK:
      return 1u << lane;
    case SpecialRegister::kLTMASK:
      return (1u << lane) - 1;
    case SpecialRegister::kLEMASK:
      return ((1u << lane) - 1) << 1 | 1;
    case SpecialRegister::kGTMASK:
      return ~(((1u << lane) - 1) << 1 | 1);
    default:  // kGEMASK
      return ~((1u << lane) - 1);
  }
}

bool DependsOnLane(SpecialRegister reg) {
  switch (reg) {
    case SpecialRegister::kTID_X:
    case SpecialRegister::kTID_Y:
    case SpecialRegister::kTID_Z:
    case SpecialRegister::kTID:
    case SpecialRegister::kLANEID:
    case SpecialRegister::kEQMASK:
    case SpecialRegister::kLTMASK:
    case SpecialRegister::kLEMASK:
    case SpecialRegister::kGTMASK:
    case SpecialRegister::kGEMASK:
      return true;
    default:
      return false;
  }
}

// Clocks come as 64 bits, of which CLOCKHI and GLOBALTIMERHI name the upper word.
std::optional<uint64_t> UniformValue(const Context& c, SpecialRegister reg) {
  switch (reg) {
    case SpecialRegister::kCTAID_X:
      return c.cta->cta.x;
    case SpecialRegister::kCTAID_Y:
      return c.cta->cta.y;
    case SpecialRegister::kCTAID_Z:
      return c.cta->cta.z;
    case SpecialRegister::kVIRTUALSMID:
      return c.cta->sm;
    case SpecialRegister::kVIRTID:  // %warpid in bits 8..14, %smid in bits 20..28
      return uint64_t{c.cta->sm} << 20 | uint64_t{c.warp->slot_on_sm} << 8;
    case SpecialRegister::kCLOCK:
    case SpecialRegister::kCLOCKLO:
      return c.now;
    case SpecialRegister::kCLOCKHI:
      return c.now >> 32;
    case SpecialRegister::kGLOBALTIMERLO:
      return Nanoseconds(c);
    case SpecialRegister::kGLOBALTIMERHI:
      return Nanoseconds(c) >> 32;
    case SpecialRegister::kSWINHI:
      return c.launch->shared_window_high;
    case SpecialRegister::kSMEMSZ:
      return c.launch->shared_bytes;
    case SpecialRegister::kCgaCtaId:
      return c.cta->rank;
    case SpecialRegister::kGLOBALERRORSTATUS:
    case SpecialRegister::kCGAERRORSTATUS:
    case SpecialRegister::kWARPERRORSTATUS:
      return 0;
    case SpecialRegister::kCgaSize:
      return c.cta->cluster_ctas;
    case SpecialRegister::kZ:
      return 0;
    default:
      return std::nullopt;
  }
}

// imm: the register. flags 1: 64 bits in two registers.
void RunSpecial(Context& c, const Lowered& l) {
  const auto reg = static_cast<SpecialRegister>(l.imm);
  if (DependsOnLane(reg)) {
    Row values;
    for (uint32_t i = 0; i < kWarpLanes; ++i) values.lane[i] = LaneValue(c, reg, i);
    MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) { return values.lane[i]; });
    return;
  }
  const uint64_t value = UniformValue(c, reg).value_or(0);
  if (l.flags == 0) return MapLanes(c.Destination(l), c.lanes, [=](uint32_t) { return Low(value); });
  MapLanes64(c.Destination(l, 0, 0), c.Destination(l, 0, 1), c.lanes, [=](uint32_t) { return value; });
}

template <uint32_t kWords>
void RunZero(Context& c, const Lowered& l) {
  for (uint32_t word = 0; word < kWords; ++word)
    MapLanes(c.Destination(l, 0, word), c.lanes, [](uint32_t) { return 0u; });
}

bool IsKnown(SpecialRegister reg) {
  CtaState cta;
  Warp warp;
  const LaunchContext launch;
  Context context;
  context.cta = &cta;
  context.warp = &warp;
  context.launch = &launch;
  return DependsOnLane(reg) || UniformValue(context, reg).has_value();
}

}  // namespace

// S2R R, SR and S2UR UR, SR: one word. CS2R R, SR: two; CS2R.32 one.
void LowerS2r(Lowering& w) {
  const bool wide = w.instruction.op == isa::Op::kCS2R || w.instruction.op == isa::Op::kCS2UR;
  w.out.flags = wide && !w.Take(Mod::k32) ? 1 : 0;
  w.Destination(0);
  const isa::Operand& operand = w.Next();
  if (operand.kind != isa::OperandKind::kSpecialRegister) return w.Fail("no special register");
  const auto reg = static_cast<SpecialRegister>(operand.value);
  if (!IsKnown(reg)) return w.Fail("special register " + Name(reg) + " is not modelled");
  w.out.imm = static_cast<uint64_t>(operand.value);
  w.out.run = reg != SpecialRegister::kZ ? &RunSpecial : w.out.flags != 0 ? &RunZero<2> : &RunZero<1>;
}

}  // namespace heddle::emulator
