#include <fmt/format.h>

#include <regex>
#include <set>
#include <unordered_map>

#include "sim/results/results.h"
#include "tools/compare/comparison.h"
#include "tools/compare/kernel_name.h"

namespace heddle::compare {
namespace {

// What the user asked for: "run 3, --kernel norm"; empty: nothing.
std::string TextOf(const Selection& selection, bool is_simulated) {
  std::vector<std::string> words;
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.push_back(fmt::format("--{} {}", option, value));
  };
  if (is_simulated) {
    add("arch", selection.machine);
    if (selection.run) words.push_back(fmt::format("run {}", *selection.run));
    if (selection.not_run) words.push_back(fmt::format("other runs than {}", *selection.not_run));
  } else {
    add("gpu", selection.gpu);
    add("source", selection.source);
  }
  add("kernel", selection.kernel);
  return fmt::format("{}", fmt::join(words, ", "));
}

// The only name, or an error that lists them.
Result<std::string> TheOnly(const std::set<std::string>& names, const std::string& what,
                            const std::string& option, const std::string& path,
                            const std::string& selection) {
  if (names.size() == 1) return *names.begin();
  if (names.empty()) {
    return Error{
        ExitCode::kTrace, path,
        fmt::format("has no {} that is selected{}{}", what, selection.empty() ? "" : " by ", selection),
        "`heddle hw import` adds measurements, `heddle run --db` simulations"};
  }
  return Error{ExitCode::kUsage, path, fmt::format("has several {}s: {}", what, fmt::join(names, ", ")),
               fmt::format("choose one with {}", option)};
}

Result<std::optional<std::regex>> KernelFilter(const Selection& selection) {
  if (selection.kernel.empty()) return std::optional<std::regex>();
  try {
    return std::optional(std::regex(selection.kernel));
  } catch (const std::regex_error&) {
    return Error{ExitCode::kUsage, "--kernel", fmt::format("'{}' is no regular expression", selection.kernel),
                 ""};
  }
}

// The resolved description's most warps of an SM.
double MaxWarps(const std::string& description) {
  static const std::regex line("(^|\\s)max_warps: ([0-9]{1,4})\\s");
  std::smatch match;
  return std::regex_search(description, match, line) ? std::stod(match[2]) : 64;
}

void AddTo(std::optional<double>* sum, double value) { *sum = sum->value_or(0) + value; }

// Shares in percent of the sum.
void Normalise(std::map<std::string, double>* waits) {
  double sum = 0;
  for (const auto& [cause, value] : *waits) sum += value;
  if (!(sum > 0)) return waits->clear();
  for (auto& [cause, value] : *waits) value *= 100 / sum;
}

// Names of a definition table by id.
Result<std::unordered_map<int64_t, std::string>> NamesById(sqlite::Database* database,
                                                           std::string_view query) {
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement rows, database->Prepare(query));
  std::unordered_map<int64_t, std::string> names;
  while (true) {
    HEDDLE_ASSIGN_OR_RETURN(const bool more, rows.Step());
    if (!more) return names;
    names[rows.Integer(0)] = rows.Text(1);
  }
}

// Reads the rows of one launch after the other, so that what is not selected costs nothing: use(name, value).
template <typename Use>
Status ReadOf(int64_t launch_id, const std::unordered_map<int64_t, std::string>& names,
              sqlite::Statement* rows, Use use) {
  rows->Reset();
  rows->Bind(launch_id);
  while (true) {
    HEDDLE_ASSIGN_OR_RETURN(const bool more, rows->Step());
    if (!more) return Ok();
    if (const auto name = names.find(rows->Integer(0)); name != names.end())
      use(name->second, static_cast<double>(rows->Integer(1)));
  }
}

Status AddSimulatedNumbers(sqlite::Database* database, const std::vector<int64_t>& ids,
                           std::vector<Simulated>* launches, double max_warps) {
  HEDDLE_ASSIGN_OR_RETURN(
      const auto counters,
      NamesById(database,
                "SELECT stat_id, name FROM stat_def WHERE name IN ('smsp_inst_executed', 'dram_read_bytes', "
                "'dram_write_bytes', 'lts_lookups_sector', 'lts_hits_sector', 'smsp_warps_active', "
                "'sm_cycles_active')"));
  HEDDLE_ASSIGN_OR_RETURN(auto causes, NamesById(database, "SELECT stall_id, name FROM stall_def"));
  std::erase_if(causes, [](const auto& cause) { return !IsWait(cause.second); });
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement stats,
                          database->Prepare("SELECT stat_id, value FROM stat WHERE launch_id = ?"));
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement stalls,
                          database->Prepare("SELECT stall_id, slots FROM stall WHERE launch_id = ?"));
  for (size_t i = 0; i < launches->size(); ++i) {
    Numbers& numbers = (*launches)[i].numbers;
    double lookups = 0, hits = 0, warps = 0, cycles = 0;
    HEDDLE_RETURN_IF_ERROR(ReadOf(ids[i], counters, &stats, [&](const std::string& name, double value) {
      if (name == "smsp_inst_executed") numbers.instructions = value;
      if (name.starts_with("dram_")) AddTo(&numbers.dram_bytes, value);
      if (name == "lts_lookups_sector") lookups = value;
      if (name == "lts_hits_sector") hits = value;
      if (name == "smsp_warps_active") warps = value;
      if (name == "sm_cycles_active") cycles = value;
    }));
    if (lookups > 0) numbers.l2_hit_percent = 100 * hits / lookups;
    if (cycles > 0) numbers.occupancy_percent = 100 * warps / cycles / max_warps;
    HEDDLE_RETURN_IF_ERROR(ReadOf(ids[i], causes, &stalls, [&](const std::string& name, double slots) {
      numbers.waits[name] = slots;
    }));
    Normalise(&numbers.waits);
  }
  return Ok();
}

Status AddMeasuredNumbers(sqlite::Database* database, const std::unordered_map<int64_t, size_t>& index,
                          std::vector<Measured>* launches) {
  HEDDLE_ASSIGN_OR_RETURN(
      sqlite::Statement metrics,
      database->Prepare(
          "SELECT hardware_run_id, name, value FROM hardware_metric WHERE name IN ('duration_ps', "
          "'sm_cycles_elapsed', "
          "'smsp_inst_executed', 'dram_read_bytes', 'dram_write_bytes', 'dram__bytes.sum', 'lts_hit_rate', "
          "'lts_lookups_sector', 'lts_hits_sector', 'achieved_occupancy') OR name LIKE 'stall\\_%' ESCAPE "
          "'\\'"));
  struct Parts {
    double lookups = 0, bytes = 0;
    std::optional<double> hits, read, written;
    std::map<std::string, double> per_issue;
  };
  std::unordered_map<size_t, Parts> parts;
  while (true) {
    HEDDLE_ASSIGN_OR_RETURN(const bool more, metrics.Step());
    if (!more) break;
    const auto found = index.find(metrics.Integer(0));
    if (found == index.end()) continue;
    Measured& launch = (*launches)[found->second];
    const std::string name = metrics.Text(1);
    const double value = metrics.Real(2);
    constexpr std::string_view kSamples = "stall_samples_", kPerIssue = "stall_per_issue_";
    if (name == "duration_ps") {
      if (value > 0) launch.ps = value;
    } else if (name == "sm_cycles_elapsed") {
      if (value > 0) launch.cycles = value;
    } else if (name == "smsp_inst_executed") {
      launch.numbers.instructions = value;
    } else if (name == "lts_hit_rate") {
      launch.numbers.l2_hit_percent = value;
    } else if (name == "achieved_occupancy") {
      launch.numbers.occupancy_percent = value;
    } else if (name.starts_with(kSamples)) {
      const std::string cause = name.substr(kSamples.size());
      if (IsWait(cause)) launch.numbers.waits[cause] = value;
    } else {
      Parts& part = parts[found->second];
      if (name == "lts_lookups_sector") part.lookups = value;
      if (name == "lts_hits_sector") part.hits = value;
      if (name == "dram__bytes.sum") part.bytes = value;
      if (name == "dram_read_bytes") part.read = value;
      if (name == "dram_write_bytes") part.written = value;
      if (name.starts_with(kPerIssue) && IsWait(name.substr(kPerIssue.size())))
        part.per_issue[name.substr(kPerIssue.size())] = value;
    }
  }
  for (auto& [i, part] : parts) {
    Numbers& numbers = (*launches)[i].numbers;
    if (!numbers.l2_hit_percent && part.hits && part.lookups > 0)
      numbers.l2_hit_percent = 100 * *part.hits / part.lookups;
    if (part.read && part.written) {
      numbers.dram_bytes = *part.read + *part.written;  // one of them alone is another number
    } else if (part.bytes > 0) {
      numbers.dram_bytes = part.bytes;
    }
    if (numbers.waits.empty()) numbers.waits = part.per_issue;
  }
  for (Measured& launch : *launches) Normalise(&launch.numbers.waits);
  return Ok();
}

std::optional<Dim3> ShapeAt(const sqlite::Statement& row, int column) {
  for (int i = 0; i < 3; ++i) {
    if (!row.IsInteger(column + i) || row.Integer(column + i) < 1 || row.Integer(column + i) > 0xffffffff)
      return std::nullopt;
  }
  return Dim3{static_cast<uint32_t>(row.Integer(column)), static_cast<uint32_t>(row.Integer(column + 1)),
              static_cast<uint32_t>(row.Integer(column + 2))};
}

}  // namespace

Result<SimulatedSet> LoadSimulated(const std::string& path, const Selection& selection) {
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Database database, results::OpenForReading(path));
  HEDDLE_ASSIGN_OR_RETURN(const std::optional<std::regex> filter, KernelFilter(selection));
  HEDDLE_ASSIGN_OR_RETURN(
      const int64_t has_sampling,
      database.QueryInteger("SELECT COUNT(*) FROM sqlite_schema WHERE name = 'sampling'"));
  HEDDLE_ASSIGN_OR_RETURN(
      sqlite::Statement rows,
      database.Prepare(fmt::format(
          "SELECT l.launch_id, l.run_id, l.key, l.trace_digest, l.ordinal, k.name, l.grid_x, l.grid_y, "
          "l.grid_z, "
          "l.block_x, l.block_y, l.block_z, l.duration_ps, c.name, c.text, l.end_cycle - l.start_cycle, {} "
          "FROM "
          "launch l JOIN kernel k USING (kernel_id) JOIN config c USING (config_id) {} WHERE (?1 = '' OR "
          "c.name = "
          "?1) AND (?2 IS NULL OR l.run_id = ?2) AND (?3 IS NULL OR l.run_id <> ?3) ORDER BY l.launch_id",
          has_sampling != 0 ? "s.interval_cycles" : "NULL",
          has_sampling != 0 ? "LEFT JOIN sampling s ON s.launch_id = l.launch_id" : "")));
  rows.Bind(selection.machine);
  for (const std::optional<int64_t>& run : {selection.run, selection.not_run}) {
    if (run) {
      rows.Bind(*run);
    } else {
      rows.BindNull();
    }
  }
  SimulatedSet set;
  std::set<std::string> machines;
  std::vector<int64_t> ids;
  std::unordered_map<std::string, std::string> canonical;
  double max_warps = 64;
  while (true) {
    HEDDLE_ASSIGN_OR_RETURN(const bool more, rows.Step());
    if (!more) break;
    Simulated launch;
    launch.name = rows.Text(5);
    if (filter && !std::regex_search(launch.name, *filter) &&
        !std::regex_search(DisplayName(launch.name), *filter))
      continue;
    launch.launch_id = rows.Integer(0);
    launch.run_id = rows.Integer(1);
    launch.key = rows.Text(2);
    launch.trace_digest = rows.Text(3);
    launch.ordinal = static_cast<uint32_t>(rows.Integer(4));
    std::string& canonical_name = canonical[launch.name];
    if (canonical_name.empty()) canonical_name = CanonicalKernelName(launch.name);
    launch.canonical = canonical_name;
    launch.grid = ShapeAt(rows, 6).value_or(Dim3{});
    launch.block = ShapeAt(rows, 9).value_or(Dim3{});
    launch.ps = static_cast<double>(rows.Integer(12));
    launch.cycles = static_cast<double>(rows.Integer(15));
    if (rows.IsInteger(16) && launch.cycles > 0)
      launch.interval_ps = launch.ps * rows.Real(16) / launch.cycles;
    if (machines.insert(rows.Text(13)).second) max_warps = MaxWarps(rows.Text(14));
    ids.push_back(rows.Integer(0));
    set.launches.push_back(std::move(launch));
  }
  HEDDLE_ASSIGN_OR_RETURN(set.machine,
                          TheOnly(machines, "simulated machine", "--arch", path, TextOf(selection, true)));
  HEDDLE_RETURN_IF_ERROR(AddSimulatedNumbers(&database, ids, &set.launches, max_warps));
  return set;
}

Result<MeasuredSet> LoadMeasured(const std::string& path, const Selection& selection) {
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Database database, results::OpenForReading(path));
  HEDDLE_ASSIGN_OR_RETURN(const std::optional<std::regex> filter, KernelFilter(selection));
  HEDDLE_ASSIGN_OR_RETURN(
      const int64_t has_launches,
      database.QueryInteger("SELECT COUNT(*) FROM sqlite_schema WHERE name = 'hardware_launch'"));
  const std::string place =
      has_launches != 0 ? "p.grid_x, p.grid_y, p.grid_z, p.block_x, p.block_y, p.block_z, p.trace_digest, "
                          "p.trace_ordinal, p.time_resolution_ns, p.mangled_name"
                        : "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1, NULL";
  const std::string join = has_launches != 0 ? "LEFT JOIN hardware_launch p USING (hardware_run_id)" : "";
  HEDDLE_ASSIGN_OR_RETURN(
      sqlite::Statement rows,
      database.Prepare(fmt::format(
          "SELECT h.hardware_run_id, h.gpu, h.kernel_name, h.source, h.protocol, h.launch_key, {} FROM "
          "hardware_run h {} WHERE instr(h.gpu, ?1) > 0 AND instr(h.source, ?2) > 0 ORDER BY "
          "h.hardware_run_id",
          place, join)));
  rows.Bind(selection.gpu).Bind(selection.source);
  MeasuredSet set;
  std::set<std::string> gpus;
  std::unordered_map<int64_t, size_t> index;
  std::unordered_map<std::string, std::string> canonical;
  while (true) {
    HEDDLE_ASSIGN_OR_RETURN(const bool more, rows.Step());
    if (!more) break;
    Measured launch;
    launch.hardware_run_id = rows.Integer(0);
    launch.gpu = rows.Text(1);
    launch.name = rows.Text(2);
    if (filter && !std::regex_search(launch.name, *filter)) continue;
    launch.source = rows.Text(3);
    launch.is_replayed = rows.Text(4).starts_with("Nsight Compute");
    launch.launch_key = rows.Text(5);
    launch.grid = ShapeAt(rows, 6);
    launch.block = ShapeAt(rows, 9);
    launch.trace_digest = rows.Text(12);
    if (rows.IsInteger(13)) launch.trace_ordinal = static_cast<uint32_t>(rows.Integer(13));
    launch.time_resolution_ns = rows.IsInteger(14) ? static_cast<uint32_t>(rows.Integer(14)) : 1;
    const std::string& exact = rows.Text(15).empty() ? launch.name : rows.Text(15);
    std::string& canonical_name = canonical[exact];
    if (canonical_name.empty()) canonical_name = CanonicalKernelName(exact);
    launch.canonical = canonical_name;
    gpus.insert(launch.gpu);
    index[rows.Integer(0)] = set.launches.size();
    set.launches.push_back(std::move(launch));
  }
  HEDDLE_ASSIGN_OR_RETURN(set.gpu, TheOnly(gpus, "measured GPU", "--gpu", path, TextOf(selection, false)));
  HEDDLE_RETURN_IF_ERROR(AddMeasuredNumbers(&database, index, &set.launches));
  return set;
}

}  // namespace heddle::compare
