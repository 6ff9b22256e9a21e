// The parameter bytes of a launch, out of either way of handing them over.
#pragma once

#include <cstddef>
#include <cstdint>

#include "frontend/capture/inject/functions.h"

namespace heddle::capture {

// Numbers of Launch.Missing in record.proto.
enum Missing : uint32_t { kNothingMissing = 0, kNoLayout = 1, kNoPointer = 2 };

// `out` has room for kMaxParameterBytes. Space between parameters is zero.
Missing GatherParameters(void** kernel_params, void** extra, const FunctionInfo& function, uint8_t* out,
                         size_t* bytes);

}  // namespace heddle::capture
