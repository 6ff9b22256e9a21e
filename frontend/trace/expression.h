// Expressions in launch descriptions: "ceil_div(M, 128) * batch", "min(4 * sm_count, tiles)", real:
// "rsqrt(head_dim)".
//
//   expression := sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]
//   sum        := product {("+" | "-") product}
//   product    := unary {("*" | "/" | "%") unary}
//   unary      := ["-"] primary
//   primary    := number | name | function "(" expression {"," expression} ")" | "(" expression ")"
//   number     := 12, 0x1f, 64Ki, 2Mi, 1Gi; in a real expression also 1e-6, 0.5
// Integers have 64 bits, division truncates, and every overflow is an error.
//
// flash_splits(tiles, places, blocks) is FlashAttention's choice (num_splits_heuristic): into how many parts the `blocks` blocks of keys of
// each of `tiles` tiles are cut on `places` places for CTAs (FA2: two an SM, FA3: one). The fewest that fill whole rounds of the places
// to 85 % of what the best number does, up to 128; 1 where tiles alone take four fifths of the places. FA2 leaves out numbers that give no
// part fewer blocks than the number before; FA3, flash_splits(tiles, places, blocks, 1), takes them and never splits up to 4 blocks.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"

namespace heddle::trace {

// What an expression may name. Not owned.
struct Scope {
  struct Shape {
    std::vector<uint64_t> dims;
    uint32_t element_bytes = 1;
  };
  std::map<std::string, int64_t, std::less<>> symbols;
  std::map<std::string, Shape, std::less<>> buffers;  // for numel(b), nbytes(b), dim(b, i)
};

// `place` says where the expression stands; the column inside the expression is added to it.
Result<int64_t> EvaluateInteger(std::string_view text, const Scope& scope, const std::string& place);
Result<double> EvaluateReal(std::string_view text, const Scope& scope, const std::string& place);

// The names that the expression uses, functions and buffers left out. A text that is no expression gives what
// was read.
std::set<std::string> NamesIn(std::string_view text);

}  // namespace heddle::trace
