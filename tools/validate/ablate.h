// What the model would say without one of its mechanisms: each is made ideal or put out of action through the machine description, and
// the rows are simulated again.
#pragma once

#include <string>
#include <vector>

#include "sim/base/result.h"
#include "tools/validate/evaluate.h"
#include "tools/validate/plan.h"
#include "tools/validate/simulate.h"

namespace heddle::validate {

struct Mechanism {
  std::string name;
  std::string what;                    // is changed, in words
  std::vector<std::string> overrides;  // of the machine
};

const std::vector<Mechanism>& Mechanisms();

// The errors of a category without a mechanism, all GPUs.
struct Ablated {
  std::string mechanism;
  std::string category;
  std::string refused;  // why the machines do not take the change; empty: they do
  Summary base;
  Summary without;
  double mean_change_percent = 0;  // of the simulated values
};

// `base`: the report of the same rows with all mechanisms. A mechanism that a machine lacks is refused for all.
Result<std::vector<Ablated>> Ablate(const std::vector<Row>& rows, const Recipes& recipes,
                                    const PlanOptions& plan, const SimulateOptions& simulate,
                                    const Report& base);

std::string AblationText(const std::vector<Ablated>& ablated);
// A list of {mechanism, category, refused | median_abs_error_percent, p90_abs_error_percent, mape_percent, base_mape_percent,
// mean_change_percent}.
std::string AblationJson(const std::vector<Ablated>& ablated);

}  // namespace heddle::validate
