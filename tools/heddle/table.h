// Tables on stdout: plain text with aligned columns, numbers to the right.
#pragma once

#include <string>
#include <vector>

#include "sim/sqlite/sqlite.h"

namespace heddle::tools {

struct Table {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<bool> right;  // per column: aligned to the right; missing means left
};

void Print(const Table& table);

// Every row of a query, as text; NULL is "".
Result<Table> QueryTable(sqlite::Statement* statement);

// The rows of a query as a JSON array of objects, numbers as numbers.
Result<std::string> QueryJson(sqlite::Statement* statement);

// One value as JSON. Reals keep all their digits and stay reals ("25.0").
std::string JsonValue(const sqlite::Statement& statement, int column);
std::string JsonNumber(double value);
std::string JsonString(const std::string& text);  // in quotes, escaped

// 1234567 -> "1,234,567".
std::string Grouped(int64_t value);

}  // namespace heddle::tools
