// How an instruction becomes a Lowered record. A lowering function takes the modifiers and operands that it
// understands, in the order of the text, and sets the handler; what it leaves behind makes the instruction
// unsupported. So nothing is ever executed with a modifier ignored by accident.
#pragma once

#include <optional>
#include <string>

#include "frontend/emulator/lowered.h"
#include "frontend/emulator/program.h"
#include "sim/isa/instruction.h"

namespace heddle::emulator {

// Which half of the source word stands for each half of the operand (.H0_H0, .H1_H1).
struct HalfSelection {
  bool low_from_high = false;
  bool high_from_high = true;
};

class Lowering {
 public:
  Lowering(const isa::Instruction& instruction, uint32_t sm_version, const RowLayout& layout,
           PoolLayout& pool, Lowered& out)
      : instruction(instruction), sm_version(sm_version), layout(layout), pool(pool), out(out) {}

  const isa::Instruction& instruction;
  const uint32_t sm_version;
  const RowLayout& layout;
  PoolLayout& pool;
  Lowered& out;

  // Modifiers. Each call marks what it finds as understood.
  bool Take(isa::Mod mod);
  // The position in `mods` of the one that is present, or -1.
  int TakeOneOf(std::initializer_list<isa::Mod> mods);
  // Marks every modifier: for instructions whose modifiers have no functional meaning.
  void TakeAllModifiers();

  // Operands. Each call consumes the next one.
  const isa::Operand* Peek() const;  // null at the end
  const isa::Operand& Next();        // an empty operand, and failure, at the end
  bool NextIs(isa::OperandKind kind) const;

  // R or UR. A uniform destination sets lane_fill.
  void Destination(size_t slot);
  void DestinationPredicate(size_t slot);
  // When the next operand is a predicate destination.
  bool TakeDestinationPredicate(size_t slot);

  // R, UR, immediate or constant without modifiers, `words` registers wide.
  void Source(size_t slot, uint32_t words = 1);
  // Accepts - and ~ : sets flip; returns 1 for - (the 1 of ~x + 1), else 0.
  uint32_t IntegerSource(size_t slot, uint32_t words = 1);
  // Accepts - and | | : sets keep and flip for the word that holds the sign.
  void FloatSource(size_t slot);
  void DoubleSource(size_t slot);
  // Two halves in a word. Accepts - and | |, which work on both.
  HalfSelection HalfSource(size_t slot);
  void FloatOfHalvesSource(size_t slot);  // R.F32 where others take halves: a float, both halves come from it
  // P or UP, with optional !.
  void SourcePredicate(size_t slot);
  bool TakeSourcePredicate(size_t slot);
  uint64_t Immediate();  // the value of the next operand, which must be an immediate

  void Fail(std::string reason);
  // After the lowering function: what is left over is an error. Returns the reason when there is one.
  std::optional<std::string> Finish();

 private:
  void PlaceSource(size_t slot, const isa::Operand& operand, uint32_t words);

  uint32_t taken_modifiers_ = 0;
  int next_operand_ = 0;
  std::string failure_;
};

using LoweringFunction = void (*)(Lowering&);

// The function for an opcode, or null.
LoweringFunction LoweringOf(isa::Op op);

// The handler of instructions without one; imm is the index in Program::unsupported. Reports "unsupported_opcode" and
// leaves the state as it is.
void RunUnsupported(Context& context, const Lowered& lowered);
// The handler of instructions that have no functional effect.
void RunNothing(Context& context, const Lowered& lowered);

// Declares every lowering function: void LowerX(Lowering&).
#define HEDDLE_LOWERING(op, function) void function(Lowering& lowering);
#include "frontend/emulator/lowerings.def"
#undef HEDDLE_LOWERING

}  // namespace heddle::emulator
