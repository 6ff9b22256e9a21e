// Small valid inputs that the fuzzers of the SASS front end and the mutation test start from.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace heddle::testing {

// The listing fuzzer's input: 16 bytes of code and one operand text, "OPCODE OPERANDS", a line.
struct ListingSeed {
  uint64_t low = 0;
  uint64_t high = 0;
  std::string text;
};

std::vector<ListingSeed> ListingSeeds();

// Cubins of both ABIs and several architectures.
std::vector<std::vector<std::byte>> CubinSeeds();

}  // namespace heddle::testing
