#include "frontend/sass/elf.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace heddle::sass {
namespace {

// The layouts of Elf64_Ehdr, Elf64_Shdr, Elf64_Sym and Elf64_Rel(a), System V ABI.
constexpr uint64_t kSectionHeaderBytes = 64;
constexpr uint64_t kSymbolBytes = 24;
constexpr uint64_t kRelBytes = 16;
constexpr uint64_t kRelaBytes = 24;

// A string of a string table, or "" when the offset lies outside.
std::string_view StringAt(std::span<const std::byte> table, uint64_t offset) {
  if (offset >= table.size()) return {};
  const char* begin = reinterpret_cast<const char*>(table.data()) + offset;
  return {begin, strnlen(begin, table.size() - offset)};
}

struct RawSection {
  uint32_t name;
  uint32_t type;
  uint64_t flags;
  uint64_t address;
  uint64_t offset;
  uint64_t size;
  uint32_t link;
  uint32_t info;
  uint64_t alignment;
  uint64_t entry_size;
};
static_assert(sizeof(RawSection) == kSectionHeaderBytes);

struct SectionTable {
  uint64_t offset = 0;
  uint16_t count = 0;
  uint16_t names = 0;
};

Result<SectionTable> ReadHeader(std::span<const std::byte> bytes, Elf& elf) {
  if (bytes.size() < 64 || std::memcmp(bytes.data(), "\177ELF\2\1", 6) != 0)
    return elf.ErrorAt(0, "not a 64-bit little-endian ELF file");
  elf.abi = std::to_integer<uint8_t>(bytes[8]);
  elf.machine = *ReadAt<uint16_t>(bytes, 18);
  elf.flags = *ReadAt<uint32_t>(bytes, 48);
  const SectionTable table{*ReadAt<uint64_t>(bytes, 40), *ReadAt<uint16_t>(bytes, 60),
                           *ReadAt<uint16_t>(bytes, 62)};
  if (*ReadAt<uint16_t>(bytes, 58) != kSectionHeaderBytes)
    return elf.ErrorAt(58, "unexpected size of a section header");
  if (table.offset > bytes.size() || (bytes.size() - table.offset) / kSectionHeaderBytes < table.count)
    return elf.ErrorAt(40, "the section table lies outside the file");
  if (table.names >= table.count) return elf.ErrorAt(62, "no section holds the names of sections");
  return table;
}

Result<std::vector<RawSection>> ReadSections(std::span<const std::byte> bytes, const SectionTable& table,
                                             Elf& elf) {
  std::vector<RawSection> raw(table.count);
  if (!raw.empty()) std::memcpy(raw.data(), bytes.data() + table.offset, raw.size() * kSectionHeaderBytes);
  for (size_t i = 0; i < raw.size(); ++i) {
    const RawSection& section = raw[i];
    ElfSection out{{},           section.type, section.flags,     section.offset,
                   section.size, section.info, section.alignment, {}};
    if (section.type != kElfSectionNoBits && section.type != 0) {
      if (section.offset > bytes.size() || bytes.size() - section.offset < section.size)
        return elf.ErrorAt(table.offset + i * kSectionHeaderBytes,
                           fmt::format("section {} lies outside the file", i));
      out.bytes = bytes.subspan(section.offset, section.size);
    }
    elf.sections.push_back(out);
  }
  for (size_t i = 0; i < raw.size(); ++i)
    elf.sections[i].name = StringAt(elf.sections[table.names].bytes, raw[i].name);
  return raw;
}

Status ReadSymbols(const std::vector<RawSection>& raw, Elf& elf) {
  const auto table =
      std::find_if(raw.begin(), raw.end(), [](const auto& s) { return s.type == kElfSectionSymbols; });
  if (table == raw.end()) return Ok();
  if (table->link >= elf.sections.size())
    return elf.ErrorAt(table->offset, "the symbol table names no string table");
  const auto& bytes = elf.sections[static_cast<size_t>(table - raw.begin())].bytes;
  const auto& names = elf.sections[table->link].bytes;
  for (uint64_t at = 0; at + kSymbolBytes <= bytes.size(); at += kSymbolBytes) {
    ElfSymbol symbol;
    symbol.name = StringAt(names, *ReadAt<uint32_t>(bytes, at));
    symbol.type = std::to_integer<uint8_t>(bytes[at + 4]) & 15;
    symbol.other = std::to_integer<uint8_t>(bytes[at + 5]);
    symbol.section = *ReadAt<uint16_t>(bytes, at + 6);
    symbol.value = *ReadAt<uint64_t>(bytes, at + 8);
    symbol.size_bytes = *ReadAt<uint64_t>(bytes, at + 16);
    elf.symbols.push_back(symbol);
  }
  return Ok();
}

}  // namespace

Error Elf::ErrorAt(uint64_t offset, std::string message) const {
  return {ExitCode::kTrace, fmt::format("{} @ offset {:#x}", place, offset), std::move(message), ""};
}

const ElfSection* Elf::Find(std::string_view name) const {
  for (const ElfSection& section : sections)
    if (section.name == name) return &section;
  return nullptr;
}

Result<std::vector<ElfRelocation>> Elf::RelocationsOf(uint32_t section) const {
  std::vector<ElfRelocation> out;
  for (const ElfSection& table : sections) {
    const bool has_addend = table.type == kElfSectionRela;
    if ((!has_addend && table.type != kElfSectionRel) || table.info != section) continue;
    const uint64_t step = has_addend ? kRelaBytes : kRelBytes;
    for (uint64_t at = 0; at + step <= table.bytes.size(); at += step) {
      const uint64_t info = *ReadAt<uint64_t>(table.bytes, at + 8);
      ElfRelocation relocation{*ReadAt<uint64_t>(table.bytes, at), static_cast<uint32_t>(info),
                               static_cast<uint32_t>(info >> 32), 0, has_addend};
      if (has_addend) relocation.addend = *ReadAt<uint64_t>(table.bytes, at + 16);
      if (relocation.symbol >= symbols.size())
        return ErrorAt(table.file_offset + at,
                       fmt::format("relocation against symbol {}, which is not there", relocation.symbol));
      out.push_back(relocation);
    }
  }
  return out;
}

Result<Elf> ReadElf(std::span<const std::byte> bytes, std::string place) {
  Elf elf;
  elf.place = std::move(place);
  HEDDLE_ASSIGN_OR_RETURN(const SectionTable table, ReadHeader(bytes, elf));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<RawSection> raw, ReadSections(bytes, table, elf));
  HEDDLE_RETURN_IF_ERROR(ReadSymbols(raw, elf));
  return elf;
}

}  // namespace heddle::sass
