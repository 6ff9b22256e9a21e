// Where the front end and the simulator meet: a trace on one machine becomes device memory and launch programs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/trace/trace.h"
#include "sim/base/result.h"
#include "sim/config/gpu_description.h"
#include "sim/gpu/gpu.h"
#include "sim/isa/warp_stream.h"

namespace heddle::emulator {
class DeviceMemory;
class EmulatedLaunch;
}  // namespace heddle::emulator

namespace heddle::replay {

enum class Mode : uint8_t {
  kSkeleton,  // what decides control flow and addresses is computed, the rest is traced
  kFull,      // everything is computed; the output can be checked
  kSampled,   // as kSkeleton, and the middle of large grids is left out (sim/gpu/sampling.h)
};

struct Options {
  Mode mode = Mode::kSkeleton;
  trace::Symbols defines;  // replace values of the trace's own
};

// The device properties that expressions of a trace may name.
trace::Symbols DeviceSymbols(const config::Gpu& gpu);

// One trace on one machine. Launches are opened one after the other, in order.
class Replay {
 public:
  // `trace` and `gpu` outlive the replay. Errors: expressions that do not resolve, cubins that cannot be read, a
  // kernel whose SASS is neither in the trace nor can be decoded here.
  static Result<std::unique_ptr<Replay>> Open(const trace::Trace& trace, const config::Gpu& gpu,
                                              const Options& options);
  ~Replay();

  uint32_t launch_count() const;
  const trace::ResolvedTrace& resolved() const;
  const isa::KernelCode& code(uint32_t launch) const;

  // Puts what memory holds before this launch in its place, and lowers the kernel. The program lives as long as the
  // replay; Close() frees what it needs for running.
  Result<isa::LaunchProgram*> Prepare(uint32_t launch);
  void Close(uint32_t launch);
  // Whether the launch was recorded instruction by instruction: nothing of it is executed, and memory stays as it is.
  bool recorded(uint32_t launch) const;
  // What results must say of a recorded launch beside its issues. After Prepare.
  std::vector<isa::StreamIssue> notes(uint32_t launch) const;
  // After Prepare: "recorded", "full", or the slice that skeleton mode runs with ("optimistic", "sound", "full" where no smaller
  // one gave the stream of full execution on sampled CTAs).
  std::string execution(uint32_t launch) const;

  // After Prepare, in mode kSampled: what the sampler must know of the launch. In other modes none. Some of its CTAs are run
  // without timing, to see whether they do equal work.
  Result<std::optional<gpu::SamplingRequest>> Sampling(uint32_t launch) const;

  // Equal for launches that take the same time wherever caches are cold: of the same function and shape, with the same
  // parameters but for pointers, which must point to the same places in buffers of the same sizes. Empty where that does not
  // follow: memory decides what the launch does, a later launch is steered by what it stores, or it was recorded.
  std::string Likeness(uint32_t launch) const;

  // For launches that are prepared before others have run: what stands before a launch, contents and copies, comes to its place when the
  // launch starts. To be called before the first Prepare.
  void PlaceContentsAtStart();

  // The same as what it is, of a launch that is not recorded, for runs without a timing model and for checks of the output: nobody has to publish
  // stores.
  Result<emulator::EmulatedLaunch*> PrepareEmulated(uint32_t launch);
  emulator::DeviceMemory& memory();

  // Executes the launch without a timing model, in the replay's mode: its effect on memory, and nothing else.
  Status ExecuteFunctionally(uint32_t launch);

 private:
  struct State;
  explicit Replay(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace heddle::replay
