// The roofline as text: a table, and a chart on logarithmic axes that a terminal shows.
#pragma once

#include <string>
#include <vector>

#include "tools/analysis/kernel_analysis.h"

namespace heddle::report {

// One chart a machine. Kernels are letters in the order given, at their operations per DRAM byte; a single kernel shows
// all its memory levels (D, 2, 1). '*' is a measurement.
std::string RooflineChart(const std::vector<analysis::KernelAnalysis>& kernels, int width = 78,
                          int height = 20);

// The mark of the i-th kernel in the chart: a..z, A..Z, then '+'.
char MarkOf(size_t i);

}  // namespace heddle::report
