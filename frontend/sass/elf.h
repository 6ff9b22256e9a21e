// A bounds-checked view of a 64-bit little-endian ELF file: sections, symbols, relocations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "sim/base/result.h"

namespace heddle::sass {

inline constexpr uint32_t kElfSectionSymbols = 2;
inline constexpr uint32_t kElfSectionRela = 4;
inline constexpr uint32_t kElfSectionNoBits = 8;
inline constexpr uint32_t kElfSectionRel = 9;
inline constexpr uint8_t kElfSymbolObject = 1;
inline constexpr uint8_t kElfSymbolFunction = 2;

// Reads a little-endian number; nothing when it does not lie wholly in `bytes`.
template <typename T>
std::optional<T> ReadAt(std::span<const std::byte> bytes, uint64_t offset) {
  static_assert(std::is_integral_v<T>);
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

struct ElfSection {
  std::string_view name;
  uint32_t type = 0;
  uint64_t flags = 0;
  uint64_t file_offset = 0;
  uint64_t size_bytes = 0;
  uint32_t info = 0;
  uint64_t alignment = 0;
  std::span<const std::byte> bytes;  // empty for a section without contents
};

struct ElfSymbol {
  std::string_view name;
  uint8_t type = 0;
  uint8_t other = 0;
  uint32_t section = 0;
  uint64_t value = 0;
  uint64_t size_bytes = 0;
};

struct ElfRelocation {
  uint64_t offset = 0;
  uint32_t type = 0;
  uint32_t symbol = 0;  // a valid index
  uint64_t addend = 0;  // 0 for a section without addends: it is in the patched bytes
  bool has_addend = false;
};

struct Elf {
  std::string place;
  uint8_t abi = 0;
  uint16_t machine = 0;
  uint32_t flags = 0;
  std::vector<ElfSection> sections;
  std::vector<ElfSymbol> symbols;

  const ElfSection* Find(std::string_view name) const;
  // Of the section with this index.
  Result<std::vector<ElfRelocation>> RelocationsOf(uint32_t section) const;
  Error ErrorAt(uint64_t offset, std::string message) const;
};

// `bytes` must outlive the result.
Result<Elf> ReadElf(std::span<const std::byte> bytes, std::string place);

}  // namespace heddle::sass
