#include "tools/heddle/launch_table.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

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

Result<std::string> TopStalls(sqlite::Database* database, int64_t launch_id, int count) {
  HEDDLE_ASSIGN_OR_RETURN(
      sqlite::Statement statement,
      database->Prepare("SELECT stall, percent FROM v_stall WHERE launch_id = ? AND stall <> "
                        "'selected' ORDER BY slots DESC, stall LIMIT ?"));
  statement.Bind(launch_id).Bind(count);
  std::string text;
  while (true) {
    HEDDLE_ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) break;
    text += fmt::format("{}{} {:.0f}%", text.empty() ? "" : ", ", statement.Text(0), statement.Real(1));
  }
  return text;
}

}  // namespace

Status PrintLaunchTable(sqlite::Database* database, const std::string& where) {
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement launches, database->Prepare(Query(where)));
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
  while (true) {
    HEDDLE_ASSIGN_OR_RETURN(const bool row, launches.Step());
    if (!row) break;
    HEDDLE_ASSIGN_OR_RETURN(const std::string stalls, TopStalls(database, launches.Integer(0), 3));
    table.rows.push_back({launches.Text(1), Shortened(launches.Text(2)), launches.Text(3),
                          Grouped(launches.Integer(4)), fmt::format("{:.1f}", launches.Real(5)),
                          Grouped(launches.Integer(6)), fmt::format("{:.2f}", launches.Real(7)),
                          fmt::format("{:.1f}", launches.Real(8)), fmt::format("{:.0f}", launches.Real(9)),
                          fmt::format("{:.1f}", launches.Real(10)), stalls});
  }
  Print(table);
  return Ok();
}

Status PrintLaunchJson(sqlite::Database* database, const std::string& where) {
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement launches, database->Prepare(Query(where)));
  HEDDLE_ASSIGN_OR_RETURN(const std::string rows, QueryJson(&launches));
  nlohmann::ordered_json document;
  document["schema_version"] = results::kSchemaVersion;
  document["launches"] = nlohmann::ordered_json::parse(rows);
  for (nlohmann::ordered_json& launch : document["launches"]) {
    HEDDLE_ASSIGN_OR_RETURN(
        sqlite::Statement stalls,
        database->Prepare("SELECT stall, slots, percent FROM v_stall WHERE launch_id = ?"));
    stalls.Bind(launch["launch_id"].get<int64_t>());
    HEDDLE_ASSIGN_OR_RETURN(const std::string text, QueryJson(&stalls));
    launch["stalls"] = nlohmann::ordered_json::parse(text);
  }
  fmt::print("{}\n", document.dump(2));
  return Ok();
}

}  // namespace heddle::tools
