#include "frontend/emulator/slice_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "frontend/emulator/functional_runner.h"

namespace heddle::emulator {
namespace {

std::vector<uint64_t> SampledCtas(uint64_t grid, uint32_t wanted) {
  std::vector<uint64_t> ctas;
  if (wanted == 0 || grid <= wanted) return ctas;  // all of them
  for (uint32_t i = 0; i < wanted; ++i) ctas.push_back(wanted == 1 ? 0 : (grid - 1) * i / (wanted - 1));
  ctas.erase(std::unique(ctas.begin(), ctas.end()), ctas.end());
  return ctas;
}

struct Outcome {
  std::optional<RunSummary> summary;  // none: did not finish
  bool saw_skipped_data = false;
};

Result<Outcome> RunSample(const LaunchDescription& launch, std::shared_ptr<const Slice> slice,
                          const RunnerOptions& options) {
  LaunchDescription description = launch;
  const DeviceMemory& memory = launch.memory != nullptr ? *launch.memory : launch.module->memory();
  const std::unique_ptr<DeviceMemory> clone = memory.CloneOnTouch();
  description.memory = clone.get();
  description.program = nullptr;
  description.mode = slice == nullptr ? Mode::kFull : Mode::kSkeleton;
  description.slice = std::move(slice);
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<EmulatedLaunch> run,
                          EmulatedLaunch::Create(std::move(description)));
  Outcome outcome;
  const Result<RunSummary> summary = RunFunctionally(*run, options);
  if (summary.ok()) outcome.summary = *summary;
  for (const isa::StreamIssue& issue : run->Issues())
    outcome.saw_skipped_data |= issue.kind == "skipped_data";
  return outcome;
}

// What full mode does on the sample, and the options that found out.
struct Reference {
  RunnerOptions options;
  std::optional<RunSummary> summary;
};

Result<Reference> RunReference(const LaunchDescription& launch, const SliceSample& sample) {
  Reference reference;
  reference.options.sms = launch.machine.sm_count;
  reference.options.hash_stream = true;
  reference.options.max_warp_instructions = sample.max_warp_instructions;
  reference.options.only_ctas = SampledCtas(launch.grid.Count(), sample.ctas);
  HEDDLE_ASSIGN_OR_RETURN(Outcome outcome, RunSample(launch, nullptr, reference.options));
  if (!outcome.summary && !reference.options.only_ctas.empty()) {
    reference.options.only_ctas.clear();
    HEDDLE_ASSIGN_OR_RETURN(outcome, RunSample(launch, nullptr, reference.options));
  }
  reference.summary = outcome.summary;
  return reference;
}

bool Equal(const Outcome& outcome, const Reference& reference) {
  return outcome.summary && !outcome.saw_skipped_data &&
         outcome.summary->stream_hash == reference.summary->stream_hash &&
         outcome.summary->warp_instructions == reference.summary->warp_instructions;
}

}  // namespace

Result<bool> VerifySlice(const LaunchDescription& launch, std::shared_ptr<const Slice> slice,
                         const SliceSample& sample) {
  HEDDLE_ASSIGN_OR_RETURN(const Reference reference, RunReference(launch, sample));
  if (!reference.summary) return false;
  HEDDLE_ASSIGN_OR_RETURN(const Outcome outcome, RunSample(launch, std::move(slice), reference.options));
  return Equal(outcome, reference);
}

Result<SliceChoice> ChooseSlice(const LaunchDescription& launch, const SliceSample& sample) {
  HEDDLE_ASSIGN_OR_RETURN(const Reference reference, RunReference(launch, sample));
  const std::string where =
      reference.options.only_ctas.empty()
          ? std::string("the whole grid")
          : fmt::format("{} of {} CTAs", reference.options.only_ctas.size(), launch.grid.Count());
  const auto full = std::make_shared<const Slice>();
  if (!reference.summary)
    return SliceChoice{full, fmt::format("full: the sample ({}) did not finish", where)};
  const DeviceMemory& memory = launch.memory != nullptr ? *launch.memory : launch.module->memory();
  std::string tried;
  std::shared_ptr<const Slice> sound;
  for (const SliceKind kind : {SliceKind::kOptimistic, SliceKind::kSound}) {
    const auto slice = std::make_shared<const Slice>(ComputeSlice(*launch.code, *launch.kernel, kind));
    if (kind == SliceKind::kSound) sound = slice;
    if (slice->kind == SliceKind::kFull)
      return SliceChoice{full, "full: indirect branches without a table of targets"};
    HEDDLE_ASSIGN_OR_RETURN(const Outcome outcome, RunSample(launch, slice, reference.options));
    if (Equal(outcome, reference))
      return SliceChoice{
          slice, fmt::format("{}{}: {} of {} instructions, equal to full mode on {}", tried, Name(kind),
                             slice->needed_count, launch.code->instructions.size(), where)};
    tried += fmt::format("{}: {}; ", Name(kind),
                         !outcome.summary           ? "did not finish"
                         : outcome.saw_skipped_data ? "a load that steers the kernel reads data that it skips"
                                                    : "another stream");
  }
  // Values that an earlier launch left out are zeros to the sample, and dividing by one takes the slow path that the
  // slice assumes nobody takes: the sample says nothing about the real values.
  if (memory.AnyStale() && !sound->assumed.empty())
    return SliceChoice{sound, tried + "sound: inputs were skipped, divisions are assumed to be ordinary"};
  return SliceChoice{full, tried + "full"};
}

}  // namespace heddle::emulator
