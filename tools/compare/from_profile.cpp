#include "tools/compare/from_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "frontend/trace/htrace.h"
#include "tools/compare/built_kernels.h"
#include "tools/compare/kernel_name.h"
#include "tools/compare/trace_sequence.h"
#include "tools/replay/replay.h"
#include "tools/replay/trace_run.h"

namespace heddle::compare {
namespace {

namespace fs = std::filesystem;

struct Candidate {
  const trace::Trace* trace = nullptr;
  std::string file;
  uint32_t launch = 0;
  Dim3 grid, block;
};

class Matcher {
 public:
  Matcher(const config::Gpu& gpu) : symbols_(replay::DeviceSymbols(gpu)) {}  // NOLINT: local

  Status Read(const std::vector<std::string>& files) {
    for (const std::string& file : files) {
      HEDDLE_ASSIGN_OR_RETURN(trace::Trace trace, trace::ReadTrace(file));
      traces_.push_back(std::make_unique<trace::Trace>(std::move(trace)));
      const trace::Trace& kept = *traces_.back();
      const Result<trace::ResolvedTrace> resolved = trace::Resolve(kept, symbols_);
      if (!resolved.ok()) continue;  // not for this machine
      for (uint32_t i = 0; i < kept.launches.size(); ++i) {
        const trace::Function& function = kept.functions[kept.launches[i].function];
        if (kept.modules[function.module].recorded())
          continue;  // its instructions belong to its own addresses
        const Candidate candidate{&kept, file, i, resolved->launches[i].grid, resolved->launches[i].block};
        const std::string canonical = CanonicalKernelName(function.name);
        by_name_[canonical].push_back(candidate);
        by_function_[FunctionName(canonical)].push_back(candidate);
      }
    }
    return Ok();
  }

  struct Match {
    Candidate candidate;
    trace::Symbols defines;
    std::string note;
  };

  // FunctionName of the launch's kernel, where no trace has a kernel of its name; else empty.
  std::string Missing(const profile::Launch& launch) const {
    const std::string canonical =
        CanonicalKernelName(launch.mangled_name.empty() ? launch.kernel : launch.mangled_name);
    const std::string function = FunctionName(canonical);
    return by_name_.contains(canonical) || by_function_.contains(function) ? "" : function;
  }

  // Nothing, and why in `reason`; or what fits.
  std::optional<Match> Find(const profile::Launch& launch, std::string* reason) const {
    const std::string canonical =
        CanonicalKernelName(launch.mangled_name.empty() ? launch.kernel : launch.mangled_name);
    auto named = by_name_.find(canonical);
    if (named == by_name_.end()) {
      named = by_function_.find(FunctionName(canonical));
      const bool is_function = canonical.find_first_of("<:") == std::string::npos;
      if (named == by_function_.end() || !is_function) {
        *reason = "no trace has a kernel of this name";
        return std::nullopt;
      }
    }
    if (!launch.grid || !launch.block) {
      *reason = "the profile does not state its grid";
      return std::nullopt;
    }
    for (const Candidate& candidate : named->second) {
      if (candidate.grid == *launch.grid && candidate.block == *launch.block)
        return Match{candidate, {}, Note(candidate)};
    }
    for (const Candidate& candidate : named->second) {
      if (std::optional<Match> match = Reshaped(candidate, *launch.grid, *launch.block)) return match;
    }
    *reason = "traces have it with other grids only";
    return std::nullopt;
  }

 private:
  static std::string Note(const Candidate& candidate) {
    return candidate.launch == 0 ? "" : "without what earlier launches of its trace compute";
  }

  // One definition scaled as an axis of the grid must be.
  std::optional<Match> Reshaped(const Candidate& candidate, const Dim3& grid, const Dim3& block) const {
    if (candidate.trace->launches[candidate.launch].frozen_grid) return std::nullopt;
    const std::pair<uint64_t, uint64_t> ratios[] = {{grid.x, candidate.grid.x},
                                                    {grid.y, candidate.grid.y},
                                                    {grid.z, candidate.grid.z},
                                                    {grid.Count(), candidate.grid.Count()}};
    for (const auto& [name, value] : candidate.trace->defines) {
      if (!value.text.empty() || value.value <= 0) continue;
      for (const auto& [wanted, now] : ratios) {
        if (wanted == now || now == 0) continue;
        const double scaled = std::ceil(static_cast<double>(value.value) * static_cast<double>(wanted) /
                                        static_cast<double>(now));
        if (scaled < 1 || scaled > 1e12) continue;
        trace::Symbols defines{{name, static_cast<int64_t>(scaled)}};
        const Result<trace::ResolvedTrace> resolved = trace::Resolve(*candidate.trace, symbols_, defines);
        if (!resolved.ok()) continue;
        const trace::ResolvedLaunch& launch = resolved->launches[candidate.launch];
        if (launch.grid != grid || launch.block != block) continue;
        const std::string note = Note(candidate);
        return Match{
            candidate, defines,
            fmt::format("{}={} to fit the grid{}{}", name, defines[name], note.empty() ? "" : "; ", note)};
      }
    }
    return std::nullopt;
  }

  trace::Symbols symbols_;
  std::vector<std::unique_ptr<trace::Trace>> traces_;
  std::map<std::string, std::vector<Candidate>> by_name_, by_function_;
};

double Duration(const profile::Launch& launch) {
  for (const profile::Metric& metric : launch.metrics)
    if (metric.name == "duration_ps") return metric.value;
  return 0;
}

struct Kind {
  ProfiledKernel kernel;
  std::vector<size_t> launches;  // in the profile
  std::optional<uint32_t> added;
};

// Kernels of one name, grid and block.
std::vector<Kind> Kinds(const profile::Profile& profile) {
  std::map<std::tuple<std::string, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t>, size_t> index;
  std::vector<Kind> kinds;
  for (size_t i = 0; i < profile.launches.size(); ++i) {
    const profile::Launch& launch = profile.launches[i];
    const Dim3 g = launch.grid.value_or(Dim3{0, 0, 0}), b = launch.block.value_or(Dim3{0, 0, 0});
    const auto [found, is_new] =
        index.try_emplace({launch.kernel, g.x, g.y, g.z, b.x, b.y, b.z}, kinds.size());
    if (is_new) {
      kinds.emplace_back();
      kinds.back().kernel = {DisplayName(launch.kernel), launch.grid, launch.block, 0, 0, "", ""};
    }
    Kind& kind = kinds[found->second];
    kind.launches.push_back(i);
    ++kind.kernel.launches;
    kind.kernel.total_ps += Duration(launch);
  }
  return kinds;
}

// Streams numbered in the order in which they come.
class Streams {
 public:
  uint32_t Of(const profile::Launch& launch) {
    return numbers_
        .try_emplace({launch.process.value_or(0), launch.device.value_or(0), launch.context.value_or(0),
                      launch.stream.value_or(0)},
                     static_cast<uint32_t>(numbers_.size()))
        .first->second;
  }

 private:
  std::map<std::tuple<uint64_t, uint64_t, uint64_t, uint64_t>, uint32_t> numbers_;
};

void AppendLaunches(const profile::Profile& profile, const std::vector<Kind>& kinds, bool every_launch,
                    TraceSequence* sequence) {
  std::vector<std::pair<size_t, const Kind*>> order;  // place in the profile
  for (const Kind& kind : kinds) {
    if (!kind.added) continue;
    if (!every_launch) {
      order.emplace_back(kind.launches[0], &kind);
      continue;
    }
    for (const size_t i : kind.launches) order.emplace_back(i, &kind);
  }
  std::sort(order.begin(), order.end());
  Streams streams;
  for (const auto& [i, kind] : order) {
    const profile::Launch& launch = profile.launches[i];
    const double ps =
        every_launch ? Duration(launch) : kind->kernel.total_ps / static_cast<double>(kind->kernel.launches);
    const int64_t start = ps > 0 ? launch.start_ns.value_or(-1) : -1;
    // Alone, launches stand for many: their streams would only say that they may overlap.
    sequence->Append(*kind->added, every_launch ? streams.Of(launch) : 0, start,
                     start < 0 ? -1 : start + std::llround(ps / 1e3));
  }
}

// The GPU of all launches that were found; empty: not said, or several.
std::string GpuOf(const profile::Profile& profile, const std::vector<Kind>& kinds) {
  std::set<std::string> names;
  for (const Kind& kind : kinds) {
    if (!kind.added) continue;
    for (const size_t i : kind.launches) names.insert(profile.launches[i].gpu);
  }
  return names.size() == 1 ? *names.begin() : "";
}

}  // namespace

Result<FromProfile> TraceFromProfile(const std::string& profile_path, const config::Gpu& gpu,
                                     const FromProfileOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const profile::Profile profile, profile::ReadProfile(profile_path));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> files, replay::TraceFiles(options.traces));
  if (files.empty() && options.kernels.empty())
    return Error{ExitCode::kUsage, "--traces", "no .htrace file there",
                 "name a file or a folder with traces"};
  Matcher matcher(gpu);
  HEDDLE_RETURN_IF_ERROR(matcher.Read(files));

  FromProfile result;
  TraceSequence sequence;
  std::vector<Kind> kinds = Kinds(profile);
  if (!options.kernels.empty()) {
    std::set<std::string> missing;
    for (const Kind& kind : kinds) missing.insert(matcher.Missing(profile.launches[kind.launches[0]]));
    missing.erase("");
    BuiltKernels built =
        BuildKernels(options.kernels, options.cache, missing, gpu.sm_version, options.toolchain);
    HEDDLE_RETURN_IF_ERROR(matcher.Read(built.files));
    result.notes = std::move(built.notes);
  }
  for (Kind& kind : kinds) {
    ProfiledKernel& kernel = kind.kernel;
    result.launches += kernel.launches;
    result.total_ps += kernel.total_ps;
    if (const auto match = matcher.Find(profile.launches[kind.launches[0]], &kernel.reason)) {
      kernel.trace = match->candidate.file;
      kernel.reason = match->note;
      kind.added = sequence.Add(*match->candidate.trace, match->candidate.launch, match->defines);
      result.matched_launches += kernel.launches;
      result.matched_ps += kernel.total_ps;
    }
  }
  AppendLaunches(profile, kinds, options.every_launch, &sequence);
  std::string measured_on = GpuOf(profile, kinds);
  for (Kind& kind : kinds) result.kernels.push_back(std::move(kind.kernel));
  std::stable_sort(result.kernels.begin(), result.kernels.end(),
                   [](const ProfiledKernel& a, const ProfiledKernel& b) { return a.total_ps > b.total_ps; });
  if (sequence.size() == 0) {
    const std::string why =
        result.kernels.empty()
            ? ""
            : fmt::format("; the longest, {}: {}", result.kernels[0].kernel, result.kernels[0].reason);
    return Error{ExitCode::kTrace, profile_path,
                 fmt::format("none of its {} launches is in the traces{}", result.launches, why),
                 result.notes.empty()
                     ? "give more --traces; `heddle trace build` makes them from descriptions"
                     : result.notes[0]};
  }
  const std::string name = fs::path(profile_path).filename().string();
  result.trace = sequence.Finish(
      name, fmt::format("{} of {} launches of a profile, {:.1f} % of its time, put together from traces of "
                        "the same kernels.",
                        result.matched_launches, result.launches, result.CoveredPercent()));
  result.trace.device.name = std::move(measured_on);
  HEDDLE_RETURN_IF_ERROR(trace::Validate(result.trace, name));
  return result;
}

}  // namespace heddle::compare
