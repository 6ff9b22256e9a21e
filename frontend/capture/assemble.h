// From the records of one process to a trace.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "frontend/trace/build.h"
#include "frontend/trace/trace.h"
#include "sim/base/result.h"

namespace heddle::capture {

// Copies of one direction, or fills, that the process made while it was recorded.
struct Transfers {
  uint64_t count = 0;
  uint64_t bytes = 0;
  uint64_t nanoseconds = 0;
};

struct Captured {
  trace::Trace trace;
  uint32_t process = 0;
  bool complete = false;                       // the process ended in order
  std::map<std::string, Transfers> transfers;  // "host to device", ...
  uint64_t measured_launches = 0;              // with start and end
  std::vector<std::string> warnings;           // for people: what is missing, and what to do about it
};

// `folder` is what libheddle_capture.so left for one process: `records` and the cubins beside it. The trace has passed Validate;
// its launches are those that ran, graphs expanded, in the order of submission, on the addresses of the process. SASS is decoded
// where the toolchain can. Errors (kTrace): the records cannot be read. A process that launched nothing gives a trace without launches.
Result<Captured> AssembleTrace(const std::string& folder, const trace::Toolchain& toolchain);

// The folders of processes below `folder`, by name; `folder` itself where it is one.
Result<std::vector<std::string>> ProcessFolders(const std::string& folder);

}  // namespace heddle::capture
