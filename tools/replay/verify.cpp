#include "tools/replay/verify.h"

#include "frontend/emulator/device_memory.h"
#include "frontend/emulator/functional_runner.h"
#include "frontend/emulator/launch_program.h"
#include "tools/replay/replay.h"

namespace heddle::replay {

Result<Verification> Verify(const trace::Trace& trace, const config::Gpu& gpu,
                            const trace::Symbols& defines) {
  Options options;
  options.mode = Mode::kFull;
  options.defines = defines;
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<Replay> replay, Replay::Open(trace, gpu, options));
  Verification out;
  for (uint32_t i = 0; i < replay->launch_count(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(emulator::EmulatedLaunch * launch, replay->PrepareEmulated(i));
    emulator::RunnerOptions runner;
    runner.sms = gpu.sm.count;
    HEDDLE_ASSIGN_OR_RETURN(const emulator::RunSummary summary, emulator::RunFunctionally(*launch, runner));
    out.warp_instructions += summary.warp_instructions;
    for (isa::StreamIssue& issue : launch->Issues()) out.issues.push_back(std::move(issue));
    replay->Close(i);
  }
  const trace::ReadMemory read = [&](uint64_t address, std::span<std::byte> bytes) {
    return replay->memory().Read(address, bytes);
  };
  HEDDLE_ASSIGN_OR_RETURN(out.check, trace::RunCheck(trace, replay->resolved(), read));
  return out;
}

}  // namespace heddle::replay
