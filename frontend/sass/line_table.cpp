#include "frontend/sass/line_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "frontend/sass/elf.h"
#include "sim/base/types.h"
#include "sim/isa/instruction.h"

namespace heddle::sass {
namespace {

// DWARF 4, section 6.2.
enum StandardOpcode : uint8_t {
  kExtended = 0,
  kCopy = 1,
  kAdvancePc = 2,
  kAdvanceLine = 3,
  kSetFile = 4,
  kConstAddPc = 8,
  kFixedAdvancePc = 9,
};
enum ExtendedOpcode : uint8_t { kEndSequence = 1, kSetAddress = 2 };

constexpr size_t kMostFiles = 1 << 16;

// Reads forward; once anything is missing, everything after reads as 0 and failed() says so.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes, uint64_t offset = 0) : bytes_(bytes), offset_(offset) {}

  template <typename T>
  T Take() {
    const std::optional<T> value = ReadAt<T>(bytes_, offset_);
    if (!value) return Fail<T>();
    offset_ += sizeof(T);
    return *value;
  }
  uint64_t TakeUleb() {
    uint64_t value = 0;
    for (uint32_t shift = 0;; shift += 7) {
      const auto byte = Take<uint8_t>();
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
  }
  int64_t TakeSleb() {
    uint64_t value = 0;
    for (uint32_t shift = 0;;) {
      const auto byte = Take<uint8_t>();
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if (shift < 64 && (byte & 0x40) != 0) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
  }
  std::string TakeString() {
    std::string text;
    while (true) {
      const char letter = static_cast<char>(Take<uint8_t>());
      if (letter == '\0') return text;
      text += letter;
    }
  }
  void SkipTo(uint64_t offset) {
    if (offset < offset_ || offset > bytes_.size()) failed_ = true;
    offset_ = std::clamp<uint64_t>(offset, offset_, bytes_.size());
  }
  uint64_t offset() const { return offset_; }
  bool failed() const { return failed_; }

 private:
  template <typename T>
  T Fail() {
    failed_ = true;
    offset_ = bytes_.size();
    return T{};
  }

  std::span<const std::byte> bytes_;
  uint64_t offset_ = 0;
  bool failed_ = false;
};

// Of numbers that a file may have made as large as it likes.
int64_t Plus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

struct UnitHeader {
  uint64_t end = 0;      // of the unit
  uint64_t program = 0;  // where its instructions start
  uint8_t minimum_step = 1;
  int8_t line_base = 0;
  uint8_t line_range = 1;
  uint8_t opcode_base = 1;
  std::vector<uint8_t> operand_counts;  // of standard opcodes, from 1 on
  std::vector<std::string> folders;
  std::vector<std::string> files;  // from 1 on
};

class LineReader {
 public:
  LineReader(const Elf& elf, const ElfSection& lines, std::vector<ElfRelocation> relocations, uint32_t code)
      : elf_(elf), lines_(lines), relocations_(std::move(relocations)), code_(code) {}

  Result<std::vector<SourceLine>> Read(size_t instructions) {
    out_.resize(instructions);
    for (uint64_t at = 0; at < lines_.bytes.size();) {
      HEDDLE_ASSIGN_OR_RETURN(const UnitHeader unit, ReadHeader(at));
      HEDDLE_RETURN_IF_ERROR(RunProgram(unit));
      at = unit.end;
    }
    return std::move(out_);
  }

 private:
  Error At(uint64_t offset, std::string message) const {
    return elf_.ErrorAt(lines_.file_offset + offset, std::move(message));
  }

  Result<UnitHeader> ReadHeader(uint64_t start) {
    Cursor in(lines_.bytes, start);
    UnitHeader unit;
    const auto length = in.Take<uint32_t>();
    unit.end = in.offset() + length;
    const auto version = in.Take<uint16_t>();
    const auto header_length = in.Take<uint32_t>();
    unit.program = in.offset() + header_length;
    unit.minimum_step = in.Take<uint8_t>();
    if (version >= 4) in.Take<uint8_t>();  // operations of an instruction: of VLIW machines
    in.Take<uint8_t>();                    // whether rows are statements
    unit.line_base = in.Take<int8_t>();
    unit.line_range = in.Take<uint8_t>();
    unit.opcode_base = in.Take<uint8_t>();
    if (in.failed() || unit.end > lines_.bytes.size()) return At(start, "a line table that is cut short");
    if (version < 2 || version > 4) return At(start, fmt::format("line tables of DWARF version {}", version));
    if (unit.line_range == 0 || unit.opcode_base == 0 || unit.program > unit.end)
      return At(start, "a line table whose header contradicts itself");
    for (int i = 1; i < unit.opcode_base; ++i) unit.operand_counts.push_back(in.Take<uint8_t>());
    HEDDLE_RETURN_IF_ERROR(ReadNames(&in, &unit));
    return unit;
  }

  Status ReadNames(Cursor* in, UnitHeader* unit) {
    while (!in->failed() && unit->folders.size() < kMostFiles) {
      std::string folder = in->TakeString();
      if (folder.empty()) break;
      unit->folders.push_back(std::move(folder));
    }
    while (!in->failed() && unit->files.size() < kMostFiles) {
      std::string name = in->TakeString();
      if (name.empty()) break;
      const uint64_t folder = in->TakeUleb();
      in->TakeUleb();  // time
      in->TakeUleb();  // size
      if (folder >= 1 && folder <= unit->folders.size() && !name.starts_with('/'))
        name = unit->folders[folder - 1] + "/" + name;
      unit->files.push_back(std::move(name));
    }
    if (in->failed() || in->offset() > unit->end)
      return At(in->offset(), "names of a line table are cut short");
    return Ok();
  }

  Status RunProgram(const UnitHeader& unit) {
    Cursor in(lines_.bytes.first(unit.end), unit.program);
    Restart();
    while (in.offset() < unit.end && !in.failed()) {
      const auto opcode = in.Take<uint8_t>();
      if (opcode >= unit.opcode_base) {
        const uint32_t adjusted = opcode - unit.opcode_base;
        address_ += uint64_t{adjusted / unit.line_range} * unit.minimum_step;
        line_ = Plus(line_, unit.line_base + static_cast<int64_t>(adjusted % unit.line_range));
        Emit(unit, false);
      } else if (opcode == kExtended) {
        RunExtended(unit, &in);
      } else {
        RunStandard(unit, opcode, &in);
      }
    }
    if (in.failed()) return At(in.offset(), "the program of a line table is cut short");
    return Ok();
  }

  void RunStandard(const UnitHeader& unit, uint8_t opcode, Cursor* in) {
    switch (opcode) {
      case kCopy:
        Emit(unit, false);
        return;
      case kAdvancePc:
        address_ += in->TakeUleb() * unit.minimum_step;
        return;
      case kAdvanceLine:
        line_ = Plus(line_, in->TakeSleb());
        return;
      case kSetFile:
        file_ = in->TakeUleb();
        return;
      case kConstAddPc:
        address_ += uint64_t{(255u - unit.opcode_base) / unit.line_range} * unit.minimum_step;
        return;
      case kFixedAdvancePc:
        address_ += in->Take<uint16_t>();
        return;
      default:
        for (int i = 0; i < unit.operand_counts[opcode - 1u]; ++i) in->TakeUleb();
    }
  }

  void RunExtended(const UnitHeader& unit, Cursor* in) {
    const uint64_t length = in->TakeUleb();
    const uint64_t start = in->offset();
    const uint64_t end = length > unit.end - std::min(start, unit.end) ? unit.end + 1 : start + length;
    const auto opcode = length == 0 ? uint8_t{0} : in->Take<uint8_t>();
    if (opcode == kSetAddress) {
      SetAddress(in->offset());
    } else if (opcode == kEndSequence) {
      Emit(unit, true);
      Restart();
    }
    in->SkipTo(end);  // NVIDIA's own (0x90: what was inlined where) are passed over
  }

  // The address itself is a relocation against the function.
  void SetAddress(uint64_t offset) {
    in_section_ = false;
    for (const ElfRelocation& relocation : relocations_) {
      if (relocation.offset != offset || relocation.symbol >= elf_.symbols.size()) continue;
      const ElfSymbol& symbol = elf_.symbols[relocation.symbol];
      in_section_ = symbol.section == code_;
      address_ = symbol.value + relocation.addend;
      if (!relocation.has_addend) address_ += ReadAt<uint64_t>(lines_.bytes, offset).value_or(0);
    }
  }

  void Restart() {
    address_ = 0;
    file_ = 1;
    line_ = 1;
    in_section_ = false;
    has_row_ = false;
  }

  // A row holds from its address to that of the next one of its sequence.
  void Emit(const UnitHeader& unit, bool ends) {
    if (in_section_ && has_row_ && row_address_ < address_) {
      const uint64_t first = row_address_ / isa::kInstructionBytes;
      const uint64_t last =
          std::min<uint64_t>(CeilDiv<uint64_t>(address_, isa::kInstructionBytes), out_.size());
      for (uint64_t i = first; i < last; ++i) out_[i] = row_;
    }
    has_row_ = !ends;
    row_address_ = address_;
    row_.file = file_ >= 1 && file_ <= unit.files.size() ? unit.files[file_ - 1] : "";
    row_.line = static_cast<uint32_t>(std::clamp<int64_t>(line_, 0, UINT32_MAX));
  }

  const Elf& elf_;
  const ElfSection& lines_;
  std::vector<ElfRelocation> relocations_;
  uint32_t code_;
  std::vector<SourceLine> out_;

  uint64_t address_ = 0;
  uint64_t file_ = 1;
  int64_t line_ = 1;
  bool in_section_ = false;
  bool has_row_ = false;
  uint64_t row_address_ = 0;
  SourceLine row_;
};

}  // namespace

Result<std::vector<SourceLine>> ReadLineTable(std::span<const std::byte> cubin, std::string place,
                                              std::string_view code_section) {
  HEDDLE_ASSIGN_OR_RETURN(const Elf elf, ReadElf(cubin, std::move(place)));
  const ElfSection* lines = elf.Find(".debug_line");
  const ElfSection* code = elf.Find(code_section);
  if (lines == nullptr || code == nullptr) return std::vector<SourceLine>{};
  const auto index = [&](const ElfSection* section) {
    return static_cast<uint32_t>(section - elf.sections.data());
  };
  HEDDLE_ASSIGN_OR_RETURN(std::vector<ElfRelocation> relocations, elf.RelocationsOf(index(lines)));
  return LineReader(elf, *lines, std::move(relocations), index(code))
      .Read(code->bytes.size() / isa::kInstructionBytes);
}

}  // namespace heddle::sass
