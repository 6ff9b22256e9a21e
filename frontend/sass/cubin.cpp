#include "frontend/sass/cubin.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "frontend/sass/elf.h"
#include "frontend/sass/kernel_info.h"

namespace heddle::sass {
namespace {

// Functions that the driver links in. Their addresses stay 0, which is outside every kernel: a kernel that really calls
// one (an assertion fails, say) is reported by the emulator.
bool IsDriverFunction(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kNames = {
      "__assertfail", "vprintf", "malloc", "free", "cudaGetParameterBufferV2", "cudaLaunchDeviceV2"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

constexpr uint16_t kMachineCuda = 190;
constexpr uint8_t kSymbolIsEntry = 0x10;  // STO_CUDA_ENTRY, in the symbol's "other" byte
constexpr uint32_t kRelocation64 = 2;     // absolute, 64 bits
constexpr uint32_t kMaxParameterEnd = 1u << 16;

class CubinReader {
 public:
  explicit CubinReader(Elf elf) : elf_(std::move(elf)) {}

  Result<Cubin> Read() {
    HEDDLE_RETURN_IF_ERROR(ReadTarget());
    HEDDLE_RETURN_IF_ERROR(ReadModuleInfo());
    HEDDLE_RETURN_IF_ERROR(ReadData());
    HEDDLE_ASSIGN_OR_RETURN(cubin_.constant3, ReadBank(".nv.constant3"));
    HEDDLE_ASSIGN_OR_RETURN(cubin_.constant4, ReadBank(".nv.constant4"));
    for (const ElfSymbol& symbol : elf_.symbols) {
      if (symbol.type == kElfSymbolFunction && (symbol.other & kSymbolIsEntry) != 0)
        HEDDLE_RETURN_IF_ERROR(ReadKernel(symbol));
      if (symbol.type == kElfSymbolObject) ReadVariable(symbol);
    }
    return std::move(cubin_);
  }

 private:
  Status ReadTarget();
  Status ReadModuleInfo();
  Status ReadData();
  Status ReadKernel(const ElfSymbol& symbol);
  Status ReadKernelInfo(CubinKernel& kernel);
  Status ApplyAttribute(const InfoEntry& entry, CubinKernel& kernel);
  Status ReadIndirectBranches(const InfoEntry& entry, CubinKernel& kernel);
  void ReadVariable(const ElfSymbol& symbol);
  void ReadFunctions(uint32_t section, CubinKernel& kernel);
  Result<ConstantBank> ReadBank(const std::string& name);
  Result<std::vector<Relocation>> ReadRelocations(uint32_t section);
  Result<uint32_t> SectionOf(const ElfSymbol& symbol);

  uint32_t IndexOf(const ElfSection& section) const {
    return static_cast<uint32_t>(&section - elf_.sections.data());
  }
  uint32_t SymbolIndex(const ElfSymbol& symbol) const {
    return static_cast<uint32_t>(&symbol - elf_.symbols.data());
  }

  Elf elf_;
  Cubin cubin_;
  std::map<uint32_t, uint32_t> registers_;    // by symbol
  std::map<uint32_t, uint32_t> local_bytes_;  // by symbol
  std::map<uint32_t, uint32_t> data_index_;   // by section
};

Status CubinReader::ReadTarget() {
  if (elf_.machine != kMachineCuda)
    return Error{ExitCode::kTrace, elf_.place, "an ELF file, but not of CUDA device code",
                 "give the .cubin, not the host's object or executable"};
  cubin_.place = elf_.place;
  cubin_.abi = elf_.abi;
  if (elf_.abi != 7 && elf_.abi != 8)
    return elf_.ErrorAt(8, fmt::format("cubin of ABI {}: heddle reads 7 and 8", elf_.abi));
  cubin_.sm_version = elf_.abi == 7 ? elf_.flags & 0xff : (elf_.flags >> 8) & 0xff;
  if (cubin_.sm_version < 75)
    return elf_.ErrorAt(48, fmt::format("code for sm_{}: heddle reads sm_75 and later", cubin_.sm_version));
  cubin_.accelerated = (elf_.flags & (elf_.abi == 7 ? 0x800 : 0x8)) != 0;
  // ptxas leaves the flag out for sm_90a, but it notes its own options.
  if (const ElfSection* note = elf_.Find(".note.nv.tkinfo")) {
    const std::string_view text(reinterpret_cast<const char*>(note->bytes.data()), note->bytes.size());
    if (text.find(fmt::format("-arch sm_{}a ", cubin_.sm_version)) != std::string_view::npos)
      cubin_.accelerated = true;
  }
  return Ok();
}

Status CubinReader::ReadModuleInfo() {
  const ElfSection* section = elf_.Find(".nv.info");
  if (section == nullptr) return Ok();
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<InfoEntry> entries, ReadInfo(elf_, *section));
  for (const InfoEntry& entry : entries) {
    const uint32_t symbol = entry.Word(0);
    if (entry.attribute == InfoAttribute::kRegcount) registers_[symbol] = entry.Word(1);
    if (entry.attribute == InfoAttribute::kFrameSize || entry.attribute == InfoAttribute::kMinStackSize ||
        entry.attribute == InfoAttribute::kMaxStackSize)
      local_bytes_[symbol] = std::max(local_bytes_[symbol], entry.Word(1));
  }
  return Ok();
}

Status CubinReader::ReadData() {
  for (const ElfSection& section : elf_.sections) {
    if (!section.name.starts_with(".nv.global") || section.name.starts_with(".nv.global.rel")) continue;
    data_index_[IndexOf(section)] = static_cast<uint32_t>(cubin_.data.size());
    const uint64_t alignment = std::clamp<uint64_t>(section.alignment, 1, 1u << 16);
    cubin_.data.push_back({std::string(section.name),
                           section.size_bytes,
                           static_cast<uint32_t>(alignment),
                           {section.bytes.begin(), section.bytes.end()},
                           {}});
  }
  for (const auto& [section, index] : data_index_) {
    HEDDLE_ASSIGN_OR_RETURN(cubin_.data[index].relocations, ReadRelocations(section));
  }
  return Ok();
}

Result<ConstantBank> CubinReader::ReadBank(const std::string& name) {
  ConstantBank bank;
  const ElfSection* section = elf_.Find(name);
  if (section == nullptr) return bank;
  bank.bytes.assign(section->bytes.begin(), section->bytes.end());
  HEDDLE_ASSIGN_OR_RETURN(bank.relocations, ReadRelocations(IndexOf(*section)));
  return bank;
}

Result<std::vector<Relocation>> CubinReader::ReadRelocations(uint32_t section) {
  std::vector<Relocation> out;
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<ElfRelocation> relocations, elf_.RelocationsOf(section));
  const ElfSection& patched = elf_.sections[section];
  for (const ElfRelocation& relocation : relocations) {
    const ElfSymbol& symbol = elf_.symbols[relocation.symbol];
    if (symbol.section == 0 && IsDriverFunction(symbol.name)) continue;
    const uint64_t at = patched.file_offset + relocation.offset;
    if (relocation.type != kRelocation64)
      return elf_.ErrorAt(at, fmt::format("relocation of type {} in {}, which heddle does not know",
                                          relocation.type, patched.name));
    const auto in_place = ReadAt<uint64_t>(patched.bytes, relocation.offset);
    if (!in_place)
      return elf_.ErrorAt(patched.file_offset, fmt::format("relocation outside {}", patched.name));
    HEDDLE_ASSIGN_OR_RETURN(const uint32_t target, SectionOf(symbol));
    Relocation result;
    result.offset = relocation.offset;
    result.symbol = symbol.name;
    result.addend = symbol.value + (relocation.has_addend ? relocation.addend : *in_place);
    if (const auto data = data_index_.find(target); data != data_index_.end()) {
      result.data_index = data->second;
    } else if (elf_.sections[target].name.starts_with(".text.")) {
      result.target = Relocation::Target::kCode;
      result.code_section = elf_.sections[target].name;
    } else {
      return elf_.ErrorAt(
          at, fmt::format("relocation of {} against section {}", patched.name, elf_.sections[target].name));
    }
    out.push_back(std::move(result));
  }
  return out;
}

Result<uint32_t> CubinReader::SectionOf(const ElfSymbol& symbol) {
  if (symbol.section == 0 || symbol.section >= elf_.sections.size())
    return Error{ExitCode::kTrace, elf_.place,
                 fmt::format("symbol {} is not defined in this cubin", symbol.name),
                 "link it first (nvcc -dlink, nvlink)"};
  return symbol.section;
}

void CubinReader::ReadVariable(const ElfSymbol& symbol) {
  if (symbol.section >= elf_.sections.size()) return;
  GlobalVariable variable{std::string(symbol.name), GlobalVariable::Space::kGlobal, 0, symbol.value,
                          symbol.size_bytes};
  uint64_t size = 0;
  if (const auto data = data_index_.find(symbol.section); data != data_index_.end()) {
    variable.data_index = data->second;
    size = cubin_.data[data->second].size_bytes;
  } else if (elf_.sections[symbol.section].name == ".nv.constant3") {
    variable.space = GlobalVariable::Space::kConstant;
    size = cubin_.constant3.bytes.size();
  }
  if (symbol.value <= size && symbol.size_bytes <= size - symbol.value)
    cubin_.variables.push_back(std::move(variable));
}

Status CubinReader::ReadKernel(const ElfSymbol& symbol) {
  HEDDLE_ASSIGN_OR_RETURN(const uint32_t index, SectionOf(symbol));
  const ElfSection& section = elf_.sections[index];
  CubinKernel kernel;
  kernel.name = symbol.name;
  kernel.code_section = section.name;
  if (symbol.value >= section.bytes.size() || section.bytes.size() % 16 != 0 || symbol.value % 16 != 0 ||
      section.bytes.size() > (1u << 30))
    return elf_.ErrorAt(section.file_offset, fmt::format("kernel {} has no code here", kernel.name));
  kernel.entry_offset = static_cast<uint32_t>(symbol.value);
  kernel.code.assign(section.bytes.begin(), section.bytes.end());
  ReadFunctions(index, kernel);

  const uint32_t symbol_index = SymbolIndex(symbol);
  const auto registers = registers_.find(symbol_index);
  kernel.registers = registers != registers_.end() ? registers->second : section.info >> 24;
  if (kernel.registers > 255)
    return elf_.ErrorAt(section.file_offset,
                        fmt::format("kernel {} wants {} registers", kernel.name, kernel.registers));
  if (const auto bytes = local_bytes_.find(symbol_index); bytes != local_bytes_.end())
    kernel.local_bytes = bytes->second;
  if (elf_.abi == 7) kernel.barriers = (section.flags >> 20) & 0x7f;
  if (const ElfSection* shared = elf_.Find(".nv.shared." + kernel.name)) {
    if (shared->size_bytes > (1u << 24))
      return elf_.ErrorAt(shared->file_offset, fmt::format("kernel {} has {} bytes of shared memory",
                                                           kernel.name, shared->size_bytes));
    kernel.static_shared_bytes = static_cast<uint32_t>(shared->size_bytes);
  }
  if (const ElfSection* bank = elf_.Find(".nv.constant0." + kernel.name))
    kernel.constant0_bytes = static_cast<uint32_t>(bank->bytes.size());
  HEDDLE_ASSIGN_OR_RETURN(kernel.constant2, ReadBank(".nv.constant2." + kernel.name));
  HEDDLE_RETURN_IF_ERROR(ReadKernelInfo(kernel));
  cubin_.kernels.push_back(std::move(kernel));
  return Ok();
}

void CubinReader::ReadFunctions(uint32_t section, CubinKernel& kernel) {
  for (const ElfSymbol& symbol : elf_.symbols) {
    if (symbol.type != kElfSymbolFunction || symbol.section != section || symbol.value >= kernel.code.size())
      continue;
    const uint64_t size = std::min<uint64_t>(symbol.size_bytes, kernel.code.size() - symbol.value);
    kernel.functions.push_back(
        {std::string(symbol.name), static_cast<uint32_t>(symbol.value), static_cast<uint32_t>(size)});
  }
  std::stable_sort(kernel.functions.begin(), kernel.functions.end(),
                   [](const auto& a, const auto& b) { return a.offset < b.offset; });
}

Status CubinReader::ReadKernelInfo(CubinKernel& kernel) {
  const ElfSection* section = elf_.Find(".nv.info." + kernel.name);
  if (section == nullptr)
    return elf_.ErrorAt(0, fmt::format("kernel {} has no section .nv.info.{}", kernel.name, kernel.name));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<InfoEntry> entries, ReadInfo(elf_, *section));
  for (const InfoEntry& entry : entries) HEDDLE_RETURN_IF_ERROR(ApplyAttribute(entry, kernel));
  std::sort(kernel.params.begin(), kernel.params.end(),
            [](const auto& a, const auto& b) { return a.ordinal < b.ordinal; });
  return Ok();
}

Status CubinReader::ApplyAttribute(const InfoEntry& entry, CubinKernel& kernel) {
  const Dim3 three{entry.Word(0), entry.Word(1), entry.Word(2)};
  switch (entry.attribute) {
    case InfoAttribute::kMaxThreads:
      kernel.max_block = three;
      break;
    case InfoAttribute::kReqntid:
      kernel.required_block = three;
      break;
    case InfoAttribute::kCtaPerCluster:
      kernel.cluster = three;
      break;
    case InfoAttribute::kExplicitCluster:
      kernel.explicit_cluster = true;
      break;
    case InfoAttribute::kNumBarriers:
      kernel.barriers = ReadAt<uint8_t>(entry.payload, 0).value_or(0);
      break;
    case InfoAttribute::kParamCbank:
      kernel.param_base = entry.Word(1) & 0xffff;
      kernel.param_bytes = entry.Word(1) >> 16;
      break;
    case InfoAttribute::kKparamInfo: {
      const KernelParameter param{entry.Word(1) & 0xffff, entry.Word(1) >> 16, entry.Word(2) >> 18};
      if (param.offset + param.size_bytes > kMaxParameterEnd)
        return elf_.ErrorAt(entry.file_offset, "parameter outside constant bank 0");
      kernel.params.push_back(param);
      break;
    }
    case InfoAttribute::kIndirectBranchTargets:
      return ReadIndirectBranches(entry, kernel);
    default:
      break;
  }
  return Ok();
}

// A list of {offset of the branch, 0, number of targets, targets...}.
Status CubinReader::ReadIndirectBranches(const InfoEntry& entry, CubinKernel& kernel) {
  for (size_t at = 0; at + 3 <= entry.WordCount();) {
    IndirectBranch branch{entry.Word(at), {}};
    const size_t count = entry.Word(at + 2);
    at += 3;
    if (count > entry.WordCount() - at)
      return elf_.ErrorAt(entry.file_offset, "list of branch targets longer than its attribute");
    for (size_t i = 0; i < count; ++i) branch.targets.push_back(entry.Word(at + i));
    at += count;
    kernel.indirect_branches.push_back(std::move(branch));
  }
  return Ok();
}

}  // namespace

const CubinKernel* Cubin::FindKernel(std::string_view name) const {
  for (const CubinKernel& kernel : kernels)
    if (kernel.name == name) return &kernel;
  return nullptr;
}

Result<Cubin> ReadCubin(std::span<const std::byte> bytes, std::string place) {
  HEDDLE_ASSIGN_OR_RETURN(Elf elf, ReadElf(bytes, std::move(place)));
  return CubinReader(std::move(elf)).Read();
}

Result<std::vector<std::byte>> ReadFileBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{ExitCode::kTrace, path, "cannot open this file", ""};
  const std::vector<char> chars((std::istreambuf_iterator<char>(file)), {});
  if (file.bad()) return Error{ExitCode::kTrace, path, "cannot read this file", ""};
  std::vector<std::byte> bytes(chars.size());
  std::transform(chars.begin(), chars.end(), bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
  return bytes;
}

}  // namespace heddle::sass
