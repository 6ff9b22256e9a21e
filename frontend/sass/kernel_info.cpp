#include "frontend/sass/kernel_info.h"

namespace heddle::sass {
namespace {

// Format bytes of an entry: nothing, one byte, two bytes (all three take two bytes), or a length and that
// many bytes.
constexpr uint8_t kFormatNone = 1;
constexpr uint8_t kFormatSized = 4;

}  // namespace

Result<std::vector<InfoEntry>> ReadInfo(const Elf& elf, const ElfSection& section) {
  std::vector<InfoEntry> entries;
  const auto& bytes = section.bytes;
  for (uint64_t at = 0; at < bytes.size();) {
    const auto half = ReadAt<uint16_t>(bytes, at + 2);
    if (!half) return elf.ErrorAt(section.file_offset + at, "attribute cut short");
    const uint8_t format = std::to_integer<uint8_t>(bytes[at]);
    if (format < kFormatNone || format > kFormatSized)
      return elf.ErrorAt(section.file_offset + at, "attribute of unknown format");
    InfoEntry entry{static_cast<InfoAttribute>(bytes[at + 1]), section.file_offset + at,
                    bytes.subspan(at + 2, 2)};
    at += 4;
    if (format == kFormatSized) {
      if (bytes.size() - at < *half)
        return elf.ErrorAt(entry.file_offset, "attribute longer than its section");
      entry.payload = bytes.subspan(at, *half);
      at += *half;
    }
    entries.push_back(entry);
  }
  return entries;
}

}  // namespace heddle::sass
