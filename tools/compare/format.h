// Pieces of text that the forms of a comparison share.
#pragma once

#include <string>
#include <vector>

#include "tools/compare/comparison.h"

namespace heddle::compare {

std::string ShapeText(const Dim3& shape);                   // "4x1x1"
std::string TopWaits(const Numbers& numbers, size_t most);  // "long_scoreboard 40%, wait 12%"
bool HasCounters(const Comparison& comparison);             // measured ones
std::string TopWaits(const std::map<std::string, double>& waits, size_t most);
std::string LinesSummary(
    const Lines& lines);  // sums, and how many instructions are equal, or why they are not compared
// Those whose counts differ most, then those whose share of the waiting does: at most so many of each. Pointers into `lines`.
std::vector<const Line*> WorstLines(const Lines& lines, size_t most);
// "12.34", or "12.34 +-0.05" where a sampled launch has an interval.
std::string SimulatedMicroseconds(const Row& row);
std::string Beside(const std::optional<double>& measured, const std::optional<double>& simulated,
                   double scale,
                   int digits);                     // "12.0 | 11.8"; empty: not measured
std::string Verdict(const Row& row);                // against the baseline: better, worse, same, new
std::string CorrelationText(const Totals& totals);  // "0.9876"; "-": there is none
std::vector<std::string> SummaryLines(const Comparison& comparison);
std::vector<std::string> AloneLines(const Comparison& comparison);  // who found no partner, and why

}  // namespace heddle::compare
