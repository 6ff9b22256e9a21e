// One decoded SASS instruction, and the code of one kernel. What a trace stores, the emulator lowers to
// handlers and the SM lowers to timing records: neither reads these in a hot loop.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/isa/opcode.h"

namespace heddle::isa {

inline constexpr uint8_t kZeroRegister = 255;  // RZ
inline constexpr uint8_t kZeroUniformRegister =
    255;  // URZ on every architecture (63 in old encodings is mapped to it)
inline constexpr uint8_t kTruePredicate = 7;  // PT and UPT
inline constexpr uint8_t kNoRegister = 254;   // an address or operand part that is absent
inline constexpr uint8_t kNoBarrier = 7;      // write or read barrier: none
inline constexpr uint32_t kInstructionBytes = 16;

enum class OperandKind : uint8_t {
  kNone,
  kRegister,          // reg, width
  kUniformRegister,   // reg, width
  kPredicate,         // reg
  kUniformPredicate,  // reg
  kAllPredicates,     // PR or UPR as a whole, for P2R, R2P, UP2UR
  // value. Integers: as printed, sign included (cast to uint32_t for the raw word, use as it is for 64-bit
  // operations). Floats: the bit pattern, 32 bits; of a double-precision operation the whole double. A pair
  // of half immediates is one operand: the 32-bit word.
  kImmediate,
  kConstant,               // c[bank][uniform_reg + value]; kBindless: cx[UR][..], the handle in `descriptor`
  kMemory,                 // [reg(*scale)(.64) + uniform_reg + value], descriptor; width: see Operand
  kDescriptor,             // desc[uniform_reg] alone (a cache policy); width
  kMatrixDescriptor,       // gdesc[uniform_reg]; width
  kInstructionDescriptor,  // idesc[uniform_reg]; width
  kTensorMemory,           // tmem[uniform_reg + value]
  kSpecialRegister,        // value: a SpecialRegister
  kConvergenceBarrier,     // B0..B15
  kScoreboard,             // SB0..SB5 (DEPBAR, LDGDEPBAR) and gsb0 (reg = 8)
  kScoreboardSet,          // {5,4,3}: bit mask in value
  kTarget,                 // value: byte offset of the target in the kernel's section
  kProgramCounter,         // Rpc.LO / Rpc.HI
};

// Flags of an operand. Negation and absolute value are arithmetic, Invert is bitwise (for predicates: logical
// not).
enum OperandFlag : uint32_t {
  kNegate = 1 << 0,
  kAbsolute = 1 << 1,
  kInvert = 1 << 2,
  kReuse = 1 << 3,
  kAddress64 = 1 << 4,     // the base register of a memory operand is a pair (.64)
  kUniform64 = 1 << 5,     // the uniform part of a memory operand is a pair
  kUnsigned32 = 1 << 6,    // the base register of a memory operand is zero-extended (.U32)
  kSelectsHigh = 1 << 7,   // .H1_H1 / .H1
  kSelectsLow = 1 << 8,    // .H0_H0 / .H0
  kAsF32 = 1 << 9,         // .F32 on a half operand (both halves come from one fp32)
  kTransposedA = 1 << 10,  // gdesc[..].tnspA
  kByteSelect = 1 << 11,   // .B0...B3: byte index in `scale`
  kBindless = 1 << 12,     // cx[UR][..]
  kRow = 1 << 13,          // .ROW
  kIsUniform = 1 << 14,    // the index register of a constant is a UR; all predicates are UPR
  kPackedF32 = 1 << 15,    // .F32x2.HI_LO: a pair of FP32 in two registers
  kTransposedB = 1 << 16,  // gdesc[..].tnspB
  kColumn = 1 << 17,       // .COL
  kNegatedA = 1 << 18,     // gdesc[..].negA
  kNegatedB = 1 << 19,     // gdesc[..].negB
};

inline constexpr uint32_t kAllOperandFlags = (1 << 20) - 1;

struct Operand {
  OperandKind kind = OperandKind::kNone;
  uint8_t reg = kNoRegister;  // register, predicate, barrier or address base
  // Number of consecutive 32-bit registers read or written. Of an address: registers of its base, or of the
  // uniform part where it has no base (a TMA coordinate list, say). Of a constant: registers of its index.
  uint8_t width = 1;
  uint8_t uniform_reg =
      kNoRegister;  // uniform addend of an address, or index register of a constant (kIsUniform)
  uint8_t descriptor = kNoRegister;  // UR of desc[UR] in front of an address
  uint8_t scale = 1;  // of the base register of an address: 1, 4, 8, 16; byte index with kByteSelect
  uint8_t bank = 0;   // of a constant
  bool is_destination = false;
  uint32_t flags = 0;  // OperandFlag
  int64_t value = 0;

  bool Has(OperandFlag flag) const { return (flags & flag) != 0; }
  bool operator==(const Operand&) const = default;
};

// Control bits, set by the compiler: bits 105 to 125 of the 128-bit word.
struct Control {
  uint8_t stall = 1;                   // cycles until the warp may issue again, 0 to 15
  bool yield = false;                  // the raw bit 109
  uint8_t write_barrier = kNoBarrier;  // incremented at issue, decremented when results are written
  uint8_t read_barrier = kNoBarrier;   // incremented at issue, decremented when operands have been read
  uint8_t wait_mask = 0;               // barriers that must be 0 before issue
  uint8_t reuse = 0;                   // operand reuse flags
  bool operator==(const Control&) const = default;
};

inline constexpr int kMaxOperands = 12;
inline constexpr int kMaxModifiers = 10;

struct Instruction {
  uint32_t pc = 0;  // byte offset from the kernel's first instruction
  Op op = Op::kNOP;
  uint8_t guard = kTruePredicate;
  bool guard_negated = false;
  bool guard_uniform = false;
  uint8_t operand_count = 0;
  uint8_t modifier_count = 0;
  Control control;
  std::array<Mod, kMaxModifiers> modifiers{};    // in the order of the text
  std::array<Operand, kMaxOperands> operands{};  // in the order of the text, destinations first
  std::array<uint64_t, 2> encoding{};            // low and high half of the 128-bit word

  bool Has(Mod mod) const {
    for (int i = 0; i < modifier_count; ++i)
      if (modifiers[static_cast<size_t>(i)] == mod) return true;
    return false;
  }
  // Ordered with accesses of other SMs: past the L1, and loads read at the slice.
  bool IsStrong() const { return Has(Mod::kSTRONG) && (Has(Mod::kGPU) || Has(Mod::kSYS)); }
  bool IsPredicated() const { return guard != kTruePredicate || guard_negated; }
};

// What happens between two moments at which the timing model must take part. An instruction that is not
// kLocal ends an InstructionRun (warp_stream.h).
enum class Effect : uint8_t {
  kLocal,    // registers and predicates of its own warp only: may be executed ahead of time
  kMemory,   // addresses: LDG, STS, LDGSTS, ATOM, LDC with a register index, ...
  kControl,  // decides the next pc, or may block the warp until its other lanes arrive
  kSync,     // barriers, clocks, fences, sleeping, register reallocation
};
Effect EffectOf(const Instruction& instruction);

// The code of one kernel with the functions that it calls: one section, indexable by pc / kInstructionBytes.
struct KernelCode {
  std::string name;         // mangled
  uint32_t sm_version = 0;  // 80, 86, 89, 90, ...
  // false: recorded without them. Control of each instruction says nothing then, and dependences between registers go
  // through a scoreboard, whatever the machine's dependence mode.
  bool has_control_bits = true;
  std::vector<Instruction> instructions;

  uint32_t IndexOf(uint32_t pc) const { return pc / kInstructionBytes; }
};

// "@!P0 LDG.E.128 R4, desc[UR6][R2.64+0x10]", without control bits.
std::string ToString(const Instruction& instruction);

}  // namespace heddle::isa
