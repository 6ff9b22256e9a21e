#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/html/html.h"
#include "tools/html/plot.h"

namespace heddle::html {
namespace {

constexpr double kRow = 22, kCharacter = 7, kGap = 14;  // of the page's 12 px font, and between text and bars
constexpr size_t kMostNameChars = 42;

// UTF-8 is cut between characters.
std::string Shortened(const std::string& name) {
  if (name.size() <= kMostNameChars) return name;
  size_t end = kMostNameChars - 1;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;
  return name.substr(0, end) + "…";
}

}  // namespace

std::string HorizontalBars(const std::vector<BarRow>& rows, int width, std::string_view description) {
  double low = 0, high = 0;
  for (const BarRow& row : rows) {
    double left = 0, right = 0;
    for (const BarRow::Part& part : row.parts) {
      if (std::isfinite(part.value)) (part.value < 0 ? left : right) += part.value;
    }
    low = std::min(low, left);
    high = std::max(high, right);
  }
  size_t name_chars = 0, note_chars = 0;
  for (const BarRow& row : rows) {
    name_chars = std::max(name_chars, Shortened(row.name).size());
    note_chars = std::max(note_chars, row.note.size());
  }
  const double names = kGap + kCharacter * static_cast<double>(name_chars);
  const double notes = kGap + kCharacter * static_cast<double>(note_chars);
  const double bars = std::max(width - names - notes, width / 4.0);
  const double scale = bars / std::max(high - low, 1e-300);
  const double zero = names - low * scale, height = kRow * static_cast<double>(rows.size()) + 6;
  std::string out = fmt::format(
      "<svg viewBox=\"0 0 {0} {1:.0f}\" width=\"{0}\" height=\"{1:.0f}\" role=\"img\" aria-label=\"{2}\">\n",
      std::max(width, static_cast<int>(names + bars + notes)), height, Escape(description));
  double y = 3;
  for (const BarRow& row : rows) {
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}<title>{}</title></text>\n",
                       names - 8, y + 15, Escape(Shortened(row.name)), Escape(row.name));
    double left = zero, right = zero;
    for (const BarRow::Part& part : row.parts) {
      if (!std::isfinite(part.value) || part.value == 0) continue;
      const double length = std::abs(part.value) * scale;
      if (part.value < 0) left -= length;
      out += fmt::format(
          "<rect class=\"box {}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
          "height=\"{:.0f}\"><title>{}</title></rect>\n",
          Escape(part.css_class), part.value < 0 ? left : right, y + 3, length, kRow - 6,
          Escape(part.tooltip));
      if (part.value > 0) right += length;
    }
    out += fmt::format("<text class=\"muted\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", right + 6, y + 15,
                       Escape(row.note));
    y += kRow;
  }
  out += fmt::format("<path class=\"axis\" d=\"M{0:.1f} 0L{0:.1f} {1:.0f}\"/>\n</svg>\n", zero, height);
  return out;
}

}  // namespace heddle::html
