// The products of a warp group that group_matrix_test compiles and checks, and the CUDA source that holds one kernel for
// each of them.
#pragma once

#include <string>
#include <vector>

#include "sim/isa/matrix.h"

namespace heddle::emulator::group_test {

struct Case {
  isa::MatrixType d = isa::MatrixType::kF32;
  isa::MatrixType a = isa::MatrixType::kBF16;
  isa::MatrixType b = isa::MatrixType::kBF16;
  uint32_t n = 16;
  bool a_in_shared = true;
  bool transposed_a = false;
  bool transposed_b = false;
  bool negated_a = false;
  bool negated_b = false;
  bool saturates = false;
  bool overwrites = false;  // the kernel clears shared memory in front of the wait: a race
};

std::vector<Case> Cases();
std::string NameOf(const Case& c);  // of the kernel, too
std::string SourceOf(const std::vector<Case>& cases);

}  // namespace heddle::emulator::group_test
