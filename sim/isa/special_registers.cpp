#include "sim/isa/special_registers.h"

#include <charconv>
#include <unordered_map>

namespace heddle::isa {
namespace {

struct Entry {
  SpecialRegister reg;
  std::string_view text;
};

constexpr Entry kEntries[] = {
#define HEDDLE_SPECIAL_REGISTER(index, name, text) {SpecialRegister::k##name, text},
#include "sim/isa/special_registers.def"
#undef HEDDLE_SPECIAL_REGISTER
};

}  // namespace

std::string Name(SpecialRegister reg) {
  for (const Entry& entry : kEntries)
    if (entry.reg == reg) return std::string(entry.text);
  return "SR" + std::to_string(static_cast<int>(reg));
}

std::optional<SpecialRegister> SpecialRegisterFromName(std::string_view text) {
  static const auto index = [] {
    std::unordered_map<std::string_view, SpecialRegister> map;
    for (const Entry& entry : kEntries) map.emplace(entry.text, entry.reg);
    return map;
  }();
  if (const auto it = index.find(text); it != index.end()) return it->second;
  if (!text.starts_with("SR")) return std::nullopt;
  uint8_t number = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return static_cast<SpecialRegister>(number);
}

bool IsVolatile(SpecialRegister reg) {
  const auto between = [reg](SpecialRegister first, SpecialRegister last) {
    return reg >= first && reg <= last;
  };
  return between(SpecialRegister::kGLOBALERRORSTATUS, SpecialRegister::kWARPERRORSTATUS) ||
         between(SpecialRegister::kCLOCKLO, SpecialRegister::kESR_PC_HI) ||
         between(SpecialRegister::kPM0, SpecialRegister::kSNAP_PM_HI7) || reg == SpecialRegister::kCLOCK ||
         reg == SpecialRegister::kORDERING_TICKET;
}

}  // namespace heddle::isa
