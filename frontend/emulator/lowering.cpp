#include "frontend/emulator/lowering.h"

#include <fmt/format.h>

#include <array>

namespace heddle::emulator {
namespace {

constexpr uint32_t kSign = 0x80000000u;
constexpr uint32_t kIgnoredFlags = isa::kReuse;

std::array<LoweringFunction, isa::kOpCount> MakeTable() {
  std::array<LoweringFunction, isa::kOpCount> table{};
#define HEDDLE_LOWERING(op, function) table[static_cast<size_t>(isa::Op::k##op)] = &function;
#include "frontend/emulator/lowerings.def"
#undef HEDDLE_LOWERING
  return table;
}

bool IsPredicate(isa::OperandKind kind) {
  return kind == isa::OperandKind::kPredicate || kind == isa::OperandKind::kUniformPredicate;
}

}  // namespace

LoweringFunction LoweringOf(isa::Op op) {
  static const auto table = MakeTable();
  return table[static_cast<size_t>(op)];
}

bool Lowering::Take(isa::Mod mod) {
  bool found = false;
  for (uint32_t i = 0; i < instruction.modifier_count; ++i) {
    if (instruction.modifiers[i] != mod) continue;
    taken_modifiers_ |= 1u << i;
    found = true;
  }
  return found;
}

int Lowering::TakeOneOf(std::initializer_list<isa::Mod> mods) {
  int position = 0;
  for (const isa::Mod mod : mods) {
    if (Take(mod)) return position;
    ++position;
  }
  return -1;
}

void Lowering::TakeAllModifiers() { taken_modifiers_ = (1u << instruction.modifier_count) - 1; }

const isa::Operand* Lowering::Peek() const {
  return next_operand_ < instruction.operand_count ? &instruction.operands[static_cast<size_t>(next_operand_)]
                                                   : nullptr;
}

bool Lowering::NextIs(isa::OperandKind kind) const {
  const isa::Operand* operand = Peek();
  return operand != nullptr && operand->kind == kind;
}

const isa::Operand& Lowering::Next() {
  static const isa::Operand kAbsent;
  const isa::Operand* operand = Peek();
  if (operand == nullptr) {
    Fail("an operand is missing");
    return kAbsent;
  }
  ++next_operand_;
  return *operand;
}

void Lowering::Destination(size_t slot) {
  const isa::Operand& operand = Next();
  if ((operand.flags & ~kIgnoredFlags) != 0) Fail("a modified destination");
  if (operand.kind == isa::OperandKind::kRegister) {
    out.destination[slot] = layout.WriteRow(operand.reg);
  } else if (operand.kind == isa::OperandKind::kUniformRegister) {
    out.destination[slot] = layout.UniformWriteRow(operand.reg);
    out.lane_fill = kAllLanes;
  } else {
    Fail("the destination is no register");
  }
}

void Lowering::DestinationPredicate(size_t slot) {
  const isa::Operand& operand = Next();
  if (!IsPredicate(operand.kind) || operand.flags != 0 || operand.reg > isa::kTruePredicate)
    return Fail("the destination is no predicate");
  const bool uniform = operand.kind == isa::OperandKind::kUniformPredicate;
  if (uniform) out.lane_fill = kAllLanes;
  if (operand.reg == isa::kTruePredicate) return;
  out.destination_predicate[slot] =
      static_cast<uint8_t>(operand.reg + (uniform ? kFirstUniformPredicate : 0));
}

bool Lowering::TakeDestinationPredicate(size_t slot) {
  const isa::Operand* operand = Peek();
  if (operand == nullptr || !IsPredicate(operand->kind) || !operand->is_destination) return false;
  DestinationPredicate(slot);
  return true;
}

void Lowering::PlaceSource(size_t slot, const isa::Operand& operand, uint32_t words) {
  SourceRow& source = out.source[slot];
  switch (operand.kind) {
    case isa::OperandKind::kRegister:
      source = {layout.ReadRow(operand.reg), RowBase::kWarp};
      break;
    case isa::OperandKind::kUniformRegister:
      source = {layout.UniformReadRow(operand.reg), RowBase::kWarp};
      break;
    case isa::OperandKind::kImmediate: {
      const auto bits = static_cast<uint64_t>(operand.value);
      if (words == 1) {
        source.row = pool.Immediate(Low(bits));
      } else if (words == 2) {
        source.row = pool.ImmediatePair(bits);
      } else {
        Fail("a wide immediate");
      }
      source.base = RowBase::kPool;
      break;
    }
    case isa::OperandKind::kConstant:
      if (operand.reg != isa::kNoRegister || operand.uniform_reg != isa::kNoRegister ||
          operand.Has(isa::kBindless) || operand.value < 0 || operand.value > 0xffffff)
        return Fail("an indexed constant");
      source = {pool.Constant(operand.bank, static_cast<uint32_t>(operand.value), words), RowBase::kPool};
      break;
    default:
      Fail("a source of an unexpected kind");
  }
}

void Lowering::Source(size_t slot, uint32_t words) {
  const isa::Operand& operand = Next();
  if ((operand.flags & ~kIgnoredFlags) != 0) Fail("a modified source");
  PlaceSource(slot, operand, words);
}

uint32_t Lowering::IntegerSource(size_t slot, uint32_t words) {
  const isa::Operand& operand = Next();
  if ((operand.flags & ~(kIgnoredFlags | isa::kNegate | isa::kInvert)) != 0) Fail("a modified source");
  PlaceSource(slot, operand, words);
  if (operand.Has(isa::kNegate) || operand.Has(isa::kInvert)) out.flip[slot] = kAllLanes;
  return operand.Has(isa::kNegate) ? 1 : 0;
}

void Lowering::FloatSource(size_t slot) {
  const isa::Operand& operand = Next();
  if ((operand.flags & ~(kIgnoredFlags | isa::kNegate | isa::kAbsolute)) != 0) Fail("a modified source");
  PlaceSource(slot, operand, 1);
  if (operand.Has(isa::kAbsolute)) out.keep[slot] = ~kSign;
  if (operand.Has(isa::kNegate)) out.flip[slot] = kSign;
}

void Lowering::DoubleSource(size_t slot) {
  const isa::Operand& operand = Next();
  if ((operand.flags & ~(kIgnoredFlags | isa::kNegate | isa::kAbsolute)) != 0) Fail("a modified source");
  PlaceSource(slot, operand, 2);
  if (operand.Has(isa::kAbsolute)) out.keep[slot] = ~kSign;
  if (operand.Has(isa::kNegate)) out.flip[slot] = kSign;
}

HalfSelection Lowering::HalfSource(size_t slot) {
  const isa::Operand& operand = Next();
  constexpr uint32_t kKnown =
      kIgnoredFlags | isa::kNegate | isa::kAbsolute | isa::kSelectsHigh | isa::kSelectsLow;
  if ((operand.flags & ~kKnown) != 0) Fail("a modified source");
  PlaceSource(slot, operand, 1);
  if (operand.Has(isa::kAbsolute)) out.keep[slot] = 0x7fff7fffu;
  if (operand.Has(isa::kNegate)) out.flip[slot] = 0x80008000u;
  if (operand.Has(isa::kSelectsHigh)) return {true, true};
  if (operand.Has(isa::kSelectsLow)) return {false, false};
  return {};
}

void Lowering::FloatOfHalvesSource(size_t slot) {
  const isa::Operand& operand = Next();
  if ((operand.flags & ~kIgnoredFlags) != isa::kAsF32) Fail("a modified source");
  PlaceSource(slot, operand, 1);
}

void Lowering::SourcePredicate(size_t slot) {
  const isa::Operand& operand = Next();
  if (!IsPredicate(operand.kind) || (operand.flags & ~isa::kInvert) != 0 || operand.reg > isa::kTruePredicate)
    return Fail("a source is no predicate");
  const bool uniform = operand.kind == isa::OperandKind::kUniformPredicate;
  out.source_predicate[slot] = static_cast<uint8_t>(operand.reg + (uniform ? kFirstUniformPredicate : 0));
  out.predicate_flip[slot] = operand.Has(isa::kInvert) ? kAllLanes : 0;
}

bool Lowering::TakeSourcePredicate(size_t slot) {
  const isa::Operand* operand = Peek();
  if (operand == nullptr || !IsPredicate(operand->kind)) return false;
  SourcePredicate(slot);
  return true;
}

uint64_t Lowering::Immediate() {
  const isa::Operand& operand = Next();
  if (operand.kind != isa::OperandKind::kImmediate || (operand.flags & ~kIgnoredFlags) != 0)
    Fail("an operand is no immediate");
  return static_cast<uint64_t>(operand.value);
}

void Lowering::Fail(std::string reason) {
  if (failure_.empty()) failure_ = std::move(reason);
}

std::optional<std::string> Lowering::Finish() {
  for (uint32_t i = 0; i < instruction.modifier_count; ++i)
    if ((taken_modifiers_ >> i & 1) == 0)
      Fail(fmt::format("modifier .{} is not supported here", isa::Name(instruction.modifiers[i])));
  if (Peek() != nullptr) Fail(fmt::format("operand {} is not supported here", next_operand_));
  if (pool.overflowed()) Fail("too many different constants");
  if (out.run == nullptr) Fail("no handler");
  if (failure_.empty()) return std::nullopt;
  return failure_;
}

}  // namespace heddle::emulator
