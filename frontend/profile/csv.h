// Records of comma-separated values with quotes, as Nsight Compute prints them between lines of other kinds.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "sim/base/result.h"

namespace heddle::profile {

class CsvReader {
 public:
  static constexpr size_t kMaxRecordBytes = 16 << 20;

  CsvReader(std::istream* in, std::string place) : in_(in), place_(std::move(place)) {}

  // False at the end. Otherwise a line that is no record (it does not begin with a quote) is in `line` and `cells` is empty;
  // or `cells` has the record's, of which quoted ones may span lines. Errors: a quote without end, text behind a closing
  // quote, a record that is too long.
  Result<bool> Next(std::vector<std::string>* cells, std::string* line);

  uint64_t line_number() const { return record_line_; }  // where the last one began, from 1
  std::string Place() const;                             // "file:line"

 private:
  Error Fault(const std::string& message) const;

  std::istream* in_;
  std::string place_;
  uint64_t lines_read_ = 0;
  uint64_t record_line_ = 0;
};

}  // namespace heddle::profile
