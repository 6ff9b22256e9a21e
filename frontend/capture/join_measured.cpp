#include "frontend/capture/join_measured.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>

namespace heddle::capture {
namespace {

// Cubin, kernel, grid and block, and which of those launches.
using Key = std::tuple<std::string, std::string, std::array<int64_t, 6>, size_t>;

std::vector<Key> KeysOf(const trace::Trace& trace) {
  std::vector<Key> keys;
  std::map<Key, size_t> counts;
  for (const trace::Launch& launch : trace.launches) {
    const trace::Function& function = trace.functions[launch.function];
    std::array<int64_t, 6> shape{};
    for (size_t i = 0; i < 3; ++i) shape[i] = launch.grid[i].value, shape[3 + i] = launch.block[i].value;
    Key key{trace.modules[function.module].sha256, function.name, shape, 0};
    std::get<3>(key) = counts[key]++;
    keys.push_back(std::move(key));
  }
  return keys;
}

std::map<Key, uint32_t> IndexOf(const trace::Trace& trace) {
  std::map<Key, uint32_t> index;
  const std::vector<Key> keys = KeysOf(trace);
  for (uint32_t i = 0; i < keys.size(); ++i) index.emplace(keys[i], i);
  return index;
}

}  // namespace

JoinedMeasurements JoinMeasured(const trace::Trace& measured, trace::Trace* trace) {
  const std::map<Key, uint32_t> index = IndexOf(*trace);
  const std::vector<Key> keys = KeysOf(measured);
  std::vector<std::vector<const trace::Counter*>> counters(keys.size());
  for (const trace::Counter& counter : measured.counters) counters[counter.launch].push_back(&counter);
  JoinedMeasurements result;
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto found = index.find(keys[i]);
    if (counters[i].empty()) {
      ++result.unmeasured;
    } else if (found == index.end()) {
      ++result.strangers;
    } else {
      ++result.joined;
      for (const trace::Counter* counter : counters[i]) {
        trace->counters.push_back(*counter);
        trace->counters.back().launch = found->second;
      }
    }
  }
  std::stable_sort(trace->counters.begin(), trace->counters.end(),
                   [](const trace::Counter& a, const trace::Counter& b) { return a.launch < b.launch; });
  return result;
}

std::vector<size_t> PartnersOf(const std::vector<const trace::Trace*>& measured,
                               const std::vector<const trace::Trace*>& traces) {
  std::vector<std::map<Key, uint32_t>> indices;
  for (const trace::Trace* trace : traces) indices.push_back(IndexOf(*trace));
  std::vector<bool> taken(traces.size(), false);
  std::vector<size_t> partners;
  for (const trace::Trace* each : measured) {
    const std::vector<Key> keys = KeysOf(*each);
    size_t best = SIZE_MAX, most = 0;
    for (size_t t = 0; t < traces.size(); ++t) {
      if (taken[t]) continue;
      const auto common = static_cast<size_t>(
          std::count_if(keys.begin(), keys.end(), [&](const Key& key) { return indices[t].contains(key); }));
      if (common > most) best = t, most = common;
    }
    if (best != SIZE_MAX) taken[best] = true;
    partners.push_back(best);
  }
  return partners;
}

}  // namespace heddle::capture
