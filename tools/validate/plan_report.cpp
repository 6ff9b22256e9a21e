#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tools/validate/report.h"

namespace heddle::validate {
namespace {

using nlohmann::ordered_json;

struct Count {
  size_t planned = 0;
  size_t skipped = 0;
};
using Counts = std::map<std::string, std::map<std::string, Count>>;  // category, GPU ("all" for the sum)
using Ranked = std::vector<std::pair<std::string, size_t>>;

bool IsPlanned(const PlannedRow& row) { return row.skipped.empty(); }

Counts CountRows(const Plan& plan) {
  Counts counts;
  for (const PlannedRow& row : plan.rows) {
    for (const std::string& gpu : {std::string("all"), row.row->gpu}) {
      Count& count = counts[row.row->category][gpu];
      ++(IsPlanned(row) ? count.planned : count.skipped);
    }
  }
  return counts;
}

// Of planned rows by recipe, or of skipped ones by reason; most frequent first.
Ranked Rank(const Plan& plan, const std::string& category, bool planned) {
  std::map<std::string, size_t> counts;
  for (const PlannedRow& row : plan.rows) {
    if (row.row->category != category || IsPlanned(row) != planned) continue;
    ++counts[planned ? fmt::format("{} ({})", row.recipe->name, Name(row.recipe->kernel)) : row.skipped];
  }
  Ranked ranked(counts.begin(), counts.end());
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return ranked;
}

ordered_json RowJson(const PlannedRow& planned) {
  const Row& row = *planned.row;
  ordered_json json = {{"id", row.id}, {"category", row.category}, {"gpu", row.gpu},
                       {"op", row.op}, {"shape", row.shape},       {"measured", row.value}};
  if (planned.recipe != nullptr) {
    json["recipe"] = planned.recipe->name;
    json["kernel"] = Name(planned.recipe->kernel);
  }
  if (!IsPlanned(planned)) {
    json["skipped"] = planned.skipped;
    return json;
  }
  json["traces"] = ordered_json::array();
  for (const Candidate& candidate : planned.candidates) json["traces"].push_back(candidate.trace_file);
  return json;
}

}  // namespace

std::string PlanText(const Plan& plan) {
  std::string text;
  for (const auto& [category, gpus] : CountRows(plan)) {
    text += fmt::format("{}{}\n{:<28} {:>7} {:>8}\n", text.empty() ? "" : "\n", category, "", "planned",
                        "skipped");
    for (const auto& [gpu, count] : gpus)
      text += fmt::format("  {:<26} {:>7} {:>8}\n", gpu, count.planned, count.skipped);
    for (const auto& [recipe, rows] : Rank(plan, category, true))
      text += fmt::format("  recipe  {:>5}: {}\n", rows, recipe);
    for (const auto& [reason, rows] : Rank(plan, category, false))
      text += fmt::format("  skipped {:>5}: {}\n", rows, reason);
  }
  return text;
}

std::string PlanJson(const Plan& plan) {
  ordered_json json;
  json["schema_version"] = 1;
  json["categories"] = ordered_json::array();
  json["skipped"] = ordered_json::array();
  for (const auto& [category, gpus] : CountRows(plan)) {
    for (const auto& [gpu, count] : gpus) {
      json["categories"].push_back({{"category", category},
                                    {"gpu", gpu},
                                    {"rows", count.planned + count.skipped},
                                    {"planned", count.planned},
                                    {"skipped", count.skipped}});
    }
    for (const auto& [reason, rows] : Rank(plan, category, false))
      json["skipped"].push_back({{"category", category}, {"reason", reason}, {"rows", rows}});
  }
  json["rows"] = ordered_json::array();
  for (const PlannedRow& row : plan.rows) json["rows"].push_back(RowJson(row));
  return json.dump(1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace heddle::validate
