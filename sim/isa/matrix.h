// What a matrix multiply-accumulate instruction computes, read from its modifiers and operands once: D = A * B + C.
//
// Of a warp: HMMA, IMMA, BMMA, DMMA, QMMA, OMMA. Of a warp group, four warps of which each computes 16 of the 64 rows:
// HGMMA, QGMMA, IGMMA, BGMMA (wgmma); their B, and their A unless it is in registers, lie in shared memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/isa/instruction.h"

namespace heddle::isa {

enum class MatrixType : uint8_t {
  kF16,
  kBF16,
  kTF32,
  kF32,
  kF64,
  kE4M3,
  kE5M2,
  kE2M3,
  kE3M2,
  kE2M1,
  kS4,
  kU4,
  kS8,
  kU8,
  kS32,
  kB1,
};

uint32_t BitsOf(MatrixType type);        // TF32: 32, the register it lies in
std::string_view Name(MatrixType type);  // "bf16", as PTX spells it

struct Matrix {
  // Of the text. A warp-group form has m = 64. Of a sparse form k counts the columns of A with its zeros.
  uint16_t m = 0;
  uint16_t n = 0;
  uint16_t k = 0;
  MatrixType a = MatrixType::kF16;
  MatrixType b = MatrixType::kF16;
  MatrixType accumulator = MatrixType::kF32;  // of C and D
  // Bits that an element takes in registers or shared memory: QMMA keeps types of four and six bits in bytes.
  uint8_t a_bits = 16;
  uint8_t b_bits = 16;
  bool warp_group = false;
  bool sparse = false;       // .SP: A holds two of four elements
  bool a_in_shared = false;  // wgmma: A comes from shared memory (SS), else from registers (RS)
  bool b_in_shared = false;
  bool transposed_a = false;  // wgmma: m-major in shared memory
  bool transposed_b = false;  // wgmma: n-major
  bool negated_a = false;
  bool negated_b = false;
  bool closes_group = false;  // wgmma: gsb0, counted when this one and those before it are done

  bool operator==(const Matrix&) const = default;
  uint64_t MultiplyAdds() const { return uint64_t{m} * n * k; }
  // Bytes of one whole operand, as stored: a sparse A has half of k.
  uint32_t BytesOfA() const { return m * uint32_t{k} * a_bits / (sparse ? 16u : 8u); }
  uint32_t BytesOfB() const { return n * uint32_t{k} * b_bits / 8; }
};

bool IsMatrix(Op op);  // any of the above
bool IsWarpGroupMatrix(Op op);

// Nothing for other opcodes, and for a shape that is not known.
std::optional<Matrix> MatrixOf(const Instruction& instruction);

}  // namespace heddle::isa
