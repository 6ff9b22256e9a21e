// Plots as inline SVG, 8 to 30 kB each: a frame with two axes that points, lines, boxes and text are put into, and bars
// with names. Colours are classes of the document (tools/html/html.h): "c1" ... "c8" give the stroke and fill of a
// series, "muted" a thin grey line. Values that are not finite, or not positive on a logarithmic axis, are left out.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::html {

struct Axis {
  std::string label;  // with the unit: "measured [µs]"
  double low = 0;
  double high = 1;
  bool logarithmic = false;
  bool is_count = false;  // linear, of things: no marks between whole numbers
};

// An axis that holds all of `values`, with some room around them. Logarithmic: whole decades or halves of them, of the
// positive values; linear: from zero when no value is negative. Without values it is [0, 1], or [1, 10].
Axis AxisOver(std::string label, const std::vector<double>& values, bool logarithmic = false);

// Where an axis is marked: 1, 2, 5 times a power of ten, about `most` marks at most.
std::vector<double> Ticks(const Axis& axis, int most = 8);

// "1.5k", "20M", "0.25": three digits with a metric prefix.
std::string ShortNumber(double value);

class Plot {
 public:
  // `description` is what a screen reader says.
  Plot(int width, int height, Axis x, Axis y, std::string_view description);

  void Point(double x, double y, std::string_view css_class, std::string_view tooltip = {},
             double radius = 3.5);
  void Line(const std::vector<std::pair<double, double>>& points, std::string_view css_class,
            bool dashed = false);
  // A filled box between two corners.
  void Box(double x0, double y0, double x1, double y1, std::string_view css_class,
           std::string_view tooltip = {});
  void Text(double x, double y, std::string_view text, std::string_view css_class = "muted",
            std::string_view anchor = "start");
  // A name beside the mark at (x, y), where no mark and no text that was drawn before lies, if there is such a place: draw
  // all marks first.
  void Label(double x, double y, std::string_view text, std::string_view css_class = "ink");
  // In the upper left corner, one line each: class and name.
  void Legend(const std::vector<std::pair<std::string, std::string>>& series);

  std::string Svg() const;

 private:
  double X(double value) const;
  double Y(double value) const;
  bool Inside(double x, double y) const;
  void Frame();

  struct Area {  // in pixels
    double left, right, top, bottom;
  };
  static Area AreaOf(double x, double y, std::string_view text, std::string_view anchor);
  bool IsFree(const Area& area) const;
  // At a place in pixels.
  void Write(double x, double y, std::string_view text, std::string_view css_class, std::string_view anchor);

  std::vector<Area> taken_;  // by texts and marks
  int width_, height_;
  Axis x_, y_;
  std::string head_, marks_, tail_;
};

// One row of horizontal bars: a name, its parts one after another, and what stands behind the bar.
struct BarRow {
  struct Part {
    double value = 0;
    std::string css_class;
    std::string tooltip;
  };
  std::string name;
  std::vector<Part> parts;
  std::string note;
};

// Bars from zero on, on one common scale; the longest row fills the width, which grows where names and notes
// leave less than a quarter of it. Negative parts are drawn to the left.
std::string HorizontalBars(const std::vector<BarRow>& rows, int width, std::string_view description);

}  // namespace heddle::html
