// A comparison as text, CSV and JSON.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/compare/comparison.h"
#include "tools/compare/format.h"
#include "tools/validate/statistics.h"

namespace heddle::compare {

std::string ShapeText(const Dim3& shape) { return fmt::format("{}x{}x{}", shape.x, shape.y, shape.z); }

std::string TopWaits(const std::map<std::string, double>& shares, size_t most) {
  std::vector<std::pair<double, std::string>> waits;
  for (const auto& [cause, percent] : shares)
    if (percent >= 0.5) waits.emplace_back(-percent, cause);  // it would be shown as 0 %
  std::sort(waits.begin(), waits.end());
  std::string text;
  for (size_t i = 0; i < std::min(most, waits.size()); ++i) {
    text += fmt::format("{}{} {:.0f}%", i == 0 ? "" : ", ", waits[i].second, -waits[i].first);
  }
  return text;
}

std::string TopWaits(const Numbers& numbers, size_t most) { return TopWaits(numbers.waits, most); }

std::string LinesSummary(const Lines& lines) {
  if (!lines.refused.empty()) return "instructions are not compared: " + lines.refused;
  if (!lines.has_counts) return "executed counts of instructions were not measured";
  return fmt::format(
      "instructions executed: measured {:.0f}, simulated {:.0f} ({}); {} of {} have equal counts",
      lines.measured_sum, lines.simulated_sum,
      lines.measured_sum > 0 ? fmt::format("{:+.2f} %", 100 * (lines.simulated_sum / lines.measured_sum - 1))
                             : std::string("nothing to compare with"),
      lines.equal, lines.lines.size());
}

std::vector<const Line*> WorstLines(const Lines& lines, size_t most) {
  std::vector<const Line*> worst;
  const auto add = [&](auto distance) {
    std::vector<std::pair<double, const Line*>> by_distance;
    for (const Line& line : lines.lines) {
      if (std::find(worst.begin(), worst.end(), &line) != worst.end()) continue;
      if (const double far = distance(line); far > 0) by_distance.emplace_back(-far, &line);
    }
    std::sort(by_distance.begin(), by_distance.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first, a.second->pc) < std::pair(b.first, b.second->pc);
    });
    for (size_t i = 0; i < std::min(most, by_distance.size()); ++i) worst.push_back(by_distance[i].second);
  };
  if (lines.has_counts)
    add([](const Line& line) { return std::abs(line.measured.executed - line.simulated.executed); });
  if (lines.has_samples)
    add([](const Line& line) {
      return std::abs(line.measured.WaitPercent() - line.simulated.WaitPercent());
    });
  return worst;
}

bool HasCounters(const Comparison& comparison) {
  return std::any_of(comparison.rows.begin(), comparison.rows.end(), [](const Row& row) {
    const Numbers& numbers = row.measured_numbers;
    return numbers.instructions || numbers.dram_bytes || numbers.l2_hit_percent ||
           numbers.occupancy_percent || !numbers.waits.empty();
  });
}

std::string Beside(const std::optional<double>& measured, const std::optional<double>& simulated,
                   double scale, int digits) {
  if (!measured) return "";
  const std::string right = simulated ? fmt::format("{:.{}f}", *simulated * scale, digits) : "-";
  return fmt::format("{:.{}f} | {}", *measured * scale, digits, right);
}

std::string SimulatedMicroseconds(const Row& row) {
  const std::string time = fmt::format("{:.2f}", row.simulated_ps / 1e6);
  return row.interval_ps > 0 ? fmt::format("{} +-{:.2f}", time, row.interval_ps / 1e6) : time;
}

std::string Verdict(const Row& row) {
  if (!row.baseline_ps) return "new";
  const double now = std::abs(row.ErrorPercent()), before = std::abs(*row.BaselineErrorPercent());
  return now < before - 0.05 ? "better" : now > before + 0.05 ? "worse" : "same";
}

std::string CorrelationText(const Totals& totals) { return validate::StatisticText(totals.correlation, 4); }

std::vector<std::string> SummaryLines(const Comparison& comparison) {
  const Totals& totals = comparison.totals;
  const char* what = comparison.by == By::kKernel   ? "kernel"
                     : comparison.by == By::kLaunch ? "launch"
                                                    : "category";
  std::vector<std::string> lines = {fmt::format(
      "{} against {}: {} of {} measured launches, {:.1f} % of their time", comparison.machine, comparison.gpu,
      comparison.measured_matched, comparison.measured_launches, comparison.CoveredPercent())};
  if (totals.rows == 0) return lines;
  lines.insert(
      lines.end(),
      {fmt::format("total: measured {:.3f} ms, simulated {:.3f} ms, error {:+.1f} %",
                   totals.measured_ps / 1e9, totals.simulated_ps / 1e9, totals.total_error_percent),
       fmt::format("by {}: MAPE {:.1f} %, weighted by time {:.1f} %, median {:.1f} %, 90th percentile {}, "
                   "correlation {}",
                   what, totals.mape_percent, totals.weighted_mape_percent, totals.median_abs_error_percent,
                   validate::StatisticText(totals.p90_abs_error_percent, 1, " %"), CorrelationText(totals))});
  if (comparison.baseline && comparison.baseline->rows == 0) {
    lines.push_back("baseline: it has none of these rows");
  } else if (comparison.baseline) {
    lines.push_back(fmt::format(
        "baseline, over {} rows that both have: weighted MAPE {:.1f} -> {:.1f} %, total error {:+.1f} -> "
        "{:+.1f} %",
        comparison.baseline->rows, comparison.baseline->weighted_mape_percent,
        comparison.against_baseline->weighted_mape_percent, comparison.baseline->total_error_percent,
        comparison.against_baseline->total_error_percent));
  }
  if (std::any_of(comparison.rows.begin(), comparison.rows.end(),
                  [](const Row& row) { return row.interval_ps > 0; }))
    lines.push_back("+-: of launches in sampled mode, with a confidence of 95 %");
  if (comparison.whole_microseconds)
    lines.push_back("the measured times are whole microseconds: short kernels are off by up to 1 us");
  return lines;
}

std::vector<std::string> AloneLines(const Comparison& comparison) {
  std::vector<std::string> lines;
  for (const auto& [list, side] :
       {std::pair{&comparison.measured_alone, "measured"}, {&comparison.simulated_alone, "simulated"}}) {
    std::map<std::string, std::pair<size_t, double>> reasons;
    for (const Unmatched& entry : *list) {
      auto& [launches, ps] = reasons[entry.reason];
      launches += entry.launches;
      ps += entry.total_ps;
    }
    for (const auto& [reason, sum] : reasons) {
      lines.push_back(fmt::format("without a partner: {} {} launch{} ({:.3f} ms): {}", sum.first, side,
                                  sum.first == 1 ? "" : "es", sum.second / 1e9, reason));
    }
  }
  return lines;
}

namespace {

// The middle of long names is where template arguments repeat.
std::string Shortened(const std::string& name) {
  constexpr size_t kMost = 48;
  return name.size() <= kMost ? name : name.substr(0, kMost - 15) + "..." + name.substr(name.size() - 12);
}

std::string Align(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += i == 0 ? fmt::format("{:<{}}", row[i], widths[i]) : fmt::format("  {:>{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

nlohmann::ordered_json ToJson(const Numbers& numbers) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  const auto put = [&](const char* name, const std::optional<double>& value) {
    if (value) json[name] = *value;
  };
  put("smsp_inst_executed", numbers.instructions);
  put("dram_bytes", numbers.dram_bytes);
  put("lts_hit_rate_percent", numbers.l2_hit_percent);
  put("achieved_occupancy_percent", numbers.occupancy_percent);
  if (!numbers.waits.empty()) json["wait_percent"] = numbers.waits;
  return json;
}

nlohmann::ordered_json ToJson(const Totals& totals) {
  const auto error = [&](double percent) {
    return totals.rows == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(percent);
  };
  return {{"rows", totals.rows},
          {"measured_ps", totals.measured_ps},
          {"simulated_ps", totals.simulated_ps},
          {"total_error_percent", error(totals.total_error_percent)},
          {"mape_percent", error(totals.mape_percent)},
          {"weighted_mape_percent", error(totals.weighted_mape_percent)},
          {"median_abs_error_percent", error(totals.median_abs_error_percent)},
          {"p90_abs_error_percent",
           validate::StatisticJson<nlohmann::ordered_json>(totals.p90_abs_error_percent)},
          {"correlation", validate::StatisticJson<nlohmann::ordered_json>(totals.correlation)}};
}

nlohmann::ordered_json ToJson(const Line::Side& side, const Lines& lines) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (lines.has_counts) json["inst_executed"] = side.executed;
  if (lines.has_samples) json["wait_percent"] = side.waits;
  return json;
}

nlohmann::ordered_json ToJson(const Lines& lines) {
  if (!lines.refused.empty()) return {{"refused", lines.refused}};
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (lines.has_counts) {
    json["measured_inst_executed"] = lines.measured_sum;
    json["simulated_inst_executed"] = lines.simulated_sum;
    json["equal"] = lines.equal;
  }
  json["lines"] = nlohmann::ordered_json::array();
  for (const Line& line : lines.lines) {
    json["lines"].push_back({{"pc", line.pc},
                             {"text", line.text},
                             {"measured", ToJson(line.measured, lines)},
                             {"simulated", ToJson(line.simulated, lines)}});
  }
  return json;
}

nlohmann::ordered_json ToJson(const Row& row, bool has_shape) {
  nlohmann::ordered_json json = {{"kernel", row.kernel}, {"category", row.category}};
  if (has_shape) {
    json["grid"] = {row.grid.x, row.grid.y, row.grid.z};
    json["block"] = {row.block.x, row.block.y, row.block.z};
  }
  json["measured_launches"] = row.measured;
  json["simulated_launches"] = row.simulated;
  json["measured_ps"] = row.measured_ps;
  json["simulated_ps"] = row.simulated_ps;
  if (row.interval_ps > 0) json["simulated_interval_ps"] = row.interval_ps;
  json["measured_total_ps"] = row.total_ps;
  json["error_percent"] = row.ErrorPercent();
  if (row.baseline_ps) {
    json["baseline_ps"] = *row.baseline_ps;
    json["baseline_error_percent"] = *row.BaselineErrorPercent();
  }
  json["measured"] = ToJson(row.measured_numbers);
  json["simulated"] = ToJson(row.simulated_numbers);
  if (row.lines) json["instructions"] = ToJson(*row.lines);
  if (!row.note.empty()) json["note"] = row.note;
  return json;
}

nlohmann::ordered_json ToJson(const std::vector<Unmatched>& list) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Unmatched& entry : list) {
    nlohmann::ordered_json item = {{"kernel", entry.kernel}};
    if (entry.grid) item["grid"] = {entry.grid->x, entry.grid->y, entry.grid->z};
    if (entry.block) item["block"] = {entry.block->x, entry.block->y, entry.block->z};
    item["launches"] = entry.launches;
    item["total_ps"] = entry.total_ps;
    item["reason"] = entry.reason;
    json.push_back(std::move(item));
  }
  return json;
}

std::string CsvCell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

// Measured and simulated numbers of the instructions that are furthest apart.
std::string LinesText(const Lines& lines) {
  std::string out = "  " + LinesSummary(lines) + "\n";
  std::vector<std::vector<std::string>> table = {{"  at"}};
  if (lines.has_counts) table[0].push_back("executed m|s");
  if (lines.has_samples) table[0].insert(table[0].end(), {"waits % m|s", "measured waits for"});
  for (const Line* line : WorstLines(lines, 5)) {
    std::vector<std::string> cells = {fmt::format("  {:#06x} {}", line->pc, Shortened(line->text))};
    if (lines.has_counts) cells.push_back(Beside(line->measured.executed, line->simulated.executed, 1, 0));
    if (lines.has_samples) {
      cells.push_back(Beside(line->measured.WaitPercent(), line->simulated.WaitPercent(), 1, 1));
      cells.push_back(TopWaits(line->measured.waits, 2));
    }
    table.push_back(std::move(cells));
  }
  return table.size() > 1 ? out + Align(table) : out;
}

}  // namespace

std::string ComparisonText(const Comparison& comparison, size_t most_rows) {
  const bool counters = HasCounters(comparison), shapes = comparison.by != By::kCategory;
  std::vector<std::vector<std::string>> table;
  std::vector<std::string> header = {comparison.by == By::kCategory ? "category" : "kernel"};
  if (shapes) header.insert(header.end(), {"grid", "block"});
  header.insert(header.end(), {"launches", "measured us", "simulated us", "error %", "% of time"});
  if (comparison.baseline) header.insert(header.end(), {"baseline %", "change"});
  if (counters) header.insert(header.end(), {"k inst m|s", "DRAM MB m|s", "L2 hit % m|s", "occup. % m|s"});
  table.push_back(header);
  for (size_t i = 0; i < std::min(most_rows, comparison.rows.size()); ++i) {
    const Row& row = comparison.rows[i];
    std::vector<std::string> cells = {Shortened(row.kernel)};
    if (shapes) cells.insert(cells.end(), {ShapeText(row.grid), ShapeText(row.block)});
    cells.push_back(std::to_string(row.measured));
    cells.push_back(fmt::format("{:.2f}", row.measured_ps / 1e6));
    cells.push_back(SimulatedMicroseconds(row));
    cells.push_back(fmt::format("{:+.1f}", row.ErrorPercent()));
    cells.push_back(fmt::format("{:.1f}", 100 * row.total_ps / comparison.totals.measured_ps));
    if (comparison.baseline) {
      cells.push_back(row.baseline_ps ? fmt::format("{:+.1f}", *row.BaselineErrorPercent()) : "-");
      cells.push_back(Verdict(row));
    }
    if (counters) {
      const Numbers &m = row.measured_numbers, &s = row.simulated_numbers;
      cells.push_back(Beside(m.instructions, s.instructions, 1e-3, 1));
      cells.push_back(Beside(m.dram_bytes, s.dram_bytes, 1e-6, 2));
      cells.push_back(Beside(m.l2_hit_percent, s.l2_hit_percent, 1, 1));
      cells.push_back(Beside(m.occupancy_percent, s.occupancy_percent, 1, 1));
    }
    table.push_back(std::move(cells));
  }
  std::string out = comparison.rows.empty() ? "nothing was joined\n" : Align(table);
  if (comparison.rows.size() > most_rows)
    out += fmt::format("... and {} more\n", comparison.rows.size() - most_rows);
  for (size_t i = 0; i < std::min<size_t>(3, comparison.rows.size()); ++i) {
    const Row& row = comparison.rows[i];
    if (row.measured_numbers.waits.empty() && !row.lines) continue;
    out += fmt::format("\n{}\n", Shortened(row.kernel));
    if (!row.measured_numbers.waits.empty()) {
      out += fmt::format("  waits for\n  measured   {}\n  simulated  {}\n", TopWaits(row.measured_numbers, 5),
                         TopWaits(row.simulated_numbers, 5));
    }
    if (row.lines) out += LinesText(*row.lines);
  }
  out += "\n";
  for (const std::string& line : SummaryLines(comparison)) out += line + "\n";
  for (const std::string& line : AloneLines(comparison)) out += line + "\n";
  return out;
}

std::string ComparisonCsv(const Comparison& comparison) {
  std::string out =
      "kernel,category,grid,block,measured_launches,simulated_launches,measured_us,simulated_us,simulated_"
      "interval_us,error_percent,measured_total_us,"
      "baseline_us,measured_inst,simulated_inst,measured_dram_bytes,simulated_dram_bytes,measured_l2_hit_"
      "percent,"
      "simulated_l2_hit_percent,measured_occupancy_percent,simulated_occupancy_percent,note\n";
  const auto number = [](const std::optional<double>& value) {
    return value ? fmt::format("{}", *value) : "";
  };
  for (const Row& row : comparison.rows) {
    const Numbers &m = row.measured_numbers, &s = row.simulated_numbers;
    const bool shapes = comparison.by != By::kCategory;
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
                       CsvCell(row.kernel), CsvCell(row.category), shapes ? ShapeText(row.grid) : "",
                       shapes ? ShapeText(row.block) : "", row.measured, row.simulated, row.measured_ps / 1e6,
                       row.simulated_ps / 1e6, row.interval_ps / 1e6, row.ErrorPercent(), row.total_ps / 1e6,
                       row.baseline_ps ? fmt::format("{}", *row.baseline_ps / 1e6) : "",
                       number(m.instructions), number(s.instructions), number(m.dram_bytes),
                       number(s.dram_bytes), number(m.l2_hit_percent), number(s.l2_hit_percent),
                       number(m.occupancy_percent), number(s.occupancy_percent), CsvCell(row.note));
  }
  return out;
}

std::string ComparisonJson(const Comparison& comparison) {
  nlohmann::ordered_json json = {
      {"schema_version", 1}, {"machine", comparison.machine}, {"gpu", comparison.gpu}};
  json["by"] = comparison.by == By::kKernel ? "kernel" : comparison.by == By::kLaunch ? "launch" : "category";
  json["totals"] = ToJson(comparison.totals);
  json["covered_time_percent"] = comparison.CoveredPercent();
  json["measured_launches"] = comparison.measured_launches;
  json["measured_matched"] = comparison.measured_matched;
  json["simulated_launches"] = comparison.simulated_launches;
  json["simulated_matched"] = comparison.simulated_matched;
  json["whole_microseconds"] = comparison.whole_microseconds;
  if (comparison.baseline) {
    json["baseline"] = ToJson(*comparison.baseline);
    json["against_baseline"] = ToJson(*comparison.against_baseline);
  }
  json["rows"] = nlohmann::ordered_json::array();
  for (const Row& row : comparison.rows) json["rows"].push_back(ToJson(row, comparison.by != By::kCategory));
  json["measured_alone"] = ToJson(comparison.measured_alone);
  json["simulated_alone"] = ToJson(comparison.simulated_alone);
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace heddle::compare
