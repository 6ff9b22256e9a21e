#include "tools/replay/verify.h"

#include <fmt/core.h>

#include "frontend/emulator/device_memory.h"
#include "frontend/emulator/functional_runner.h"
#include "frontend/emulator/launch_program.h"
#include "sim/isa/launch_limits.h"
#include "sim/sm/sm.h"
#include "tools/replay/replay.h"

namespace heddle::replay {

namespace {

Result<std::unique_ptr<Replay>> Open(const trace::Trace& trace, const config::Gpu& gpu,
                                     const trace::Symbols& defines, Mode mode) {
  Options options;
  options.mode = mode;
  options.defines = defines;
  return Replay::Open(trace, gpu, options);
}

// The emulator would execute a CTA of any size; hardware would not start it. The machine given counts too: it may be
// larger than any that exists.
Status CheckHardwareHolds(const config::Gpu& gpu, const isa::LaunchProgram& launch,
                          const std::string& place) {
  const std::string exceeded = isa::ExceededLimit(launch.code().sm_version, launch.shape());
  if (exceeded.empty() || sm::MaxResidentCtas(gpu, launch.shape()) != 0) return Ok();
  return Error{ExitCode::kTrace, place, "no GPU can hold a CTA of this launch: " + exceeded,
               "describe the launch with a smaller block, cluster or shared memory"};
}

Result<emulator::RunSummary> Run(emulator::EmulatedLaunch& launch, const config::Gpu& gpu,
                                 uint64_t delay_seed = 0) {
  emulator::RunnerOptions runner;
  runner.delay_seed = delay_seed;
  runner.sms = gpu.sm.count;
  runner.hash_stream = true;
  return emulator::RunFunctionally(launch, runner);
}

}  // namespace

Result<Verification> Verify(const trace::Trace& trace, const config::Gpu& gpu, const trace::Symbols& defines,
                            uint64_t delay_seed) {
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<Replay> replay, Open(trace, gpu, defines, Mode::kFull));
  Verification out;
  for (uint32_t i = 0; i < replay->launch_count(); ++i) {
    if (replay->recorded(i)) {
      out.check.none = "recorded: addresses without values, there is nothing to verify";
      return out;
    }
    HEDDLE_ASSIGN_OR_RETURN(emulator::EmulatedLaunch * launch, replay->PrepareEmulated(i));
    HEDDLE_RETURN_IF_ERROR(CheckHardwareHolds(gpu, *launch, fmt::format("{} launch {}", trace.name, i)));
    HEDDLE_ASSIGN_OR_RETURN(const emulator::RunSummary summary, Run(*launch, gpu, delay_seed));
    out.warp_instructions += summary.warp_instructions;
    out.stream_hashes.push_back(summary.stream_hash);
    for (isa::StreamIssue& issue : launch->Issues()) out.issues.push_back(std::move(issue));
    replay->Close(i);
  }
  const trace::ReadMemory read = [&](uint64_t address, std::span<std::byte> bytes) {
    return replay->memory().Read(address, bytes);
  };
  HEDDLE_ASSIGN_OR_RETURN(out.check, trace::RunCheck(trace, replay->resolved(), read));
  return out;
}

Result<std::vector<uint64_t>> SkeletonStreamHashes(const trace::Trace& trace, const config::Gpu& gpu,
                                                   const trace::Symbols& defines) {
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<Replay> replay, Open(trace, gpu, defines, Mode::kSkeleton));
  std::vector<uint64_t> hashes;
  for (uint32_t i = 0; i < replay->launch_count(); ++i) {
    if (replay->recorded(i)) return std::vector<uint64_t>{};
    HEDDLE_ASSIGN_OR_RETURN(emulator::EmulatedLaunch * launch, replay->PrepareEmulated(i));
    HEDDLE_ASSIGN_OR_RETURN(const emulator::RunSummary summary, Run(*launch, gpu));
    hashes.push_back(summary.stream_hash);
    replay->Close(i);
  }
  return hashes;
}

}  // namespace heddle::replay
