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

// What a plan would simulate, without simulating it: per category and GPU the rows with a recipe and a trace and those
// without, then how many rows each recipe serves, and why the others are skipped.
std::string PlanText(const Plan& plan);

// {"schema_version": 1, "categories": [{category, gpu, rows, planned, skipped}], "skipped": [{category, reason, rows}],
// "rows": [{id, category, gpu, op, shape, measured, recipe, kernel, traces: [FILE] | skipped}]}.
std::string PlanJson(const Plan& plan);

}  // namespace heddle::validate
