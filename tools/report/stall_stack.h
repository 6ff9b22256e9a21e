// Issue slots as stacked bars: causes in families of one colour each, the same everywhere in a report.
#pragma once

#include <string>
#include <vector>

#include "tools/analysis/kernel_analysis.h"

namespace heddle::report {

struct StallFamily {
  const char* name;       // "memory"
  const char* css_class;  // "c1" ... "c8" of tools/html
};
const StallFamily& FamilyOf(stats::Stall stall);

// "<div class=key>": every family with its colour.
std::string StallKey();

// One bar of the width of its container, parts by falling share. `share_of_full`: how much of the width it fills.
std::string StallBar(const std::vector<analysis::StallShare>& stalls, double share_of_full = 1);

// What StallKey and StallBar need.
extern const char* const kStallStyle;

}  // namespace heddle::report
