// Machine descriptions as lists of values, for people and for comparison, and the reference of all fields.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/gpu_description.h"

namespace heddle::config {

struct Value {
  std::string path;  // as --set takes it: "sm.operations[LDS.64.regular].result_cycles"
  std::string text;  // as text format writes it, strings without quotes
  bool is_number = false;

  bool operator==(const Value&) const = default;
};

// Every value of a description, in the order of gpu.proto.
std::vector<Value> Flatten(const Gpu& gpu);

struct Difference {
  std::string path;
  std::string left;  // "-" where the description has no such value
  std::string right;
};

// What `right` has otherwise than `left`, in the order of `left`, then what only `right` has.
std::vector<Difference> Compare(const Gpu& left, const Gpu& right);

// docs/params.md: every field with type, unit, range and meaning, from the rules in gpu.proto.
std::string ParamsMarkdown();

// A path as gpu.proto calls it, of one that may use names which papers and data sheets prefer: "hbm.bandwidth_gb_s" ->
// "dram.bandwidth_gb_s", "l2.slice_count" -> "l2.slices". Overrides take both.
std::string CanonicalPath(const std::string& path);

// A number as --set takes it, with its suffix: "1.5Ki" -> 1536. Nothing for anything else.
std::optional<double> ParseNumber(std::string_view text);

}  // namespace heddle::config
