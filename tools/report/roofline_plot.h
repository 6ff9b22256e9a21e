// The roofline as SVG (tools/html/plot.h), and the page that `heddle roofline --html` writes.
#pragma once

#include <string>
#include <vector>

#include "tools/analysis/kernel_analysis.h"

namespace heddle::report {

// Of kernels of one machine. `numbers` labels the points, by kernel; a single kernel shows all its memory levels.
std::string RooflinePlot(const std::vector<const analysis::KernelAnalysis*>& kernels,
                         const std::vector<size_t>& numbers, int width, int height);

// Speed of light and lower bound of one kernel, as HTML.
std::string SectionsHtml(const analysis::KernelAnalysis& kernel);
std::string BoundHtml(const analysis::KernelAnalysis& kernel);

std::string RooflinePage(const std::vector<analysis::KernelAnalysis>& kernels);

}  // namespace heddle::report
