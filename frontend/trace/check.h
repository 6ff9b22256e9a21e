// Checks what a kernel has written against a reference in double precision.
//
// The reference is computed from the buffers' contents before the first launch by the operations that the description lists
// (launch.proto, Check), or was given as a file. Every element is compared.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "frontend/trace/trace.h"
#include "sim/base/result.h"

namespace heddle::trace {

struct Comparison {
  std::string buffer;
  uint64_t elements = 0;
  uint64_t outside = 0;  // beyond the tolerance
  double absolute = 0;   // |got - want| <= absolute * rms(row of want) + relative * |want|
  double relative = 0;
  double max_error = 0;      // largest |got - want|
  double mean_error = 0;     // of |got - want|
  uint64_t worst_index = 0;  // where |got - want| is largest in units of what is allowed
  double worst_got = 0;
  double worst_want = 0;
  bool passed = false;
};

struct CheckReport {
  std::string none;  // why there is no check; then nothing was compared and the trace is not verified
  std::vector<Comparison> comparisons;

  bool passed() const;  // something was compared, and all of it holds
};

// Reads device memory after the last launch.
using ReadMemory = std::function<Status(uint64_t address, std::span<std::byte> out)>;

// Errors (kTrace): operations whose shapes do not fit, expressions that do not evaluate. A wrong result is no error.
Result<CheckReport> RunCheck(const Trace& trace, const ResolvedTrace& resolved, const ReadMemory& read);

}  // namespace heddle::trace
