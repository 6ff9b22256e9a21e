// Public measurements, one a row: a CSV file whose header names the columns
//   id, category, gpu, op, dtype, shape, value_us, uncertainty, kernel, trust, source, note
// in any order; further columns are ignored. Fields may be quoted as in RFC 4180. The file is untrusted.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"

namespace heddle::validate {

struct Row {
  std::string id;
  std::string category;  // "membound"
  std::string gpu;       // "A100-PCIe-80GB"
  std::string op;
  std::string dtype;
  std::string shape;  // "m=512;n=1024;k=64", and a JSON object may follow: "T=4096;{\"hidden_size\": 4096}"
  double value = 0;   // microseconds, or what the note's unit says
  double uncertainty = 0;  // relative; 0: not stated
  std::string kernel;
  std::string trust;
  std::string source;
  std::string note;
  uint64_t line = 0;  // of the file

  // From shape and note: numbers by name ("m", "dram", "MHz"; "grid=4x2x1" gives grid_x, grid_y and grid_z, "at 1410.0 MHz"
  // gives MHz), and what is no number as text. The shape's win over the note's.
  std::map<std::string, double, std::less<>> numbers;
  std::map<std::string, std::string, std::less<>> texts;
};

// Errors have ExitCode::kTrace and the place "file:line".
Result<std::vector<Row>> ReadSuite(const std::string& path);
Result<std::vector<Row>> ParseSuite(std::string_view text, const std::string& path);

}  // namespace heddle::validate
