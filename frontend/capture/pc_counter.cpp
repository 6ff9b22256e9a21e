#include "frontend/capture/pc_counter.h"

#include <fmt/format.h>

#include <charconv>

namespace heddle::capture {

constexpr std::string_view kMark = "@0x";

std::string PcCounterName(std::string_view name, uint64_t pc) {
  return fmt::format("{}{}{:x}", name, kMark, pc);
}

std::optional<PcCounter> SplitPcCounter(std::string_view name) {
  const size_t at = name.rfind(kMark);
  if (at == std::string_view::npos) return std::nullopt;
  PcCounter counter{std::string(name.substr(0, at)), 0};
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + at + kMark.size(), end, counter.pc, 16);
  if (error != std::errc() || rest != end || counter.name.empty()) return std::nullopt;
  return counter;
}

}  // namespace heddle::capture
