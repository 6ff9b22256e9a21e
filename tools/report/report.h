// `heddle report`: one HTML file that is read offline: summary, roofline, bottleneck trees, stall stacks, a page for each
// kernel with its SASS, measurements, machine descriptions and the manifest.
//
// Kernels are told in the order of their time, each with its table and bar; whole pages with SASS are given to them until
// the file is as large as `most_bytes`, so that 500 kernels stay readable on a phone.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/analysis/kernel_analysis.h"

namespace heddle::report {

struct ReportOptions {
  size_t most_bytes = 2'800'000;
  // By position in `kernels`: what `heddle explain` says, already as text; shown with the kernel.
  std::map<size_t, std::string> trees;
  // Source line of an instruction, by position in `kernels`.
  std::map<size_t, std::map<uint32_t, std::string>> source;
};

// One database of a report.
struct ReportPart {
  std::string name;  // the file's
  analysis::ResultsReader* reader = nullptr;
  std::vector<analysis::LaunchGroup> groups;  // that are told of, by falling time
  double seconds = 0;                         // of all launches that the selection takes
  std::string explained;                      // gains over the whole, as text; may be empty
};

Result<std::string> ReportPage(const std::vector<ReportPart>& parts, const ReportOptions& options);

}  // namespace heddle::report
