// What roofline, explain and report have in common on the command line: which launches of a database they speak of.
#pragma once

#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "tools/analysis/kernel_analysis.h"
#include "tools/explain/relief.h"
#include "tools/heddle/command.h"

namespace heddle::tools {

// --run, --arch, --kernel, --top
void AddSelectionOptions(po::options_description* options, uint32_t default_top);
Result<analysis::Selection> ParseSelection(const po::variables_map& values);
// The regular expression of --kernel, where it is given.
Result<std::optional<std::regex>> ParseKernelPattern(const po::variables_map& values);

// The --top groups of launches that take the longest, analysed. An error where the selection takes none.
Result<std::vector<analysis::LaunchGroup>> TopGroups(const analysis::ResultsReader& reader,
                                                     const po::variables_map& values);

// --trace, --define, --threads, --reliefs, --no-gains
void AddResimulationOptions(po::options_description* options);
Result<explain::Resimulator::Options> ParseResimulation(const po::variables_map& values);

}  // namespace heddle::tools
