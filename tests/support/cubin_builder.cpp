#include "tests/support/cubin_builder.h"

#include <algorithm>
#include <cstring>

namespace heddle::testing {
namespace {

constexpr uint32_t kProgBits = 1;
constexpr uint32_t kSymbols = 2;
constexpr uint32_t kStrings = 3;
constexpr uint32_t kRela = 4;
constexpr uint32_t kNoBits = 8;
constexpr uint32_t kNvInfo = 0x70000000;

template <typename T>
void Put(std::vector<std::byte>& bytes, T value) {
  const size_t at = bytes.size();
  bytes.resize(at + sizeof(T));
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

struct Section {
  std::string name;
  uint32_t type = kProgBits;
  uint64_t flags = 0;
  uint32_t link = 0;
  uint32_t info = 0;
  uint64_t size = 0;  // of kNoBits
  std::vector<std::byte> bytes;
};

uint32_t AddString(std::vector<std::byte>& table, const std::string& text) {
  const auto at = static_cast<uint32_t>(table.size());
  for (const char c : text) table.push_back(static_cast<std::byte>(c));
  table.push_back(std::byte{0});
  return at;
}

// Indices into the section table.
enum : uint32_t {
  kNull,
  kNames,
  kSymbolNames,
  kSymbolTable,
  kModuleInfo,
  kKernelInfo,
  kConstant4Rela,
  kConstant4,
  kConstant3,
  kConstant0,
  kText,
  kGlobalInit,
  kGlobal,
  kShared,
  kCount
};
enum : uint32_t { kNoSymbol, kTableSymbol, kCounterSymbol, kInitSymbol, kKernelSymbol };

void AddSymbol(std::vector<Section>& sections, const std::string& name, uint8_t info, uint8_t other,
               uint16_t section, uint64_t value, uint64_t size) {
  auto& table = sections[kSymbolTable].bytes;
  Put<uint32_t>(table, name.empty() ? 0 : AddString(sections[kSymbolNames].bytes, name));
  Put<uint8_t>(table, info);
  Put<uint8_t>(table, other);
  Put<uint16_t>(table, section);
  Put<uint64_t>(table, value);
  Put<uint64_t>(table, size);
}

void AddSized(std::vector<std::byte>& info, uint8_t attribute, const std::vector<uint32_t>& words) {
  Put<uint8_t>(info, 4);
  Put<uint8_t>(info, attribute);
  Put<uint16_t>(info, static_cast<uint16_t>(words.size() * 4));
  for (const uint32_t word : words) Put<uint32_t>(info, word);
}

void AddKernelInfo(std::vector<std::byte>& info, const CubinSpec& spec) {
  uint32_t end = 0;
  for (size_t i = 0; i < spec.params.size(); ++i) {
    const auto [offset, size] = spec.params[i];
    AddSized(info, 0x17,
             {0, static_cast<uint32_t>(i) | uint32_t{offset} << 16, uint32_t{size} << 18 | 0x1f000});
    end = uint32_t{offset} + size;
  }
  AddSized(info, 0x0a, {kConstant0, spec.param_base | end << 16});
  AddSized(info, 0x05, {256, 1, 1});
  AddSized(info, 0x34, {0x10, 0, 2, 0x00, 0x10});
  Put<uint32_t>(info, 0x00034c02);  // three barriers
}

std::vector<Section> MakeSections(const CubinSpec& spec) {
  std::vector<Section> sections(kCount);
  sections[kNames] = {".shstrtab", kStrings, 0, 0, 0, 0, {std::byte{0}}};
  sections[kSymbolNames] = {".strtab", kStrings, 0, 0, 0, 0, {std::byte{0}}};
  sections[kSymbolTable] = {".symtab", kSymbols, 0, kSymbolNames, 0, 0, {}};
  sections[kModuleInfo] = {".nv.info", kNvInfo, 0, 0, 0, 0, {}};
  AddSized(sections[kModuleInfo].bytes, 0x2f, {kKernelSymbol, spec.registers});
  AddSized(sections[kModuleInfo].bytes, 0x11, {kKernelSymbol, 8});
  AddSized(sections[kModuleInfo].bytes, 0x12, {kKernelSymbol, 24});
  sections[kKernelInfo] = {".nv.info." + spec.kernel, kNvInfo, 0, 0, 0, 0, {}};
  AddKernelInfo(sections[kKernelInfo].bytes, spec);
  sections[kConstant4Rela] = {".rela.nv.constant4", kRela, 0, kSymbolTable, kConstant4, 0, {}};
  Put<uint64_t>(sections[kConstant4Rela].bytes, 0);
  Put<uint64_t>(sections[kConstant4Rela].bytes, uint64_t{kCounterSymbol} << 32 | 2);
  Put<uint64_t>(sections[kConstant4Rela].bytes, 8);
  sections[kConstant4] = {".nv.constant4", kProgBits, 0, 0, 0, 0, std::vector<std::byte>(16)};
  if (!spec.undefined.empty()) {
    const uint64_t undefined = kKernelSymbol + (spec.function.empty() ? 1u : 2u);
    Put<uint64_t>(sections[kConstant4Rela].bytes, 8);
    Put<uint64_t>(sections[kConstant4Rela].bytes, undefined << 32 | 2);
    Put<uint64_t>(sections[kConstant4Rela].bytes, 0);
  }
  sections[kConstant3] = {".nv.constant3", kProgBits, 0, 0, 0, 0, {}};
  for (uint32_t i = 1; i <= 4; ++i) Put<uint32_t>(sections[kConstant3].bytes, i);
  sections[kConstant0] = {
      ".nv.constant0." + spec.kernel, kProgBits, 0, 0, 0, 0, std::vector<std::byte>(spec.param_base + 64u)};
  sections[kText] = {
      ".text." + spec.kernel, kProgBits, 6, kSymbolTable, spec.registers << 24 | kKernelSymbol, 0, {}};
  if (spec.abi == 7) sections[kText].flags |= 3u << 20;
  for (const auto& word : spec.code) {
    Put<uint64_t>(sections[kText].bytes, word[0]);
    Put<uint64_t>(sections[kText].bytes, word[1]);
  }
  sections[kGlobalInit] = {
      ".nv.global.init", kProgBits, 3, 0, 0, 0, std::vector<std::byte>(16, std::byte{7})};
  sections[kGlobal] = {".nv.global", kNoBits, 3, 0, 0, 64, {}};
  sections[kShared] = {".nv.shared." + spec.kernel, kNoBits, 3, 0, kText, spec.shared_bytes, {}};
  if (!spec.debug_line.empty()) {
    sections.push_back({".debug_line", kProgBits, 0, 0, 0, 0, spec.debug_line});
    sections.push_back({".rela.debug_line", kRela, 0, kSymbolTable, kCount, 0, {}});
    for (const uint64_t offset : spec.line_relocations) {
      Put<uint64_t>(sections.back().bytes, offset);
      Put<uint64_t>(sections.back().bytes, uint64_t{kKernelSymbol} << 32 | 2);
      Put<uint64_t>(sections.back().bytes, 0);
    }
  }
  return sections;
}

void AddSymbols(std::vector<Section>& sections, const CubinSpec& spec) {
  constexpr uint8_t kObject = 1;
  constexpr uint8_t kGlobalFunction = 0x12;
  constexpr uint8_t kEntry = 0x10;
  const uint64_t code_bytes = spec.code.size() * 16;
  AddSymbol(sections, "", 0, 0, 0, 0, 0);
  AddSymbol(sections, "table", kObject, 0, kConstant3, 0, 16);
  AddSymbol(sections, "counter", kObject, 0, kGlobal, 0, 64);
  AddSymbol(sections, "init", kObject, 0, kGlobalInit, 0, 16);
  AddSymbol(sections, spec.kernel, kGlobalFunction, kEntry, kText, 0, code_bytes);
  if (!spec.function.empty()) AddSymbol(sections, spec.function, 2, 0, kText, 16, code_bytes - 16);
  if (!spec.undefined.empty()) AddSymbol(sections, spec.undefined, kGlobalFunction, 0, 0, 0, 0);
}

}  // namespace

std::vector<std::byte> BuildCubin(const CubinSpec& spec) {
  std::vector<Section> sections = MakeSections(spec);
  AddSymbols(sections, spec);
  std::vector<uint32_t> names;
  for (const Section& section : sections) names.push_back(AddString(sections[kNames].bytes, section.name));

  std::vector<std::byte> file(64);
  std::vector<uint64_t> offsets;
  for (const Section& section : sections) {
    while (file.size() % 16 != 0) file.push_back(std::byte{0});
    offsets.push_back(file.size());
    file.insert(file.end(), section.bytes.begin(), section.bytes.end());
  }
  while (file.size() % 8 != 0) file.push_back(std::byte{0});
  const uint64_t table = file.size();
  for (size_t i = 0; i < sections.size(); ++i) {
    const Section& section = sections[i];
    Put<uint32_t>(file, names[i]);
    Put<uint32_t>(file, i == 0 ? 0 : section.type);
    Put<uint64_t>(file, section.flags);
    Put<uint64_t>(file, 0);
    Put<uint64_t>(file, offsets[i]);
    Put<uint64_t>(file, section.type == kNoBits ? section.size : section.bytes.size());
    Put<uint32_t>(file, section.link);
    Put<uint32_t>(file, section.info);
    Put<uint64_t>(file, 16);
    Put<uint64_t>(file, 0);
  }

  std::vector<std::byte> header;
  for (const char byte : {'\x7f', 'E', 'L', 'F', '\2', '\1', '\1', 'A'})
    header.push_back(static_cast<std::byte>(byte));
  Put<uint8_t>(header, spec.abi);
  header.resize(16);
  Put<uint16_t>(header, 2);
  Put<uint16_t>(header, 190);
  Put<uint32_t>(header, 1);
  Put<uint64_t>(header, 0);
  Put<uint64_t>(header, 0);
  Put<uint64_t>(header, table);
  Put<uint32_t>(header, spec.abi == 7 ? 0x500500u | spec.sm_version : 0x6000004u | spec.sm_version << 8);
  Put<uint16_t>(header, 64);
  Put<uint16_t>(header, 56);
  Put<uint16_t>(header, 0);
  Put<uint16_t>(header, 64);
  Put<uint16_t>(header, static_cast<uint16_t>(sections.size()));
  Put<uint16_t>(header, kNames);
  std::copy(header.begin(), header.end(), file.begin());
  return file;
}

}  // namespace heddle::testing
