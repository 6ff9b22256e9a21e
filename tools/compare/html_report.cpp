// A comparison as one HTML file that opens offline.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/compare/comparison.h"
#include "tools/compare/format.h"
#include "tools/html/html.h"
#include "tools/html/plot.h"

namespace heddle::compare {
namespace {

constexpr size_t kWorst = 15;
constexpr size_t kMostRows = 500;

std::string Figure(std::string_view caption, std::string_view svg) {
  return fmt::format("<figure>\n{}<figcaption>{}</figcaption>\n</figure>\n", svg, html::Escape(caption));
}

std::string Scatter(const Comparison& comparison) {
  std::vector<double> values;
  for (const Row& row : comparison.rows)
    values.insert(values.end(), {row.measured_ps / 1e6, row.simulated_ps / 1e6});
  const html::Axis x = html::AxisOver("measured [µs]", values, true),
                   y = html::AxisOver("simulated [µs]", values, true);
  html::Plot plot(560, 480, x, y, "Simulated against measured time");
  plot.Line({{x.low, x.low}, {x.high, x.high}}, "muted");
  for (const double factor : {0.8, 1.25}) {
    // Clipped to the frame.
    const double low = std::max(x.low, x.low / factor), high = std::min(x.high, x.high / factor);
    plot.Line({{low, low * factor}, {high, high * factor}}, "muted", true);
  }
  for (const Row& row : comparison.rows) {
    const double share = row.total_ps / comparison.totals.measured_ps;
    plot.Point(
        row.measured_ps / 1e6, row.simulated_ps / 1e6, "c1",
        fmt::format("{} {}: measured {:.2f} µs, simulated {:.2f} µs, {:+.1f} %", row.kernel,
                    ShapeText(row.grid), row.measured_ps / 1e6, row.simulated_ps / 1e6, row.ErrorPercent()),
        3 + 9 * std::sqrt(share));
  }
  return Figure("Each row once, area by its share of the measured time; dashed: 20 % off", plot.Svg());
}

std::string Histogram(const Comparison& comparison) {
  constexpr double kStep = 5, kEdge = 50;  // what lies beyond is put into the outermost bins
  constexpr int kBins = static_cast<int>(2 * kEdge / kStep);
  std::vector<double> bins(kBins, 0.0);
  for (const Row& row : comparison.rows) {
    const int bin =
        static_cast<int>(std::floor((std::clamp(row.ErrorPercent(), -kEdge, kEdge - 1e-9) + kEdge) / kStep));
    bins[static_cast<size_t>(bin)] += 1;
  }
  html::Axis rows = html::AxisOver("rows", bins);
  rows.is_count = true;
  html::Plot plot(560, 320, {"error of the simulated time [%]", -kEdge, kEdge, false}, rows,
                  "Histogram of errors");
  for (int i = 0; i < kBins; ++i) {
    const double left = -kEdge + kStep * i, count = bins[static_cast<size_t>(i)];
    if (count == 0) continue;
    plot.Box(left + 0.2, 0, left + kStep - 0.2, count, left < 0 ? "c2" : "c1",
             fmt::format("{:+.0f} to {:+.0f} %: {}", left, left + kStep, count));
  }
  return Figure("How far rows are off; the outermost bins hold everything beyond", plot.Svg());
}

std::string Worst(const Comparison& comparison) {
  std::vector<const Row*> rows;
  for (const Row& row : comparison.rows) rows.push_back(&row);
  const auto off = [](const Row& row) { return (row.simulated_ps / row.measured_ps - 1) * row.total_ps; };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Row* a, const Row* b) { return std::abs(off(*a)) > std::abs(off(*b)); });
  std::vector<html::BarRow> bars;
  const bool is_short = std::abs(off(*rows[0])) < 1e9;
  for (size_t i = 0; i < std::min(kWorst, rows.size()); ++i) {
    const Row& row = *rows[i];
    const std::string text = fmt::format("{:+.2f} {}, {:+.1f} %", off(row) / (is_short ? 1e6 : 1e9),
                                         is_short ? "µs" : "ms", row.ErrorPercent());
    bars.push_back({comparison.by == By::kCategory ? row.kernel : row.kernel + " " + ShapeText(row.grid),
                    {{off(row), row.ErrorPercent() < 0 ? "c2" : "c1", text}},
                    text});
  }
  // Scaled to a phone's width its words would be too small to read: it is scrolled.
  return Figure("Time that the simulation is off over all launches of a row",
                "<div class=\"wide\"><div style=\"min-width: 40rem\">\n" +
                    html::HorizontalBars(bars, 900, "Rows that the error comes from") + "</div></div>\n");
}

std::string RowsTable(const Comparison& comparison) {
  const bool counters = HasCounters(comparison), shapes = comparison.by != By::kCategory;
  std::vector<html::Column> columns = {{comparison.by == By::kCategory ? "category" : "kernel", false}};
  if (shapes) columns.insert(columns.end(), {{"grid", true}, {"block", true}});
  columns.insert(columns.end(), {{"launches", true},
                                 {"measured µs", true},
                                 {"simulated µs", true},
                                 {"error %", true},
                                 {"% of time", true}});
  if (comparison.baseline) columns.insert(columns.end(), {{"baseline error %", true}, {"change", false}});
  if (counters) {
    for (const char* title : {"k inst m|s", "DRAM MB m|s", "L2 hit % m|s", "occupancy % m|s"})
      columns.push_back({title, true});
    columns.insert(columns.end(), {{"waits, measured", false}, {"waits, simulated", false}});
  }
  columns.push_back({"note", false});
  std::vector<std::vector<html::Cell>> rows;
  for (size_t i = 0; i < std::min(kMostRows, comparison.rows.size()); ++i) {
    const Row& row = comparison.rows[i];
    std::vector<html::Cell> cells = {{row.kernel, "", row.category}};
    const auto add = [&](std::string text, std::string css_class = "") {
      cells.push_back({std::move(text), std::move(css_class), ""});
    };
    if (shapes) add(ShapeText(row.grid)), add(ShapeText(row.block));
    add(std::to_string(row.measured));
    add(fmt::format("{:.2f}", row.measured_ps / 1e6));
    add(SimulatedMicroseconds(row));
    add(fmt::format("{:+.1f}", row.ErrorPercent()), std::abs(row.ErrorPercent()) > 20 ? "bad" : "");
    add(fmt::format("{:.1f}", 100 * row.total_ps / comparison.totals.measured_ps));
    if (comparison.baseline) {
      const std::string verdict = Verdict(row);
      add(row.baseline_ps ? fmt::format("{:+.1f}", *row.BaselineErrorPercent()) : "");
      add(verdict, verdict == "better" ? "good" : verdict == "worse" ? "bad" : "muted");
    }
    if (counters) {
      const Numbers &m = row.measured_numbers, &s = row.simulated_numbers;
      add(Beside(m.instructions, s.instructions, 1e-3, 1));
      add(Beside(m.dram_bytes, s.dram_bytes, 1e-6, 2));
      add(Beside(m.l2_hit_percent, s.l2_hit_percent, 1, 1));
      add(Beside(m.occupancy_percent, s.occupancy_percent, 1, 1));
      add(TopWaits(m, 3), "nowrap"), add(m.waits.empty() ? "" : TopWaits(s, 3), "nowrap");
    }
    add(row.note, "muted");
    rows.push_back(std::move(cells));
  }
  std::string out = html::Table(columns, rows);
  if (comparison.rows.size() > kMostRows) {
    out += fmt::format("<p class=\"muted\">and {} more; --csv has them all</p>\n",
                       comparison.rows.size() - kMostRows);
  }
  return out;
}

// For the rows that cost most: sums, and the instructions that are furthest apart.
std::string Instructions(const Comparison& comparison) {
  constexpr size_t kMostKernels = 20, kMostLines = 12;
  std::string out;
  size_t shown = 0;
  for (const Row& row : comparison.rows) {
    if (!row.lines || ++shown > kMostKernels) continue;
    const Lines& lines = *row.lines;
    out += fmt::format("<h3>{} {}</h3>\n<p>{}</p>\n", html::Escape(row.kernel), ShapeText(row.grid),
                       html::Escape(LinesSummary(lines)));
    std::vector<html::Column> columns = {{"at", true}, {"instruction", false}};
    if (lines.has_counts) columns.insert(columns.end(), {{"executed m|s", true}, {"difference", true}});
    if (lines.has_samples)
      columns.insert(columns.end(),
                     {{"waits % m|s", true}, {"measured waits for", false}, {"simulated waits for", false}});
    std::vector<std::vector<html::Cell>> rows;
    for (const Line* line : WorstLines(lines, kMostLines)) {
      const Line::Side &m = line->measured, &s = line->simulated;
      std::vector<html::Cell> cells = {{fmt::format("{:#06x}", line->pc), "", ""},
                                       {line->text, "nowrap", ""}};
      if (lines.has_counts) {
        cells.push_back({Beside(m.executed, s.executed, 1, 0), "", ""});
        cells.push_back({fmt::format("{:+.0f}", s.executed - m.executed), "", ""});
      }
      if (lines.has_samples) {
        cells.push_back({Beside(m.WaitPercent(), s.WaitPercent(), 1, 1), "", ""});
        cells.push_back({TopWaits(m.waits, 2), "nowrap", ""});
        cells.push_back({TopWaits(s.waits, 2), "nowrap", ""});
      }
      rows.push_back(std::move(cells));
    }
    if (!rows.empty()) out += html::Table(columns, rows);
  }
  if (shown > kMostKernels)
    out += fmt::format("<p class=\"muted\">and {} more; --json has them all</p>\n", shown - kMostKernels);
  return out;
}

std::string Alone(const std::vector<Unmatched>& list) {
  std::vector<std::vector<html::Cell>> rows;
  for (size_t i = 0; i < std::min(kMostRows, list.size()); ++i) {
    const Unmatched& entry = list[i];
    rows.push_back({{entry.kernel, "", ""},
                    {entry.grid ? ShapeText(*entry.grid) : "", "", ""},
                    {entry.block ? ShapeText(*entry.block) : "", "", ""},
                    {std::to_string(entry.launches), "", ""},
                    {fmt::format("{:.3f}", entry.total_ps / 1e9), "", ""},
                    {entry.reason, "", ""}});
  }
  return html::Table(
      {{"kernel", false}, {"grid", true}, {"block", true}, {"launches", true}, {"ms", true}, {"why", false}},
      rows);
}

}  // namespace

std::string ComparisonHtml(const Comparison& comparison) {
  const Totals& totals = comparison.totals;
  html::Document document;
  document.title = fmt::format("{} against {}", comparison.machine, comparison.gpu);
  std::string& body = document.body;
  body = fmt::format(
      "<h1>{}</h1>\n<p class=\"muted\">Simulated and measured times of the same kernels, by heddle "
      "compare</p>\n",
      html::Escape(document.title));
  body += "<div class=\"cards\">\n";
  const auto percent = [&](double value, bool is_signed) {
    return totals.rows == 0 ? "-"
           : is_signed      ? fmt::format("{:+.1f} %", value)
                            : fmt::format("{:.1f} %", value);
  };
  body += html::Card(percent(totals.total_error_percent, true), "error of the total time");
  body += html::Card(percent(totals.weighted_mape_percent, false), "mean |error|, weighted by time");
  body += html::Card(percent(totals.mape_percent, false), "mean |error| (MAPE)");
  body += html::Card(CorrelationText(totals), "correlation of the logarithms");
  body +=
      html::Card(fmt::format("{:.1f} %", comparison.CoveredPercent()), "of the measured time has a partner");
  body += "</div>\n";
  for (const std::string& line : SummaryLines(comparison))
    body += fmt::format("<p>{}</p>\n", html::Escape(line));
  if (!comparison.rows.empty()) {
    body += html::Section(
        "Simulated against measured",
        fmt::format("<div class=\"plots\">\n{}{}</div>\n", Scatter(comparison), Histogram(comparison)));
    body += html::Section("Where the error comes from", Worst(comparison));
    body += html::Section("Rows, by what costs the run most", RowsTable(comparison));
    if (const std::string instructions = Instructions(comparison); !instructions.empty())
      body += html::Section("Instruction by instruction", instructions);
  }
  if (!comparison.measured_alone.empty())
    body += html::Section("Measured, without a partner", Alone(comparison.measured_alone));
  if (!comparison.simulated_alone.empty())
    body += html::Section("Simulated, without a partner", Alone(comparison.simulated_alone));
  return html::Page(document);
}

}  // namespace heddle::compare
