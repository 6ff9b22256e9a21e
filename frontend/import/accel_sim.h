// A folder of Accel-Sim traces becomes a trace of recorded launches.
#pragma once

#include <cstdint>
#include <string>

#include "frontend/import/faults.h"
#include "frontend/trace/trace.h"
#include "sim/base/result.h"

namespace heddle::importer {

struct ImportOptions {
  // Lines that cannot be read are left out, instructions that are not understood become what static_code.h says, kernels
  // without a usable header are left out; all of it is counted in the launches' notes.
  bool lenient = false;
};

struct Imported {
  trace::Trace trace;
  FaultLog faults;  // empty unless lenient
  uint64_t warp_instructions = 0;
};

// `folder` holds kernelslist.g and the files that it names; the list itself may be given instead. Errors (kTrace): what
// stands in faults.h where the import is not lenient; no usable kernel at all.
Result<Imported> ImportAccelSim(const std::string& folder, const ImportOptions& options);

}  // namespace heddle::importer
