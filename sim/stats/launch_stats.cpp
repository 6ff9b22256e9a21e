#include "sim/stats/launch_stats.h"

#include <cmath>

namespace heddle::stats {

Counters& Counters::operator+=(const Counters& other) {
#define HEDDLE_COUNTER(name, unit, text) name += other.name;
#include "sim/stats/counters.def"
#undef HEDDLE_COUNTER
  return *this;
}

MemorySums& MemorySums::operator+=(const MemorySums& other) {
  requests += other.requests;
  sectors += other.sectors;
  ideal_sectors += other.ideal_sectors;
  wavefronts += other.wavefronts;
  bank_conflicts += other.bank_conflicts;
  return *this;
}

void Scale(double factor, MemorySums* sums) {
  for (uint64_t* sum :
       {&sums->requests, &sums->sectors, &sums->ideal_sectors, &sums->wavefronts, &sums->bank_conflicts})
    *sum = static_cast<uint64_t>(std::llround(static_cast<double>(*sum) * factor));
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
