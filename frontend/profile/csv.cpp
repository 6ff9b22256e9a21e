#include "frontend/profile/csv.h"

#include <fmt/format.h>

#include "frontend/profile/readers.h"

namespace heddle::profile {

std::string CsvReader::Place() const { return fmt::format("{}:{}", place_, record_line_); }

Error CsvReader::Fault(const std::string& message) const {
  return Malformed(Place(), message, "export it anew; the file may be cut short");
}

Result<bool> CsvReader::Next(std::vector<std::string>* cells, std::string* line) {
  cells->clear();
  record_line_ = lines_read_ + 1;
  if (!std::getline(*in_, *line)) return false;
  ++lines_read_;
  if (line->ends_with('\r')) line->pop_back();
  if (!line->starts_with('"')) return true;

  std::string cell;
  bool quoted = false;
  size_t at = 0, bytes = line->size();
  while (true) {
    if (at == line->size()) {
      if (!quoted) {
        cells->push_back(std::move(cell));
        return true;
      }
      if (!std::getline(*in_, *line)) return Fault("a quote is never closed");
      ++lines_read_;
      bytes += line->size();
      if (bytes > kMaxRecordBytes) return Fault("a record is longer than 16 MiB");
      if (line->ends_with('\r')) line->pop_back();
      cell += '\n';
      at = 0;
      continue;
    }
    const char c = (*line)[at++];
    if (quoted) {
      if (c != '"') {
        cell += c;
      } else if (at < line->size() && (*line)[at] == '"') {
        cell += '"';
        ++at;
      } else {
        quoted = false;
        if (at < line->size() && (*line)[at] != ',') return Fault("text behind a closing quote");
      }
    } else if (c == ',') {
      cells->push_back(std::move(cell));
      cell.clear();
    } else if (c == '"' && cell.empty()) {
      quoted = true;
    } else {
      cell += c;
    }
  }
}

}  // namespace heddle::profile
