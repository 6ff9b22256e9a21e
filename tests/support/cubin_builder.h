// Builds small cubins in memory for tests: the sections that heddle reads, nothing else.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace heddle::testing {

struct CubinSpec {
  uint32_t sm_version = 80;
  uint8_t abi = 8;
  std::string kernel = "k";
  std::vector<std::array<uint64_t, 2>> code;  // low and high half of each instruction
  uint32_t registers = 16;
  uint32_t shared_bytes = 0;
  // Offset and size of each parameter, from param_base.
  std::vector<std::array<uint16_t, 2>> params = {{0, 8}, {8, 4}};
  uint16_t param_base = 0x160;
  std::string function = "";               // a second function symbol at the second instruction
  std::vector<std::byte> debug_line;       // contents of .debug_line; empty: no such section
  std::vector<uint64_t> line_relocations;  // offsets in it that hold the kernel's address
  std::string undefined = "";  // a function symbol without a section, whose address constant bank 4 asks for
};

// Besides the kernel it holds __constant__ "table" {1, 2, 3, 4} (4 bytes each), a zeroed global "counter" of
// 64 bytes, an initialised global "init" of 16 bytes, and constant bank 4 with the address of "counter" + 8.
std::vector<std::byte> BuildCubin(const CubinSpec& spec);

}  // namespace heddle::testing
