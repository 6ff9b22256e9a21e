// Nsight Compute: `ncu --csv` (long: a row a metric) and `ncu --csv --page raw` (wide: a row a launch, units in the second
// row). Notices of ncu and what the program printed stand before the header and between the records.
#include <fmt/format.h>

#include <charconv>
#include <map>
#include <sstream>

#include "frontend/profile/csv.h"
#include "frontend/profile/metric_names.h"
#include "frontend/profile/readers.h"
#include "frontend/profile/units.h"

namespace heddle::profile {
namespace {

class NcuReader {
 public:
  NcuReader(std::istream* in, const std::string& place) : csv_(in, place), place_(place) {
    profile_.format = Format::kNsightCompute;
    profile_.producer = "Nsight Compute";
    profile_.protocol =
        "Nsight Compute: each launch alone, replayed for its counters, with the clocks and caches that ncu's "
        "options set";
  }

  Result<Profile> Read() {
    HEDDLE_RETURN_IF_ERROR(FindHeader());
    const bool is_long = column_.contains("Metric Name") && column_.contains("Metric Value");
    std::string line;
    while (true) {
      HEDDLE_ASSIGN_OR_RETURN(const bool more, csv_.Next(&cells_, &line));
      if (!more) break;
      if (cells_.empty()) {
        if (!line.empty()) ++profile_.notes["lines between the records"];
        continue;
      }
      if (cells_.size() > header_.size() + 1) {
        return Malformed(csv_.Place(),
                         fmt::format("{} cells where the header has {}", cells_.size(), header_.size()));
      }
      if (!is_long && profile_.launches.empty() && units_.empty() && Cell("ID").empty()) {
        units_ = cells_;
        continue;
      }
      HEDDLE_ASSIGN_OR_RETURN(Launch * launch, TheLaunch());
      HEDDLE_RETURN_IF_ERROR(is_long ? ReadMetricRow(launch) : ReadWideRow(launch));
    }
    if (profile_.launches.empty())
      return Malformed(place_, "has a header and no launches", "profile at least one kernel");
    return std::move(profile_);
  }

 private:
  Status FindHeader() {
    std::string line;
    while (true) {
      HEDDLE_ASSIGN_OR_RETURN(const bool more, csv_.Next(&header_, &line));
      if (!more) {
        return Malformed(place_, "has no header row that starts with \"ID\"",
                         "export with `ncu --csv` or `ncu --csv --page raw`");
      }
      if (!header_.empty() && header_[0] == "ID") break;
      if (!line.empty()) ++profile_.notes["lines before the header"];
    }
    for (size_t i = 0; i < header_.size(); ++i) column_.emplace(header_[i], i);
    if (!column_.contains("Kernel Name"))
      return Malformed(csv_.Place(), "the header has no column \"Kernel Name\"");
    return Ok();
  }

  std::string Cell(const std::string& name) const {
    const auto found = column_.find(name);
    return found == column_.end() || found->second >= cells_.size() ? std::string() : cells_[found->second];
  }

  std::optional<uint64_t> Integer(const std::string& name) const {
    const std::optional<double> value = ParseNumber(Cell(name));
    if (!value || *value < 0 || *value > 9e15) return std::nullopt;
    return static_cast<uint64_t>(*value);
  }

  // That of the record, made where it is the first of it.
  Result<Launch*> TheLaunch() {
    const std::optional<uint64_t> id = Integer("ID");
    if (!id) return Malformed(csv_.Place(), fmt::format("'{}' is no ID of a launch", Cell("ID")));
    if (Cell("Kernel Name").empty()) return Malformed(csv_.Place(), "the name of the kernel is missing");
    const auto [found, is_new] = index_.try_emplace({Cell("Process ID"), *id}, profile_.launches.size());
    if (!is_new) return &profile_.launches[found->second];
    Launch& launch = profile_.launches.emplace_back();
    launch.kernel = Cell("Kernel Name");
    for (const auto& [name, dim] : {std::pair{"Grid Size", &launch.grid}, {"Block Size", &launch.block}}) {
      if (Cell(name).empty()) continue;
      *dim = ParseDim3(Cell(name));
      if (!*dim) return Malformed(csv_.Place(), fmt::format("'{}' is no {}", Cell(name), name));
    }
    launch.process = Integer("Process ID");
    launch.context = Integer("Context");
    launch.stream = Integer("Stream");
    launch.device = Integer("Device");
    if (!Cell("CC").empty()) launch.gpu = fmt::format("GPU of compute capability {}", Cell("CC"));
    return &launch;
  }

  Status ReadMetricRow(Launch* launch) {
    const std::string& name = Cell("Metric Name");
    if (name.empty()) return Ok();  // a row of a rule
    if (column_.at("Metric Value") >= cells_.size())
      return Malformed(csv_.Place(), "the row ends before its value");
    const std::string section = Cell("Section Name");
    AddValue(launch, name, Cell("Metric Unit"), Cell("Metric Value"), section);
    return Ok();
  }

  Status ReadWideRow(Launch* launch) {
    static const std::map<std::string, int, std::less<>> kIdentity = {
        {"ID", 0},          {"Process ID", 0},  {"Process Name", 0}, {"Host Name", 0},
        {"Kernel Name", 0}, {"Kernel Time", 0}, {"Context", 0},      {"Stream", 0},
        {"Block Size", 0},  {"Grid Size", 0},   {"Device", 0},       {"CC", 0}};
    if (cells_.size() + 1 < header_.size()) {
      return Malformed(csv_.Place(),
                       fmt::format("{} cells where the header has {}", cells_.size(), header_.size()));
    }
    for (size_t i = 0; i < cells_.size() && i < header_.size(); ++i) {
      if (kIdentity.contains(header_[i])) continue;
      AddValue(launch, header_[i], i < units_.size() ? units_[i] : "", cells_[i], "");
    }
    return Ok();
  }

  void AddValue(Launch* launch, const std::string& name, const std::string& unit, const std::string& text,
                const std::string& section) {
    if (name == "device__attribute_display_name") launch->gpu = text;
    if (name.starts_with("device__attribute_")) return;
    const std::optional<double> value = ParseNumber(text);
    if (!value) {
      ++profile_.notes[text == "n/a" || text.empty() ? "metrics that were not available"
                                                     : "metrics that are no numbers"];
      return;
    }
    const BaseUnit base = ToBaseUnit(unit);
    const double scaled = *value * base.factor;
    for (const auto& [theirs, field] :
         {std::pair{"launch__registers_per_thread", &launch->registers_per_thread},
          {"launch__shared_mem_per_block_static", &launch->static_shared_bytes},
          {"launch__shared_mem_per_block_dynamic", &launch->dynamic_shared_bytes}}) {
      if (name == theirs && scaled >= 0 && scaled < 1e9) *field = static_cast<uint64_t>(scaled + 0.5);
    }
    const std::string ours = HeddleName(name);
    const auto has = [&](const std::string& wanted) {
      for (const Metric& metric : launch->metrics) {
        if (metric.name == wanted) return true;
      }
      return false;
    };
    // The details page repeats labels over sections with other meanings.
    if (!has(ours)) {
      launch->metrics.push_back({ours, base.unit, scaled});
    } else if (!has(name)) {
      launch->metrics.push_back({name, base.unit, scaled});
    } else if (!section.empty()) {
      AddMetric(launch, section + ": " + name, base.unit, scaled);
    }
  }

  CsvReader csv_;
  std::string place_;
  Profile profile_;
  std::vector<std::string> header_, cells_, units_;
  std::map<std::string, size_t, std::less<>> column_;
  std::map<std::pair<std::string, uint64_t>, size_t> index_;
};

}  // namespace

Result<Profile> ReadNsightCompute(std::istream* in, const std::string& place) {
  return NcuReader(in, place).Read();
}

Result<Profile> ReadNsightComputeCsv(const std::string& text, const std::string& place) {
  std::istringstream in(text);
  return ReadNsightCompute(&in, place);
}

}  // namespace heddle::profile
