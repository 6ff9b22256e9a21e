#include "tools/heddle/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace heddle::tools {
namespace {

// Columns that a terminal shows: bytes of UTF-8 that do not continue a character.
size_t DisplayWidth(const std::string& text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

void PrintRow(const Table& table, const std::vector<std::string>& row, const std::vector<size_t>& widths) {
  std::string line;
  for (size_t i = 0; i < row.size(); ++i) {
    const std::string padding(widths[i] - DisplayWidth(row[i]), ' ');
    const bool right = i < table.right.size() && table.right[i];
    if (i != 0) line += "  ";
    line += right ? padding + row[i] : row[i] + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  fmt::print("{}\n", line);
}

}  // namespace

void Print(const Table& table) {
  std::vector<size_t> widths;
  for (const std::string& title : table.header) widths.push_back(DisplayWidth(title));
  for (const auto& row : table.rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  }
  PrintRow(table, table.header, widths);
  std::vector<std::string> rule;
  for (const size_t width : widths) rule.emplace_back(width, '-');
  PrintRow(table, rule, widths);
  for (const auto& row : table.rows) PrintRow(table, row, widths);
}

Result<Table> QueryTable(sqlite::Statement* statement) {
  Table table;
  for (int i = 0; i < statement->columns(); ++i) table.header.push_back(statement->ColumnName(i));
  table.right.assign(table.header.size(), false);
  while (true) {
    HEDDLE_ASSIGN_OR_RETURN(const bool more, statement->Step());
    if (!more) break;
    std::vector<std::string> row;
    for (int i = 0; i < statement->columns(); ++i) {
      row.push_back(statement->Text(i));
      if (statement->IsNumber(i)) table.right[static_cast<size_t>(i)] = true;
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string JsonNumber(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  if (!std::isfinite(value)) return "null";
  const std::string_view digits(text, static_cast<size_t>(end - text));
  return std::string(digits) + (digits.find_first_of(".e") == std::string_view::npos ? ".0" : "");
}

std::string JsonString(const std::string& text) {
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  if (std::all_of(text.begin(), text.end(), is_plain)) return '"' + text + '"';
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string JsonValue(const sqlite::Statement& statement, int column) {
  if (statement.IsNull(column)) return "null";
  if (statement.IsInteger(column)) return std::to_string(statement.Integer(column));
  if (statement.IsNumber(column)) return JsonNumber(statement.Real(column));
  return JsonString(statement.Text(column));
}

Result<std::string> QueryJson(sqlite::Statement* statement) {
  std::string rows;
  while (true) {
    HEDDLE_ASSIGN_OR_RETURN(const bool more, statement->Step());
    if (!more) break;
    rows += rows.empty() ? "\n  {" : ",\n  {";
    for (int i = 0; i < statement->columns(); ++i) {
      rows += i == 0 ? "\n    " : ",\n    ";
      rows += nlohmann::json(statement->ColumnName(i)).dump() + ": " + JsonValue(*statement, i);
    }
    rows += "\n  }";
  }
  return rows.empty() ? "[]" : '[' + rows + "\n]";
}

std::string Grouped(int64_t value) {
  std::string text = std::to_string(value);
  for (int i = static_cast<int>(text.size()) - 3; i > (value < 0 ? 1 : 0); i -= 3) {
    text.insert(static_cast<size_t>(i), ",");
  }
  return text;
}

}  // namespace heddle::tools
