// Writes tracks as a Perfetto trace: ui.perfetto.dev opens it, as does PyPI's perfetto.
#pragma once

#include <string>

#include "sim/base/result.h"
#include "tools/timeline/tracks.h"

namespace heddle::timeline {

// To a temporary name beside `path` first, then renamed. Returns the file's size in bytes. kUsage: it cannot be written.
Result<uint64_t> WritePerfetto(const Tracks& tracks, const std::string& path);

}  // namespace heddle::timeline
