#include "tools/batch/follow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <sstream>

#include "sim/config/describe.h"

namespace heddle::batch {
namespace {

constexpr uint64_t kMostSlices = 1024;

class Relations {
 public:
  Relations(const BaseValues& base, const Assignments& given) : base_(base), values_(base) {
    for (const auto& [path, value] : given) {
      values_[path] = value;
      given_.insert(path);
    }
  }

  Assignments Keep() {
    Sms();
    L2();
    SharedMemory();
    for (const char* level : {"tlb.l1", "tlb.l2", "tlb.l3"}) Tlb(level);
    return followed_;
  }

 private:
  bool Moved(const std::string& path) const {
    const auto was = base_.find(path);
    return was != base_.end() && was->second != values_.at(path);
  }
  bool Given(const std::string& path) const { return given_.contains(path); }

  // 0 for what is missing or no number: loading will say so.
  uint64_t Number(const std::string& path) const {
    const auto found = values_.find(path);
    const std::optional<double> value =
        found == values_.end() ? std::nullopt : config::ParseNumber(found->second);
    return value && *value >= 0 && *value < 0x1p62 ? static_cast<uint64_t>(*value) : 0;
  }

  static std::vector<uint64_t> Numbers(const std::string& list) {
    std::vector<uint64_t> numbers;
    std::istringstream in(list.size() > 2 ? list.substr(1, list.size() - 2) : "");
    for (std::string word; std::getline(in, word, ',');) {
      word.erase(0, word.find_first_not_of(' '));
      const std::optional<double> value = config::ParseNumber(word);
      if (value && *value >= 0) numbers.push_back(static_cast<uint64_t>(*value));
    }
    return numbers;
  }

  void Set(const std::string& path, const std::string& value) {
    values_[path] = value;
    followed_.emplace_back(path, value);
  }
  void Set(const std::string& path, uint64_t value) { Set(path, fmt::format("{}", value)); }

  void Sms() {
    if ((Moved("sm.count") || Moved("gpc_count") || Moved("sm.sms_per_tpc")) && !Given("sms_per_gpc")) {
      Set("sms_per_gpc", "[]");  // a layout that is left out is dealt evenly
    }
    const uint64_t threads = Number("sm.max_warps") * 32;
    if (threads != 0 && Number("sm.max_threads_per_cta") > threads && !Given("sm.max_threads_per_cta")) {
      Set("sm.max_threads_per_cta", threads);
    }
  }

  // Whether this many slices go with channels, partitions and capacity.
  bool SlicesFit(uint64_t slices) const {
    const uint64_t channels = Number("dram.channels"), partitions = Number("l2.partitions");
    if (channels == 0 || partitions == 0) return true;
    return slices % partitions == 0 && (slices % channels == 0 || channels % slices == 0);
  }
  bool WholeSets(uint64_t slices) const {
    const uint64_t set_bytes = slices * Number("l2.ways") * Number("l2.line_bytes");
    return set_bytes == 0 || Number("l2.size_bytes") % set_bytes == 0;
  }

  void L2() {
    if (!Moved("dram.channels") && !Moved("l2.slices") && !Moved("l2.size_bytes") && !Moved("l2.ways") &&
        !Moved("l2.partitions"))
      return;
    const uint64_t slices = Number("l2.slices");
    if (slices == 0 || (SlicesFit(slices) && WholeSets(slices))) return;
    if (!Given("l2.slices")) {
      // The size gives way only where it was not given, so a number of slices with whole sets comes first.
      for (const bool whole : {true, false}) {
        const uint64_t near = Nearest(slices, whole);
        if (near == 0 || (!whole && Given("l2.size_bytes"))) continue;
        if (near != slices) Set("l2.slices", near);
        break;
      }
    }
    const uint64_t now = Number("l2.slices");
    if (WholeSets(now) || Given("l2.size_bytes")) return;
    const uint64_t set_bytes = now * Number("l2.ways") * Number("l2.line_bytes");
    const uint64_t sets = std::max<uint64_t>(1, (Number("l2.size_bytes") + set_bytes / 2) / set_bytes);
    Set("l2.size_bytes", sets * set_bytes);
  }

  // The nearest number of slices that fits, the larger of two as near, no further than half or twice; 0: none.
  uint64_t Nearest(uint64_t slices, bool whole_sets) const {
    for (uint64_t distance = 0; distance <= slices; ++distance) {
      for (const uint64_t near : {slices + distance, slices - distance}) {
        if (near < std::max<uint64_t>(1, slices / 2) || near > kMostSlices) continue;
        if (SlicesFit(near) && (!whole_sets || WholeSets(near))) return near;
      }
    }
    return 0;
  }

  void SharedMemory() {
    const std::string list = "sm.shared_memory.capacities_bytes", unified = "sm.l1.unified_size_bytes",
                      most = "sm.shared_memory.max_per_cta_bytes";
    if (!base_.contains(list) || (!Moved(list) && !Moved(unified) && !Moved(most))) return;
    const uint64_t reserved = Number("sm.shared_memory.reserved_per_cta_bytes");
    const uint64_t way = std::max<uint64_t>(1, Number("sm.l1.sets") * Number("sm.l1.line_bytes"));
    std::vector<uint64_t> capacities = Numbers(values_.at(list));
    const std::vector<uint64_t> old = Numbers(base_.at(list));
    if (capacities.empty() || old.empty()) return;
    const std::vector<uint64_t> before = capacities;
    const uint64_t needed = (Number(most) + reserved + way - 1) / way * way;
    if (!Given(list) && Moved(most) && needed > capacities.back()) capacities.push_back(needed);
    const std::optional<double> base_unified = config::ParseNumber(base_.at(unified));
    if (!Given(unified) && base_unified && capacities.back() > old.back()) {
      Set(unified, static_cast<uint64_t>(*base_unified) + capacities.back() - old.back());
    }
    const uint64_t size = Number(unified);
    if (!Given(list)) std::erase_if(capacities, [size](uint64_t capacity) { return capacity >= size; });
    if (capacities.empty()) return;
    if (capacities != before) Set(list, fmt::format("[{}]", fmt::join(capacities, ",")));
    if (!Given(most) && capacities.back() >= reserved && Number(most) + reserved > capacities.back()) {
      Set(most, capacities.back() - reserved);
    }
  }

  void Tlb(const std::string& level) {
    const std::string entries = level + ".entries", ways = level + ".ways";
    if (!Moved(entries) || Given(ways)) return;
    const uint64_t count = Number(entries), old_ways = Number(ways);
    if (count == 0 || old_ways == 0) return;
    const bool full = base_.at(entries) == base_.at(ways);
    uint64_t fit = full ? count : std::min(old_ways, count);
    while (count % fit != 0) --fit;
    if (fit != old_ways) Set(ways, fit);
  }

  const BaseValues& base_;
  BaseValues values_;
  std::set<std::string> given_;
  Assignments followed_;
};

}  // namespace

BaseValues ValuesOf(const config::Gpu& gpu) {
  BaseValues values;
  for (const config::Value& value : config::Flatten(gpu)) {
    if (!value.path.ends_with(']')) {
      values.emplace(value.path, value.text);
      continue;
    }
    std::string& list = values[value.path.substr(0, value.path.rfind('['))];
    if (list.empty()) list = "[]";
    list.insert(list.size() - 1, (list.size() > 2 ? "," : "") + value.text);
  }
  return values;
}

Assignments Follow(const BaseValues& base, const Assignments& given) { return Relations(base, given).Keep(); }

}  // namespace heddle::batch
