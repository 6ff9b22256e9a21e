// `heddle validate --hardware FILE`: the launches that a GPU was measured on are the truth.
#pragma once

#include <string>
#include <vector>

#include "sim/base/result.h"

namespace heddle::tools {

struct HardwareValidation {
  std::string measurements;  // a database of tools/measure-gpu, or of `heddle hw import` of captured traces
  std::vector<std::string> traces;  // files and folders where the measured launches are looked for
  std::string arch;
  std::vector<std::string> overrides;
  std::string database;   // results are added here; empty: they are not kept
  double max_error = -1;  // percent; below 0: no gate
  uint32_t worst = 10;
  bool json = false;
  bool quiet = false;
};

// Simulates each trace whose launches were measured, by its digest, and prints what is apart. Errors: no measured launch is of a trace
// (kTrace), none of those traces is found (kTrace, with the folders), the gate (kGateFailed: median |error|).
Status ValidateHardware(const HardwareValidation& settings);

}  // namespace heddle::tools
