// One instruction line.
#include <bit>
#include <charconv>

#include "frontend/import/traceg.h"

namespace heddle::importer {
namespace {

// The blank-separated fields of a line.
class Fields {
 public:
  explicit Fields(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) { SkipBlanks(); }

  bool AtEnd() const { return at_ == end_; }

  std::string_view Word() {
    const char* begin = at_;
    while (at_ != end_ && !IsBlank(*at_)) ++at_;
    const std::string_view word(begin, static_cast<size_t>(at_ - begin));
    SkipBlanks();
    return word;
  }

  template <typename Number>
  bool Decimal(Number* out) {
    return Parse(10, out);
  }

  template <typename Number>
  bool Hexadecimal(Number* out) {
    if (end_ - at_ > 2 && at_[0] == '0' && (at_[1] == 'x' || at_[1] == 'X')) at_ += 2;
    return Parse(16, out);
  }

  bool Register(uint8_t* out) {
    if (AtEnd() || *at_ != 'R') return false;
    ++at_;
    return Parse(10, out);
  }

 private:
  static bool IsBlank(char c) { return c == ' ' || c == '\t'; }
  void SkipBlanks() {
    while (at_ != end_ && IsBlank(*at_)) ++at_;
  }

  template <typename Number>
  bool Parse(int base, Number* out) {
    const std::from_chars_result result = std::from_chars(at_, end_, *out, base);
    if (result.ec != std::errc() || (result.ptr != end_ && !IsBlank(*result.ptr))) return false;
    at_ = result.ptr;
    SkipBlanks();
    return true;
  }

  const char* at_;
  const char* end_;
};

constexpr uint32_t kMostWidthBytes = 4096;

const char* ParseList(Fields* fields, TracegInstruction* out) {
  out->mode = AddressMode::kList;
  for (uint32_t left = out->mask; left != 0; left &= left - 1) {
    if (!fields->Hexadecimal(&out->address[static_cast<size_t>(std::countr_zero(left))]))
      return "an address of a list is missing or no number";
  }
  return nullptr;
}

// Lanes in one contiguous run; the tracer writes no other mask this way.
const char* ParseStride(Fields* fields, TracegInstruction* out) {
  out->mode = AddressMode::kStride;
  uint64_t address = 0;
  int64_t stride = 0;
  if (!fields->Hexadecimal(&address) || !fields->Decimal(&stride))
    return "base or stride is missing or no number";
  if (out->mask == 0) return nullptr;
  const int first = std::countr_zero(out->mask);
  if (std::countr_one(out->mask >> first) != std::popcount(out->mask))
    return "base and stride with lanes that are not one contiguous run";
  for (uint32_t left = out->mask; left != 0; left &= left - 1) {
    out->address[static_cast<size_t>(std::countr_zero(left))] = address;
    address += static_cast<uint64_t>(stride);
  }
  return nullptr;
}

const char* ParseDeltas(Fields* fields, TracegInstruction* out) {
  out->mode = AddressMode::kDelta;
  uint64_t address = 0;
  if (!fields->Hexadecimal(&address)) return "the base address is missing or no number";
  for (uint32_t left = out->mask; left != 0; left &= left - 1) {
    out->address[static_cast<size_t>(std::countr_zero(left))] = address;
    if ((left & (left - 1)) == 0) break;
    int64_t delta = 0;
    if (!fields->Decimal(&delta)) return "an address difference is missing or no number";
    address += static_cast<uint64_t>(delta);
  }
  return nullptr;
}

const char* ParseAddresses(Fields* fields, TracegInstruction* out) {
  uint32_t mode = 0;
  if (!fields->Decimal(&mode)) return "the address mode is missing or no number";
  switch (mode) {
    case 0:
      return ParseList(fields, out);
    case 1:
      return ParseStride(fields, out);
    case 2:
      return ParseDeltas(fields, out);
    default:
      return "an address mode other than 0, 1 and 2";
  }
}

const char* ParseRegisters(Fields* fields, TracegInstruction* out) {
  uint32_t destinations = 0;
  if (!fields->Decimal(&destinations)) return "the number of destinations is missing or no number";
  if (destinations > 1) return "more than one destination register";
  out->has_destination = destinations == 1;
  out->destination = 0;
  if (out->has_destination && !fields->Register(&out->destination))
    return "the destination is no vector register";
  out->opcode = fields->Word();
  if (out->opcode.empty()) return "the opcode is missing";
  uint32_t sources = 0;
  if (!fields->Decimal(&sources)) return "the number of sources is missing or no number";
  if (sources > kMaxSources) return "more than five source registers";
  out->source_count = static_cast<uint8_t>(sources);
  for (uint32_t i = 0; i < sources; ++i)
    if (!fields->Register(&out->sources[i])) return "a source is no vector register";
  return nullptr;
}

}  // namespace

const char* ParseInstruction(std::string_view line, const TracegHeader& header, TracegInstruction* out) {
  Fields fields(line);
  if (header.version < 3) {
    uint32_t ignored = 0;
    for (int i = 0; i < 4; ++i)
      if (!fields.Decimal(&ignored)) return "block and warp in front of the line are missing or no numbers";
  }
  if (header.has_line_numbers) {
    uint64_t ignored = 0;
    if (!fields.Decimal(&ignored)) return "the source line is missing or no number";
  }
  if (!fields.Hexadecimal(&out->pc)) return "the pc is missing or no hexadecimal number";
  if (!fields.Hexadecimal(&out->mask)) return "the mask is missing or no hexadecimal number";
  if (const char* fault = ParseRegisters(&fields, out)) return fault;
  uint32_t width_bytes = 0;
  if (!fields.Decimal(&width_bytes)) return "the width of the access is missing or no number";
  if (width_bytes > kMostWidthBytes) return "an access of more than 4096 bytes";
  out->mode = AddressMode::kNone;
  if (width_bytes != 0) {
    if (const char* fault = ParseAddresses(&fields, out)) return fault;
  }
  out->immediate = 0;
  if (header.version >= 5 && !fields.AtEnd()) {
    // As the tracer prints it: signed, or the same bits unsigned.
    uint64_t bits = 0;
    Fields again = fields;
    if (!fields.Decimal(&out->immediate)) {
      if (!again.Decimal(&bits)) return "the immediate is no number";
      out->immediate = static_cast<int64_t>(bits);
      fields = again;
    }
  }
  return fields.AtEnd() ? nullptr : "more fields than the line has room for";
}

}  // namespace heddle::importer
