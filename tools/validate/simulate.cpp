#include "tools/validate/simulate.h"

#include <fmt/format.h>

#include <filesystem>
#include <mutex>
#include <thread>

#include "sim/gpu/gpu.h"
#include "sim/isa/opcode.h"
#include "sim/isa/warp_stream.h"
#include "tools/replay/replay.h"
#include "tools/replay/sustained_clock.h"
#include "tools/replay/trace_run.h"

namespace heddle::validate {
namespace {

// "@!P0 FFMA.FTZ R0, ..." -> "FFMA"
std::string OpcodeOf(std::string_view text) {
  if (text.starts_with('@')) text.remove_prefix(std::min(text.find(' ') + 1, text.size()));
  return std::string(text.substr(0, text.find_first_of(" .;")));
}

// One simulation with what of it is already in a database.
class Run {
 public:
  Run(const Simulation& simulation, std::mutex* mutex, results::Writer* writer)
      : simulation_(simulation), mutex_(mutex), writer_(writer) {}

  Result<Measured> Do() {
    HEDDLE_ASSIGN_OR_RETURN(replay_, replay::Replay::Open(*simulation_.trace, simulation_.machine->gpu,
                                                          {Mode(), simulation_.defines}));
    launches_ = simulation_.launches;
    for (uint32_t i = 0; launches_.empty() && i < replay_->launch_count(); ++i) all_.push_back(i);
    if (launches_.empty()) launches_ = all_;
    for (const uint32_t launch : launches_) {
      if (launch < replay_->launch_count()) continue;
      return Error{ExitCode::kConfiguration, simulation_.trace_path, fmt::format("has no launch {}", launch),
                   ""};
    }
    HEDDLE_ASSIGN_OR_RETURN(const bool loaded, Load());
    if (!loaded) HEDDLE_RETURN_IF_ERROR(Simulate());
    if (launches_.size() == 1)
      measured_.launch_key = results::LaunchKey(Record(launches_[0]), simulation_.machine->record.digest);
    return measured_;
  }

  bool database_failed() const { return database_failed_; }

 private:
  replay::Mode Mode() const { return simulation_.sampled ? replay::Mode::kSampled : replay::Mode::kSkeleton; }

  // The keys of plain launches are those of `heddle run`.
  results::LaunchRecord Record(uint32_t i) const {
    results::LaunchRecord record = replay::RecordOf(
        *simulation_.trace, replay_->resolved(), i, simulation_.trace_digest,
        std::filesystem::path(simulation_.trace_path).filename().string(), std::string(replay::Name(Mode())),
        std::string(replay::Name(simulation_.cache)), *simulation_.machine);
    if (simulation_.cache != gpu::CachePolicy::kCold)
      record.options += fmt::format("with {}", fmt::join(launches_, ","));
    if (simulation_.replays != 1) record.options += fmt::format(" replays {}", simulation_.replays);
    if (simulation_.placement != 0) record.options += fmt::format(" placement {}", simulation_.placement);
    if (simulation_.in_graph) record.options += " graph";
    return record;
  }

  Result<bool> Load() {
    if (writer_ == nullptr) return false;
    const std::lock_guard lock(*mutex_);
    Measured found;
    for (const uint32_t i : launches_) {
      const Result<bool> loaded =
          LoadLaunch(results::LaunchKey(Record(i), simulation_.machine->record.digest), &found);
      if (!loaded.ok()) database_failed_ = true;
      if (!loaded.ok() || !*loaded) return loaded;
    }
    measured_ = std::move(found);
    return true;
  }

  Result<bool> LoadLaunch(const std::string& key, Measured* found) {
    HEDDLE_ASSIGN_OR_RETURN(
        sqlite::Statement launch,
        writer_->database().Prepare("SELECT launch_id, end_cycle - start_cycle, duration_ps "
                                    "FROM launch WHERE key = ?"));
    launch.Bind(key);
    HEDDLE_ASSIGN_OR_RETURN(const bool there, launch.Step());
    if (!there) return false;
    const int64_t id = launch.Integer(0);
    found->cycles += static_cast<Cycle>(launch.Integer(1));
    found->microseconds += launch.Real(2) / 1e6;
    HEDDLE_ASSIGN_OR_RETURN(
        sqlite::Statement counts,
        writer_->database().Prepare("SELECT name, value FROM v_stat WHERE launch_id = ?"));
    counts.Bind(id);
    while (true) {
      HEDDLE_ASSIGN_OR_RETURN(const bool more, counts.Step());
      if (!more) break;
      found->counters[counts.Text(0)] += static_cast<uint64_t>(counts.Integer(1));
    }
    HEDDLE_ASSIGN_OR_RETURN(
        sqlite::Statement issued,
        writer_->database().Prepare("SELECT i.text, p.slots FROM pc_stat p JOIN stall_def d USING (stall_id) "
                                    "JOIN launch l USING (launch_id) "
                                    "JOIN instruction i ON i.kernel_id = l.kernel_id AND i.pc = p.pc "
                                    "WHERE d.name = 'selected' AND launch_id = ?"));
    issued.Bind(id);
    while (true) {
      HEDDLE_ASSIGN_OR_RETURN(const bool more, issued.Step());
      if (!more) return true;
      found->counters["inst_" + OpcodeOf(issued.Text(0))] += static_cast<uint64_t>(issued.Integer(1));
    }
  }

  Status Simulate() {
    gpu::RunOptions options;
    options.cache_policy = simulation_.cache;
    options.placement_seed = simulation_.placement;
    gpu::Gpu gpu(simulation_.machine->gpu, options);
    for (uint32_t round = 0; round < simulation_.replays; ++round) {
      const bool counts = round + 1 == simulation_.replays;
      for (const uint32_t i : launches_) {
        HEDDLE_ASSIGN_OR_RETURN(isa::LaunchProgram * program, replay_->Prepare(i));
        gpu::LaunchRequest request{program, replay_->resolved().launches[i].name, 0, {}};
        request.behind_in_graph = simulation_.in_graph;
        HEDDLE_ASSIGN_OR_RETURN(request.sampling, replay_->Sampling(i));
        HEDDLE_ASSIGN_OR_RETURN(const std::vector<stats::LaunchStats> stats, gpu.Run({&request, 1}));
        const std::vector<isa::StreamIssue> issues = program->Issues();
        if (!issues.empty()) {
          return Error{ExitCode::kTrace, simulation_.trace_path,
                       fmt::format("is not complete: {}: {}", issues[0].kind, issues[0].detail), ""};
        }
        if (counts) Count(stats[0], program->code());
        if (counts && writer_ != nullptr)
          HEDDLE_RETURN_IF_ERROR(Store(i, *program, stats[0], gpu.samplings()[0]));
        replay_->Close(i);
      }
    }
    return Ok();
  }

  void Count(const stats::LaunchStats& stats, const isa::KernelCode& code) {
    measured_.cycles += stats.end_cycle - stats.start_cycle;
    measured_.microseconds +=
        static_cast<double>(replay::SustainedPicoseconds(simulation_.machine->gpu, code, stats)) / 1e6;
    for (const stats::CounterDef& def : stats::CounterDefs())
      measured_.counters[std::string(def.name)] += stats.counters.*def.member;
    for (size_t i = 0; i < stats.per_pc.size(); ++i) {
      if (stats.per_pc[i].issued != 0)
        measured_.counters["inst_" + std::string(isa::Name(code.instructions[i].op))] +=
            stats.per_pc[i].issued;
    }
  }

  Status Store(uint32_t i, const isa::LaunchProgram& program, const stats::LaunchStats& stats,
               const std::optional<stats::Sampling>& sampling) {
    results::LaunchRecord record = Record(i);
    record.sampling = sampling;
    record.execution = replay_->execution(i);
    record.duration_ps = replay::SustainedPicoseconds(simulation_.machine->gpu, program.code(), stats);
    const std::lock_guard lock(*mutex_);
    // Some may be there without the others: of a run that was stopped between them, of `heddle run`, of another row.
    const Result<bool> there =
        writer_->HasLaunch(results::LaunchKey(record, simulation_.machine->record.digest));
    Status stored = there.ok() ? Ok() : Status(there.error());
    if (there.ok() && !*there)
      stored = writer_->AddLaunch(record, simulation_.machine->record, program.code(), program.shape(), stats,
                                  replay_->notes(i));
    database_failed_ |= !stored.ok();
    return stored;
  }

  const Simulation& simulation_;
  std::mutex* mutex_;
  results::Writer* writer_;
  std::unique_ptr<replay::Replay> replay_;
  std::vector<uint32_t> launches_;
  std::vector<uint32_t> all_;
  Measured measured_;
  bool database_failed_ = false;
};

}  // namespace

Result<std::vector<Measured>> RunSimulations(const Plan& plan, const SimulateOptions& options) {
  std::vector<Measured> all(plan.simulations.size());
  std::atomic<size_t> next{0};
  std::atomic<bool> give_up{false};
  size_t done = 0;
  std::mutex database, reporting;
  std::optional<Error> failure;
  const auto work = [&] {
    while (!give_up && (options.stop == nullptr || !*options.stop)) {
      const size_t i = next++;
      if (i >= all.size()) return;
      Run run(plan.simulations[i], &database, options.writer);
      Result<Measured> measured = run.Do();
      const std::lock_guard lock(reporting);
      if (measured.ok()) {
        all[i] = std::move(*measured);
      } else {
        all[i].error = measured.error().ToString();
      }
      if (run.database_failed()) {
        failure = measured.error();
        give_up = true;
      }
      ++done;
      if (options.progress)
        options.progress(done, all.size(),
                         std::filesystem::path(plan.simulations[i].trace_path).filename().string());
    }
  };
  std::vector<std::jthread> threads;
  for (uint32_t i = 1; i < options.jobs; ++i) threads.emplace_back(work);
  work();
  threads.clear();
  if (failure) return *failure;
  if (options.stop != nullptr && *options.stop && done != all.size()) {
    return Error{ExitCode::kInterrupted, "",
                 "stopped by a signal; what was finished is in the database, if one was named",
                 "run the same command again to go on"};
  }
  return all;
}

}  // namespace heddle::validate
