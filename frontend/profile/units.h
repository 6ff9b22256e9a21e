// Numbers and units as profilers print them, in base units.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/base/types.h"

namespace heddle::profile {

// "1,410,000.50" -> 1410000.5. Not a number ("n/a", "", a text, two numbers): nothing.
std::optional<double> ParseNumber(std::string_view text);

struct BaseUnit {
  std::string unit;
  double factor = 1;  // value in `unit` = factor * value as given
};

// "Kbyte/second" -> byte/second, 1000; "msecond" and "ms" -> ps, 1e9; "cycle/nsecond" -> hz, 1e9. Prefixes are decimal, as
// Nsight Compute's are. A unit that is not known stays as it is.
BaseUnit ToBaseUnit(std::string_view unit);

// "(256, 1, 1)" or "256x1x1" -> {256, 1, 1}; one or two numbers leave the rest 1.
std::optional<Dim3> ParseDim3(std::string_view text);

}  // namespace heddle::profile
