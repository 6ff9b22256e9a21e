#include "tools/validate/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace heddle::validate {
namespace {

using nlohmann::ordered_json;

std::string GroupLine(const Group& group) {
  std::string line =
      fmt::format("  {:<26} {:>5} {:>8}", group.metric.empty() ? group.gpu : group.gpu + " " + group.metric,
                  group.summary.count, group.skipped);
  if (group.summary.count == 0)
    return line + fmt::format(" {:>9} {:>9} {:>9} {:>9} {:>6}\n", "-", "-", "-", "-", "-");
  const Summary& summary = group.summary;
  return line + fmt::format(" {:>8.1f}% {:>9} {:>8.1f}% {:>+8.1f}% {:>6}\n", summary.median_abs_error_percent,
                            StatisticText(summary.p90_abs_error_percent, 1, "%"), summary.mape_percent,
                            summary.mean_error_percent, StatisticText(summary.correlation, 3));
}

std::string RowLine(const RowResult& row) {
  const MetricResult& metric = row.metrics.front();
  const Row& source = *row.planned->row;
  std::string spread;
  if (metric.least != metric.most)
    spread = fmt::format(", placements {:.4g} to {:.4g}", metric.least, metric.most);
  std::string note;
  if (row.planned->recipe->kernel == KernelKind::kOther)
    note = fmt::format(" [{}]", row.planned->recipe->note);
  return fmt::format("  {:>+7.1f}%  #{} {} {} {}: {:.5g} {} measured, {:.5g} simulated{} ({}){}\n",
                     metric.pair.ErrorPercent(), source.id, source.gpu, source.op, source.shape,
                     metric.pair.measured, metric.unit, metric.pair.simulated, spread,
                     row.planned->recipe->name, note);
}

std::string WorstRows(const Report& report, const std::string& category, bool other, size_t count) {
  std::vector<const RowResult*> rows;
  for (const RowResult& row : report.rows) {
    if (!row.skipped.empty() || row.planned->row->category != category) continue;
    if ((row.planned->recipe->kernel == KernelKind::kOther) == other) rows.push_back(&row);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const RowResult* a, const RowResult* b) {
    return std::fabs(a->metrics[0].pair.ErrorPercent()) > std::fabs(b->metrics[0].pair.ErrorPercent());
  });
  std::string text;
  for (size_t i = 0; i < std::min(count, rows.size()); ++i) text += RowLine(*rows[i]);
  return text;
}

std::string GroupsOf(const std::vector<Group>& groups, const std::string& category) {
  std::string text;
  for (const Group& group : groups) {
    if (group.category == category) text += GroupLine(group);
  }
  return text;
}

constexpr std::string_view kHeader =
    "                              rows  skipped  |error| median, p90, mean   signed   corr\n";

ordered_json GroupJson(const Group& group) {
  ordered_json json;
  json["category"] = group.category;
  json["gpu"] = group.gpu;
  if (!group.metric.empty()) json["metric"] = group.metric;
  json["rows"] = group.summary.count;
  json["skipped"] = group.skipped;
  const auto number = [&](double value) {
    return group.summary.count == 0 ? ordered_json() : ordered_json(value);
  };
  json["median_abs_error_percent"] = number(group.summary.median_abs_error_percent);
  json["p90_abs_error_percent"] = StatisticJson<ordered_json>(group.summary.p90_abs_error_percent);
  json["mape_percent"] = number(group.summary.mape_percent);
  json["mean_error_percent"] = number(group.summary.mean_error_percent);
  json["correlation"] = StatisticJson<ordered_json>(group.summary.correlation);
  json["kernels"] = ordered_json::object();
  for (const auto& [kind, count] : group.kernels) json["kernels"][std::string(Name(kind))] = count;
  return json;
}

ordered_json RowJson(const RowResult& row) {
  const Row& source = *row.planned->row;
  ordered_json json = {
      {"id", source.id}, {"category", source.category}, {"gpu", source.gpu}, {"op", source.op}};
  if (row.planned->recipe != nullptr) {
    json["recipe"] = row.planned->recipe->name;
    json["kernel"] = Name(row.planned->recipe->kernel);
    if (!row.planned->recipe->note.empty()) json["note"] = row.planned->recipe->note;
  }
  if (!row.skipped.empty()) {
    json["skipped"] = row.skipped;
    return json;
  }
  json["trace"] = row.trace_file;
  json["metrics"] = ordered_json::array();
  for (const MetricResult& metric : row.metrics) {
    json["metrics"].push_back({{"name", metric.name},
                               {"unit", metric.unit},
                               {"measured", metric.pair.measured},
                               {"simulated", metric.pair.simulated},
                               {"error_percent", metric.pair.ErrorPercent()},
                               {"least", metric.least},
                               {"most", metric.most}});
  }
  return json;
}

}  // namespace

std::string ReportText(const Report& report, size_t worst) {
  std::vector<std::string> categories;
  for (const Group& group : report.categories) {
    if (categories.empty() || categories.back() != group.category) categories.push_back(group.category);
  }
  std::string text;
  for (const std::string& category : categories) {
    text += fmt::format("{}{}\n{}", text.empty() ? "" : "\n", category, kHeader);
    text += GroupsOf(report.categories, category) + GroupsOf(report.metrics, category);
    if (const auto skipped = report.skipped.find(category); skipped != report.skipped.end()) {
      for (const SkipCount& count : skipped->second)
        text += fmt::format("  skipped {:>5}: {}\n", count.rows, count.reason);
    }
    if (const std::string rows = WorstRows(report, category, false, worst); !rows.empty())
      text += "  worst:\n" + rows;
    if (const std::string groups = GroupsOf(report.other_kernels, category); !groups.empty()) {
      text += "  apart, with another kernel than the one measured:\n" + groups;
      text += WorstRows(report, category, true, worst);
    }
  }
  return text;
}

std::string ReportJson(const Report& report) {
  ordered_json json;
  json["schema_version"] = 1;
  const auto groups = [&json](const char* name, const std::vector<Group>& list) {
    json[name] = ordered_json::array();
    for (const Group& group : list) json[name].push_back(GroupJson(group));
  };
  groups("categories", report.categories);
  groups("metrics", report.metrics);
  groups("other_kernels", report.other_kernels);
  json["skipped"] = ordered_json::array();
  for (const auto& [category, counts] : report.skipped) {
    for (const SkipCount& count : counts)
      json["skipped"].push_back({{"category", category}, {"reason", count.reason}, {"rows", count.rows}});
  }
  json["rows"] = ordered_json::array();
  for (const RowResult& row : report.rows) json["rows"].push_back(RowJson(row));
  return json.dump(1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace heddle::validate
