// Mnemonics, pipes and modifiers of SASS as numbers. The tables are opcodes.def and modifiers.def.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace heddle::isa {

enum class Op : uint16_t {
#define HEDDLE_OPCODE(name, pipe) k##name,
#include "sim/isa/opcodes.def"
#undef HEDDLE_OPCODE
};

inline constexpr int kOpCount = 0
#define HEDDLE_OPCODE(name, pipe) +1
#include "sim/isa/opcodes.def"
#undef HEDDLE_OPCODE
    ;

enum class Mod : uint16_t {
#define HEDDLE_MODIFIER(text) k##text,
#include "sim/isa/modifiers.def"
#undef HEDDLE_MODIFIER
};

// The execution pipes of a sub-core or an SM, as Nsight Compute names them.
enum class Pipe : uint8_t {
  kAlu,      // integer, logic, compare, select, conversions of one cycle
  kFma,      // FP32 multiply-add and integer multiply
  kFp16,     // packed half arithmetic
  kFp64,     // double precision
  kXu,       // transcendental functions and the slow conversions
  kTensor,   // matrix multiply-accumulate of every kind
  kUniform,  // the uniform datapath
  kCbu,      // control flow and convergence barriers
  kAdu,      // address divergence unit: constants, special registers, barriers
  kLsu,      // loads, stores, atomics, shuffles
  kTma,      // bulk copies and tensor memory accelerator
  kNone,     // takes an issue slot and nothing else
};

inline constexpr int kPipeCount = static_cast<int>(Pipe::kNone) + 1;

std::string_view Name(Op op);      // "LDG"
std::string_view Name(Mod mod);    // "128"
std::string_view Name(Pipe pipe);  // "lsu"
Pipe PipeOf(Op op);

std::optional<Op> OpFromName(std::string_view mnemonic);
std::optional<Mod> ModFromName(std::string_view text);

}  // namespace heddle::isa
