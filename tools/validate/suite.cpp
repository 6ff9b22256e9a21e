#include "tools/validate/suite.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

namespace heddle::validate {
namespace {

constexpr uint64_t kMostFieldBytes = 1 << 16;
constexpr std::array<std::string_view, 12> kColumns = {"id",     "category", "gpu",      "op",
                                                       "dtype",  "shape",    "value_us", "uncertainty",
                                                       "kernel", "trust",    "source",   "note"};

Error Malformed(const std::string& path, uint64_t line, std::string message) {
  return {ExitCode::kTrace, fmt::format("{}:{}", path, line), std::move(message),
          "the file needs the columns " + fmt::format("{}", fmt::join(kColumns, ","))};
}

// The records of a CSV text.
class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  bool AtEnd() const { return at_ == text_.size(); }
  uint64_t line() const { return line_; }

  // One record; empty lines give a record of one empty field.
  Result<std::vector<std::string>> Next() {
    std::vector<std::string> fields;
    while (true) {
      HEDDLE_ASSIGN_OR_RETURN(fields.emplace_back(), Field());
      if (fields.size() > 64) return Malformed(path_, line_, "has more than 64 fields");
      if (AtEnd()) return fields;
      const char end = text_[at_++];
      if (end == ',') {
        if (AtEnd()) fields.emplace_back();
        continue;
      }
      ++line_;
      return fields;
    }
  }

 private:
  // Leaves at_ on the comma or the line's end behind the field.
  Result<std::string> Field() {
    std::string field;
    const bool quoted = !AtEnd() && text_[at_] == '"';
    if (quoted) {
      const uint64_t opened = line_;
      ++at_;
      while (true) {
        if (AtEnd()) return Malformed(path_, opened, "a quoted field is not closed");
        const char c = text_[at_++];
        if (c == '"' && (AtEnd() || text_[at_] != '"')) break;
        if (c == '"') ++at_;
        if (c == '\n') ++line_;
        field += c;
        if (field.size() > kMostFieldBytes) return Malformed(path_, opened, "a field is longer than 64 KiB");
      }
      if (!AtEnd() && text_[at_] == '\r') ++at_;
      if (!AtEnd() && text_[at_] != ',' && text_[at_] != '\n')
        return Malformed(path_, line_, "text follows the end of a quoted field");
      return field;
    }
    const size_t end = std::min(text_.find_first_of(",\n", at_), text_.size());
    if (end - at_ > kMostFieldBytes) return Malformed(path_, line_, "a field is longer than 64 KiB");
    field = text_.substr(at_, end - at_);
    if (!field.empty() && field.back() == '\r') field.pop_back();
    at_ = end;
    return field;
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
  uint64_t line_ = 1;
};

std::optional<double> Number(std::string_view text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

void Keep(Row* row, const std::string& name, const std::string& value) {
  if (const std::optional<double> number = Number(value)) {
    row->numbers.try_emplace(name, *number);
  } else {
    row->texts.try_emplace(name, value);
  }
}

// "102400x1x1" of "grid" gives grid_x, grid_y, grid_z.
void KeepDimensions(Row* row, const std::string& name, std::string_view value) {
  for (const char* axis : {"_x", "_y", "_z"}) {
    const size_t end = std::min(value.find('x'), value.size());
    const std::optional<double> number = value.empty() ? 1.0 : Number(value.substr(0, end));
    if (!number) return;
    row->numbers.try_emplace(name + axis, *number);
    value = end == value.size() ? std::string_view() : value.substr(end + 1);
  }
}

void KeepJson(Row* row, const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return;
  for (const auto& [name, value] : json.items()) {
    if (value.is_number()) row->numbers.try_emplace(name, value.get<double>());
    if (value.is_string()) row->texts.try_emplace(name, value.get<std::string>());
  }
}

// "name=value" parts between semicolons; a part that starts with '{' is JSON to the end.
void KeepParts(Row* row, std::string_view text) {
  while (!text.empty()) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    if (text.starts_with('{')) return KeepJson(row, std::string(text));
    const size_t end = std::min(text.find(';'), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t equals = part.find('=');
    if (equals != std::string_view::npos && equals != 0) {
      const std::string name(part.substr(0, equals)), value(part.substr(equals + 1));
      Keep(row, name, value);
      if (name == "grid" || name == "block") KeepDimensions(row, name, value);
    }
    const size_t at = part.rfind(" at "), mhz = part.rfind(" MHz");
    if (at != std::string_view::npos && mhz != std::string_view::npos && mhz > at + 4) {
      if (const auto clock = Number(part.substr(at + 4, mhz - at - 4)))
        row->numbers.try_emplace("MHz", *clock);
    }
  }
}

// Where each of kColumns stands in a record.
Result<std::array<size_t, kColumns.size()>> Columns(const std::vector<std::string>& header,
                                                    const std::string& path) {
  std::array<size_t, kColumns.size()> places{};
  for (size_t i = 0; i < kColumns.size(); ++i) {
    const auto found = std::find(header.begin(), header.end(), kColumns[i]);
    if (found == header.end()) return Malformed(path, 1, fmt::format("has no column '{}'", kColumns[i]));
    places[i] = static_cast<size_t>(found - header.begin());
  }
  return places;
}

Result<Row> MakeRow(const std::vector<std::string>& fields, const std::array<size_t, kColumns.size()>& places,
                    const std::string& path, uint64_t line) {
  Row row;
  row.line = line;
  const auto field = [&](size_t column) { return fields[places[column]]; };
  row.id = field(0), row.category = field(1), row.gpu = field(2), row.op = field(3), row.dtype = field(4);
  row.shape = field(5), row.kernel = field(8), row.trust = field(9), row.source = field(10),
  row.note = field(11);
  if (row.id.empty() || row.category.empty() || row.gpu.empty())
    return Malformed(path, line, "a row needs an id, a category and a gpu");
  const std::optional<double> value = Number(field(6));
  if (!value || *value <= 0)
    return Malformed(path, line, fmt::format("value_us '{}' is not a number above 0", field(6)));
  row.value = *value;
  if (!field(7).empty()) {
    const std::optional<double> uncertainty = Number(field(7));
    if (!uncertainty || *uncertainty < 0)
      return Malformed(path, line, fmt::format("uncertainty '{}' is not a number", field(7)));
    row.uncertainty = *uncertainty;
  }
  KeepParts(&row, row.shape);
  KeepParts(&row, row.note);
  return row;
}

}  // namespace

Result<std::vector<Row>> ParseSuite(std::string_view text, const std::string& path) {
  CsvReader reader(text, path);
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> header, reader.Next());
  HEDDLE_ASSIGN_OR_RETURN(const auto places, Columns(header, path));
  std::vector<Row> rows;
  std::set<std::string> ids;
  while (!reader.AtEnd()) {
    const uint64_t line = reader.line();
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> fields, reader.Next());
    if (fields.size() == 1 && fields[0].empty()) continue;
    if (fields.size() != header.size()) {
      return Malformed(path, line,
                       fmt::format("has {} fields where the header has {}", fields.size(), header.size()));
    }
    HEDDLE_ASSIGN_OR_RETURN(Row row, MakeRow(fields, places, path, line));
    if (!ids.insert(row.id).second) return Malformed(path, line, fmt::format("id '{}' stands twice", row.id));
    rows.push_back(std::move(row));
  }
  if (rows.empty()) return Malformed(path, 1, "holds no row");
  return rows;
}

Result<std::vector<Row>> ReadSuite(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file) return Error{ExitCode::kTrace, path, "cannot be read", "name a CSV file of measurements"};
  return ParseSuite(text.str(), path);
}

}  // namespace heddle::validate
