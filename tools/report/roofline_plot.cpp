#include "tools/report/roofline_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/base/demangle.h"
#include "tools/html/html.h"
#include "tools/html/plot.h"
#include "tools/report/text.h"

namespace heddle::report {
namespace {

using analysis::KernelAnalysis;
using analysis::MemoryLevel;

constexpr const char* kLevelClasses[] = {"c1", "c2", "c3"};

struct Extent {
  std::vector<double> x, y;
  void Add(double a, double b) {
    x.push_back(a);
    y.push_back(b);
  }
};

struct Roofs {
  std::map<std::string, double> rates;
  std::vector<analysis::Roof> bandwidths;
  double highest = 0;
};

Roofs RoofsOf(const std::vector<const KernelAnalysis*>& kernels) {
  Roofs roofs;
  for (const KernelAnalysis* kernel : kernels) {
    roofs.bandwidths = kernel->roofline.bandwidths;
    for (const analysis::Roof& rate : kernel->roofline.rates) {
      double& known = roofs.rates[rate.name];
      known = std::max(known, rate.per_second);
      roofs.highest = std::max(roofs.highest, known);
    }
  }
  return roofs;
}

void DrawRoofs(const Roofs& roofs, const html::Axis& x, html::Plot* plot) {
  for (size_t level = 0; level < roofs.bandwidths.size(); ++level) {
    const double bandwidth = roofs.bandwidths[level].per_second;
    const double ridge = roofs.highest / bandwidth;
    const double from = x.low, to = std::min(x.high, ridge);
    if (from < to) plot->Line({{from, from * bandwidth}, {to, to * bandwidth}}, kLevelClasses[level]);
  }
  const double l1 = roofs.bandwidths.back().per_second;
  std::map<double, std::string> names;  // kinds of one rate share a line
  for (const auto& [name, rate] : roofs.rates) names[rate] += (names[rate].empty() ? "" : ", ") + name;
  for (const auto& [rate, name] : names) {
    plot->Line({{std::max(x.low, rate / l1), rate}, {x.high, rate}}, "muted", rate < roofs.highest);
    plot->Text(x.high, rate * 1.15, name + "  " + Human(rate, "op/s"), "muted", "end");
  }
}

std::string PointText(const KernelAnalysis& kernel, const analysis::RooflinePoint& point) {
  return fmt::format("{}, {}: {}, {:.3g} op/byte, {:.0f} % of the roof", kernel.kernel->name,
                     analysis::Name(point.level), Human(kernel.roofline.ops_per_second, "op/s"),
                     point.ops_per_byte, point.roof_percent);
}

bool IsShown(const KernelAnalysis& kernel, const analysis::RooflinePoint& point, bool alone) {
  return kernel.roofline.ops > 0 && (alone || point.level == MemoryLevel::kDram);
}

double MeasuredIntensity(const KernelAnalysis& kernel, const analysis::MeasuredPoint& measured) {
  if (measured.ops_per_byte) return *measured.ops_per_byte;
  return kernel.roofline.points.empty() ? 0 : kernel.roofline.points[0].ops_per_byte;
}

}  // namespace

std::string RooflinePlot(const std::vector<const KernelAnalysis*>& kernels,
                         const std::vector<size_t>& numbers, int width, int height) {
  const Roofs roofs = RoofsOf(kernels);
  if (roofs.rates.empty()) return "";
  const bool alone = kernels.size() == 1;
  Extent extent;
  const double ridge = roofs.highest / roofs.bandwidths[0].per_second;
  extent.Add(ridge / 30, roofs.highest / 1000);
  extent.Add(ridge * 8, roofs.highest * 1.6);
  for (const KernelAnalysis* kernel : kernels) {
    for (const auto& point : kernel->roofline.points)
      if (IsShown(*kernel, point, alone)) extent.Add(point.ops_per_byte, kernel->roofline.ops_per_second);
    for (const auto& measured : kernel->roofline.measured)
      extent.Add(MeasuredIntensity(*kernel, measured), measured.ops_per_second);
  }
  const html::Axis x = html::AxisOver("operations per byte", extent.x, true);
  const html::Axis y = html::AxisOver("operations per second", extent.y, true);
  html::Plot plot(width, height, x, y, "Roofline: operations per second over operations per byte");
  DrawRoofs(roofs, x, &plot);
  for (size_t i = 0; i < kernels.size(); ++i) {
    const KernelAnalysis& kernel = *kernels[i];
    for (const auto& point : kernel.roofline.points) {
      if (!IsShown(kernel, point, alone)) continue;
      const char* css = alone ? kLevelClasses[static_cast<size_t>(point.level)] : "c4";
      plot.Point(point.ops_per_byte, kernel.roofline.ops_per_second, css, PointText(kernel, point), 5);
    }
    for (const auto& measured : kernel.roofline.measured)
      plot.Point(MeasuredIntensity(kernel, measured), measured.ops_per_second, "c5",
                 "measured: " + measured.source + ": " + Human(measured.ops_per_second, "op/s"), 4);
  }
  for (size_t i = 0; i < kernels.size() && !alone && kernels.size() <= 40; ++i) {
    for (const auto& point : kernels[i]->roofline.points)
      if (IsShown(*kernels[i], point, alone))
        plot.Label(point.ops_per_byte, kernels[i]->roofline.ops_per_second, fmt::format("{}", numbers[i]));
  }
  std::vector<std::pair<std::string, std::string>> legend;
  for (size_t level = 0; level < roofs.bandwidths.size(); ++level)
    legend.emplace_back(kLevelClasses[level], roofs.bandwidths[level].name + "  " +
                                                  Human(roofs.bandwidths[level].per_second, "byte/s"));
  plot.Legend(legend);
  return plot.Svg();
}

std::string SectionsHtml(const KernelAnalysis& kernel) {
  std::string body = "<div class=\"sol\">";
  for (const analysis::Section& section : kernel.sections) {
    const bool measured = std::any_of(section.metrics.begin(), section.metrics.end(),
                                      [](const analysis::Metric& m) { return m.measured.has_value(); });
    std::vector<html::Column> columns = {{section.title}, {"", true}};
    if (measured) columns.push_back({"measured", true});
    std::vector<std::vector<html::Cell>> rows;
    for (const analysis::Metric& metric : section.metrics) {
      std::vector<html::Cell> row = {
          {metric.label, "", metric.name},
          {metric.text.empty() ? Human(metric.value, metric.unit) : metric.text, "num", ""}};
      if (metric.measured) row.push_back({Human(*metric.measured, metric.unit), "num", ""});
      rows.push_back(std::move(row));
    }
    body += html::Table(columns, rows);
  }
  return body + "</div>";
}

std::string BoundHtml(const KernelAnalysis& kernel) {
  std::vector<html::BarRow> bars;
  constexpr size_t kMostBars = 8;
  const auto cycles = static_cast<double>(kernel.work.cycles);
  bars.push_back({"this launch", {{cycles, "c4", ""}}, Human(cycles, "cycles")});
  bars.push_back(
      {"launch overhead", {{kernel.bound.fixed_cycles, "c5", ""}}, Human(kernel.bound.fixed_cycles, "")});
  for (const analysis::ResourceBound& each : kernel.bound.resources) {
    if (bars.size() >= kMostBars + 2) break;
    bars.push_back(
        {std::string(analysis::Name(each.resource)),
         {{each.cycles, "c1",
           fmt::format("{} at {:.4g} a cycle", Human(each.work, std::string(analysis::UnitOf(each.resource))),
                       each.per_cycle)}},
         fmt::format("{:.0f} %", 100 * each.cycles / std::max(1.0, cycles))});
  }
  return html::HorizontalBars(bars, 480, "Cycles that each resource needs at least");
}

std::string RooflinePage(const std::vector<KernelAnalysis>& kernels) {
  std::map<int64_t, std::vector<size_t>> by_machine;
  for (size_t i = 0; i < kernels.size(); ++i) by_machine[kernels[i].launch.config_id].push_back(i);
  std::string body;
  for (const auto& [id, indices] : by_machine) {
    std::vector<const KernelAnalysis*> list;
    std::vector<size_t> numbers;
    std::vector<std::vector<html::Cell>> rows;
    for (const size_t i : indices) {
      list.push_back(&kernels[i]);
      numbers.push_back(i + 1);
      const KernelAnalysis& kernel = kernels[i];
      rows.push_back({{fmt::format("{}", i + 1), "num", ""},
                      {ShortName(kernel.kernel->name, 48), "", Demangled(kernel.kernel->name)},
                      {HumanSeconds(kernel.group.seconds), "num", ""},
                      {kernel.roofline.kind, "", ""},
                      {Human(kernel.roofline.ops_per_second, "op/s"), "num", ""},
                      {Human(kernel.roofline.rate_percent, "%"), "num", ""},
                      {Human(100 * kernel.bound.reached, "%"), "num", ""}});
    }
    std::string section = RooflinePlot(list, numbers, 900, 480);
    section += html::Table({{"#", true},
                            {"kernel"},
                            {"time", true},
                            {"arithmetic"},
                            {"rate", true},
                            {"of its ceiling", true},
                            {"of its bound's speed", true}},
                           rows);
    for (const size_t i : indices) {
      if (kernels.size() > 8) break;
      section += "<h3>" + html::Escape(ShortName(kernels[i].kernel->name, 80)) + "</h3>";
      section += BoundHtml(kernels[i]) + SectionsHtml(kernels[i]);
    }
    body += html::Section("Roofline on " + kernels[indices[0]].machine->name, section);
  }
  return html::Page({"Roofline", body, ""});
}

}  // namespace heddle::report
