#include "tools/batch/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "frontend/trace/htrace.h"
#include "sim/base/digest.h"
#include "sim/config/describe.h"
#include "sim/config/load.h"
#include "tools/batch/follow.h"
#include "tools/batch/frozen.h"
#include "tools/replay/replay.h"

namespace heddle::batch {
namespace {

constexpr size_t kMostFaultsShown = 100;

// All faults of a request. Lines that say the same of several values stand once.
class Faults {
 public:
  void Add(const Error& error) {
    if (code_ == ExitCode::kOk) code_ = error.code;
    std::istringstream lines(error.place.empty() ? error.message : error.place + ": " + error.message);
    for (std::string line; std::getline(lines, line);) AddLine(line);
    if (!error.next_step.empty() && next_.empty()) next_ = error.next_step;
  }

  bool none() const { return code_ == ExitCode::kOk; }

  Error Join() const {
    std::string text;
    for (size_t i = 0; i < std::min(lines_.size(), kMostFaultsShown); ++i) {
      text += (i == 0 ? "" : "\n") + lines_[i].text;
      if (lines_[i].more > 0) text += fmt::format(" (and {} more like it)", lines_[i].more);
    }
    if (lines_.size() > kMostFaultsShown)
      text += fmt::format("\nand {} more", lines_.size() - kMostFaultsShown);
    return {code_, "", text, lines_.size() == 1 ? next_ : "nothing was run"};
  }

 private:
  struct Line {
    std::string text;
    size_t more = 0;
  };

  // "--set path=value: error: text": the path and the text tell faults apart, the value does not.
  void AddLine(const std::string& line) {
    std::string kind = line;
    const size_t equals = line.find('='), error = line.find(": error: ");
    if (line.starts_with("--set ") && equals < error && error != std::string::npos)
      kind = line.substr(0, equals) + line.substr(error);
    const auto [known, is_new] = seen_.emplace(kind, lines_.size());
    if (is_new)
      lines_.push_back({line, 0});
    else if (lines_[known->second].text != line)
      ++lines_[known->second].more;
  }

  ExitCode code_ = ExitCode::kOk;
  std::string next_;
  std::vector<Line> lines_;
  std::map<std::string, size_t> seen_;
};

std::vector<std::string> Texts(const Assignments& assignments) {
  std::vector<std::string> texts;
  for (const auto& [path, value] : assignments) texts.push_back(path + "=" + value);
  return texts;
}

struct LoadedTrace {
  std::string path;
  std::string name;
  std::string digest;
  trace::Trace trace;
  // By what the machine tells a trace of itself: designs that tell the same share it.
  std::map<trace::Symbols, trace::ResolvedTrace> resolved = {};
};

class Planner {
 public:
  explicit Planner(const SweepRequest& request) : request_(request) {}

  Result<Plan> Make() {
    std::vector<Assignments> points = ReadAxes();
    points.insert(points.end(), request_.designs.begin(), request_.designs.end());
    for (const Assignments& point : request_.designs)
      for (const auto& [path, value] : point) AddPath(path);
    for (const Error& fault : request_.faults) faults_.Add(fault);
    if (request_.arch.empty())
      faults_.Add({ExitCode::kUsage, "heddle sweep", "no machine to start from", "give --arch"});
    if (points.empty() && faults_.none())
      faults_.Add({ExitCode::kUsage, "heddle sweep", "no design to run", "give an --axis"});
    if (request_.traces.empty())
      faults_.Add({ExitCode::kUsage, "heddle sweep", "no trace given", "name one or more: --trace X.htrace"});
    for (const std::string& path : request_.traces) ReadTrace(path);
    if (!request_.arch.empty()) {
      const Result<config::Gpu> base = config::LoadGpu(request_.arch, request_.overrides);
      if (!base.ok()) faults_.Add(base.error());
      if (base.ok()) {
        base_ = *base;
        flat_ = ValuesOf(*base);
        for (const Assignments& point : points) AddDesign(point);
      }
    }
    if (!faults_.none()) return faults_.Join();
    AddNotes();
    return std::move(plan_);
  }

 private:
  std::vector<Assignments> ReadAxes() {
    Space space{{}, request_.shape, request_.samples, request_.seed};
    bool good = true;
    for (const std::string& text : request_.axes) {
      Result<Axis> axis = ParseAxis(text);
      if (!axis.ok()) faults_.Add(axis.error());
      good = good && axis.ok();
      if (!axis.ok()) continue;
      AddPath(axis->path);
      space.axes.push_back(std::move(*axis));
    }
    if (space.axes.empty()) return {};
    Result<std::vector<Assignments>> points = Enumerate(space);
    if (!points.ok()) faults_.Add(points.error());
    return good && points.ok() ? std::move(*points) : ValuesAlone(space);
  }

  // Nothing will be run, but what is wrong with single values is said, too.
  static std::vector<Assignments> ValuesAlone(const Space& space) {
    constexpr size_t kMostLookedAt = 200;
    std::vector<Assignments> points;
    for (const Axis& axis : space.axes)
      for (size_t i = 0; i < std::min(kMostLookedAt, axis.values.size()); ++i)
        points.push_back({{axis.path, axis.values[i]}});
    return points;
  }

  void AddPath(const std::string& path) {
    if (std::find(plan_.paths.begin(), plan_.paths.end(), path) == plan_.paths.end())
      plan_.paths.push_back(path);
  }

  void ReadTrace(const std::string& path) {
    LoadedTrace loaded;
    loaded.path = path;
    loaded.name = std::filesystem::path(path).filename().string();
    Result<trace::Trace> trace = trace::ReadTrace(path, &loaded.digest);
    if (!trace.ok()) return faults_.Add(trace.error());
    if (std::find(plan_.digests.begin(), plan_.digests.end(), loaded.digest) != plan_.digests.end()) {
      plan_.notes.push_back(fmt::format("{}: holds the same as another trace; left out", path));
      return;
    }
    loaded.trace = std::move(*trace);
    plan_.traces.push_back(path);
    plan_.digests.push_back(loaded.digest);
    traces_.push_back(std::move(loaded));
  }

  void AddDesign(const Assignments& point) {
    Design design;
    design.values = point;
    design.overrides = request_.overrides;
    const std::vector<std::string> own = Texts(point);
    design.overrides.insert(design.overrides.end(), own.begin(), own.end());
    Assignments given;
    for (const std::string& text : design.overrides) {
      const size_t equals = std::min(text.find('='), text.size() - 1);
      given.emplace_back(config::CanonicalPath(text.substr(0, equals)), text.substr(equals + 1));
    }
    design.followed = Follow(flat_, given);
    for (std::string& text : Texts(design.followed)) design.overrides.push_back(std::move(text));
    Result<config::Gpu> gpu = config::LoadGpu(request_.arch, design.overrides);
    if (!gpu.ok()) return faults_.Add(gpu.error());
    design.area = AreaOf(*gpu);
    design.power_w = PowerOf(*gpu, base_);
    const replay::MachineRecord machine = replay::RecordMachine(std::move(*gpu));
    design.digest = machine.record.digest;
    if (!digests_.insert(design.digest).second) {
      plan_.notes.push_back(
          fmt::format("{}: is the same machine as a design before it; left out", Label(point)));
      return;
    }
    for (size_t i = 0; i < traces_.size(); ++i) AddJob(machine, i);
    plan_.designs.push_back(std::move(design));
  }

  void AddJob(const replay::MachineRecord& machine, size_t index) {
    LoadedTrace& trace = traces_[index];
    const trace::Symbols symbols = replay::DeviceSymbols(machine.gpu);
    auto resolved = trace.resolved.find(symbols);
    if (resolved == trace.resolved.end()) {
      Result<trace::ResolvedTrace> now = trace::Resolve(trace.trace, symbols, request_.defines);
      if (!now.ok()) return faults_.Add(now.error());
      resolved = trace.resolved.emplace(symbols, std::move(*now)).first;
    }
    const replay::LaunchSet launches(trace.trace, resolved->second, request_.launch_setting);
    CheckCubins(machine, trace, launches.selected(), resolved->second);
    Job job{plan_.designs.size(), index, launches.Keys(trace.digest, trace.name, machine), ""};
    job.key = Sha256Hex(fmt::format("{}", fmt::join(job.launch_keys, "\n")));
    if (launches.selected().empty()) {
      faults_.Add({ExitCode::kUsage, trace.path, "has no launch that --launch and --kernel select",
                   "`heddle trace info` lists them"});
    }
    plan_.jobs.push_back(std::move(job));
  }

  void CheckCubins(const replay::MachineRecord& machine, const LoadedTrace& trace,
                   const std::vector<uint32_t>& selected, const trace::ResolvedTrace& resolved) {
    if (request_.allow_foreign_cubins) return;
    const std::vector<uint32_t>& runs = machine.gpu.runs_sm_versions;
    for (const uint32_t launch : selected) {
      const trace::Function& function = trace.trace.functions[resolved.launches[launch].function];
      const uint32_t version = trace.trace.modules[function.module].sm_version;
      if (std::find(runs.begin(), runs.end(), version) != runs.end()) continue;
      return faults_.Add({ExitCode::kTrace, trace.path,
                          fmt::format("launch {} is code for sm_{}, {} runs sm_{}", launch, version,
                                      machine.gpu.name, fmt::join(runs, ", sm_")),
                          "give a trace for this machine, or --allow-foreign"});
    }
  }

  void AddNotes() {
    for (const LoadedTrace& trace : traces_) {
      std::vector<std::string> notes =
          FrozenNotes(trace.path, trace.trace, trace.resolved, static_cast<int64_t>(base_.sm.count));
      std::move(notes.begin(), notes.end(), std::back_inserter(plan_.notes));
    }
  }

  const SweepRequest& request_;
  Plan plan_;
  Faults faults_;
  config::Gpu base_;
  BaseValues flat_;
  std::vector<LoadedTrace> traces_;
  std::set<std::string> digests_;
};

}  // namespace

Result<Plan> MakePlan(const SweepRequest& request) { return Planner(request).Make(); }

std::vector<std::string> RunArguments(const SweepRequest& request, const Plan& plan, const Job& job) {
  std::vector<std::string> arguments = {"run", plan.traces[job.trace], "-a", request.arch};
  for (const std::string& text : plan.designs[job.design].overrides) {
    arguments.emplace_back("-s");
    arguments.push_back(text);
  }
  arguments.insert(arguments.end(), request.run_options.begin(), request.run_options.end());
  return arguments;
}

std::string ShellLine(const std::vector<std::string>& arguments) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%";
  std::string line = "heddle";
  for (const std::string& argument : arguments) {
    line += ' ';
    if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) {
      line += argument;
      continue;
    }
    line += '\'';
    for (const char c : argument) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

}  // namespace heddle::batch
