// Launches that were computed for one machine: a sweep replays them as they are, and what a design adds stays idle.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "frontend/trace/trace.h"

namespace heddle::batch {

// What makes a launch look as if its code had asked a machine of this many SMs for their number. Nothing does: no text.
struct FrozenSigns {
  std::string grid;                  // "2*sm_count": the grid's x as an expression; empty: no sign
  std::vector<uint32_t> parameters;  // offsets of 32-bit integers that equal the number of SMs

  bool any() const { return !grid.empty(); }
};
// A grid whose x is a multiple of it is a sign, where an SM could hold its share of the CTAs at once (32, CUDA's limit): such
// a grid is persistent, larger ones follow a shape. Parameters alone are none: numbers like 64 stand for much else.
FrozenSigns SignsOf(const trace::ResolvedLaunch& launch, int64_t sm_count);

// What a sweep says of a trace's launches: which follow the machine, which look frozen (signs, and no expression in the grid)
// with the command that rebuilds them, which were captured and show no sign. `resolved`, not empty: the trace for each
// different set of machine properties among the designs. `base_sms`: of the sweep's base, where the trace does not say on how
// many SMs it was recorded.
std::vector<std::string> FrozenNotes(const std::string& path, const trace::Trace& trace,
                                     const std::map<trace::Symbols, trace::ResolvedTrace>& resolved,
                                     int64_t base_sms);

}  // namespace heddle::batch
