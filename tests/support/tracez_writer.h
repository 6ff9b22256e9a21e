// Writes small traces in Accel-Sim 2.0's compressed format (frontend/import/tracez.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/traceg_writer.h"

namespace heddle::importer {

struct TracezOptions {
  uint32_t piece_instructions = 2048;  // in a piece at most
  bool dictionary = true;              // made of the trace's own lines
};

std::string TracezBytes(const TracegHeader& header, const std::vector<TestBlock>& blocks,
                        const TracezOptions& options = {});

// Byte offset of the index, as the last bytes say.
uint64_t TracezIndexOffset(const std::string& bytes);

// As ImportText, of a folder with the same list but for the kernel's file.
Result<Imported> ImportTracez(const std::string& bytes, bool lenient = false);

}  // namespace heddle::importer
