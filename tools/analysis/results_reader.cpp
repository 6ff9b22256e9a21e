#include "tools/analysis/results_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "sim/config/load.h"
#include "sim/results/results.h"
#include "tools/analysis/code_text.h"

namespace heddle::analysis {
namespace {

constexpr size_t kMostInstructions = size_t{1} << 22;  // of a kernel: 64 MiB of code

// Calls `use` with the statement at each row.
template <typename Use>
Status EachRow(sqlite::Statement* statement, Use use) {
  while (true) {
    HEDDLE_ASSIGN_OR_RETURN(const bool row, statement->Step());
    if (!row) return Ok();
    HEDDLE_RETURN_IF_ERROR(use(*statement));
  }
}

uint32_t Narrow(int64_t value) { return static_cast<uint32_t>(std::clamp<int64_t>(value, 0, UINT32_MAX)); }
uint64_t Positive(int64_t value) { return value < 0 ? 0 : static_cast<uint64_t>(value); }

constexpr const char* kLaunchColumns =
    "launch_id, run_id, config_id, kernel_id, key, trace_digest, trace_name, ordinal, stream, grid_x, "
    "grid_y, grid_z, "
    "block_x, block_y, block_z, shared_bytes_per_cta, grid_frozen, mode, execution, cache_policy, "
    "dependence, "
    "start_cycle, end_cycle, duration_ps";

LaunchInfo LaunchOf(const sqlite::Statement& row) {
  LaunchInfo launch;
  int column = 0;
  const auto integer = [&] { return row.Integer(column++); };
  const auto text = [&] { return row.Text(column++); };
  launch.launch_id = integer(), launch.run_id = integer();
  launch.config_id = integer(), launch.kernel_id = integer();
  launch.key = text(), launch.trace_digest = text(), launch.trace_name = text();
  launch.ordinal = Narrow(integer()), launch.stream = Narrow(integer());
  for (Dim3* dim : {&launch.grid, &launch.block}) {
    dim->x = Narrow(integer()), dim->y = Narrow(integer()), dim->z = Narrow(integer());
  }
  launch.shared_bytes_per_cta = Narrow(integer());
  launch.grid_frozen = integer() != 0;
  launch.mode = text(), launch.execution = text(), launch.cache_policy = text(), launch.dependence = text();
  launch.start_cycle = Positive(integer());
  launch.end_cycle = std::max(launch.start_cycle, Positive(integer()));
  launch.duration_ps = Positive(integer());
  return launch;
}

}  // namespace

ResultsReader::ResultsReader(sqlite::Database database)
    : database_(std::make_unique<sqlite::Database>(std::move(database))) {}

Result<ResultsReader> ResultsReader::Open(const std::string& path, const Selection& selection) {
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Database database, results::OpenForReading(path));
  ResultsReader reader(std::move(database));
  HEDDLE_RETURN_IF_ERROR(reader.ReadNames());
  HEDDLE_RETURN_IF_ERROR(reader.ReadLaunches(selection));
  HEDDLE_RETURN_IF_ERROR(reader.ReadIntervals());
  return reader;
}

Status ResultsReader::ReadNames() {
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement counters,
                          database_->Prepare("SELECT stat_id, name FROM stat_def"));
  HEDDLE_RETURN_IF_ERROR(EachRow(&counters, [&](const sqlite::Statement& row) -> Status {
    for (const stats::CounterDef& def : stats::CounterDefs())
      if (def.name == row.Text(1)) counter_of_[row.Integer(0)] = def.member;
    return Ok();
  }));
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement stalls,
                          database_->Prepare("SELECT stall_id, name FROM stall_def"));
  HEDDLE_RETURN_IF_ERROR(EachRow(&stalls, [&](const sqlite::Statement& row) -> Status {
    for (size_t i = 0; i < stats::StallDefs().size(); ++i)
      if (stats::StallDefs()[i].name == row.Text(1)) stall_of_[row.Integer(0)] = i;
    return Ok();
  }));
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement kernels,
                          database_->Prepare("SELECT kernel_id, name FROM kernel"));
  HEDDLE_RETURN_IF_ERROR(EachRow(&kernels, [&](const sqlite::Statement& row) -> Status {
    kernel_names_[row.Integer(0)] = row.Text(1);
    return Ok();
  }));
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement machines,
                          database_->Prepare("SELECT config_id, name FROM config"));
  HEDDLE_RETURN_IF_ERROR(EachRow(&machines, [&](const sqlite::Statement& row) -> Status {
    machine_names_[row.Integer(0)] = row.Text(1);
    return Ok();
  }));
  HEDDLE_ASSIGN_OR_RETURN(
      sqlite::Statement runs,
      database_->Prepare("SELECT run_id, command, heddle_version, build, started_at, finished_at FROM run "
                         "ORDER BY run_id"));
  HEDDLE_RETURN_IF_ERROR(EachRow(&runs, [&](const sqlite::Statement& row) -> Status {
    runs_.push_back({row.Integer(0), row.Text(1), row.Text(2), row.Text(3), row.Text(4), row.Text(5)});
    return Ok();
  }));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t measured,
                          database_->QueryInteger("SELECT COUNT(*) FROM hardware_run"));
  has_measurements_ = measured > 0;
  HEDDLE_ASSIGN_OR_RETURN(
      const int64_t table,
      database_->QueryInteger("SELECT COUNT(*) FROM sqlite_master WHERE name = 'hardware_launch'"));
  has_hardware_launches_ = table > 0;
  HEDDLE_ASSIGN_OR_RETURN(const int64_t version, database_->QueryInteger("PRAGMA user_version"));
  has_memory_sums_ = version >= results::kMemorySumsVersion;
  return Ok();
}

Status ResultsReader::ReadLaunches(const Selection& selection) {
  std::map<int64_t, bool> wanted;
  for (const auto& [id, name] : kernel_names_)
    wanted[id] = !selection.kernel || std::regex_search(name, *selection.kernel);
  HEDDLE_ASSIGN_OR_RETURN(
      sqlite::Statement rows,
      database_->Prepare(fmt::format("SELECT {} FROM launch ORDER BY launch_id", kLaunchColumns)));
  return EachRow(&rows, [&](const sqlite::Statement& row) -> Status {
    const auto kernel = wanted.find(row.Integer(3));
    const auto machine = machine_names_.find(row.Integer(2));
    if (kernel == wanted.end() || machine == machine_names_.end()) {
      return Error{ExitCode::kTrace, path(),
                   fmt::format("launch {} names no kernel or machine", row.Integer(0)),
                   "the database is damaged; run the traces again into a new one"};
    }
    if (!kernel->second || (selection.run_id != 0 && row.Integer(1) != selection.run_id)) return Ok();
    if (!selection.machine.empty() && machine->second != selection.machine) return Ok();
    launches_.push_back(LaunchOf(row));
    return Ok();
  });
}

Status ResultsReader::ReadIntervals() {
  HEDDLE_ASSIGN_OR_RETURN(
      const int64_t table,
      database_->QueryInteger("SELECT COUNT(*) FROM sqlite_master WHERE name = 'sampling'"));
  if (table == 0) return Ok();
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement rows,
                          database_->Prepare("SELECT launch_id, ctas, simulated_ctas, interval_cycles FROM "
                                             "sampling WHERE whole_because = '' ORDER BY launch_id"));
  auto launch = launches_.begin();
  return EachRow(&rows, [&](const sqlite::Statement& row) -> Status {
    while (launch != launches_.end() && launch->launch_id < row.Integer(0)) ++launch;
    if (launch == launches_.end() || launch->launch_id != row.Integer(0)) return Ok();
    launch->interval_cycles = Positive(row.Integer(3));
    launch->simulated_share = row.Real(2) / std::max(1.0, row.Real(1));
    return Ok();
  });
}

Result<const Machine*> ResultsReader::MachineOf(int64_t config_id) {
  std::unique_ptr<Machine>& machine = machines_[config_id];
  if (machine != nullptr) return machine.get();
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement rows,
                          database_->Prepare("SELECT name, digest, text FROM config WHERE config_id = ?"));
  rows.Bind(config_id);
  HEDDLE_ASSIGN_OR_RETURN(const bool row, rows.Step());
  if (!row) return Error{ExitCode::kTrace, path(), fmt::format("there is no machine {}", config_id), ""};
  auto read = std::make_unique<Machine>();
  read->config_id = config_id;
  read->name = rows.Text(0), read->digest = rows.Text(1), read->text = rows.Text(2);
  HEDDLE_ASSIGN_OR_RETURN(
      read->gpu, config::ParseStoredGpu(read->text, fmt::format("{} (machine '{}')", path(), read->name)));
  machine = std::move(read);
  return machine.get();
}

Result<const Kernel*> ResultsReader::KernelOf(int64_t kernel_id) {
  std::unique_ptr<Kernel>& kernel = kernels_[kernel_id];
  if (kernel != nullptr) return kernel.get();
  HEDDLE_ASSIGN_OR_RETURN(
      sqlite::Statement rows,
      database_->Prepare("SELECT name, sm_version, registers_per_thread FROM kernel WHERE kernel_id = ?"));
  rows.Bind(kernel_id);
  HEDDLE_ASSIGN_OR_RETURN(const bool row, rows.Step());
  if (!row) return Error{ExitCode::kTrace, path(), fmt::format("there is no kernel {}", kernel_id), ""};
  auto read = std::make_unique<Kernel>();
  read->kernel_id = kernel_id;
  read->name = rows.Text(0);
  read->sm_version = Narrow(rows.Integer(1)), read->registers_per_thread = Narrow(rows.Integer(2));
  HEDDLE_ASSIGN_OR_RETURN(
      sqlite::Statement code,
      database_->Prepare("SELECT pc, text FROM instruction WHERE kernel_id = ? ORDER BY pc"));
  code.Bind(kernel_id);
  HEDDLE_RETURN_IF_ERROR(EachRow(&code, [&](const sqlite::Statement& line) -> Status {
    const uint64_t index = Positive(line.Integer(0)) / isa::kInstructionBytes;
    if (index >= kMostInstructions) {
      return Error{ExitCode::kTrace, path(),
                   fmt::format("kernel {} has code at {:#x}", kernel_id, line.Integer(0)),
                   "the database is damaged"};
    }
    read->text.resize(index + 1);
    read->instructions.resize(index + 1);
    read->text[index] = line.Text(1);
    read->instructions[index] = ReadInstructionText(read->text[index]);
    read->instructions[index].pc = static_cast<uint32_t>(index) * isa::kInstructionBytes;
    return Ok();
  }));
  kernel = std::move(read);
  return kernel.get();
}

Result<sqlite::Statement*> ResultsReader::RowsOf(CountQuery query, int64_t launch_id) {
  static constexpr std::string_view kQueries[kCountQueries] = {
      "SELECT stat_id, value FROM stat WHERE launch_id = ?",
      "SELECT stall_id, slots FROM stall WHERE launch_id = ?",
      "SELECT pc, stall_id, slots FROM pc_stat WHERE launch_id = ?",
      "SELECT pc, requests, sectors, ideal_sectors, wavefronts, bank_conflicts FROM pc_memory "
      "WHERE launch_id = ?"};
  std::optional<sqlite::Statement>& statement = count_queries_[query];
  if (!statement) {
    HEDDLE_ASSIGN_OR_RETURN(statement, database_->Prepare(kQueries[query]));
  }
  statement->Reset();
  statement->Bind(launch_id);
  return &*statement;
}

Status ResultsReader::ReadSums(const LaunchInfo& launch, LaunchCounts* counts) {
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement* const values, RowsOf(kValues, launch.launch_id));
  HEDDLE_RETURN_IF_ERROR(EachRow(values, [&](const sqlite::Statement& row) -> Status {
    const auto counter = counter_of_.find(row.Integer(0));
    if (counter != counter_of_.end()) counts->counters.*(counter->second) = Positive(row.Integer(1));
    return Ok();
  }));
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement* const stalls, RowsOf(kStalls, launch.launch_id));
  return EachRow(stalls, [&](const sqlite::Statement& row) -> Status {
    const auto stall = stall_of_.find(row.Integer(0));
    if (stall != stall_of_.end()) counts->slots[stall->second] = Positive(row.Integer(1));
    return Ok();
  });
}

Status ResultsReader::ReadMemorySums(const LaunchInfo& launch, LaunchCounts* counts) {
  if (!has_memory_sums_) return Ok();
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement* const rows, RowsOf(kPcMemory, launch.launch_id));
  return EachRow(rows, [&](const sqlite::Statement& row) -> Status {
    const uint64_t index = Positive(row.Integer(0)) / isa::kInstructionBytes;
    if (index >= counts->per_pc.size()) return Ok();
    counts->per_pc[index].memory = {Positive(row.Integer(1)), Positive(row.Integer(2)),
                                    Positive(row.Integer(3)), Positive(row.Integer(4)),
                                    Positive(row.Integer(5))};
    return Ok();
  });
}

Status ResultsReader::ReadPerPc(const LaunchInfo& launch, LaunchCounts* counts) {
  HEDDLE_ASSIGN_OR_RETURN(const Kernel* kernel, KernelOf(launch.kernel_id));
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement* const rows, RowsOf(kPcStalls, launch.launch_id));
  return EachRow(rows, [&](const sqlite::Statement& row) -> Status {
    const uint64_t index = Positive(row.Integer(0)) / isa::kInstructionBytes;
    const auto stall = stall_of_.find(row.Integer(1));
    if (index >= kernel->text.size() || stall == stall_of_.end()) return Ok();
    counts->per_pc.resize(kernel->text.size());
    stats::PcStats& pc = counts->per_pc[index];
    pc.slots[stall->second] = Positive(row.Integer(2));
    if (stall->second == static_cast<size_t>(stats::Stall::k_selected)) pc.issued = pc.slots[stall->second];
    return Ok();
  });
}

Result<LaunchCounts> ResultsReader::CountsOf(const LaunchInfo& launch, bool per_pc) {
  LaunchCounts counts;
  HEDDLE_RETURN_IF_ERROR(ReadSums(launch, &counts));
  if (!per_pc) return counts;
  HEDDLE_RETURN_IF_ERROR(ReadPerPc(launch, &counts));
  HEDDLE_RETURN_IF_ERROR(ReadMemorySums(launch, &counts));
  return counts;
}

Result<std::vector<Issue>> ResultsReader::IssuesOf(int64_t launch_id) {
  HEDDLE_ASSIGN_OR_RETURN(
      sqlite::Statement rows,
      database_->Prepare("SELECT kind, detail, count FROM trace_issue WHERE launch_id = ? "
                         "ORDER BY kind, detail"));
  rows.Bind(launch_id);
  std::vector<Issue> issues;
  HEDDLE_RETURN_IF_ERROR(EachRow(&rows, [&](const sqlite::Statement& row) -> Status {
    issues.push_back({row.Text(0), row.Text(1), Positive(row.Integer(2))});
    return Ok();
  }));
  return issues;
}

Result<std::vector<BarrierWait>> ResultsReader::WaitsOf(int64_t launch_id) {
  HEDDLE_ASSIGN_OR_RETURN(sqlite::Statement rows,
                          database_->Prepare("SELECT pc, cause_pc, waits, cycles FROM barrier_wait "
                                             "WHERE launch_id = ? ORDER BY cycles DESC, pc, cause_pc"));
  rows.Bind(launch_id);
  std::vector<BarrierWait> waits;
  HEDDLE_RETURN_IF_ERROR(EachRow(&rows, [&](const sqlite::Statement& row) -> Status {
    waits.push_back(
        {Narrow(row.Integer(0)), row.Integer(1), Positive(row.Integer(2)), Positive(row.Integer(3))});
    return Ok();
  }));
  return waits;
}

bool ResultsReader::IsOnBoard(const std::string& gpu, int64_t config_id) {
  const auto [entry, is_new] = archs_of_board_.try_emplace(gpu);
  if (is_new) entry->second = config::ArchsOfBoard(gpu);
  const std::vector<std::string>& archs = entry->second;
  return archs.empty() || std::find(archs.begin(), archs.end(), MachineName(config_id)) != archs.end();
}

Result<std::vector<Measurement>> ResultsReader::MeasurementsOf(const LaunchInfo& launch) {
  std::vector<Measurement> measurements;
  if (!has_measurements_) return measurements;
  HEDDLE_ASSIGN_OR_RETURN(
      sqlite::Statement rows,
      database_->Prepare(fmt::format(
          "SELECT hardware_run_id, gpu, kernel_name, source, protocol, m.name, m.value "
          "FROM hardware_run h JOIN hardware_metric m USING (hardware_run_id) WHERE launch_key = ? {} "
          "ORDER BY hardware_run_id, m.name",
          has_hardware_launches_
              ? "OR (launch_key IS NULL AND hardware_run_id IN (SELECT hardware_run_id FROM "
                "hardware_launch WHERE trace_digest = ? AND trace_ordinal = ?))"
              : "")));
  rows.Bind(launch.key);
  if (has_hardware_launches_) rows.Bind(launch.trace_digest).Bind(launch.ordinal);
  int64_t last = -1;
  HEDDLE_RETURN_IF_ERROR(EachRow(&rows, [&](const sqlite::Statement& row) -> Status {
    if (!IsOnBoard(row.Text(1), launch.config_id)) return Ok();
    if (measurements.empty() || row.Integer(0) != last)
      measurements.push_back({row.Text(1), row.Text(2), row.Text(3), row.Text(4), {}});
    last = row.Integer(0);
    measurements.back().metrics[row.Text(5)] = row.Real(6);
    return Ok();
  }));
  return measurements;
}

std::vector<LaunchGroup> GroupLaunches(const std::vector<LaunchInfo>& launches) {
  using Key = std::tuple<int64_t, int64_t, std::array<uint32_t, 6>, uint32_t, std::string>;
  std::map<Key, LaunchGroup> groups;
  for (size_t i = 0; i < launches.size(); ++i) {
    const LaunchInfo& l = launches[i];
    const std::array<uint32_t, 6> dims{l.grid.x, l.grid.y, l.grid.z, l.block.x, l.block.y, l.block.z};
    LaunchGroup& group = groups[{l.config_id, l.kernel_id, dims, l.shared_bytes_per_cta, l.cache_policy}];
    group.config_id = l.config_id, group.kernel_id = l.kernel_id;
    group.launches.push_back(i);
    group.seconds += l.Seconds();
  }
  std::vector<LaunchGroup> list;
  for (auto& [key, group] : groups) {
    std::vector<size_t> by_time = group.launches;
    const auto middle = by_time.begin() + static_cast<std::ptrdiff_t>(by_time.size() / 2);
    std::nth_element(by_time.begin(), middle, by_time.end(), [&](size_t a, size_t b) {
      return std::pair(launches[a].duration_ps, a) < std::pair(launches[b].duration_ps, b);
    });
    group.representative = *middle;
    list.push_back(std::move(group));
  }
  std::stable_sort(list.begin(), list.end(), [&](const LaunchGroup& a, const LaunchGroup& b) {
    return a.seconds != b.seconds ? a.seconds > b.seconds : a.launches[0] < b.launches[0];
  });
  return list;
}

}  // namespace heddle::analysis
