// Runs the player (capture/player.cpp) under `heddle capture` with the doubles of libcuda and libcupti, and reads what came of it.
#pragma once

#include <string>
#include <vector>

#include "frontend/trace/trace.h"
#include "tests/support/shell.h"

namespace heddle::testing_support {

// A folder with a cubin of one kernel "k" that takes (u64, u32), for scripts.
class CaptureFolder {
 public:
  CaptureFolder();

  const std::string& cubin() const { return cubin_; }
  std::string Path(const std::string& name) const { return folder_ / name; }
  std::string Write(const std::string& name, const std::string& bytes) const;

  // A cubin of one such kernel of another name or length.
  std::string WriteCubin(const std::string& name, const std::string& kernel, size_t instructions = 1) const;

  // "module m <cubin>", "function f m k", "alloc a 4096", then `script`. `before`: what stands in front of the command.
  Outcome Capture(const std::string& script, const std::string& options = "",
                  const std::string& environment = "", const std::string& before = "") const;
  // The script alone.
  Outcome CaptureRaw(const std::string& script, const std::string& options = "",
                     const std::string& environment = "", const std::string& before = "") const;
  // What a capture wrote to out.htrace. Fails the test where it cannot be read.
  trace::Trace Read(const std::string& name = "out.htrace") const;
  // Files that match out*.htrace, sorted.
  std::vector<std::string> Traces() const;

 private:
  TemporaryFolder folder_;
  std::string cubin_;
};

// The little-endian value at `offset` of a launch's parameters.
uint64_t Parameter(const trace::Launch& launch, size_t offset, size_t bytes);

}  // namespace heddle::testing_support
