// Reading the words of Accel-Sim's text files.
#pragma once

#include <array>
#include <charconv>
#include <optional>
#include <string_view>

namespace heddle::importer {

inline std::string_view TrimEnd(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

inline std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  return TrimEnd(text);
}

// All of the text; with base 16 behind "0x" or not.
template <typename Number>
bool Parse(std::string_view text, Number* out, int base = 10) {
  if (base == 16 && (text.starts_with("0x") || text.starts_with("0X"))) text.remove_prefix(2);
  const char* end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, *out, base);
  return result.ec == std::errc() && result.ptr == end;
}

// "a,b,c"; what stands behind a third comma is part of c.
inline std::optional<std::array<std::string_view, 3>> SplitThree(std::string_view text) {
  const size_t first = text.find(',');
  const size_t second = first == std::string_view::npos ? first : text.find(',', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  return std::array{text.substr(0, first), text.substr(first + 1, second - first - 1),
                    text.substr(second + 1)};
}

}  // namespace heddle::importer
