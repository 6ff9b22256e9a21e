#include "tools/html/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/html/html.h"

namespace heddle::html {
namespace {

constexpr double kLeft = 62, kRight = 14, kTop = 12, kBottom = 44;
// About what letters of a plot take, in pixels: to tell whether texts and marks meet.
constexpr double kLetterWidth = 6.5, kLetterHeight = 10;
constexpr double kLabelGap = 6;  // between a mark's middle and its label

std::string Title(std::string_view tooltip) {
  return tooltip.empty() ? std::string() : fmt::format("<title>{}</title>", Escape(tooltip));
}

// The position of `value` on the axis as a share of its length; NaN when it has none.
double Share(const Axis& axis, double value) {
  if (axis.logarithmic) {
    if (!(value > 0)) return std::numeric_limits<double>::quiet_NaN();
    return std::log(value / axis.low) / std::log(axis.high / axis.low);
  }
  return (value - axis.low) / (axis.high - axis.low);
}

}  // namespace

Axis AxisOver(std::string label, const std::vector<double>& values, bool logarithmic) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double value : values) {
    if (!std::isfinite(value) || (logarithmic && value <= 0)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  Axis axis{std::move(label), 0, 1, logarithmic};
  if (logarithmic) {
    if (!(low <= high)) return {axis.label, 1, 10, true};
    axis.low = std::pow(10, std::floor(2 * std::log10(low / 1.05)) / 2);
    axis.high = std::pow(10, std::ceil(2 * std::log10(high * 1.05)) / 2);
    return axis;
  }
  if (!(low <= high)) return axis;
  const double room = 0.05 * (high - std::min(low, 0.0));
  axis.low = low < 0 ? low - room : 0;
  axis.high = high > 0 ? high + room : 0;
  if (axis.low == axis.high) axis.high = axis.low + 1;
  return axis;
}

std::vector<double> Ticks(const Axis& axis, int most) {
  std::vector<double> ticks;
  if (!std::isfinite(axis.low) || !std::isfinite(axis.high) || !(axis.low < axis.high) || most < 1)
    return ticks;
  if (axis.logarithmic) {
    if (!(axis.low > 0)) return ticks;
    const double decades = std::log10(axis.high / axis.low);
    const int step = std::max(1, static_cast<int>(std::ceil(decades / most)));
    const bool fine = decades * 3 <= most;
    for (int e = static_cast<int>(std::floor(std::log10(axis.low))); e <= std::ceil(std::log10(axis.high));
         e += step) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        const double tick = digit * std::pow(10, e);
        if ((digit == 1 || fine) && tick >= axis.low * 0.999 && tick <= axis.high * 1.001)
          ticks.push_back(tick);
      }
    }
    return ticks;
  }
  const double raw = (axis.high - axis.low) / most, power = std::pow(10, std::floor(std::log10(raw)));
  const double digit = raw / power <= 1 ? 1 : raw / power <= 2 ? 2 : raw / power <= 5 ? 5 : 10;
  const double step = axis.is_count ? std::max(1.0, digit * power) : digit * power;
  for (double i = std::ceil(axis.low / step - 1e-9); i * step <= axis.high + step * 1e-9; ++i) {
    ticks.push_back(i * step + 0.0);  // no negative zero
    if (ticks.size() > 100) break;
  }
  return ticks;
}

std::string ShortNumber(double value) {
  if (!std::isfinite(value)) return "n/a";
  if (value == 0) return "0";
  constexpr std::pair<double, const char*> kPrefixes[] = {{1e18, "E"}, {1e15, "P"}, {1e12, "T"},
                                                          {1e9, "G"},  {1e6, "M"},  {1e3, "k"}};
  for (const auto& [factor, prefix] : kPrefixes) {
    if (std::abs(value) >= factor * 0.9995) return fmt::format("{:.3g}{}", value / factor, prefix);
  }
  return fmt::format("{:.3g}", value);
}

Plot::Plot(int width, int height, Axis x, Axis y, std::string_view description)
    : width_(width), height_(height), x_(std::move(x)), y_(std::move(y)) {
  head_ = fmt::format(
      "<svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\" aria-label=\"{2}\">\n", width_,
      height_, Escape(description));
  Frame();
}

void Plot::Frame() {
  const double bottom = height_ - kBottom, right = width_ - kRight;
  const auto line = [&](std::string_view css_class, double x0, double y0, double x1, double y1) {
    head_ +=
        fmt::format("<path class=\"{}\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>\n", css_class, x0, y0, x1, y1);
  };
  for (const double tick : Ticks(x_)) {
    const double at = X(tick);
    line("grid", at, kTop, at, bottom);
    head_ += fmt::format("<text class=\"muted\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                         at, bottom + 16, ShortNumber(tick));
  }
  for (const double tick : Ticks(y_)) {
    const double at = Y(tick);
    line("grid", kLeft, at, right, at);
    head_ += fmt::format("<text class=\"muted\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                         kLeft - 6, at + 4, ShortNumber(tick));
  }
  line("axis", kLeft, bottom, right, bottom);
  line("axis", kLeft, kTop, kLeft, bottom);
  head_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                       (kLeft + right) / 2, height_ - 8.0, Escape(x_.label));
  head_ +=
      fmt::format("<text transform=\"translate(14 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
                  (kTop + bottom) / 2, Escape(y_.label));
}

double Plot::X(double value) const { return kLeft + Share(x_, value) * (width_ - kLeft - kRight); }
double Plot::Y(double value) const {
  return height_ - kBottom - Share(y_, value) * (height_ - kTop - kBottom);
}

bool Plot::Inside(double x, double y) const { return std::isfinite(X(x)) && std::isfinite(Y(y)); }

void Plot::Point(double x, double y, std::string_view css_class, std::string_view tooltip, double radius) {
  if (!Inside(x, y)) return;
  taken_.push_back({X(x) - radius, X(x) + radius, Y(y) - radius, Y(y) + radius});
  marks_ += fmt::format("<circle class=\"mark {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\">{}</circle>\n",
                        Escape(css_class), X(x), Y(y), radius, Title(tooltip));
}

void Plot::Line(const std::vector<std::pair<double, double>>& points, std::string_view css_class,
                bool dashed) {
  std::string path;
  for (const auto& [x, y] : points) {
    if (Inside(x, y)) path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", X(x), Y(y));
  }
  if (path.empty()) return;
  marks_ +=
      fmt::format("<path class=\"{} line{}\" d=\"{}\"/>\n", Escape(css_class), dashed ? " dashed" : "", path);
}

void Plot::Box(double x0, double y0, double x1, double y1, std::string_view css_class,
               std::string_view tooltip) {
  if (!Inside(x0, y0) || !Inside(x1, y1)) return;
  const double left = std::min(X(x0), X(x1)), top = std::min(Y(y0), Y(y1));
  marks_ += fmt::format(
      "<rect class=\"box {}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\">{}</rect>\n",
      Escape(css_class), left, top, std::abs(X(x1) - X(x0)), std::abs(Y(y1) - Y(y0)), Title(tooltip));
}

void Plot::Text(double x, double y, std::string_view text, std::string_view css_class,
                std::string_view anchor) {
  if (Inside(x, y)) Write(X(x), Y(y), text, css_class, anchor);
}

void Plot::Label(double x, double y, std::string_view text, std::string_view css_class) {
  if (!Inside(x, y)) return;
  const double right = X(x) + kLabelGap, left = X(x) - kLabelGap, above = Y(y) - kLabelGap;
  for (const double lines : {0.0, 1.5, -1.0, 2.5}) {
    const double at = above + lines * kLetterHeight;
    if (IsFree(AreaOf(right, at, text, "start"))) return Write(right, at, text, css_class, "start");
    if (IsFree(AreaOf(left, at, text, "end"))) return Write(left, at, text, css_class, "end");
  }
  Write(right, above, text, css_class, "start");
}

Plot::Area Plot::AreaOf(double x, double y, std::string_view text, std::string_view anchor) {
  const double width = kLetterWidth * static_cast<double>(text.size());
  const double left = x - (anchor == "end" ? width : anchor == "middle" ? width / 2 : 0);
  return {left, left + width, y - kLetterHeight, y};
}

bool Plot::IsFree(const Area& area) const {
  return std::none_of(taken_.begin(), taken_.end(), [&](const Area& other) {
    return area.left < other.right && other.left < area.right && area.top < other.bottom &&
           other.top < area.bottom;
  });
}

void Plot::Write(double x, double y, std::string_view text, std::string_view css_class,
                 std::string_view anchor) {
  taken_.push_back(AreaOf(x, y, text, anchor));
  tail_ += fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
                       Escape(css_class), x, y, Escape(anchor), Escape(text));
}

void Plot::Legend(const std::vector<std::pair<std::string, std::string>>& series) {
  double y = kTop + 14;
  for (const auto& [css_class, name] : series) {
    tail_ += fmt::format("<rect class=\"box {}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"10\" height=\"10\"/>",
                         Escape(css_class), kLeft + 10, y - 9);
    tail_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", kLeft + 25, y, Escape(name));
    y += 17;
  }
}

std::string Plot::Svg() const { return head_ + marks_ + tail_ + "</svg>\n"; }

}  // namespace heddle::html
