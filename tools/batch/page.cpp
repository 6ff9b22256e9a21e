#include <fmt/format.h>

#include <algorithm>

#include "tools/batch/summary.h"
#include "tools/html/html.h"
#include "tools/html/plot.h"

namespace heddle::batch {
namespace {

constexpr int kPlotWidth = 720;
constexpr int kPlotHeight = 420;

const char* Label(Objective objective) {
  switch (objective) {
    case Objective::kArea:
      return "area proxy [mm²]";
    case Objective::kPower:
      return "power proxy [W]";
    case Objective::kEnergy:
      return "energy proxy [µJ]";
    case Objective::kTime:
      break;
  }
  return "time [µs]";
}

std::string Scatter(const Plan& plan, const std::vector<DesignResult>& results, Objective x, Objective y) {
  std::vector<double> xs, ys;
  std::vector<std::pair<double, double>> front;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].missing != 0) continue;
    xs.push_back(Value(x, plan.designs[i], results[i]));
    ys.push_back(Value(y, plan.designs[i], results[i]));
    if (results[i].pareto) front.emplace_back(xs.back(), ys.back());
  }
  const auto axis = [](const char* label, const std::vector<double>& values) {
    html::Axis out = html::AxisOver(label, values);
    if (values.empty()) return out;
    // Designs differ by per cents: an axis from zero would hide that.
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    const double room = std::max((*high - *low) * 0.08, *high * 0.01);
    out.low = std::max(0.0, *low - room);
    out.high = *high + room;
    return out;
  };
  html::Plot plot(kPlotWidth, kPlotHeight, axis(Label(x), xs), axis(Label(y), ys),
                  "Designs by two objectives; those that no other beats in both are joined by a line");
  std::sort(front.begin(), front.end());
  plot.Line(front, "c2");
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].missing != 0) continue;
    plot.Point(Value(x, plan.designs[i], results[i]), Value(y, plan.designs[i], results[i]),
               results[i].pareto ? "c2" : "c1", batch::Label(plan.designs[i].values),
               results[i].pareto ? 5 : 3.5);
  }
  plot.Legend({{"c2", "best trade-offs"}, {"c1", "other designs"}});
  return plot.Svg();
}

std::string SensitivityBars(const Plan& plan, const std::vector<DesignResult>& results) {
  std::vector<html::BarRow> rows;
  for (const Sensitivity& item : Sensitivities(plan, results)) {
    const double percent = 100 * (item.time_ratio - 1);
    const std::string note = fmt::format("{:+.1f}% time", percent);
    rows.push_back(
        {fmt::format("{} = {}", item.path, item.value), {{percent, percent <= 0 ? "c1" : "c2", note}}, note});
  }
  return html::HorizontalBars(rows, kPlotWidth, "Change of the time by the value of each axis");
}

std::string DesignTable(const Plan& plan, const std::vector<DesignResult>& results) {
  std::vector<html::Column> columns;
  for (const std::string& path : plan.paths) columns.push_back({path, true});
  for (const char* title : {"time [µs]", "vs first"}) columns.push_back({title, true});
  if (plan.traces.size() > 1)
    for (const std::string& trace : plan.traces) columns.push_back({trace + " [µs]", true});
  for (const char* title : {"area [mm²]", "power [W]"}) columns.push_back({title, true});
  columns.push_back({"moved along", false});
  std::vector<std::vector<html::Cell>> rows;
  for (size_t i = 0; i < results.size(); ++i) {
    const Design& design = plan.designs[i];
    const DesignResult& result = results[i];
    std::vector<html::Cell> row;
    const auto number = [&](std::string text) { row.push_back({std::move(text), "num", ""}); };
    for (const std::string& path : plan.paths) {
      const auto found = std::find_if(design.values.begin(), design.values.end(),
                                      [&](const auto& value) { return value.first == path; });
      number(found == design.values.end() ? "" : found->second);
    }
    const bool whole = result.missing == 0;
    row.push_back({whole ? fmt::format("{:.2f}", result.time_us()) : "failed",
                   result.pareto ? "num good" : (whole ? "num" : "num bad"), ""});
    const bool comparable = whole && results.front().missing == 0 && result.picoseconds != 0;
    number(comparable ? fmt::format("{:.3f}x", results.front().time_us() / result.time_us()) : "");
    for (const uint64_t ps : result.by_trace_ps)
      if (plan.traces.size() > 1) number(fmt::format("{:.2f}", static_cast<double>(ps) / 1e6));
    number(fmt::format("{:.0f}", design.area.total()));
    number(fmt::format("{:.0f}", design.power_w));
    batch::Assignments told;  // "sms_per_gpc" follows every SM count
    for (const auto& assignment : design.followed)
      if (assignment.first != "sms_per_gpc") told.push_back(assignment);
    row.push_back({told.empty() ? "" : batch::Label(told), "muted", ""});
    rows.push_back(std::move(row));
  }
  return "<div class=\"wide\">" + html::Table(columns, rows) + "</div>";
}

}  // namespace

std::string Html(const SweepRequest& request, const Plan& plan, const std::vector<DesignResult>& results,
                 const std::vector<Objective>& objectives) {
  size_t best = results.size();
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].missing != 0) continue;
    if (best == results.size() || results[i].picoseconds < results[best].picoseconds) best = i;
  }
  std::string cards =
      html::Card(fmt::format("{}", plan.designs.size()), "designs") +
      html::Card(fmt::format("{}", plan.traces.size()), plan.traces.size() == 1 ? "trace" : "traces");
  if (best != results.size())
    cards += html::Card(fmt::format("{:.2f} µs", results[best].time_us()),
                        "fastest: " + batch::Label(plan.designs[best].values));
  std::string body =
      fmt::format("<h1>Sweep of {}</h1><div class=\"cards\">{}</div>", html::Escape(request.arch), cards);
  const Objective x = objectives.empty() ? Objective::kArea : objectives[1];
  const Objective y = objectives.empty() ? Objective::kTime : objectives[0];
  body += html::Section("Trade-offs", Scatter(plan, results, x, y));
  body += html::Section("Sensitivity", SensitivityBars(plan, results));
  body += html::Section("Designs", DesignTable(plan, results));
  std::string notes;
  for (const std::string& note : plan.notes) notes += "<li>" + html::Escape(note) + "</li>";
  if (!notes.empty()) body += html::Section("Notes", "<ul>" + notes + "</ul>");
  return html::Page({"heddle sweep: " + request.arch, body, ""});
}

}  // namespace heddle::batch
