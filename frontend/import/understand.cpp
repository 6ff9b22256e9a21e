// From the fields of a trace line to a decoded instruction.
#include <optional>

#include "frontend/import/static_code.h"
#include "frontend/sass/operand_shape.h"
#include "sim/isa/matrix.h"

namespace heddle::importer {
namespace {

using isa::Instruction;
using isa::Mod;
using isa::Op;
using isa::Operand;
using isa::OperandKind;

void Append(const Operand& operand, Instruction* out) {
  if (out->operand_count < isa::kMaxOperands) out->operands[out->operand_count++] = operand;
}

Operand Register(uint8_t reg) {
  Operand operand;
  operand.kind = OperandKind::kRegister;
  operand.reg = reg;
  return operand;
}

Operand Address(uint8_t base) {
  Operand operand;
  operand.kind = OperandKind::kMemory;
  operand.reg = base;
  return operand;
}

// Shuffles, some atomics and others name a predicate first: the tracer looks for a destination in the first operand
// alone, and lists their register with the sources. These have a destination that is no vector register instead.
std::optional<Operand> HiddenDestination(Op op) {
  Operand operand;
  operand.is_destination = true;
  switch (op) {
    case Op::kR2UR:
    case Op::kREDUX:
    case Op::kVOTEU:
      operand.kind = OperandKind::kUniformRegister;
      operand.reg = isa::kZeroUniformRegister;
      return operand;
    case Op::kBMOV:
      operand.kind = OperandKind::kConvergenceBarrier;
      operand.reg = 0;
      return operand;
    default:
      return std::nullopt;
  }
}

enum class AddressAt : uint8_t { kNowhere, kFirst, kBehindDestination, kTwoFirst };

AddressAt AddressOf(const Instruction& instruction) {
  switch (instruction.op) {
    case Op::kLD:
    case Op::kLDG:
    case Op::kLDL:
    case Op::kLDS:
    case Op::kLDSM:
    case Op::kATOM:
    case Op::kATOMG:
    case Op::kATOMS:
      return AddressAt::kBehindDestination;
    case Op::kST:
    case Op::kSTG:
    case Op::kSTL:
    case Op::kSTS:
    case Op::kSTSM:
    case Op::kRED:
    case Op::kREDG:
    case Op::kREDS:
      return AddressAt::kFirst;
    case Op::kLDGSTS:
      return AddressAt::kTwoFirst;
    default:
      return AddressAt::kNowhere;
  }
}

void AppendOperands(const TracegInstruction& line, Instruction* out) {
  std::array<uint8_t, kMaxSources + 1> registers{};
  size_t count = 0;
  if (line.has_destination) registers[count++] = line.destination;
  for (size_t i = 0; i < line.source_count; ++i) registers[count++] = line.sources[i];
  if (!line.has_destination) {
    if (const std::optional<Operand> hidden = HiddenDestination(out->op)) Append(*hidden, out);
  }
  const AddressAt where = line.mode == AddressMode::kNone ? AddressAt::kNowhere : AddressOf(*out);
  bool has_address = where == AddressAt::kNowhere;
  for (size_t i = 0; i < count; ++i) {
    bool is_address = false;
    switch (where) {
      case AddressAt::kNowhere:
        break;
      case AddressAt::kFirst:  // a store of one register has an address without one
        is_address = i == 0 && count > 1;
        break;
      case AddressAt::kBehindDestination:
        is_address = i == 1;
        break;
      case AddressAt::kTwoFirst:
        is_address = true;
        break;
    }
    Append(is_address ? Address(registers[i]) : Register(registers[i]), out);
    has_address |= is_address;
  }
  if (!has_address) Append(Address(isa::kNoRegister), out);
}

void AppendImmediate(OperandKind kind, int64_t value, Instruction* out) {
  Operand operand;
  operand.kind = kind;
  operand.value = value;
  Append(operand, out);
}

// The scoreboard that LDGDEPBAR and DEPBAR count groups of asynchronous copies with. Which one it is in the code does
// not stand in a trace.
constexpr uint8_t kGroupScoreboard = 0;

void AppendSpecials(const TracegInstruction& line, Instruction* out) {
  Operand scoreboard;
  scoreboard.kind = OperandKind::kScoreboard;
  scoreboard.reg = kGroupScoreboard;
  switch (out->op) {
    case Op::kLDGDEPBAR:
      out->control.write_barrier = kGroupScoreboard;
      break;
    case Op::kDEPBAR:
      Append(scoreboard, out);
      AppendImmediate(OperandKind::kImmediate, line.immediate & 63, out);
      break;
    case Op::kBAR:
    case Op::kNANOSLEEP:
      AppendImmediate(OperandKind::kImmediate, line.immediate, out);
      break;
    case Op::kBRA:
      AppendImmediate(OperandKind::kTarget, line.immediate, out);
      break;
    default:
      break;
  }
}

bool AppendModifiers(std::string_view text, Instruction* out) {
  bool known = true;
  while (!text.empty()) {
    const size_t dot = text.find('.');
    const std::string_view word = text.substr(0, dot);
    text.remove_prefix(dot == std::string_view::npos ? text.size() : dot + 1);
    if (word.empty()) continue;
    const std::optional<Mod> mod = isa::ModFromName(word);
    if (!mod || out->modifier_count == isa::kMaxModifiers)
      known = false;
    else
      out->modifiers[out->modifier_count++] = *mod;
  }
  return known;
}

// Operands decide what these do, and none of them stands in a trace of versions 1 to 5.
bool SaysTooLittle(Op op) {
  switch (op) {
    case Op::kSYNCS:
    case Op::kARRIVES:
    case Op::kUCGABAR_ARV:
    case Op::kUCGABAR_WAIT:
    case Op::kUSETMAXREG:
    case Op::kSTAS:
    case Op::kREDAS:
    case Op::kACQBULK:
    case Op::kPREEXIT:
    case Op::kWARPGROUP:
      return true;
    default: {
      const std::string_view name = isa::Name(op);
      return isa::PipeOf(op) == isa::Pipe::kTma || isa::IsWarpGroupMatrix(op) || name.starts_with("UTC") ||
             name == "LDTM" || name == "STTM";
    }
  }
}

Op StandIn(const TracegInstruction& line) {
  if (line.mode == AddressMode::kNone) return Op::kNOP;
  return line.has_destination ? Op::kLDG : Op::kSTG;
}

}  // namespace

RecordKind RecordOf(const Instruction& instruction) {
  if (instruction.op == Op::kBAR) return RecordKind::kBarrier;
  for (size_t i = 0; i < instruction.operand_count; ++i)
    if (instruction.operands[i].kind == OperandKind::kMemory) return RecordKind::kAccess;
  return RecordKind::kNone;
}

Understood Understand(const TracegInstruction& line) {
  Understood out;
  Instruction& instruction = out.instruction;
  instruction.pc = line.pc;
  instruction.control.stall = 1;
  instruction.control.yield = true;  // the raw bit: the warp may go on
  const size_t dot = line.opcode.find('.');
  const std::optional<Op> op = isa::OpFromName(line.opcode.substr(0, dot));
  if (!op || SaysTooLittle(*op)) {
    out.fault = op ? "an instruction whose recorded form says too little" : "an unknown opcode";
    instruction.op = StandIn(line);
    if (instruction.op != Op::kNOP) AppendModifiers("E", &instruction);
  } else {
    instruction.op = *op;
    if (dot != std::string_view::npos && !AppendModifiers(line.opcode.substr(dot + 1), &instruction))
      out.fault = "an unknown modifier of an opcode";
  }
  if (instruction.op != Op::kNOP) AppendOperands(line, &instruction);
  AppendSpecials(line, &instruction);
  sass::CompleteOperands(instruction);
  return out;
}

}  // namespace heddle::importer
