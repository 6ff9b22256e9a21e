#include "tools/heddle/launch_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <span>

#include "sim/results/results.h"
#include "tools/heddle/table.h"

namespace heddle::tools {
namespace {

constexpr size_t kMaxNameLength = 36;

std::string Query(const std::string& where) {
  return fmt::format("SELECT * FROM v_launch {} {} ORDER BY launch_id", where.empty() ? "" : "WHERE", where);
}

// Mangled template names are long: their start and end tell most.
std::string Shortened(const std::string& name) {
  if (name.size() <= kMaxNameLength) return name;
  return name.substr(0, kMaxNameLength - 9) + "..." + name.substr(name.size() - 6);
}

struct Cause {
  std::string_view name;
  uint64_t slots = 0;
  double percent = 0;
};

// The causes of one launch after the other, in the order of launch_id: one pass over the table for all of them.
class StallPass {
 public:
  static Result<StallPass> Open(sqlite::Database* database) {
    StallPass pass;
    HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement names,
                            database->Prepare("SELECT stall_id, name FROM stall_def"));
    while (true) {
      HEDDLE_ASSIGN_OR_RETURN(const bool row, names.Step());
      if (!row) break;
      pass.names_[names.Integer(0)] = names.Text(1);
    }
    HEDDLE_ASSIGN_OR_RETURN(
        pass.rows_, database->Prepare("SELECT launch_id, stall_id, slots FROM stall ORDER BY launch_id"));
    HEDDLE_ASSIGN_OR_RETURN(pass.more_, pass.rows_->Step());
    return pass;
  }

  // Those with slots, largest first. `launch_id` rises from call to call.
  Result<std::span<const Cause>> Of(int64_t launch_id) {
    causes_.clear();
    uint64_t total = 0;
    while (more_ && rows_->Integer(0) <= launch_id) {
      const auto name = names_.find(rows_->Integer(1));
      if (rows_->Integer(0) == launch_id && name != names_.end() && rows_->Integer(2) > 0) {
        causes_.push_back({name->second, static_cast<uint64_t>(rows_->Integer(2)), 0});
        total += causes_.back().slots;
      }
      HEDDLE_ASSIGN_OR_RETURN(more_, rows_->Step());
    }
    for (Cause& cause : causes_)
      cause.percent = 100.0 * static_cast<double>(cause.slots) / static_cast<double>(total);
    std::sort(causes_.begin(), causes_.end(), [](const Cause& a, const Cause& b) {
      return a.slots != b.slots ? a.slots > b.slots : a.name < b.name;
    });
    return std::span<const Cause>(causes_);
  }

 private:
  std::map<int64_t, std::string> names_;
  std::optional<sqlite::Statement> rows_;
  bool more_ = false;
  std::vector<Cause> causes_;
};

std::string TopStalls(std::span<const Cause> causes, size_t count) {
  std::string text;
  for (const Cause& cause : causes) {
    if (cause.name == "selected") continue;
    text += fmt::format("{}{} {:.0f}%", text.empty() ? "" : ", ", cause.name, cause.percent);
    if (--count == 0) break;
  }
  return text;
}

// "9.8% of CTAs, +-0.60%" of a sampled launch, why it was simulated whole, or nothing outside of sampled mode.
std::string SampledText(const sqlite::Statement& launch) {
  constexpr int kSimulated = 14;
  if (launch.IsNull(kSimulated)) return "";
  const std::string like =
      launch.IsNull(kSimulated + 3) ? "" : fmt::format("as launch {}: ", launch.Integer(kSimulated + 3));
  if (!launch.Text(kSimulated + 2).empty()) return like + "whole: " + launch.Text(kSimulated + 2);
  return fmt::format("{}{:.1f}% of CTAs, +-{:.2f}%", like, launch.Real(kSimulated),
                     launch.Real(kSimulated + 1));
}

}  // namespace

Status PrintLaunchTable(sqlite::Database* database, const std::string& where) {
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement launches, database->Prepare(Query(where)));
  HEDDLE_ASSIGN_OR_RETURN(StallPass stalls, StallPass::Open(database));
  Table table;
  table.header = {"machine",
                  "kernel",
                  "grid",
                  "cycles",
                  "us",
                  "warp inst",
                  "IPC/SM",
                  "tensor%",
                  "DRAM GB/s",
                  "DRAM%",
                  "waits for (share of issue slots)"};
  table.right = {false, false, false, true, true, true, true, true, true, true, false};
  std::vector<std::string> sampled;
  while (true) {
    HEDDLE_ASSIGN_OR_RETURN(const bool row, launches.Step());
    if (!row) break;
    HEDDLE_ASSIGN_OR_RETURN(const std::span<const Cause> causes, stalls.Of(launches.Integer(0)));
    sampled.push_back(SampledText(launches));
    table.rows.push_back({launches.Text(1), Shortened(launches.Text(2)), launches.Text(3),
                          Grouped(launches.Integer(4)), fmt::format("{:.1f}", launches.Real(5)),
                          Grouped(launches.Integer(6)), fmt::format("{:.2f}", launches.Real(7)),
                          fmt::format("{:.1f}", launches.Real(8)), fmt::format("{:.0f}", launches.Real(9)),
                          fmt::format("{:.1f}", launches.Real(10)), TopStalls(causes, 3)});
  }
  if (std::any_of(sampled.begin(), sampled.end(), [](const std::string& text) { return !text.empty(); })) {
    table.header.insert(table.header.end() - 1, "sampled");
    table.right.insert(table.right.end() - 1, false);
    for (size_t i = 0; i < sampled.size(); ++i) table.rows[i].insert(table.rows[i].end() - 1, sampled[i]);
  }
  Print(table);
  return Ok();
}

Status PrintLaunchJson(sqlite::Database* database, const std::string& where) {
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement launches, database->Prepare(Query(where)));
  HEDDLE_ASSIGN_OR_RETURN(StallPass stalls, StallPass::Open(database));
  // Printed as it comes: a document of a hundred thousand launches is not built first.
  fmt::memory_buffer out;
  const auto print = [&out](size_t most) {
    if (out.size() <= most) return;
    std::fwrite(out.data(), 1, out.size(), stdout);
    out.clear();
  };
  const auto append = std::back_inserter(out);
  const auto add = [&out](std::string_view text) { out.append(text.data(), text.data() + text.size()); };
  fmt::format_to(append, "{{\n  \"schema_version\": {},\n  \"launches\": [", results::kSchemaVersion);
  std::vector<std::string> names;
  for (int i = 0; i < launches.columns(); ++i)
    names.push_back(fmt::format("\n      \"{}\": ", launches.ColumnName(i)));
  bool first = true;
  while (true) {
    HEDDLE_ASSIGN_OR_RETURN(const bool row, launches.Step());
    if (!row) break;
    fmt::format_to(append, "{}\n    {{", first ? "" : ",");
    first = false;
    for (size_t i = 0; i < names.size(); ++i) {
      add(names[i]);
      add(JsonValue(launches, static_cast<int>(i)));
      add(",");
    }
    fmt::format_to(append, "\n      \"stalls\": [");
    HEDDLE_ASSIGN_OR_RETURN(const std::span<const Cause> causes, stalls.Of(launches.Integer(0)));
    for (const Cause& cause : causes) {
      add(&cause == causes.data() ? "\n        {\"stall\": \"" : ",\n        {\"stall\": \"");
      add(cause.name);
      add("\", \"slots\": ");
      const fmt::format_int slots(cause.slots);
      add({slots.data(), slots.size()});
      add(", \"percent\": ");
      add(JsonNumber(cause.percent));
      add("}");
    }
    fmt::format_to(append, "{}]\n    }}", causes.empty() ? "" : "\n      ");
    print(size_t{1} << 16);
  }
  fmt::format_to(append, "{}]\n}}\n", first ? "" : "\n  ");
  print(0);
  return Ok();
}

}  // namespace heddle::tools
