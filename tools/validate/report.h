// A Report as text for people and as JSON for programs.
#pragma once

#include <string>

#include "tools/validate/evaluate.h"

namespace heddle::validate {

// Per category: rows, errors by GPU, what was skipped and why, the worst rows of exact, re-created and best kernels, then
// apart those of other kernels.
std::string ReportText(const Report& report, size_t worst = 10);

// One document: {"schema_version": 1, "categories": [{category, gpu, rows, skipped, median_abs_error_percent,
// p90_abs_error_percent, mape_percent, mean_error_percent, correlation, kernels: {exact, recreated, best_of}}],
// "metrics": [the same with metric], "other_kernels": [the same], "skipped": [{category, reason, rows}],
// "rows": [{id, category, gpu, op, recipe, kernel, trace, skipped | metrics: [{name, unit, measured, simulated,
// error_percent, least, most}]}]}. Errors of groups without rows are null.
std::string ReportJson(const Report& report);

}  // namespace heddle::validate
