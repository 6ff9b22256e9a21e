#include "sim/stats/launch_stats.h"

namespace heddle::stats {

Counters& Counters::operator+=(const Counters& other) {
#define HEDDLE_COUNTER(name, unit, text) name += other.name;
#include "sim/stats/counters.def"
#undef HEDDLE_COUNTER
  return *this;
}

void Add(const WaitSums& from, WaitSums* to) {
  for (const auto& [key, sum] : from) {
    WaitSum& total = (*to)[key];
    total.count += sum.count;
    total.cycles += sum.cycles;
  }
}

const std::vector<CounterDef>& CounterDefs() {
  static const std::vector<CounterDef> defs = {
#define HEDDLE_COUNTER(name, unit, text) {#name, #unit, text, &Counters::name},
#include "sim/stats/counters.def"
#undef HEDDLE_COUNTER
  };
  return defs;
}

const std::vector<StallDef>& StallDefs() {
  static const std::vector<StallDef> defs = {
#define HEDDLE_STALL(name, text) {#name, text},
#include "sim/stats/stalls.def"
#undef HEDDLE_STALL
  };
  return defs;
}

}  // namespace heddle::stats
