// What a report says of one kernel.
#pragma once

#include <map>
#include <string>

#include "tools/analysis/kernel_analysis.h"

namespace heddle::report {

struct KernelPageOptions {
  std::string anchor;  // id of the element
  size_t number = 1;   // in the roofline
  double workload_seconds = 0;
  bool whole = true;  // with speed of light, roofline and SASS; otherwise the busiest instructions
  std::string tree;   // plain text, may be empty
  std::map<uint32_t, std::string> source;
};

// "<details>": its summary tells name, time and stalls, its body the rest.
std::string KernelPage(const analysis::KernelAnalysis& kernel, const KernelPageOptions& options);

// The instructions with their issues and waits: those that matter, each with its neighbours, the others left out.
// Not `whole`: a few of them.
std::string SassHtml(const analysis::KernelAnalysis& kernel, const std::map<uint32_t, std::string>& source,
                     bool whole);

extern const char* const kKernelPageStyle;

}  // namespace heddle::report
