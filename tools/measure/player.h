// Plays the launches of a trace on a real GPU and takes their times with CUDA events.
//
// Buffers are allocated, filled by the trace's rules, and every parameter that is an address of a buffer, tensor maps too, gets
// the GPU's own. What a launch reads is written anew before its first measurement, not between repetitions: times do not
// depend on values but for kernels that steer themselves by what they wrote.
//
// Cold: L2 is filled with something else before each repetition. Warm: the launch follows itself. Both are medians, of the time
// between two events around the launch.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontend/trace/trace.h"
#include "sim/results/results.h"
#include "tools/measure/driver.h"

namespace heddle::measure {

struct Device {
  std::string name;
  uint32_t sm_version = 0;  // 90
  uint64_t l2_bytes = 0;
  trace::Symbols symbols;  // that expressions of a trace may name
};

struct Options {
  uint32_t repeats = 20;
  uint32_t warm_up = 3;
};

class Player {
 public:
  // Device 0 of what CUDA_VISIBLE_DEVICES leaves.
  static Result<Player> Open(const Driver& driver);

  const Device& device() const { return device_; }

  // Empty: it can run here. Otherwise why not: another architecture, recorded instructions.
  std::string WhyNot(const trace::Trace& trace) const;

  // A record for each launch, with duration_ps (cold), duration_warm_ps, and the spread of the repetitions; the launch is
  // named by `digest` and its number.
  Result<std::vector<results::HardwareRecord>> Measure(const trace::Trace& trace, const std::string& digest,
                                                       const std::string& source, const Options& options);

  // Plays each launch once, in order, and returns what the buffers of these names hold then. Errors (kTrace): a buffer is not there.
  Result<std::map<std::string, std::vector<std::byte>>> Play(const trace::Trace& trace,
                                                             const std::vector<std::string>& buffers);

 private:
  struct Memory;
  struct Launch;  // ready to be launched
  Status Allocate(const trace::ResolvedTrace& resolved, Memory* memory);
  Result<CUhandle> Kernel(const trace::Trace& trace, const trace::Function& function, Memory* memory);
  // Fills memory with what stands before it in the trace.
  Status Prepare(const trace::Trace& trace, const trace::ResolvedTrace& resolved, uint32_t index,
                 Memory* memory, Launch* launch);
  explicit Player(const Driver& driver) : driver_(driver) {}
  Status Describe(CUdevice device);
  Status CopyOnDevice(const trace::ResolvedTrace& resolved, const trace::ResolvedContent& content,
                      const Memory& memory);
  Status Fill(const trace::ResolvedTrace& resolved, uint32_t before_launch, const Memory& memory);
  Result<std::vector<std::byte>> Parameters(const trace::Trace& trace, const trace::ResolvedTrace& resolved,
                                            uint32_t launch, const Memory& memory) const;
  Status Start(Launch* launch);
  Result<double> TimeOnce(Launch* launch, bool cold, const Memory& memory);

  Driver driver_;
  Device device_;
};

// Whether code for `code` (80) runs on a device of `device` (86): the same generation, not newer.
bool RunsOn(uint32_t code, uint32_t device);

}  // namespace heddle::measure
