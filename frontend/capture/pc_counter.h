// Counters of single instructions among the counters of a trace: "smsp__sass_inst_executed@0x1f0" is of the instruction at 0x1f0 of the
// launch's kernel, and all of them add up to the counter without a place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace heddle::capture {

std::string PcCounterName(std::string_view name, uint64_t pc);

struct PcCounter {
  std::string name;
  uint64_t pc = 0;
};
// nullopt: of the whole launch.
std::optional<PcCounter> SplitPcCounter(std::string_view name);

}  // namespace heddle::capture
