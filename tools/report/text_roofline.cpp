#include "tools/report/text_roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/report/text.h"

namespace heddle::report {
namespace {

using analysis::KernelAnalysis;
using analysis::MemoryLevel;
using analysis::Roof;

constexpr double kDecade = 10;

// A canvas with logarithmic axes; what lies outside is left out.
class Canvas {
 public:
  Canvas(int width, int height, double x_low, double x_high, double y_low, double y_high)
      : width_(width),
        height_(height),
        x_low_(std::log10(x_low)),
        x_high_(std::log10(x_high)),
        y_low_(std::log10(y_low)),
        y_high_(std::log10(y_high)),
        rows_(static_cast<size_t>(height), std::string(static_cast<size_t>(width), ' ')) {}

  void Put(double x, double y, char mark) {
    if (x <= 0 || y <= 0) return;
    PutAt(Column(x), Row(y), mark);
  }
  // The roof: a slope up to the ridge, then flat.
  void Roofs(double bytes_per_second, double ops_per_second) {
    for (int column = 0; column < width_; ++column) {
      const double x = std::pow(kDecade, x_low_ + (x_high_ - x_low_) * column / (width_ - 1));
      const double slope = x * bytes_per_second;
      PutAt(column, Row(std::min(slope, ops_per_second)), slope < ops_per_second ? '/' : '-');
    }
  }
  void Flat(double ops_per_second, double from_x) {
    for (int column = std::max(0, Column(from_x)); column < width_; ++column)
      if (At(column, Row(ops_per_second)) == ' ') PutAt(column, Row(ops_per_second), '-');
  }
  std::string Text() const {
    std::string text;
    for (int row = 0; row < height_; ++row) {
      const double y = std::pow(kDecade, y_high_ - (y_high_ - y_low_) * row / (height_ - 1));
      text += row % 4 == 0 ? fmt::format("{:>12} |", Human(y, "op/s")) : std::string(13, ' ') + "|";
      std::string line = rows_[static_cast<size_t>(row)];
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    text += std::string(13, ' ') + "+" + std::string(static_cast<size_t>(width_), '-') + "\n";
    std::string axis(static_cast<size_t>(width_) + 14, ' ');
    for (double decade = std::ceil(x_low_); decade <= x_high_; ++decade) {
      const std::string label = fmt::format("{:g}", std::pow(kDecade, decade));
      const auto at = static_cast<size_t>(14 + Column(std::pow(kDecade, decade)));
      if (at + label.size() <= axis.size()) axis.replace(at, label.size(), label);
    }
    axis.erase(axis.find_last_not_of(' ') + 1);
    return text + axis + " operations per byte\n";
  }

 private:
  int Column(double x) const {
    return static_cast<int>(std::lround((std::log10(x) - x_low_) / (x_high_ - x_low_) * (width_ - 1)));
  }
  int Row(double y) const {
    return static_cast<int>(std::lround((y_high_ - std::log10(y)) / (y_high_ - y_low_) * (height_ - 1)));
  }
  bool Inside(int column, int row) const {
    return column >= 0 && column < width_ && row >= 0 && row < height_;
  }
  char At(int column, int row) const {
    return Inside(column, row) ? rows_[static_cast<size_t>(row)][static_cast<size_t>(column)] : '\0';
  }
  void PutAt(int column, int row, char mark) {
    if (Inside(column, row)) rows_[static_cast<size_t>(row)][static_cast<size_t>(column)] = mark;
  }

  int width_, height_;
  double x_low_, x_high_, y_low_, y_high_;
  std::vector<std::string> rows_;
};

struct Mark {
  double x = 0, y = 0;
  char letter = ' ';
};

struct MachineChart {
  std::string name;
  std::vector<Roof> bandwidths;
  std::map<std::string, double> rates;
  std::vector<Mark> marks;
};

void AddMarks(const KernelAnalysis& kernel, char letter, bool alone, MachineChart* chart) {
  constexpr char kLevelMarks[] = {'D', '2', '1'};
  const analysis::Roofline& roofline = kernel.roofline;
  for (const analysis::RooflinePoint& point : roofline.points) {
    if (!alone && point.level != MemoryLevel::kDram) continue;
    chart->marks.push_back({point.ops_per_byte, roofline.ops_per_second,
                            alone ? kLevelMarks[static_cast<size_t>(point.level)] : letter});
  }
  for (const analysis::MeasuredPoint& measured : roofline.measured) {
    const double x = measured.ops_per_byte     ? *measured.ops_per_byte
                     : roofline.points.empty() ? 0
                                               : roofline.points[0].ops_per_byte;
    chart->marks.push_back({x, measured.ops_per_second, '*'});
  }
}

std::string Draw(const MachineChart& chart, int width, int height) {
  double highest = 1;
  for (const auto& [name, rate] : chart.rates) highest = std::max(highest, rate);
  const double dram = std::max(1.0, chart.bandwidths[0].per_second);
  const double ridge = highest / dram;
  double x_low = std::min(0.1, ridge / 100), x_high = std::max(100.0, ridge * 30);
  double y_low = highest / 1e4;
  for (const Mark& mark : chart.marks) {
    if (mark.x <= 0 || mark.y <= 0) continue;
    x_low = std::min(x_low, mark.x / 1.5), x_high = std::max(x_high, mark.x * 1.5);
    y_low = std::min(y_low, mark.y / 1.5);
  }
  Canvas canvas(width, height, x_low, x_high, y_low, highest * 1.5);
  for (const Roof& bandwidth : chart.bandwidths) canvas.Roofs(bandwidth.per_second, highest);
  for (const auto& [name, rate] : chart.rates) canvas.Flat(rate, rate / dram);
  for (const Mark& mark : chart.marks) canvas.Put(mark.x, mark.y, mark.letter);
  std::string legend;
  for (const auto& [name, rate] : chart.rates)
    legend += fmt::format("{}{} {}", legend.empty() ? "" : ", ", name, Human(rate, "op/s"));
  for (const Roof& bandwidth : chart.bandwidths)
    legend += fmt::format(", {} {}", bandwidth.name, Human(bandwidth.per_second, "byte/s"));
  return fmt::format("{}: {}\n{}", chart.name, legend, canvas.Text());
}

}  // namespace

char MarkOf(size_t i) {
  constexpr size_t kLetters = 26;
  if (i < kLetters) return static_cast<char>('a' + i);
  if (i < 2 * kLetters) return static_cast<char>('A' + (i - kLetters));
  return '+';
}

std::string RooflineChart(const std::vector<KernelAnalysis>& kernels, int width, int height) {
  std::map<int64_t, MachineChart> charts;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const KernelAnalysis& kernel = kernels[i];
    MachineChart& chart = charts[kernel.machine->config_id];
    chart.name = kernel.machine->name;
    chart.bandwidths = kernel.roofline.bandwidths;
    for (const Roof& rate : kernel.roofline.rates)
      chart.rates[rate.name] = std::max(chart.rates[rate.name], rate.per_second);
    AddMarks(kernel, MarkOf(i), kernels.size() == 1, &chart);
  }
  std::string text;
  for (const auto& [id, chart] : charts)
    if (!chart.rates.empty()) text += (text.empty() ? "" : "\n") + Draw(chart, width, height);
  return text;
}

}  // namespace heddle::report
