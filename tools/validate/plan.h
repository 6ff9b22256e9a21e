// From a row and the recipes to what has to be simulated for it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/trace/trace.h"
#include "sim/base/result.h"
#include "sim/gpu/gpu.h"
#include "tools/replay/machine_record.h"
#include "tools/validate/recipe.h"
#include "tools/validate/suite.h"

namespace heddle::validate {

// One simulation; rows with equal keys share it.
struct Simulation {
  std::string trace_path;
  std::shared_ptr<const trace::Trace> trace;
  std::string trace_digest;
  std::vector<uint32_t> launches;  // empty: all
  trace::Symbols defines;          // replace the trace's
  std::shared_ptr<const replay::MachineRecord> machine;
  gpu::CachePolicy cache = gpu::CachePolicy::kCold;
  uint32_t replays = 1;
  bool in_graph = false;  // as the recipe's harness says
  bool sampled = false;
  uint32_t placement = 0;  // seed of the order of pages in DRAM; 0: as the model has it

  std::string Key() const;
};

// A trace that may serve the row, as indices into the simulations of a Plan.
struct Candidate {
  std::string trace_file;
  std::vector<size_t> placements;  // of the launches themselves, by placement
  std::map<size_t, size_t> minus;  // by metric: what is subtracted
};

struct PlannedRow {
  const Row* row = nullptr;
  const Recipe* recipe = nullptr;  // null: skipped
  std::string skipped;             // why
  std::shared_ptr<const replay::MachineRecord> machine;
  trace::Symbols symbols;  // what expressions of the recipe may name
  std::vector<Candidate> candidates;
};

struct PlanOptions {
  std::string arch;      // only rows of GPUs whose description this is; empty: all
  std::string category;  // regular expression of the whole name; empty: all
  std::string gpu;
  std::string where;    // expression on the row's numbers; other rows are skipped
  double least_us = 0;  // shorter and longer rows are skipped
  double most_us = 0;   // 0: no limit
  uint32_t sample = 0;  // rows of a category and GPU, spread over the suite; 0: all
  uint32_t placements = 1;
  bool sampled = false;                // as heddle run --mode sampled
  std::vector<std::string> overrides;  // of every machine: "path=value"
};

struct Plan {
  std::vector<PlannedRow> rows;
  std::vector<Simulation> simulations;  // each key once
};

// Rows that options select, in the order of the suite. `rows` and `recipes` outlive the plan. Errors: what is wrong with the
// options, a machine description or a trace; what is wrong with a row makes it a skipped one.
Result<Plan> MakePlan(const std::vector<Row>& rows, const Recipes& recipes, const PlanOptions& options);

// The recipe's number at a row: numbers rounded, and 1000 times as much as <name>_milli.
trace::Symbols RowSymbols(const Row& row);
Result<int64_t> Evaluate(const std::string& expression, const trace::Symbols& symbols,
                         const std::string& place);

// Whether everything but the machine's sm fits; expressions that name what the row does not have do not hold.
bool Matches(const Match& match, const Row& row, const trace::Symbols& symbols);

}  // namespace heddle::validate
