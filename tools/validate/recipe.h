// A recipe says how the rows of one kind were measured: which trace stands for the kernel, its shapes, the protocol, and what
// of a simulated launch is compared with which number of the row. Recipes are data: kernels/recipes/*.json, with // comments.
//
//   {
//     "name": "relu_counters",
//     "doc": "what was measured, and how",
//     "match": {                       // all that are given must hold; regular expressions of the whole field
//       "category": "membound_counters", "gpu": "...", "op": "relu", "dtype": "fp32", "source": "...",
//       "kernel": "vectorized",        // the exception: found anywhere in the field
//       "texts": {"hidden_act": "silu"},
//       "sm": [80, 86],                // of the machine
//       "where": "rows * cols >= 512"  // an expression that is not 0
//     },
//     "kernel": "exact",               // or recreated, best_of (the fastest of the traces below), other
//     "note": "...",                   // required for other
//     "traces": [{                     // those whose sm fits and whose where holds are simulated, the fastest one counts
//       "sm": [80, 86, 89], "file": "traces/validation/relu.sm_80.htrace", "where": "...",
//       "build": "how to get it where it is missing",
//       "launches": [0, "1 + wide"],   // of the trace, in that order, numbers or expressions; none where negative; all when left out
//       "defines": {"tile": "64"}      // beside the recipe's
//     }],
//     "defines": {"n": "rows * cols"},
//     "cache": "cold",                 // or warm, flush: gpu::CachePolicy
//     "replays": 1,                    // of the launches; the last one counts
//     "harness": "nsight_compute",     // of harnesses.json: what the way of measuring adds
//     "clock_mhz": "MHz",              // SM clock; the machine's own when left out or where the name is unknown
//     "metrics": [                     // the first one is what the row's category is judged by
//       {"name": "time", "kind": "microseconds"},
//       {"name": "dram", "kind": "counters", "counters": ["dram_read_bytes"], "measured": "dram", "where": "n > 1000000"}
//     ],
//     "work": {"counter": "sm_ops_tensor", "least": "2*m*n*k", "most": "..."}
//   }
//
// Kinds of metric (measured: the row's value, or a number of its note by name):
//   microseconds     from submission to the end of the launches, and what the harness adds to it
//   cycles           the same in SM cycles, over "per"; without the launches with "minus"'s defines (for slopes)
//   bandwidth_gb_s   "bytes" over the microseconds; without the bytes and the time of the launches with "minus"'s defines
//   counters         sum of counters; "inst_<OPCODE>" counts warp instructions
// Expressions (frontend/trace/expression.h) may name: the numbers of shape and note, rounded, and <name>_milli, 1000 times
// as much; the machine's properties (replay::DeviceSymbols), sm_version; the recipe's defines that stand before in the order
// of their names.
#pragma once

#include <map>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"
#include "sim/gpu/gpu.h"

namespace heddle::validate {

enum class KernelKind { kExact, kRecreated, kBestOf, kOther };
std::string_view Name(KernelKind kind);

enum class MetricKind { kMicroseconds, kCycles, kBandwidth, kCounters };

// A regular expression with its text, for messages.
struct Pattern {
  std::string text;
  std::regex regex;
};

struct Match {
  std::map<std::string, Pattern, std::less<>> fields;  // category, gpu, op, dtype, kernel, source
  std::map<std::string, Pattern, std::less<>> texts;
  std::vector<uint32_t> sm;  // empty: all
  std::string where;         // empty: holds
};

struct TraceChoice {
  std::vector<uint32_t> sm;
  std::string file;   // relative to the folder that holds kernels/
  std::string build;  // what to do where it is missing
  std::string where;
  std::vector<std::string> launches;  // expressions
  std::map<std::string, std::string> defines;
};

struct Metric {
  std::string name;
  MetricKind kind = MetricKind::kMicroseconds;
  std::string measured;  // empty: the row's value
  std::string where;
  std::string per;    // cycles
  std::string bytes;  // bandwidth
  std::vector<std::string> counters;
  std::map<std::string, std::string> minus;  // cycles, bandwidth
};

struct Work {
  std::string counter;
  std::string least;
  std::string most;
};

struct Recipe {
  std::string name;
  std::string doc;
  std::string file;
  Match match;
  KernelKind kernel = KernelKind::kOther;
  std::string note;
  std::vector<TraceChoice> traces;
  std::map<std::string, std::string> defines;
  gpu::CachePolicy cache = gpu::CachePolicy::kCold;
  uint32_t replays = 1;
  std::string harness;
  std::string clock_mhz;
  std::vector<Metric> metrics;
  std::optional<Work> work;
};

// How a way of measuring submits launches, and what it adds to those of a measurement, by GPU ("" for those not named).
struct Harness {
  std::string doc;
  std::map<std::string, bool, std::less<>>
      in_graph;  // prepared while the one before runs: launch.graph_overhead_ns
  std::map<std::string, double, std::less<>> overhead_us;
};
template <typename T>
T ForGpu(const std::map<std::string, T, std::less<>>& by_gpu, std::string_view gpu, T otherwise) {
  const auto own = by_gpu.find(gpu), any = by_gpu.find("");
  return own != by_gpu.end() ? own->second : any != by_gpu.end() ? any->second : otherwise;
}

struct Recipes {
  std::string root;          // what files of traces are relative to
  std::vector<Recipe> list;  // by file name; the first one that matches a row serves it
  std::map<std::string, Harness, std::less<>> harnesses;  // harnesses.json
  std::map<std::string, std::string, std::less<>>
      machines;  // machines.json: a row's gpu -> machine description
};

// `folder`: as kernels/recipes. Errors have ExitCode::kConfiguration and name the file and the member that is wrong.
Result<Recipes> ReadRecipes(const std::string& folder);
Result<Recipe> ParseRecipe(std::string_view text, const std::string& file);

// $HEDDLE_RECIPES, or kernels/recipes of the sources.
std::string RecipeFolder();

}  // namespace heddle::validate
